//! Taking an item out of files that are written already, because the law wants it gone.
//!
//! The slots that hold it are written anew without it, behind whatever is being written of the room,
//! and leave this process's memory at once; slots still to come are made without it.

use std::collections::VecDeque;

use broadcaster_core::erase::take_out;
use proto::id::{Gen, ItemId, RoomId, SlotNo};
use proto::segment::Segment;

use super::{Press, files_of};
use crate::press::writer::{Erasure, Work};
use crate::store::Stamp;

/// Items of a room that slots to come are made without; the oldest are forgotten, and stand in no
/// flush by then.
const ERASED_MAX: usize = 1_000;

/// What is to be in no slot any more.
#[derive(Debug, Default)]
pub(super) struct Erased {
    ids: VecDeque<ItemId>,
}

impl Erased {
    fn push(&mut self, id: ItemId) {
        if self.ids.len() >= ERASED_MAX {
            self.ids.pop_front();
        }
        self.ids.push_back(id);
    }

    /// Takes them all out of a segment.
    pub(super) fn leave(&self, segment: &mut Segment) {
        for &id in &self.ids {
            take_out(segment, id);
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
        printed.erased.push(id);
        printed.version += 1;
        let is_behind = |it: &(Gen, SlotNo)| place.is_none_or(|place| *it >= place);
        let slots: Vec<_> = printed.shelf.slots().filter(is_behind).collect();
        for file in files_of(room, &slots) {
            self.display.forget(&file);
        }
        let newest = printed.shelf.newest().map_or(Gen(0), |it| it.info.gen_no);
        let stamp = Stamp { gen_no: newest, term: printed.term, version: printed.version };
        tracing::info!(%room, slots = slots.len(), "an item is erased");
        let erasure = Erasure { id, room: room.clone(), slots: slots.into(), stamp };
        self.writers.send(room, &Work::erase(erasure));
    }
}
