//! `barrage export`: what was shown in a room, in a format that other tools read.

mod source;
mod vault;

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use broadcaster_core::archive::slot_start;
use broadcaster_core::export::{Format, Writer};
use broadcaster_core::pack::expand;
use clap::{Args, ValueEnum};
use proto::head::Tier;
use proto::id::{Gen, ItemId, RoomId};
use proto::item::Repeat;
use proto::segment::Segment;

use self::source::Source;
use self::vault::Vault;
use crate::command::keys::masters::Place;

/// Slots between two words of progress: a quarter of an hour.
const PROGRESS: u64 = 900;

/// Reads a room's recordings (its `archive`) and the slots that are still served (`[broadcaster]
/// retention_s`), in the order in which they were shown; recalled items are left out. The system may
/// run or not.
#[derive(Args, Debug)]
pub(crate) struct Export {
    /// Data folder of a `barrage up`
    #[arg(long, value_name = "DIR", default_value = stack::DATA)]
    data: PathBuf,
    /// What to write; all but jsonl have comments only
    #[arg(long, value_enum, default_value_t = Form::Jsonl)]
    format: Form,
    /// The file; nothing is overwritten. Without it, the standard output
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    #[command(flatten)]
    place: Place,
    /// The room
    room: String,
}

/// A format, as it is named here.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Form {
    /// Every item as JSON, one a line
    Jsonl,
    /// XML as Bilibili has it; `barrage replay` reads it
    BilibiliXml,
    /// Subtitles that fly, for video players
    Ass,
    /// JSON as DPlayer's API has it
    Dplayer,
}

impl From<Form> for Format {
    fn from(form: Form) -> Self {
        match form {
            Form::Jsonl => Self::Jsonl,
            Form::BilibiliXml => Self::BilibiliXml,
            Form::Ass => Self::Ass,
            Form::Dplayer => Self::Dplayer,
        }
    }
}

pub(crate) fn run(args: &Export) -> anyhow::Result<ExitCode> {
    let room = RoomId::parse(&args.room).context("no room has such a name")?;
    let vault = Vault::new(&args.data, &args.place, &room);
    let source = Source::find(&args.data, &room, vault)?;
    let left_out = source.left_out()?;
    let mut out: Box<dyn Write> = match &args.out {
        None => Box::new(io::stdout().lock()),
        Some(file) => Box::new(BufWriter::new(
            File::create_new(file).with_context(|| format!("cannot make {}", file.display()))?,
        )),
    };
    let (written, slots) = write(args.format.into(), &source, &left_out, &mut out)?;
    out.flush()?;
    say(&format!("{written} items of {slots} slots"));
    Ok(ExitCode::SUCCESS)
}

/// The standard output may be the file.
fn say(text: &str) {
    writeln!(io::stderr(), "{text}").ok();
}

/// The files of the full tier, in the order of their slots.
pub(super) fn slots(room: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for gen_no in numbered(room, "")? {
        let tier = gen_no.join(Tier::Full.name());
        if tier.is_dir() {
            files.extend(numbered(&tier, ".bin")?);
        }
    }
    Ok(files)
}

/// What a folder holds under a number and this ending, by number.
fn numbered(folder: &Path, ending: &str) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let name = entry?.file_name();
        let number = name.to_str().and_then(|it| it.strip_suffix(ending)?.parse::<u64>().ok());
        found.extend(number.map(|it| (it, folder.join(&name))));
    }
    found.sort();
    Ok(found.into_iter().map(|(_, path)| path).collect())
}

/// None: its time was over, and it was removed meanwhile.
fn read(file: &Path, gen_no: Gen, vault: &Vault) -> anyhow::Result<Option<Segment>> {
    let bytes = match fs::read(file) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error).with_context(|| format!("cannot read {}", file.display())),
    };
    let bytes = vault.open(gen_no, file, bytes)?;
    let segment = expand(&bytes).and_then(|it| Segment::decode(&it));
    segment.map(Some).with_context(|| format!("{} is damaged", file.display()))
}

/// How many items were written, of how many slots.
fn write(
    format: Format,
    source: &Source,
    left_out: &BTreeSet<ItemId>,
    out: &mut impl Write,
) -> anyhow::Result<(u64, u64)> {
    let mut writer: Option<Writer> = None;
    let (mut written, mut slots) = (0, 0_u64);
    source.each(|Segment { header, items, .. }| {
        let writer = match &mut writer {
            Some(writer) => writer,
            none => {
                let writer = none.insert(Writer::new(format, slot_start(&header)));
                out.write_all(writer.head().as_bytes())?;
                writer
            }
        };
        for placed in items.into_iter().filter(|it| !left_out.contains(&it.item.id)) {
            let text = writer.item(&Repeat { gen_no: header.gen_no, placed });
            written += u64::from(!text.is_empty());
            out.write_all(text.as_bytes())?;
        }
        slots += 1;
        if slots.is_multiple_of(PROGRESS) {
            say(&format!("{slots} slots, {written} items"));
        }
        Ok(())
    })?;
    let tail = writer.as_ref().map_or("", Writer::tail);
    out.write_all(tail.as_bytes())?;
    Ok((written, slots))
}
