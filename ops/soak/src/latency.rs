//! How long a comment takes to each kind of reader: by the long connection, as a tag of FLV, beside a
//! frame of RTMP, in a segment, and in a fragment of HLS; one room, one reader of each kind, and of
//! segments two: one asks as an edge does, one as a viewer.
//!
//! The time is from the call that sends it to the moment when the reader has it parsed, in one
//! process with one clock, everything over loopback.

mod ledger;
mod readers;
mod sink;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, ensure};
use auth_core::secret::Secret;
use drill::{Line, Stage, progress, stage};
use kit::task::Tasks;
use proto::control::RoomSettings;
use proto::frame::Path;
use proto::id::ViewerId;
use proto::item::Style;
use sdk::{Client, Event};
use serde_json::json;

use crate::cli::Size;
use ledger::{Ledger, Way};
use sink::Sink;

/// Comments a second: fewer than the room shows, so that none waits for its turn.
const COMMENTS_PER_S: u64 = 20;
/// Length of a slot.
const INTERVAL_MS: u64 = 1_000;
/// All readers have heard something within this time.
const WARM_MAX: Duration = Duration::from_secs(30);
/// What was said last has been heard within this time.
const LAST_MAX: Duration = Duration::from_secs(10);
/// How often it is looked who has heard what.
const LOOK: Duration = Duration::from_millis(50);

/// Says 20 comments a second for 6 s, or a minute.
pub(crate) async fn run(size: Size, line: &mut Line) -> anyhow::Result<()> {
    let length = size.pick(Duration::from_secs(6), Duration::from_mins(1));
    // A run of seconds has few comments and may share the machine: it shows that every way works.
    let times = size.pick(4, 1);
    let folder = tempfile::tempdir()?;
    let sink = Sink::bind().await?;
    let settings = RoomSettings { interval_ms: u32::try_from(INTERVAL_MS)?, ..stage::settings() };
    let stage = Stage::open(folder.path(), line.seed(), &settings, |config| {
        config.broadcaster.hls = true;
        config.broadcaster.pushes.resize_with(1, Default::default);
        for push in &mut config.broadcaster.pushes {
            push.room = stage::ROOM.to_owned();
            push.url = sink.url();
            push.key = Secret::new("latency".to_owned());
        }
    });
    let stage = stage.await?;
    let ledger = Arc::new(Ledger::new(stage.clock.clone()));
    let mut tasks = Tasks::default();
    tasks.spawn("sink", sink.run(Arc::clone(&ledger)));
    readers::start(&stage, &ledger, &mut tasks)?;

    let sent = tokio::select! {
        sent = speak(&stage, &ledger, length) => sent?,
        Some(ended) = tasks.next() => return ended.and(Err(anyhow::anyhow!("a reader ended"))),
    };

    line.figure("comments", sent.len());
    for way in Way::ALL {
        let heard = ledger.heard(way);
        let figures = Figures::of(&sent, &heard);
        progress(&format!("  {}: {} ms, then {} ms", way.name(), figures.p50, figures.p99));
        line.figure(way.name(), figures.json());
        let p99_max = times * way.p99_ms_max(INTERVAL_MS);
        line.check(figures.missing == 0, || {
            format!("{} of {} were not heard: {}", figures.missing, sent.len(), way.name())
        });
        line.check(figures.p99 <= p99_max, || {
            format!("{}: p99 {} ms, not {p99_max}", way.name(), figures.p99)
        });
    }
    let again = ledger.again();
    line.check(again == 0, || format!("{again} comments were heard twice"));
    tasks.abort();
    stage.close().await
}

/// Says something until everybody hears it, then comments at a steady rate; gives when each was
/// sent, in microseconds, by its text.
async fn speak(
    stage: &Stage,
    ledger: &Ledger,
    length: Duration,
) -> anyhow::Result<BTreeMap<String, u64>> {
    let mut options = stage.options(&ViewerId::parse("speaker")?)?;
    options.rooms = vec![(stage.room.clone(), Path::Push)];
    let (client, mut events) = Client::start(options);
    let mut listening = Tasks::default();
    listening.spawn("speaker", async move {
        while let Some(event) = events.next().await {
            ensure!(!matches!(event, Event::Ended(_)), "the speaker was sent away");
        }
        Ok(())
    });
    let say = |text: &str| client.send(&stage.room, text, Style::default(), None);

    let start = stage.clock.mono();
    for number in 0.. {
        ensure!(stage.clock.mono().since(start) < WARM_MAX, "not heard: {:?}", ledger.silent());
        // Before it is logged in, it may say nothing.
        say(&format!("is it on? {number}")).ok();
        stage.clock.sleep(10 * LOOK).await;
        if ledger.silent().is_empty() {
            break;
        }
    }
    let mut sent = BTreeMap::new();
    let mut next = stage.clock.mono();
    for number in 0..length.as_secs() * COMMENTS_PER_S {
        stage.clock.sleep_until(next).await;
        next = next + Duration::from_millis(1_000 / COMMENTS_PER_S);
        let text = format!("comment {number}");
        let at = stage.clock.micros();
        say(&text).context("a comment could not be sent")?;
        sent.insert(text, at);
    }
    let last = stage.clock.mono() + LAST_MAX;
    while stage.clock.mono() < last && !Way::ALL.iter().all(|&it| ledger.has(it, sent.keys())) {
        stage.clock.sleep(LOOK).await;
    }
    Ok(sent)
}

/// What came of one way, in milliseconds.
struct Figures {
    p50: u64,
    p99: u64,
    most: u64,
    missing: usize,
}

impl Figures {
    fn of(sent: &BTreeMap<String, u64>, heard: &BTreeMap<String, u64>) -> Self {
        let took = |(text, at): (&String, &u64)| Some(heard.get(text)?.saturating_sub(*at) / 1_000);
        let mut took: Vec<u64> = sent.iter().filter_map(took).collect();
        took.sort_unstable();
        let at = |percent: usize| {
            let rank = (took.len() * percent).div_ceil(100).max(1) - 1;
            took.get(rank).copied().unwrap_or(0)
        };
        Self { p50: at(50), p99: at(99), most: at(100), missing: sent.len() - took.len() }
    }

    fn json(&self) -> serde_json::Value {
        json!({"p50_ms": self.p50, "p99_ms": self.p99, "most_ms": self.most, "missing": self.missing})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_of_what_was_heard() {
        let text = |number: u64| format!("comment {number}");
        let sent: BTreeMap<String, u64> = (0..101).map(|it| (text(it), 1_000)).collect();
        let heard = (0..100).map(|it| (text(it), 1_000 + (it + 1) * 1_000)).collect();

        let figures = Figures::of(&sent, &heard);

        assert_eq!((figures.p50, figures.p99, figures.most, figures.missing), (50, 99, 100, 1));
        assert_eq!(Figures::of(&sent, &BTreeMap::new()).missing, 101);
    }
}
