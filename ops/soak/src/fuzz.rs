//! Hostile bytes, for every decoder and for a link that is serving viewers meanwhile.

mod decoders;
mod frames;
mod live;
mod spoil;

use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, ensure};
use drill::Line;

use crate::cli::Size;

/// The golden vectors, where this was built.
const VECTORS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../proto/vectors");

/// A third of 4.5 s or 15 minutes for the decoders, one for a session's machine, one for the link.
/// Conversations that showed something new go into the folder `kept`, if one is given.
pub(crate) async fn run(size: Size, kept: Option<&Path>, line: &mut Line) -> anyhow::Result<()> {
    let third = size.pick(Duration::from_millis(4_500), Duration::from_mins(15)) / 3;
    let vectors = vectors()?;
    decoders::run(vectors.clone(), third, line).await?;
    frames::run(vectors.clone(), third, kept, line).await?;
    live::run(vectors, third, line).await
}

/// The bytes of all golden vectors, in the order of their names.
fn vectors() -> anyhow::Result<Vec<Vec<u8>>> {
    let folder = Path::new(VECTORS);
    let files = fs::read_dir(folder)
        .context("the golden vectors are not where this was built: run it in its checkout")?;
    let mut paths: Vec<_> = files.map(|it| Ok(it?.path())).collect::<anyhow::Result<_>>()?;
    paths.retain(|it| it.extension().is_some_and(|it| it == "bin"));
    paths.sort();
    ensure!(!paths.is_empty(), "there are no golden vectors");
    Ok(paths.iter().map(fs::read).collect::<Result<_, _>>()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_vectors_to_spoil() {
        assert!(vectors().unwrap().len() > 20);
    }
}
