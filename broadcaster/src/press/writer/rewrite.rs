//! Files of a store written anew without erased items, beside its writers.
//!
//! What fails is set aside and tried again, until it is done or the process ends.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use kit::clock::Clock;
use proto::head::Tier;
use proto::id::{Gen, ItemId, RoomId, SlotNo};
use proto::time::Mono;
use tokio::sync::{mpsc, watch};

use super::calls::Calls;
use crate::press::cover::without;
use crate::press::files::Printer;
use crate::purge::Purges;
use crate::room_keys::RoomKeys;
use crate::store::{Ext, File, Stamp, StoreError};

/// Erasures that an eraser is amid; further ones wait in its queue.
const PASSES_MAX: usize = 64;
/// Files that fail in a row before the store counts as away for now.
const FAILURES_MAX: u32 = 8;
/// Pause before what was set aside is tried again; it doubles up to [`PAUSE_MAX`].
const PAUSE: Duration = Duration::from_millis(100);
/// See [`PAUSE`].
const PAUSE_MAX: Duration = Duration::from_secs(10);

/// What is to be taken out, and from where.
#[derive(Clone, Debug)]
pub(in crate::press) struct Erasure {
    /// All that was erased from the room so far: of two erasures that overtake each other, the
    /// newer one does the older one's work.
    pub(in crate::press) ids: Arc<[ItemId]>,
    pub(in crate::press) room: RoomId,
    pub(in crate::press) slots: Arc<[(Gen, SlotNo)]>,
    /// Newer than what any of the files was written with.
    pub(in crate::press) stamp: Stamp,
    pub(in crate::press) since: Mono,
    /// Becomes true when one store is done.
    pub(in crate::press) done: watch::Sender<bool>,
}

/// Goes through the files of one store.
#[derive(Debug)]
pub(super) struct Eraser {
    pub(super) calls: Calls,
    pub(super) clock: Clock,
    /// A file that is not there may still come for so long: its slot waits for a writer.
    pub(super) life: Duration,
    pub(super) printer: Printer,
    pub(super) keys: Arc<RoomKeys>,
    pub(super) purges: Purges,
}

/// An erasure, and the files that are still to be looked at.
#[derive(Debug)]
struct Pass {
    erasure: Erasure,
    left: VecDeque<(Gen, SlotNo, Tier)>,
}

/// What a look at a file found.
enum Look {
    /// The items are not in it, or not any more.
    Clean,
    /// It is not there.
    Missing,
}

impl Pass {
    fn new(erasure: Erasure) -> Self {
        let tiers = |&(gen_no, slot)| [Tier::Full, Tier::Lite].map(|it| (gen_no, slot, it));
        let left = erasure.slots.iter().flat_map(tiers).collect();
        Self { erasure, left }
    }
}

impl Eraser {
    pub(super) async fn run(self, mut queue: mpsc::Receiver<Erasure>) -> anyhow::Result<()> {
        let mut passes: VecDeque<Pass> = VecDeque::new();
        let mut pause = PAUSE;
        loop {
            tokio::select! {
                erasure = queue.recv(), if passes.len() < PASSES_MAX => match erasure {
                    Some(erasure) => {
                        passes.push_front(Pass::new(erasure));
                        pause = PAUSE;
                    }
                    None if passes.is_empty() => return Ok(()),
                    None => {}
                },
                () = self.clock.sleep(pause), if !passes.is_empty() => {
                    pause = (pause * 2).min(PAUSE_MAX);
                }
            }
            self.go_over(&mut passes, &queue).await;
            if queue.is_closed() && queue.is_empty() {
                return Ok(());
            }
        }
    }

    /// Each once; the rest waits when the store is away. What is left stands behind.
    async fn go_over(&self, passes: &mut VecDeque<Pass>, queue: &mpsc::Receiver<Erasure>) {
        for _ in 0..passes.len() {
            let Some(mut pass) = passes.pop_front() else {
                return;
            };
            let went = self.go_through(&mut pass, queue).await;
            if pass.left.is_empty() {
                pass.erasure.done.send_replace(true);
            } else {
                passes.push_back(pass);
            }
            if went.is_err() {
                return;
            }
        }
    }

    /// Looks at what is left; what was rewritten before is found without the items. When the process
    /// ends, the first failure is the last.
    async fn go_through(
        &self,
        pass: &mut Pass,
        queue: &mpsc::Receiver<Erasure>,
    ) -> Result<(), StoreError> {
        let Pass { erasure, left } = pass;
        let is_over = self.clock.mono().since(erasure.since) >= self.life;
        let mut failures = 0;
        for _ in 0..left.len() {
            let Some(at) = left.pop_front() else {
                break;
            };
            match self.erase(erasure, at).await {
                Ok(Look::Clean) => failures = 0,
                Ok(Look::Missing) => {
                    failures = 0;
                    if !is_over {
                        left.push_back(at);
                    }
                }
                Err(error) => {
                    left.push_back(at);
                    failures += 1;
                    if failures >= FAILURES_MAX || queue.is_closed() {
                        return Err(error);
                    }
                }
            }
        }
        Ok(())
    }

    async fn erase(
        &self,
        erasure: &Erasure,
        (gen_no, slot, tier): (Gen, SlotNo, Tier),
    ) -> Result<Look, StoreError> {
        let room = erasure.room.clone();
        let file = File::Segment { room, gen_no, tier, slot, ext: Ext::Bin };
        let Some(bytes) = self.calls.get(file.clone()).await? else {
            return Ok(Look::Missing);
        };
        let renewed = without(&erasure.ids, &file, &bytes, &self.printer, &self.keys);
        let renewed = renewed.map_err(|it| StoreError::Away(it.to_string()))?;
        // What the house wrote once, and would not write now, shows the item still.
        if !renewed.is_empty() {
            let form = |ext| File::Segment { room: erasure.room.clone(), gen_no, tier, slot, ext };
            let mut others: Vec<File> = Ext::ALL.map(form).into();
            others.retain(|it| !renewed.iter().any(|(file, _)| file == it));
            if !self.calls.remove(others.clone()).await?.is_empty() {
                return Err(StoreError::Away("a form is still there".to_owned()));
            }
            others.iter().for_each(|it| self.purges.forget(it));
        }
        // The form that is looked at goes last: what stopped between is done again.
        for (file, bytes) in renewed {
            self.calls.replace(file.clone(), bytes, erasure.stamp).await?;
            self.purges.forget(&file);
        }
        Ok(Look::Clean)
    }
}
