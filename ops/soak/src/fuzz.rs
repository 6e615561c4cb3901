//! Hostile bytes, for every decoder and for a link that is serving viewers meanwhile.

mod decoders;
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

/// Half of 3 s or 10 minutes for the decoders, half for the link.
pub(crate) async fn run(size: Size, line: &mut Line) -> anyhow::Result<()> {
    let half = size.pick(Duration::from_secs(3), Duration::from_mins(10)) / 2;
    let vectors = vectors()?;
    decoders::run(vectors.clone(), half, line).await?;
    live::run(vectors, half, line).await
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
