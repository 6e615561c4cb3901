//! `barrage archive`: a room's recordings, and the minute files that players fetch.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, bail};
use broadcaster::Config;
use broadcaster::archive::{Archive as Folder, Recording, publish};
use broadcaster::store::{Directory, SegmentStore};
use broadcaster_core::Packing;
use clap::{Args, Subcommand};
use kit::clock::Clock;
use proto::id::RoomId;
use proto::time::Wall;

use crate::cli;

/// Which recordings, and what to do.
#[derive(Args, Debug)]
pub(crate) struct Archive {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// List a room's recordings, each by the millisecond at which it began
    List {
        #[command(flatten)]
        place: Place,
    },
    /// Make the minute files of a recording, as is done by itself when its room closes
    Publish {
        #[command(flatten)]
        place: Place,
        /// Which recording, by the millisecond at which it began; the newest by default
        #[arg(long, value_name = "MS")]
        recording: Option<u64>,
        /// When the picture began, in milliseconds since 1970: what has no media time of its own is
        /// placed from here. The beginning of the recording by default
        #[arg(long, value_name = "MS")]
        start: Option<u64>,
    },
}

#[derive(Args, Debug)]
struct Place {
    /// Data folder of a `barrage up`, which may run or not
    #[arg(long, value_name = "DIR", default_value = stack::DATA)]
    data: PathBuf,
    /// The room
    room: RoomId,
}

pub(crate) async fn run(args: Archive) -> anyhow::Result<ExitCode> {
    match args.action {
        Action::List { place } => list(&place)?,
        Action::Publish { place, recording, start } => {
            make(&place, recording.map(Wall), start.map(Wall)).await?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The folder and the room's recordings.
fn find(place: &Place) -> anyhow::Result<(Folder, Vec<Recording>)> {
    let folder = Folder::new(&place.data.join(stack::ARCHIVE));
    let recordings = folder.recordings(&place.room).context("the archive cannot be read")?;
    if recordings.is_empty() {
        bail!("nothing of this room is recorded: see `archive` in its settings");
    }
    Ok((folder, recordings))
}

fn list(place: &Place) -> anyhow::Result<()> {
    for recording in find(place)?.1 {
        let state = if recording.has_ended() { "ended" } else { "goes on" };
        cli::line(&format!("{} {state}", recording.start));
    }
    Ok(())
}

async fn make(place: &Place, recording: Option<Wall>, start: Option<Wall>) -> anyhow::Result<()> {
    let (folder, recordings) = find(place)?;
    let is_meant = |it: &&Recording| recording.is_none_or(|start| it.start == start);
    let recording = recordings.iter().rfind(is_meant).context("no recording began then")?;
    let segments = place.data.join(stack::SEGMENTS);
    let store = Directory::open(&segments, Config::default().free_bytes_min)
        .with_context(|| format!("cannot open {}", segments.display()))?;
    let stores: [Arc<dyn SegmentStore>; 1] = [Arc::new(store)];
    let times = (start, Clock::system().wall());
    let packing = Packing::default();
    let index = publish(&folder, &place.room, recording, times, &packing, &stores).await?;
    let minutes: u64 = index.minutes.iter().map(|it| it[1]).sum();
    let (items, left_out) = (index.items, index.left_out);
    cli::line(&format!(
        "{items} items in {minutes} minutes, {left_out} left out: dm/1/{}/vod/{}/index.json",
        place.room, index.version,
    ));
    Ok(())
}
