//! `barrage auth`, `barrage gslb`, …: one role as a process of its own.

use std::process::ExitCode;

use anyhow::bail;
use stack::Config;

use super::configuration;
use crate::cli::Role;

/// Prints or checks the role's configuration. Running it needs adapters that other processes can
/// reach, and this build has only the embedded ones, so it says so instead of running alone.
pub(crate) fn run(role: &str, args: &Role) -> anyhow::Result<ExitCode> {
    let config = Config::load(args.config.config.as_deref())?;
    if let Some(code) = configuration::answer(&args.config, &config)? {
        return Ok(code);
    }
    bail!(
        "`barrage {role}` needs a bus and stores that other processes can reach, and this build has \
         only the embedded ones, which end with their process: use `barrage up`, which runs every \
         role in one process"
    )
}
