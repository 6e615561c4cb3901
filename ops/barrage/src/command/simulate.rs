//! `barrage gslb`: the role; `simulate`: arrivals played over the planner in virtual time; `place`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use clap::{Args, Subcommand};
use gslb_core::simulate;
use serde::de::DeserializeOwned;

use super::place::{self, Place};
use super::role;
use crate::cli::{self, Role};

#[derive(Args, Debug)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Gslb {
    #[command(subcommand)]
    command: Option<GslbCommand>,
    #[command(flatten)]
    role: Role,
}

#[derive(Debug, Subcommand)]
enum GslbCommand {
    /// Play arrivals over the planner in virtual time; print spread, overshoot and refusals
    Simulate(Simulate),
    /// Look addresses up: carrier, region, and the file and range that say so
    Place(Place),
}

#[derive(Args, Debug)]
struct Simulate {
    /// TOML: the nodes, and the policy as in the configuration
    fleet: PathBuf,
    /// TOML: who comes when, how old loads are, and what happens meanwhile
    arrivals: PathBuf,
}

pub(crate) fn run(args: &Gslb) -> anyhow::Result<ExitCode> {
    match &args.command {
        None => role::run("gslb", &args.role),
        Some(GslbCommand::Place(args)) => place::run(args),
        Some(GslbCommand::Simulate(files)) => {
            let outcome = simulate::run(&read(&files.fleet)?, &read(&files.arrivals)?)?;
            cli::line(outcome.to_string().trim_end());
            Ok(ExitCode::SUCCESS)
        }
    }
}

fn read<T: DeserializeOwned>(path: &Path) -> anyhow::Result<T> {
    let text = std::fs::read_to_string(path);
    let text = text.with_context(|| format!("{} cannot be read", path.display()))?;
    toml::from_str(&text).with_context(|| format!("{} cannot be used", path.display()))
}
