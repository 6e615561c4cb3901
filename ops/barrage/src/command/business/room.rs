//! `barrage room`: rooms of an app, what they allow and say, and who is what in them.

use std::process::ExitCode;

use anyhow::Context;
use clap::{Args, Subcommand};
use proto::id::RoomId;
use reqwest::Method;
use serde_json::{Map, Value, json};

use super::{Api, Call, Signed, Target, show, show_rows};
use crate::cli;

#[derive(Args, Debug)]
pub(crate) struct Room {
    #[command(subcommand)]
    command: RoomCommand,
}

#[derive(Debug, Subcommand)]
enum RoomCommand {
    /// List the app's rooms, a JSON object a line
    List(Target),
    /// Show a room: its settings, who is in it, what stands on its board
    Show(One),
    /// Make a room
    Create(Set),
    /// Change settings of a room; what is not named stays as it is
    Update(Update),
    /// Close a room: it takes and shows nothing more
    Close(Act),
    /// Set the room's notice, which everyone in it is told, or clear it
    Notice(Notice),
    /// Say what a viewer is in the room, whatever the viewer's ticket says
    Appoint(Appoint),
    /// List the comments that a room holds back (`hold_ms`) at this chatserver, a JSON object a line
    Held(One),
    /// Take an item from all screens, or a comment from those that are held back
    Recall(Recall),
    /// Take an item from all screens, and out of segments that are written already
    Erase(Recall),
    /// List who did what in a room, the newest first, a JSON object a line
    Audit(One),
}

#[derive(Args, Debug)]
struct One {
    #[command(flatten)]
    target: Target,
    /// Which room
    room: RoomId,
}

#[derive(Args, Debug)]
struct Set {
    #[command(flatten)]
    one: One,
    /// A setting, such as `slow_mode_ms=5000` or `speakers=followers`; several may be given
    #[arg(long = "set", value_name = "NAME=VALUE", value_parser = setting)]
    settings: Vec<(String, Value)>,
}

#[derive(Args, Debug)]
struct Update {
    #[command(flatten)]
    set: Set,
    #[command(flatten)]
    signed: Signed,
    /// Only if the room has this version
    #[arg(long, value_name = "N")]
    version: Option<u64>,
}

#[derive(Args, Debug)]
struct Act {
    #[command(flatten)]
    one: One,
    #[command(flatten)]
    signed: Signed,
}

#[derive(Args, Debug)]
struct Notice {
    #[command(flatten)]
    act: Act,
    /// The text; without one the notice is cleared
    text: Option<String>,
}

#[derive(Args, Debug)]
struct Recall {
    #[command(flatten)]
    act: Act,
    /// The item's id
    id: String,
}

#[derive(Args, Debug)]
struct Appoint {
    #[command(flatten)]
    act: Act,
    /// Who
    viewer: String,
    /// viewer, vip, moderator or host; without it as the ticket says
    #[arg(long)]
    role: Option<String>,
    /// On the allow-list: heard first, neither kicked nor banned
    #[arg(long)]
    listed: bool,
    /// A follower of the room
    #[arg(long)]
    follows: bool,
}

pub(crate) async fn run(args: Room) -> anyhow::Result<ExitCode> {
    match args.command {
        RoomCommand::List(target) => {
            show_rows(&Api::find(&target)?.rows(&["rooms"], "rooms").await?);
        }
        RoomCommand::Show(one) => show_room(&one).await?,
        RoomCommand::Create(Set { one, settings }) => {
            let settings: Map<_, _> = settings.into_iter().collect();
            let body = json!({ "room": one.room, "settings": settings });
            let call = Call::new(Method::POST, &["rooms"]).body(body);
            show(&Api::find(&one.target)?.call(call).await?)?;
        }
        RoomCommand::Update(Update { set: Set { one, settings }, signed, version }) => {
            let path = ["rooms", one.room.as_str()];
            let body = Value::Object(settings.into_iter().collect());
            let call = Call::new(Method::PATCH, &path).signed(&signed).version(version).body(body);
            show(&Api::find(&one.target)?.call(call).await?)?;
        }
        RoomCommand::Close(Act { one, signed }) => {
            let path = ["rooms", one.room.as_str(), "close"];
            let call = Call::new(Method::POST, &path).signed(&signed);
            show(&Api::find(&one.target)?.call(call).await?)?;
        }
        RoomCommand::Notice(Notice { act: Act { one, signed }, text }) => {
            let path = ["rooms", one.room.as_str(), "notice"];
            let call = match text {
                Some(text) => Call::new(Method::PUT, &path).body(json!({ "text": text })),
                None => Call::new(Method::DELETE, &path),
            };
            Api::find(&one.target)?.call(call.signed(&signed)).await?;
        }
        RoomCommand::Appoint(args) => appoint(&args).await?,
        RoomCommand::Held(One { target, room }) => {
            let path = ["rooms", room.as_str(), "held"];
            show_rows(&Api::find(&target)?.rows(&path, "rows").await?);
        }
        RoomCommand::Recall(Recall { act: Act { one, signed }, id }) => {
            let path = ["rooms", one.room.as_str(), "items", &id];
            let call = Call::new(Method::DELETE, &path).signed(&signed);
            show(&Api::find(&one.target)?.call(call).await?)?;
        }
        RoomCommand::Erase(Recall { act: Act { one, signed }, id }) => {
            let path = ["rooms", one.room.as_str(), "items", id.as_str(), "erase"];
            let call = Call::new(Method::POST, &path).signed(&signed);
            show(&Api::find(&one.target)?.call(call).await?)?;
        }
        RoomCommand::Audit(One { target, room }) => {
            let path = ["rooms", room.as_str(), "audit"];
            show_rows(&Api::find(&target)?.rows(&path, "rows").await?);
        }
    }
    Ok(ExitCode::SUCCESS)
}

async fn show_room(One { target, room }: &One) -> anyhow::Result<()> {
    let api = Api::find(target)?;
    let get = async |path: &[&str]| api.call(Call::new(Method::GET, path)).await;
    let mut shown = get(&["rooms", room.as_str()]).await?;
    shown["online"] = get(&["rooms", room.as_str(), "online"]).await?;
    shown["attributes"] = get(&["rooms", room.as_str(), "attributes"]).await?["rows"].take();
    show(&shown)
}

async fn appoint(args: &Appoint) -> anyhow::Result<()> {
    let Appoint { act: Act { one, signed }, viewer, role, listed, follows } = args;
    let path = ["rooms", one.room.as_str(), "people", viewer];
    let mut standing = json!({ "listed": listed, "follows": follows });
    if let Some(role) = role {
        standing["role"] = json!(role);
    }
    let call = Call::new(Method::PUT, &path).signed(signed).body(standing);
    let person = Api::find(&one.target)?.call(call).await?;
    cli::line(&person.to_string());
    Ok(())
}

/// A value is JSON if it reads as such, otherwise a word.
fn setting(text: &str) -> anyhow::Result<(String, Value)> {
    let (name, value) = text.split_once('=').context("it is no NAME=VALUE")?;
    let value = serde_json::from_str(value).unwrap_or_else(|_| json!(value));
    Ok((name.to_owned(), value))
}
