//! The whole system is shut down during play, and started again on the same data.
//!
//! Promise: viewers are told that the node drains; every admitted comment of the old run is in a
//! segment, once; after the start the room goes on in a later gen; gifts whose keys are given again
//! are the same gifts, and each is shown once over both runs.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, ensure};
use proto::close::CloseCode;
use proto::frame::{self, Outcome};
use proto::head::Tier;
use proto::id::{Gen, ItemId, SlotNo};
use proto::verdict::Verdict;
use sdk::Event;
use sdk::segments::{FetchError, Name, fetch};
use stack::Gift;

use crate::line::Line;
use crate::probe::Probe;
use crate::stage::{Stage, settings};

/// Pause between two comments.
const PAUSE: Duration = Duration::from_millis(50);
/// Comments before the shutdown.
const COMMENTS: usize = 40;
/// A gift is shown within this time, a comment likewise.
const SHOWN_MAX: Duration = Duration::from_secs(10);
/// Viewers are told within this time.
const TOLD_MAX: Duration = Duration::from_secs(15);
/// A segment is served within this time.
const FETCH_MAX: Duration = Duration::from_secs(5);
/// Slots that a gen of the first run has at most.
const SLOTS_MAX: u64 = 100;
/// Open journal entries are published again after three seconds: what would be doubled, is then.
const JOURNAL: Duration = Duration::from_secs(5);

pub(crate) async fn run(folder: &Path, line: &mut Line) -> anyhow::Result<()> {
    let before = play_and_drain(folder, line).await?;

    let stage = Stage::open(folder, line.seed(), &settings(), |_| {}).await?;
    let mut probe = Probe::enter(&stage, "later", frame::Path::Push).await?;
    for (key, &id) in &before.gifts {
        let again = give(&stage, key).await?;
        line.check(again == id, || format!("key {key} gave {id}, and later {again}"));
    }
    line.figure("back_ms", probe.is_served(SHOWN_MAX).await?);
    stage.clock.sleep(JOURNAL).await;
    probe.is_served(SHOWN_MAX).await?;

    let head = stage.head().await?;
    line.figure("gens_opened", head.gen_no.0.saturating_sub(before.gen_no.0));
    line.check(head.gen_no > before.gen_no, || format!("the gen is still {}", head.gen_no));
    let mut times = BTreeMap::new();
    for gen_no in before.gen_no.0..head.gen_no.0 {
        read_gen(&stage, Gen(gen_no), SLOTS_MAX, &mut times).await?;
    }
    read_gen(&stage, head.gen_no, head.slot.0 + 1, &mut times).await?;
    let times = |id: &ItemId| times.get(id).copied().unwrap_or(0);
    for (key, id) in &before.gifts {
        line.check(times(id) == 1, || format!("gift {key} is in {} segments", times(id)));
    }
    let lost = before.admitted.iter().filter(|it| times(it) == 0).count();
    let doubled = before.admitted.iter().filter(|it| times(it) > 1).count();
    line.figure("admitted", before.admitted.len());
    line.check(lost == 0, || format!("{lost} admitted comments are in no segment"));
    line.check(doubled == 0, || format!("{doubled} comments are in two segments"));
    probe.leave().await?;
    stage.close().await
}

/// What was promised before the shutdown.
struct Before {
    gen_no: Gen,
    admitted: Vec<ItemId>,
    gifts: BTreeMap<&'static str, ItemId>,
}

async fn play_and_drain(folder: &Path, line: &mut Line) -> anyhow::Result<Before> {
    let stage = Stage::open(folder, line.seed(), &settings(), |_| {}).await?;
    let mut speaker = Probe::enter(&stage, "speaker", frame::Path::Push).await?;
    let mut watcher = Probe::enter(&stage, "watcher", frame::Path::Segments).await?;
    let mut gifts = BTreeMap::from([("early", give(&stage, "early").await?)]);
    speaker.sees(gifts["early"], SHOWN_MAX).await?;
    let gen_no = stage.head().await?.gen_no;
    for _ in 0..COMMENTS {
        speaker.send()?;
        stage.clock.sleep(PAUSE).await;
    }
    gifts.insert("last", give(&stage, "last").await?);

    let start = stage.clock.mono();
    let clock = stage.clock.clone();
    let mut admitted = Vec::new();
    let (ended, spoken, watched) = tokio::join!(
        stage.close(),
        speaker.until(TOLD_MAX, |event| {
            if let Event::Ack(ack) = &event
                && let Outcome::Verdict(Verdict::Admit(id)) = ack.outcome
            {
                admitted.push(id);
            }
            left(&event)
        }),
        watcher.until(TOLD_MAX, |event| left(&event)),
    );
    ended.context("the system did not end well")?;
    line.figure("drain_ms", proto::time::millis(clock.mono().since(start)));
    for (who, code) in [("speaker", spoken?), ("watcher", watched?)] {
        line.check(code == Some(CloseCode::Draining), || format!("the {who} was told {code:?}"));
    }
    ensure!(!admitted.is_empty(), "no comment was admitted before the shutdown");
    Ok(Before { gen_no, admitted, gifts })
}

/// The code with which a viewer lost its connection.
fn left(event: &Event) -> Option<Option<CloseCode>> {
    let Event::Disconnected { code, .. } = event else { return None };
    Some(*code)
}

async fn give(stage: &Stage, key: &str) -> anyhow::Result<ItemId> {
    let gift = Gift { viewer: "giver", gift_no: 1, count: 1, lane: "high" };
    stage.business.gift(&stage.room, key, gift).await
}

/// Counts each item of a gen's first `slots` segments, or of fewer if it ended before; repeats
/// are not counted.
async fn read_gen(
    stage: &Stage,
    gen_no: Gen,
    slots: u64,
    times: &mut BTreeMap<ItemId, u32>,
) -> anyhow::Result<()> {
    let base = &stage.addrs.origin;
    for slot in (0..slots).map(SlotNo) {
        let name = Name { room: stage.room.clone(), gen_no, tier: Tier::Full, slot };
        match fetch(&stage.http, base, &name, FETCH_MAX).await {
            Ok(segment) => {
                for placed in segment.items {
                    *times.entry(placed.item.id).or_default() += 1;
                }
            }
            Err(FetchError::NotYet | FetchError::Gone) => return Ok(()),
            Err(error) => return Err(error).context("a segment could not be read"),
        }
    }
    Ok(())
}
