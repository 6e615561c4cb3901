//! `barrage dict`: dictionaries for native clients, made of what was shown.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, ensure};
use broadcaster_core::pack::train::{SAMPLE_BYTES_MAX, train};
use clap::{Args, Subcommand};
use proto::encoding::{Encoding, expand};
use proto::id::RoomId;
use proto::segment::Segment;

use super::export::slots;

/// Dictionaries, with which slots take fewer bytes for native clients.
#[derive(Args, Debug)]
pub(crate) struct Dict {
    #[command(subcommand)]
    command: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Make one of the slots that are kept, and say what it saves on slots that it was not made of
    Train(Train),
}

/// Reads the slots that are still kept (`[broadcaster] retention_s`), the full tier, those with
/// items. The system may run or not. The file goes into `[broadcaster] dictionary`.
#[derive(Args, Debug)]
struct Train {
    /// Data folder of a `barrage up`
    #[arg(long, value_name = "DIR", default_value = stack::DATA)]
    data: PathBuf,
    /// A room; say it again for further ones
    #[arg(long = "room", value_name = "ROOM", required = true)]
    rooms: Vec<RoomId>,
    /// The dictionary; nothing is overwritten
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
}

pub(crate) fn run(args: &Dict) -> anyhow::Result<ExitCode> {
    let What::Train(args) = &args.command;
    let (segments, encoding) = samples(args)?;
    let trained = train(&segments, encoding).context("no dictionary was made")?;
    let (dictionary, saving) = (trained.dictionary, trained.saving);
    let out = || format!("cannot make {}", args.out.display());
    let mut file = File::create_new(&args.out).with_context(out)?;
    file.write_all(dictionary.bytes()).with_context(out)?;
    writeln!(
        io::stdout(),
        "dictionary {} of {} bytes: {} slots that it was not made of take {} bytes with it, {} with \
         {} alone, {:.1} % less",
        dictionary.id(),
        dictionary.bytes().len(),
        saving.slots,
        saving.with,
        saving.without,
        encoding.name(),
        saving.percent(),
    )?;
    Ok(ExitCode::SUCCESS)
}

/// The uncompressed slots with items, and how they were compressed.
fn samples(args: &Train) -> anyhow::Result<(Vec<Vec<u8>>, Encoding)> {
    let (mut segments, mut bytes, mut encoding) = (Vec::new(), 0, None);
    for room in &args.rooms {
        let folder = args.data.join(stack::SEGMENTS).join("dm/1").join(room.to_string());
        let files = slots(&folder)
            .with_context(|| format!("no slots of {room} are in {}", folder.display()))?;
        for path in files {
            let packed = match fs::read(&path) {
                Ok(packed) => packed,
                // Its time was over.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => {
                    return Err(error).with_context(|| format!("cannot read {}", path.display()));
                }
            };
            ensure!(!proto::sealed::is_sealed(&packed), "{room} is sealed: its slots are secret");
            let damaged = || format!("{} is damaged", path.display());
            let segment = expand(&packed).with_context(damaged)?;
            if Segment::decode(&segment).with_context(damaged)?.items.is_empty() {
                continue;
            }
            if bytes + segment.len() > SAMPLE_BYTES_MAX {
                return Ok((segments, encoding.unwrap_or_default()));
            }
            encoding = encoding.or_else(|| Encoding::of(&packed));
            bytes += segment.len();
            segments.push(segment);
        }
    }
    Ok((segments, encoding.unwrap_or_default()))
}
