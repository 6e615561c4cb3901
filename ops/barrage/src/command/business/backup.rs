//! `barrage backup`: a copy of a stopped system's room store.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use crate::cli;

/// A running system holds its file, and is refused: stop it first, or let it make copies itself
/// (`[chatserver.copies]`).
#[derive(Args, Debug)]
pub(crate) struct Backup {
    /// Data folder of a stopped `barrage up`
    #[arg(long, value_name = "DIR", default_value = stack::DATA)]
    data: PathBuf,
    /// The copy; nothing is overwritten. To restore it, stop the system and put it in the place of
    /// `rooms.redb` in the data folder
    file: PathBuf,
}

pub(crate) fn run(args: &Backup) -> anyhow::Result<ExitCode> {
    let rows = chatserver::store::backup(&args.data.join(stack::ROOMS), &args.file)?;
    cli::line(&format!("{rows} rows are in {}", args.file.display()));
    Ok(ExitCode::SUCCESS)
}
