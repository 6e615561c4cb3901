//! `barrage watch`: a viewer in the terminal.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::bail;
use proto::frame;
use proto::id::ViewerId;
use proto::item::{Body, Item};
use sdk::{End, Event};
use serde_json::{Value, json};

use super::viewer::{Place, let_in};
use crate::cli::{self, Path, Watch};

pub(crate) async fn run(args: Watch) -> anyhow::Result<ExitCode> {
    let place = Place::find(&args.target)?;
    let path = match args.path {
        Path::Auto => frame::Path::Auto,
        Path::Push => frame::Path::Push,
        Path::Segments => frame::Path::Segments,
    };
    let (client, mut events) = place.enter(&ViewerId::parse("watcher")?, path)?;
    let end = args.seconds.map(|it| place.clock.mono() + Duration::from_secs(it));
    loop {
        let event = tokio::select! {
            event = events.next() => event,
            () = place.clock.sleep_until(end.unwrap_or_default()), if end.is_some() => None,
            _ = tokio::signal::ctrl_c() => None,
        };
        if let Some(Event::Connected { rooms, .. }) = &event {
            let_in(rooms)?;
        }
        match event {
            None => break,
            Some(Event::Ended(end)) => return over(&end),
            Some(Event::Joined(joined)) => let_in(&[joined])?,
            Some(event) if args.json => {
                if let Some(value) = object(&event) {
                    cli::line(&value.to_string());
                }
            }
            Some(event) => {
                if let Some(text) = line(&event) {
                    cli::line(&text);
                }
            }
        }
    }
    client.close();
    Ok(ExitCode::SUCCESS)
}

fn over(end: &End) -> anyhow::Result<ExitCode> {
    match end {
        End::Closed => Ok(ExitCode::SUCCESS),
        End::Code(code) => bail!("the server ended the session: {}", code.name()),
        End::Enter(problem) => bail!("not let in: {} ({})", problem.title, problem.code),
    }
}

/// What a terminal shows: control characters never reach it, since admission refuses them.
fn line(event: &Event) -> Option<String> {
    match event {
        Event::Connected { address, .. } => {
            Some(format!("· connected to {} by {}", address.authority(), address.transport.name()))
        }
        Event::Show { item, .. } => Some(shown(item)),
        Event::Gap { items, .. } => Some(match items {
            Some(items) => format!("· up to {items} items are missing"),
            None => "· items are missing".to_owned(),
        }),
        Event::Disconnected { code, retry_in } => {
            let why = code.map_or("the connection ended", |it| it.name());
            Some(format!("· {why}; again in {:.1} s", retry_in.as_secs_f32()))
        }
        Event::ReadOnly { .. } => Some("· every link is full: reading segments only".to_owned()),
        Event::Skipped { items, .. } => Some(format!("· {items} items were left out")),
        Event::Heat { heat, .. } => {
            Some(format!("· the room is {heat:?} from now on").to_lowercase())
        }
        Event::Recall { .. }
        | Event::Ack(_)
        | Event::Unanswered { .. }
        | Event::Joined(_)
        | Event::Catalogue { .. }
        | Event::Locked { .. }
        | Event::Control(_)
        | Event::Ended(_) => None,
    }
}

fn shown(item: &Item) -> String {
    let sender = format!("{:016x}", item.sender.0);
    let sender = sender.get(12..).unwrap_or_default();
    match &item.body {
        Body::Comment { text, count: 1, .. } => format!("{sender}  {text}"),
        Body::Comment { text, count, .. } => format!("{sender}  {text} × {count}"),
        Body::Gift { gift_no, count, text } => {
            format!("{sender}  ★ gift {gift_no} × {count} {text}")
        }
        Body::Like { count } => format!("{sender}  ♥ × {count}"),
        Body::Entry => format!("{sender}  came in"),
        Body::Notice { text } => format!("■ {text}"),
        Body::Tombstone { of } | Body::Erasure { of } => format!("· item {of} was recalled"),
        Body::System { text } => format!("□ {text}"),
        Body::Effect { effect_no, text } => {
            format!("{sender}  came in with effect {effect_no} {text}")
        }
        Body::Custom { name, text } => format!("{sender}  {name}: {text}"),
    }
}

fn object(event: &Event) -> Option<Value> {
    match event {
        Event::Connected { session, address, .. } => Some(json!({
            "event": "connected", "session": session.to_string(), "address": address.authority(),
            "transport": address.transport.name(),
        })),
        Event::Show { place, item, via, .. } => Some(json!({
            "event": "show", "id": item.id, "gen": place.gen_no, "seq": place.seq,
            "lane": item.lane.name(), "sender": item.sender.to_string(), "at_ms": item.at,
            "text": item.body.text(), "body": item.body,
            "via": format!("{via:?}").to_lowercase(),
        })),
        Event::Gap { items, .. } => Some(json!({ "event": "gap", "items": items })),
        Event::Recall { id, .. } => Some(json!({ "event": "recall", "id": id })),
        Event::Disconnected { code, .. } => {
            Some(json!({ "event": "disconnected", "code": code.map(|it| it.name()) }))
        }
        Event::ReadOnly { .. } => Some(json!({ "event": "read_only" })),
        Event::Skipped { items, .. } => Some(json!({ "event": "skipped", "items": items })),
        Event::Heat { heat, slot, .. } => {
            Some(json!({ "event": "heat", "heat": heat, "slot": slot }))
        }
        Event::Ack(_)
        | Event::Unanswered { .. }
        | Event::Joined(_)
        | Event::Catalogue { .. }
        | Event::Locked { .. }
        | Event::Control(_)
        | Event::Ended(_) => None,
    }
}
