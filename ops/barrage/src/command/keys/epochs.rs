//! `barrage keys show`, `rotate` and `revoke`.

use std::process::ExitCode;
use std::time::Duration;

use auth::state::{Revoked, Rotated, State};
use auth_core::mac::Alg;
use clap::Args;

use super::operator::{Operator, Target};
use crate::cli;
use crate::command::plain;

#[derive(Args, Debug)]
pub(crate) struct Show {
    #[command(flatten)]
    target: Target,
    /// Print the service's answer as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Args, Debug)]
pub(crate) struct Revoke {
    #[command(flatten)]
    target: Target,
    /// Number of the master
    #[arg(long)]
    kid: u8,
    /// First void epoch; without it, from the first
    #[arg(long, value_name = "EPOCH")]
    from: Option<u32>,
    /// Last void epoch; without it, to the last
    #[arg(long, value_name = "EPOCH")]
    to: Option<u32>,
}

pub(crate) async fn show(args: &Show) -> anyhow::Result<ExitCode> {
    let state: State = Operator::find(&args.target)?.get("/v1/epochs").await?;
    if args.json {
        cli::line(&serde_json::to_string(&state)?);
    } else {
        cli::line(&describe(&state));
    }
    let is_well = state.horizon_s >= state.horizon_s_min && state.missing_masters.is_empty();
    Ok(if is_well { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

pub(crate) async fn rotate(target: &Target) -> anyhow::Result<ExitCode> {
    let operator = Operator::find(target)?;
    let Rotated { kid, masters } = operator.post("/v1/masters/rotate", &()).await?;
    cli::line(&format!(
        "master {kid} was drawn; it mints in every epoch that begins at least half an epoch from \
         now\nmasters  {}",
        numbers(&masters),
    ));
    Ok(ExitCode::SUCCESS)
}

pub(crate) async fn revoke(args: &Revoke) -> anyhow::Result<ExitCode> {
    let operator = Operator::find(&args.target)?;
    let (from_epoch, to_epoch) = (args.from.unwrap_or(0), args.to.unwrap_or(u32::MAX));
    let asked = Revoked { kid: args.kid, from_epoch, to_epoch };
    let revoked: Revoked = operator.post("/v1/revocations", &asked).await?;
    cli::line(&void(revoked));
    let state: State = operator.get("/v1/epochs").await?;
    cli::line(&horizon(&state));
    Ok(ExitCode::SUCCESS)
}

fn describe(state: &State) -> String {
    let mut lines = vec![
        format!("interval {} s", state.interval_s),
        horizon(state),
        format!("draws    {}", if state.leads { "this service" } else { "another service" }),
        format!("masters  {}", numbers(&state.masters)),
    ];
    if !state.missing_masters.is_empty() {
        lines.push(format!(
            "missing  {}: epochs name them; copy masters.sealed from the service that has them",
            numbers(&state.missing_masters),
        ));
    }
    lines.extend(state.revoked.iter().map(|it| void(*it)));
    for fact in &state.epochs {
        lines.push(format!(
            "epoch    {}  {}, masters {}, {}",
            fact.epoch,
            Alg::from_code(fact.alg).map_or("unknown", Alg::name),
            numbers(&fact.kids),
            plain::epoch(fact.epoch, state.interval_s, state.server_ms),
        ));
    }
    lines.join("\n")
}

fn horizon(state: &State) -> String {
    let horizon = plain::length(Duration::from_secs(state.horizon_s));
    let min = plain::length(Duration::from_secs(state.horizon_s_min));
    let is_low = state.horizon_s < state.horizon_s_min;
    let words = if is_low { "LOW: the alarm is at" } else { "the alarm is at" };
    format!("horizon  {horizon} of logins without another epoch ({words} {min})")
}

fn void(revoked: Revoked) -> String {
    let Revoked { kid, from_epoch, to_epoch } = revoked;
    let to = if to_epoch == u32::MAX { "the last".to_owned() } else { to_epoch.to_string() };
    format!("void     master {kid} in epochs {from_epoch} to {to}")
}

pub(crate) fn numbers(kids: &[u8]) -> String {
    let kids: Vec<String> = kids.iter().map(u8::to_string).collect();
    kids.join(" ")
}
