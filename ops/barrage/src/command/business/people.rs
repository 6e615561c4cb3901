//! `barrage mute`, `barrage ban`, `barrage kick`: who may not speak, not enter, not stay.

use std::process::ExitCode;

use clap::{Args, Subcommand};
use proto::id::RoomId;
use reqwest::Method;
use serde_json::json;

use super::{Api, Call, Signed, Target, show_rows};
use crate::cli;

#[derive(Args, Debug)]
pub(crate) struct Mute {
    #[command(subcommand)]
    command: MuteCommand,
}

#[derive(Debug, Subcommand)]
enum MuteCommand {
    /// Refuse a viewer's comments for so many seconds
    Add(Muted),
    /// End a mute
    End(Person),
    /// List the mutes of a room, a JSON object a line
    List(Where),
}

#[derive(Args, Debug)]
pub(crate) struct Ban {
    #[command(subcommand)]
    command: BanCommand,
}

#[derive(Debug, Subcommand)]
enum BanCommand {
    /// Keep a viewer, a device or a range of addresses out of a room
    Add(Banned),
    /// End a ban
    End(Banned),
    /// List the bans of a room, a JSON object a line
    List(Where),
}

#[derive(Args, Debug)]
struct Where {
    #[command(flatten)]
    target: Target,
    /// Which room
    room: RoomId,
}

#[derive(Args, Debug)]
pub(crate) struct Person {
    #[command(flatten)]
    place: Where,
    #[command(flatten)]
    signed: Signed,
    /// Who
    viewer: String,
}

#[derive(Args, Debug)]
struct Muted {
    #[command(flatten)]
    person: Person,
    /// For so long
    #[arg(long = "for", value_name = "SECONDS")]
    seconds: u64,
}

#[derive(Args, Debug)]
struct Banned {
    #[command(flatten)]
    place: Where,
    #[command(flatten)]
    signed: Signed,
    #[command(flatten)]
    what: What,
    /// For so long; for ever without it
    #[arg(long = "for", value_name = "SECONDS")]
    seconds: Option<u64>,
}

#[derive(Args, Debug)]
#[group(required = true, multiple = false)]
struct What {
    /// An account
    #[arg(long)]
    viewer: Option<String>,
    /// A device, as clients name it
    #[arg(long)]
    device: Option<String>,
    /// Addresses, such as 203.0.113.0/24
    #[arg(long)]
    range: Option<String>,
}

pub(crate) async fn mute(args: Mute) -> anyhow::Result<ExitCode> {
    match args.command {
        MuteCommand::Add(Muted { person: Person { place, signed, viewer }, seconds }) => {
            let path = ["rooms", place.room.as_str(), "mutes"];
            let body = json!({ "viewer": viewer, "seconds": seconds });
            let call = Call::new(Method::POST, &path).signed(&signed).body(body);
            cli::line(&Api::find(&place.target)?.call(call).await?.to_string());
        }
        MuteCommand::End(Person { place, signed, viewer }) => {
            let path = ["rooms", place.room.as_str(), "mutes", &viewer];
            let call = Call::new(Method::DELETE, &path).signed(&signed);
            Api::find(&place.target)?.call(call).await?;
        }
        MuteCommand::List(place) => list(&place, "mutes").await?,
    }
    Ok(ExitCode::SUCCESS)
}

pub(crate) async fn ban(args: Ban) -> anyhow::Result<ExitCode> {
    match args.command {
        BanCommand::Add(Banned { place, signed, what, seconds }) => {
            let What { viewer, device, range } = what;
            let kind = if viewer.is_some() { "bans" } else { "exclusions" };
            let path = ["rooms", place.room.as_str(), kind];
            let mut body = json!({});
            for (name, value) in [("viewer", viewer), ("device", device), ("range", range)] {
                if let Some(value) = value {
                    body[name] = json!(value);
                }
            }
            if let Some(seconds) = seconds {
                body["seconds"] = json!(seconds);
            }
            let call = Call::new(Method::POST, &path).signed(&signed).body(body);
            cli::line(&Api::find(&place.target)?.call(call).await?.to_string());
        }
        BanCommand::End(Banned { place, signed, what, .. }) => {
            let room = place.room.as_str();
            let path = match &what {
                What { viewer: Some(it), .. } => vec!["rooms", room, "bans", it],
                What { device: Some(it), .. } => vec!["rooms", room, "exclusions", "device", it],
                What { range, .. } => {
                    vec!["rooms", room, "exclusions", "range", range.as_deref().unwrap_or_default()]
                }
            };
            let call = Call::new(Method::DELETE, &path).signed(&signed);
            Api::find(&place.target)?.call(call).await?;
        }
        BanCommand::List(place) => {
            list(&place, "bans").await?;
            list(&place, "exclusions").await?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

pub(crate) async fn kick(Person { place, signed, viewer }: Person) -> anyhow::Result<ExitCode> {
    let path = ["rooms", place.room.as_str(), "kicks"];
    let call = Call::new(Method::POST, &path).signed(&signed).body(json!({ "viewer": viewer }));
    Api::find(&place.target)?.call(call).await?;
    Ok(ExitCode::SUCCESS)
}

async fn list(Where { target, room }: &Where, kind: &str) -> anyhow::Result<()> {
    show_rows(&Api::find(target)?.rows(&["rooms", room.as_str(), kind], "rows").await?);
    Ok(())
}
