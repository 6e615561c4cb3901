//! What `sealed` tells of the flood, each thing once.

use std::sync::Arc;

use anyhow::bail;
use bus::{At, Tail, Tailed, topic};
use proto::envelope::{RoomBatch, RoomEvent};
use proto::id::{Gen, ItemId, SlotNo};
use proto::item::Lane;
use proto::verdict::Fate;

use super::Plan;
use super::scene::{Said, Scene, number_of};

/// Records of `sealed` taken at once.
const RECORDS_MAX: usize = 64;

/// What was told so far.
#[derive(Debug)]
pub(super) struct Ledger {
    tail: Tail,
    /// Of each comment, by its number, whether it was told of.
    told: Vec<bool>,
    pub(super) shown: u64,
    pub(super) shed: u64,
    pub(super) protected: u64,
    /// What was told twice, and what nobody said.
    pub(super) wrong: u64,
    pub(super) seals: Vec<(Gen, SlotNo)>,
    /// Items of the slots that are sealed.
    sealed: u64,
}

impl Ledger {
    pub(super) async fn open(scene: &Scene, plan: Plan) -> anyhow::Result<Self> {
        let topic = topic::sealed();
        let partitions = vec![topic.partition_of_room(&scene.room)];
        let tail = Tail::open(Arc::clone(&scene.bus), topic, partitions, At::Oldest).await?;
        Ok(Self {
            tail,
            told: vec![false; usize::try_from(plan.comments())?],
            shown: 0,
            shed: 0,
            protected: 0,
            wrong: 0,
            seals: Vec::new(),
            sealed: 0,
        })
    }

    /// Waits for more and takes note of it.
    pub(super) async fn read(&mut self) -> anyhow::Result<()> {
        let records = match self.tail.next(RECORDS_MAX).await? {
            Tailed::Records(records) => records,
            Tailed::Skipped { records, .. } => bail!("{records} records of sealed are lost"),
        };
        for record in &records {
            for entry in RoomBatch::decode(&record.value)?.entries {
                self.note(&entry.event);
            }
        }
        Ok(())
    }

    /// Whether everything that was said is told of, and all that was shown lies in sealed slots.
    pub(super) fn is_complete(&self, said: Said) -> bool {
        let all = said.comments + said.protected;
        self.shown + self.shed + self.protected == all && self.sealed == self.shown + self.protected
    }

    /// Slots that do not follow the one before.
    pub(super) fn holes(&self) -> u64 {
        let is_next =
            |one: &(Gen, SlotNo), next: &(Gen, SlotNo)| one.0 == next.0 && one.1.0 + 1 == next.1.0;
        let pairs = self.seals.windows(2).filter(|it| !is_next(&it[0], &it[1]));
        pairs.count() as u64
    }

    fn note(&mut self, event: &RoomEvent) {
        match event {
            RoomEvent::Flush { items, .. } => {
                for placed in items {
                    match placed.item.lane {
                        Lane::Comment if self.is_first(placed.item.id) => self.shown += 1,
                        Lane::Comment => self.wrong += 1,
                        Lane::Notice | Lane::HighGift | Lane::LowGift => self.protected += 1,
                    }
                }
            }
            RoomEvent::Fates { fates } => {
                for (id, fate) in fates {
                    let is_shed = matches!(fate, Fate::Shed { .. });
                    if is_shed && self.is_first(*id) { self.shed += 1 } else { self.wrong += 1 }
                }
            }
            RoomEvent::Seal { gen_no, slot, items, .. } => {
                self.seals.push((*gen_no, *slot));
                self.sealed += u64::from(*items);
            }
            RoomEvent::Opened { .. } | RoomEvent::Heat { .. } => {}
        }
    }

    /// Whether this comment was said, and was not told of before.
    fn is_first(&mut self, id: ItemId) -> bool {
        let told = number_of(id).and_then(|it| self.told.get_mut(it));
        told.is_some_and(|it| !std::mem::replace(it, true))
    }
}
