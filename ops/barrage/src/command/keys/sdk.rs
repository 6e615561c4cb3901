//! `barrage keys sdk`: which SDK versions are served.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use auth::state::SdkState;
use clap::{Args, Subcommand};
use proto::policy::SdkRule;

use super::operator::{Operator, Target};
use crate::cli;

#[derive(Args, Debug)]
pub(crate) struct SdkArgs {
    #[command(subcommand)]
    command: SdkCommand,
}

#[derive(Debug, Subcommand)]
enum SdkCommand {
    /// Print the rules as JSON, one a line; the first that fits decides
    Get(Target),
    /// Replace the rules by those of a file
    ///
    /// The file is a JSON list, such as
    /// [{"sdk": "barrage-ts", "below": "1.2.0", "act": "refuse"}, {"below": "1.4.0", "act": "warn"}].
    /// The first rule that fits decides; a version that none fits is served. `act` is allow, warn
    /// or refuse; a rule without `sdk`, `from` or `below` holds for any. [] serves every version.
    Set(Set),
}

#[derive(Args, Debug)]
struct Set {
    #[command(flatten)]
    target: Target,
    /// JSON list of rules
    #[arg(value_name = "FILE")]
    rules: PathBuf,
}

pub(crate) async fn run(args: SdkArgs) -> anyhow::Result<ExitCode> {
    let state: SdkState = match args.command {
        SdkCommand::Get(target) => Operator::find(&target)?.get("/v1/sdk").await?,
        SdkCommand::Set(Set { target, rules }) => {
            let name = || format!("cannot use {}", rules.display());
            let bytes = std::fs::read(&rules).with_context(name)?;
            let rules: Vec<SdkRule> = serde_json::from_slice(&bytes).with_context(name)?;
            Operator::find(&target)?.put("/v1/sdk", &rules).await?
        }
    };
    for rule in &state.rules {
        cli::line(&serde_json::to_string(rule)?);
    }
    cli::line(&format!("{} rules, version {}", state.rules.len(), state.version));
    Ok(ExitCode::SUCCESS)
}
