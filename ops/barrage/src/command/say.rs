//! `barrage say`: one comment, and what became of it.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, bail};
use proto::frame::{Outcome, Path};
use proto::id::Cid;
use proto::item::Style;
use proto::verdict::Verdict;
use sdk::{Client, Event, Events};

use super::viewer::{Place, let_in};
use crate::cli::{self, Say};

/// Longest wait for the verdict.
const ANSWER_MAX: Duration = Duration::from_secs(15);

pub(crate) async fn run(args: Say) -> anyhow::Result<ExitCode> {
    let place = Place::find(&args.target)?;
    let (client, mut events) = place.enter(&args.account, Path::Segments)?;
    let cid = client.send(&place.room, &args.text, white(), None)?;
    let outcome = tokio::time::timeout(ANSWER_MAX, answer(&mut events, cid)).await;
    let outcome = outcome.context("nobody answered in time")??;
    leave(&client, &mut events).await;
    match outcome {
        Outcome::Verdict(Verdict::Admit(id) | Verdict::Shadow(id)) => {
            cli::line(&format!("admitted as {id}"));
            Ok(ExitCode::SUCCESS)
        }
        Outcome::Verdict(Verdict::Drop { reason, retry_after_ms: 0 }) => {
            bail!("refused: {}", reason.name())
        }
        Outcome::Verdict(Verdict::Drop { reason, retry_after_ms }) => {
            bail!("refused: {}; try again in {retry_after_ms} ms", reason.name())
        }
        Outcome::Merged(id) => {
            cli::line(&format!("merged into {id}"));
            Ok(ExitCode::SUCCESS)
        }
        Outcome::Shed(reason) => bail!("given up: {}", reason.name()),
    }
}

async fn answer(events: &mut Events, cid: Cid) -> anyhow::Result<Outcome> {
    while let Some(event) = events.next().await {
        match event {
            Event::Ack(ack) if ack.cid == cid => return Ok(ack.outcome),
            Event::Ended(end) => bail!("the session ended: {end:?}"),
            Event::Connected { rooms, .. } => let_in(&rooms)?,
            Event::Joined(joined) => let_in(&[joined])?,
            Event::ReadOnly { .. }
            | Event::Show { .. }
            | Event::Recall { .. }
            | Event::Ack(_)
            | Event::Unanswered { .. }
            | Event::Gap { .. }
            | Event::Skipped { .. }
            | Event::Heat { .. }
            | Event::Catalogue { .. }
            | Event::Locked { .. }
            | Event::Control(_)
            | Event::Disconnected { .. } => {}
        }
    }
    bail!("the session ended")
}

/// Says goodbye, so that the link need not wait for silence.
async fn leave(client: &Client, events: &mut Events) {
    const GOODBYE_MAX: Duration = Duration::from_secs(2);
    client.close();
    let ended = async { while events.next().await.is_some() {} };
    if tokio::time::timeout(GOODBYE_MAX, ended).await.is_err() {
        tracing::debug!("the goodbye took too long");
    }
}

fn white() -> Style {
    Style { color: 0x00FF_FFFF, ..Style::default() }
}
