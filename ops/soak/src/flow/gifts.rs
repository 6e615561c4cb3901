//! Gifts: a few beside a flood of comments, and a flood of their own. Whatever was acknowledged is
//! shown; the rest was refused before.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use drill::{Line, Stage, progress};
use kit::task::Tasks;
use parking_lot::Mutex;
use proto::frame::Path;
use proto::id::{ItemId, ViewerId};
use proto::item::Body;
use sdk::{Client, Event, Events};
use stack::{Gift, OverShare};

/// Gifts and notices a second beside a flood of comments: less than their lanes are guaranteed.
const TRICKLE_PER_S: u32 = 2;
/// Requests on the way at a time: 5,000 a second may take 25 ms each.
const HANDS: u32 = 128;
/// A viewer is in within this time.
const STEP_MAX: Duration = Duration::from_secs(15);
/// What is acknowledged is shown within this time: how far ahead its lane takes it, and a little.
const SHOW_MAX: Duration = Duration::from_secs(45);

/// Gives gifts and notices in turn for some time; all must be acknowledged. Gives how many.
pub(super) async fn trickle(stage: &Stage, length: Duration) -> anyhow::Result<u64> {
    let rounds = length.as_secs() * u64::from(TRICKLE_PER_S) / 2;
    for round in 0..rounds {
        let key = format!("beside-{round}");
        let gift = Gift { viewer: "giver", gift_no: 1, count: 1, lane: "high" };
        stage.business.gift(&stage.room, &key, gift).await?;
        stage.business.notice(&stage.room, &format!("{key}-notice"), "hear").await?;
        stage.clock.sleep(Duration::from_secs(2) / TRICKLE_PER_S).await;
    }
    Ok(rounds * 2)
}

/// Gives so many different gifts a second.
pub(super) async fn run(
    stage: &Stage,
    per_s: u32,
    length: Duration,
    line: &mut Line,
) -> anyhow::Result<()> {
    let watch = Watch::start(stage).await?;
    let gifts = per_s * u32::try_from(length.as_secs())?;
    progress(&format!("  {per_s} gifts a second for {} s", length.as_secs()));
    let asked = Arc::<Asked>::default();
    let start_us = stage.clock.micros();
    let mut hands = Tasks::default();
    for hand in 0..HANDS {
        let (business, room) = (stage.business.clone(), stage.room.clone());
        let (clock, asked) = (stage.clock.clone(), Arc::clone(&asked));
        hands.spawn("giver", async move {
            for number in (hand..gifts).step_by(HANDS as usize) {
                let due_us = start_us + u64::from(number) * 1_000_000 / u64::from(per_s);
                let ahead_us = due_us.saturating_sub(clock.micros());
                if ahead_us > 0 {
                    clock.sleep(Duration::from_micros(ahead_us)).await;
                }
                let gift = Gift { viewer: "giver", gift_no: number, count: 1, lane: "high" };
                match business.try_gift(&room, &format!("flood-{number}"), gift).await? {
                    Ok(id) => {
                        asked.acknowledged.lock().insert(id);
                    }
                    Err(OverShare) => {
                        asked.refused.fetch_add(1, Ordering::Relaxed);
                    }
                }
            }
            Ok(())
        });
    }
    while let Some(ended) = hands.next().await {
        ended?;
    }
    let gave_ms = stage.clock.micros().saturating_sub(start_us) / 1000;
    let acknowledged = asked.acknowledged.lock().clone();
    let all_shown = || watch.shown.lock().is_superset(&acknowledged);
    let shown = stage.wait(SHOW_MAX, "acknowledged gifts to be shown", all_shown).await;
    let missing = acknowledged.difference(&watch.shown.lock()).count();
    let unasked = watch.shown.lock().difference(&acknowledged).count();

    line.figure("gifts_asked", gifts);
    line.figure("gifts_gave_ms", gave_ms);
    line.figure("gifts_offered_per_s", u64::from(gifts) * 1_000 / gave_ms.max(1));
    line.figure("gifts_acknowledged", acknowledged.len());
    line.figure("gifts_refused", asked.refused.load(Ordering::Relaxed));
    line.figure("gifts_shown_after_ms", *shown.as_ref().unwrap_or(&0));
    line.check(missing == 0, || format!("{missing} acknowledged gifts were not shown"));
    line.check(unasked == 0, || format!("{unasked} gifts were shown and not acknowledged"));
    line.check(!acknowledged.is_empty(), || "no gift was acknowledged".to_owned());
    watch.end().await
}

/// What was answered.
#[derive(Debug, Default)]
struct Asked {
    acknowledged: Mutex<BTreeSet<ItemId>>,
    refused: AtomicU64,
}

/// A viewer who takes note of gifts.
#[derive(Debug)]
struct Watch {
    client: Client,
    shown: Arc<Mutex<BTreeSet<ItemId>>>,
    task: Tasks,
}

impl Watch {
    async fn start(stage: &Stage) -> anyhow::Result<Self> {
        let mut options = stage.options(&ViewerId::parse("watcher")?)?;
        options.rooms = vec![(stage.room.clone(), Path::Push)];
        let before = stage.sessions();
        let (client, events) = Client::start(options);
        let shown = Arc::default();
        let mut task = Tasks::default();
        task.spawn("watcher", note(events, Arc::clone(&shown)));
        stage.wait(STEP_MAX, "the watcher to be in", || stage.sessions() > before).await?;
        Ok(Self { client, shown, task })
    }

    async fn end(mut self) -> anyhow::Result<()> {
        self.client.close();
        while let Some(ended) = self.task.next().await {
            ended?;
        }
        Ok(())
    }
}

async fn note(mut events: Events, shown: Arc<Mutex<BTreeSet<ItemId>>>) -> anyhow::Result<()> {
    while let Some(event) = events.next().await {
        if let Event::Show { item, .. } = event
            && let Body::Gift { .. } = item.body
        {
            shown.lock().insert(item.id);
        }
    }
    Ok(())
}
