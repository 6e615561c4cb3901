//! `barrage keys masters`: which masters a sealed file holds. Keys are never printed.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::ensure;
use auth::MastersFile;
use clap::Args;
use stack::Config;
use stack::identity::Identity;

use super::epochs::numbers;
use crate::cli;

/// Which file, and what opens it. Both can mint tokens for every link: keep them together only on
/// the machines of auth services.
#[derive(Args, Clone, Debug)]
pub(crate) struct Place {
    /// Configuration of an auth service, whose `[auth]` names the folder and the seal
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub(crate) struct MastersArgs {
    #[command(flatten)]
    place: Place,
    /// Data folder of `barrage up`, running or not
    #[arg(long, value_name = "DIR", default_value = stack::DATA, conflicts_with = "config")]
    data: PathBuf,
}

pub(crate) fn run(args: &MastersArgs) -> anyhow::Result<ExitCode> {
    let file = args.place.file(&args.data)?;
    let masters = file.read()?;
    let kids: Vec<u8> = masters.iter().map(|it| it.kid).collect();
    cli::line(&format!("{}: sealed, for its owner alone", file.path().display()));
    cli::line(&format!("masters  {} (newest first)", numbers(&kids)));
    Ok(ExitCode::SUCCESS)
}

impl Place {
    /// The file of the configuration, or of an `up` with this data folder.
    pub(crate) fn file(&self, data: &std::path::Path) -> anyhow::Result<MastersFile> {
        let auth = match &self.config {
            Some(path) => Config::load(Some(path))?.auth,
            None => {
                ensure!(
                    data.join("identity.json").try_exists()?,
                    "{} is no data folder of `barrage up`: name one with --data, or --config",
                    data.display(),
                );
                let mut config = Config::demo(data);
                config.embed(&Identity::load_or_create(data)?);
                config.auth
            }
        };
        MastersFile::new(&auth.data, &auth.seal)
    }
}
