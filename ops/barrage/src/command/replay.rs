//! `barrage replay`: a file of recorded comments, played into a running room.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use proto::frame::{Outcome, Path};
use proto::id::ViewerId;
use proto::verdict::Verdict;
use sdk::{Client, Event, Events};
use serde_json::json;
use stack::replay::Script;

use super::viewer::Place;
use crate::cli::{self, Replay};

/// Viewers of one replay.
const VIEWERS_MAX: usize = 1000;
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
    anyhow::ensure!(args.speed > 0.0 && args.speed.is_finite(), "--speed must be more than 0");
    anyhow::ensure!((1..=VIEWERS_MAX).contains(&args.viewers), "1 to {VIEWERS_MAX} viewers");
    let mut viewers: Vec<(Client, Events)> = (0..args.viewers)
        .map(|it| place.enter(&ViewerId::parse(&format!("replay-{it}"))?, Path::Segments))
        .collect::<anyhow::Result<_>>()?;

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
        read(events, &mut tally, Duration::ZERO).await;
    }
    for (_, events) in &mut viewers {
        read(events, &mut tally, LAST_MAX / u32::try_from(count).unwrap_or(1)).await;
    }
    viewers.iter().for_each(|(client, _)| client.close());
    let summary = json!({
        "sent": sent, "admitted": tally.admitted, "refused": tally.refused, "damaged": script.damaged,
    });
    cli::line(&summary.to_string());
    Ok(ExitCode::SUCCESS)
}

/// Reads what a viewer was told; waits for `wait` when there is nothing yet.
async fn read(events: &mut Events, tally: &mut Tally, wait: Duration) {
    while let Ok(Some(event)) = tokio::time::timeout(wait, events.next()).await {
        let Event::Ack(ack) = event else { continue };
        match ack.outcome {
            Outcome::Verdict(Verdict::Admit(_) | Verdict::Shadow(_)) => tally.admitted += 1,
            Outcome::Verdict(Verdict::Drop { reason, .. }) => {
                *tally.refused.entry(reason.name().to_owned()).or_default() += 1;
            }
            Outcome::Merged(_) | Outcome::Shed(_) => {}
        }
    }
}
