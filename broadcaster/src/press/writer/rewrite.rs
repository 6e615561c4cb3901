//! Files of a store written anew without an item.

use std::sync::Arc;

use broadcaster_core::erase::rewrite;
use proto::head::Tier;
use proto::id::{Gen, ItemId, RoomId, SlotNo};

use super::Writer;
use crate::press::print;
use crate::store::{Ext, File, Stamp, StoreError};

/// What is to be taken out, and from where.
#[derive(Clone, Debug)]
pub(in crate::press) struct Erasure {
    pub(in crate::press) id: ItemId,
    pub(in crate::press) room: RoomId,
    pub(in crate::press) slots: Arc<[(Gen, SlotNo)]>,
    /// Newer than what any of the files was written with.
    pub(in crate::press) stamp: Stamp,
}

impl Writer {
    /// Goes through the slots. What was rewritten before is found without the item, so that this may
    /// be tried again.
    pub(super) async fn erase(&self, erasure: &Erasure) -> Result<(), StoreError> {
        let Erasure { id, room, slots, stamp } = erasure;
        for &(gen_no, slot) in slots.iter() {
            for tier in [Tier::Full, Tier::Lite] {
                let room = room.clone();
                let file = File::Segment { room, gen_no, tier, slot, ext: Ext::Bin };
                let got = self.in_time("get", self.store.get(file)).await?;
                let got = got.map_err(|error| self.failed("get", error))?;
                // Whatever is no segment holds no item that could be read.
                let Some(segment) = got.and_then(|it| rewrite(&it, *id).ok().flatten()) else {
                    continue;
                };
                // The form that is looked at goes last: what stopped between is done again.
                for (file, bytes) in print(&segment, self.writes_hls) {
                    let replace = self.store.replace(file.clone(), bytes, *stamp);
                    let replaced = self.in_time("replace", replace).await?;
                    replaced.map_err(|error| self.failed("replace", error))?;
                    self.purge(file);
                }
            }
        }
        Ok(())
    }

    /// What finds no place goes when its lifetime ends.
    fn purge(&self, file: File) {
        if let Some(purges) = &self.purges
            && purges.try_send(file).is_err()
        {
            self.counts.purge("queue_full");
        }
    }
}
