//! Taking an item out of files that are written already, because the law wants it gone.
//!
//! The slots that hold it are written anew without it: in this process's memory at once, in every
//! store beside its writers. Slots still to come are made without it. The slot that tells viewers
//! counts as stored when a store is done, so that a process that is killed before goes on with it.

use std::collections::VecDeque;

use broadcaster_core::erase::take_out;
use proto::id::{Gen, ItemId, RoomId, SlotNo};
use proto::segment::Segment;
use tokio::sync::watch;

use super::Press;
use crate::press::cover::without;
use crate::press::files::files_of;
use crate::press::writer::Erasure;
use crate::store::{Ext, File, Stamp};

/// Items of a room that slots to come are made without; the oldest are forgotten, and stand in no
/// flush by then.
const ERASED_MAX: usize = 1_000;

/// What is to be in no slot any more, and whether a store and the archive are done with it.
#[derive(Debug, Default)]
pub(super) struct Erased {
    items: VecDeque<(ItemId, Vec<watch::Receiver<bool>>)>,
}

impl Erased {
    fn push(&mut self, id: ItemId, done: Vec<watch::Receiver<bool>>) {
        if self.items.len() >= ERASED_MAX {
            self.items.pop_front();
        }
        self.items.push_back((id, done));
    }

    /// Takes them all out of a segment.
    pub(super) fn leave(&self, segment: &mut Segment) {
        for (id, _) in &self.items {
            take_out(segment, *id);
        }
    }

    /// Ends when a store and the archive are done with everything that a segment says is erased, or none will be.
    pub(super) fn of(&self, segment: &Segment) -> impl Future<Output = ()> + Send + use<> {
        let said: Vec<_> = segment.items.iter().filter_map(|it| it.item.body.recalls()).collect();
        let told = self.items.iter().filter(|(id, _)| said.contains(id));
        let told: Vec<_> = told.flat_map(|(_, done)| done.clone()).collect();
        async move {
            for mut done in told {
                done.wait_for(|it| *it).await.ok();
            }
        }
    }
}

impl Press {
    /// Has the slots rewritten that hold an item: it stands in `place`, and those behind may repeat
    /// it; any may if its place is not known any more.
    pub(super) fn erase(&mut self, room: &RoomId, id: ItemId, place: Option<(Gen, SlotNo)>) {
        let Some(printed) = self.rooms.get_mut(room) else {
            return;
        };
        let (done, told) = watch::channel(false);
        let noted = self.roll.as_ref().map(|it| it.erase(room, id));
        printed.erased.push(id, noted.into_iter().chain([told]).collect());
        printed.version += 1;
        let is_behind = |it: &(Gen, SlotNo)| place.is_none_or(|place| *it >= place);
        let slots: Vec<_> = printed.shelf.slots().filter(is_behind).collect();
        let newest = printed.shelf.newest().map_or(Gen(0), |it| it.info.gen_no);
        let stamp = Stamp { gen_no: newest, term: printed.term, version: printed.version };
        let ids = printed.erased.items.iter().map(|it| it.0).collect();
        tracing::info!(%room, slots = slots.len(), "an item is erased");
        self.renew(room, id, &slots);
        let (slots, since) = (slots.into(), self.clock.mono());
        let erasure = Erasure { ids, room: room.clone(), slots, stamp, since, done };
        self.writers.erase(&erasure);
    }

    /// Takes an item out of slots in memory, where some may be that no store has.
    fn renew(&self, room: &RoomId, id: ItemId, slots: &[(Gen, SlotNo)]) {
        let is_looked_at = |it: &File| matches!(it, File::Segment { ext: Ext::Bin, .. });
        for file in files_of(room, slots).iter().filter(|it| is_looked_at(it)) {
            let Some(bytes) = self.display.recent(file) else {
                continue;
            };
            // What was sealed here lies in memory with its key.
            let renewed = without(&[id], file, &bytes, &self.printer, &self.keys);
            for (file, bytes) in renewed.into_iter().flatten() {
                self.display.renew(&file, bytes);
            }
        }
    }
}
