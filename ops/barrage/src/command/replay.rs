//! `barrage replay`: a file of recorded comments, played into a running room.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use proto::frame::{Outcome, Path};
use proto::id::ViewerId;
use proto::verdict::Verdict;
use sdk::{Client, Event, Events};
use serde_json::json;
use stack::replay::Script;

use super::viewer::{Place, let_in};
use crate::cli::{self, Replay};

/// Viewers of one replay.
const VIEWERS_MAX: usize = 1000;
/// Everybody is in the room within this time.
const COME_MAX: Duration = Duration::from_secs(15);
/// Time for the last verdicts.
const LAST_MAX: Duration = Duration::from_secs(5);

#[derive(Default)]
struct Tally {
    admitted: u64,
    refused: BTreeMap<String, u64>,
}

pub(crate) async fn run(args: Replay) -> anyhow::Result<ExitCode> {
    let place = Place::find(&args.target)?;
    let script =
        Script::open(&args.file).with_context(|| format!("cannot read {}", args.file.display()))?;
    ensure!(args.speed > 0.0 && args.speed.is_finite(), "--speed must be more than 0");
    ensure!((1..=VIEWERS_MAX).contains(&args.viewers), "1 to {VIEWERS_MAX} viewers");
    let mut viewers: Vec<(Client, Events)> = (0..args.viewers)
        .map(|it| place.enter(&ViewerId::parse(&format!("replay-{it}"))?, Path::Segments))
        .collect::<anyhow::Result<_>>()?;
    let come = async {
        for (_, events) in &mut viewers {
            come_in(events).await?;
        }
        anyhow::Ok(())
    };
    tokio::time::timeout(COME_MAX, come).await.context("nobody was let in in time")??;

    let mut tally = Tally::default();
    let mut sent = 0_u64;
    let start = place.clock.mono();
    let count = viewers.len();
    for (number, comment) in script.comments.iter().enumerate() {
        let due = start + Duration::from_millis(comment.media_ms).div_f64(args.speed);
        place.clock.sleep_until(due).await;
        let (client, events) = &mut viewers[number % count];
        sent += 1;
        if let Err(refusal) =
            client.send(&place.room, &comment.text, comment.style, Some(comment.media_ms))
        {
            *tally.refused.entry(refusal.to_string()).or_default() += 1;
        }
        read(events, &mut tally, Duration::ZERO).await?;
    }
    for (_, events) in &mut viewers {
        read(events, &mut tally, LAST_MAX / u32::try_from(count).unwrap_or(1)).await?;
    }
    viewers.iter().for_each(|(client, _)| client.close());
    let summary = json!({
        "sent": sent, "admitted": tally.admitted, "refused": tally.refused, "damaged": script.damaged,
    });
    cli::line(&summary.to_string());
    ensure!(sent == 0 || tally.admitted > 0, "{} admitted no comment", place.room);
    Ok(ExitCode::SUCCESS)
}

/// Waits until a viewer is in the room.
async fn come_in(events: &mut Events) -> anyhow::Result<()> {
    while let Some(event) = events.next().await {
        let is_in = matches!(event, Event::Connected { .. });
        outcome(event)?;
        if is_in {
            return Ok(());
        }
    }
    bail!("the session ended")
}

/// Reads what a viewer was told; waits for `wait` when there is nothing yet.
async fn read(events: &mut Events, tally: &mut Tally, wait: Duration) -> anyhow::Result<()> {
    while let Ok(Some(event)) = tokio::time::timeout(wait, events.next()).await {
        match outcome(event)? {
            Some(Outcome::Verdict(Verdict::Admit(_) | Verdict::Shadow(_))) => tally.admitted += 1,
            Some(Outcome::Verdict(Verdict::Drop { reason, .. })) => {
                *tally.refused.entry(reason.name().to_owned()).or_default() += 1;
            }
            Some(Outcome::Merged(_) | Outcome::Shed(_)) | None => {}
        }
    }
    Ok(())
}

/// What became of a comment, if that is told. Refuses to go on where the room cannot be entered.
fn outcome(event: Event) -> anyhow::Result<Option<Outcome>> {
    match event {
        Event::Ack(ack) => return Ok(Some(ack.outcome)),
        Event::Connected { rooms, .. } => let_in(&rooms)?,
        Event::Joined(joined) => let_in(&[joined])?,
        Event::Ended(end) => bail!("the session ended: {end:?}"),
        Event::ReadOnly { .. }
        | Event::Show { .. }
        | Event::Recall { .. }
        | Event::Unanswered { .. }
        | Event::Gap { .. }
        | Event::Skipped { .. }
        | Event::Heat { .. }
        | Event::Catalogue { .. }
        | Event::Locked { .. }
        | Event::Control(_)
        | Event::Disconnected { .. } => {}
    }
    Ok(None)
}
