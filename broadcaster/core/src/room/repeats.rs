//! What a segment repeats of earlier ones, so that one lost fetch loses no gift and no recall.

use std::collections::VecDeque;
use std::time::Duration;

use proto::id::{Gen, ItemId};
use proto::item::{Placed, Repeat};
use proto::limits::SEGMENT_REPEATS_MAX;
use proto::time::Wall;

use crate::timeline::Flush;

/// A tombstone is repeated in every segment for this long (`recall_ms`).
pub(crate) const RECALL: Duration = Duration::from_secs(60);

/// The previous slot's protected items, and what is repeated for a minute: tombstones, and what an
/// earlier gen showed last.
#[derive(Debug, Default)]
pub(crate) struct Repeats {
    previous: Vec<Repeat>,
    lasting: VecDeque<(Wall, Repeat)>,
}

impl Repeats {
    /// What the segment sealed at `time` repeats; the previous slot's items only once.
    pub(crate) fn take(&mut self, time: Wall) -> Vec<Repeat> {
        while self.lasting.pop_front_if(|(at, _)| time.since(*at) > RECALL).is_some() {}
        let mut repeats = std::mem::take(&mut self.previous);
        repeats.extend(self.lasting.iter().map(|(_, it)| it.clone()));
        repeats.truncate(SEGMENT_REPEATS_MAX);
        repeats
    }

    /// Remembers a sealed slot's items.
    pub(crate) fn push(&mut self, gen_no: Gen, items: &[Placed], time: Wall) {
        for placed in items {
            self.remember(gen_no, placed, time, true);
        }
    }

    /// Remembers a flush of another broadcaster.
    pub(crate) fn restore(&mut self, flush: &Flush, is_previous: bool) {
        for placed in &flush.items {
            self.remember(flush.gen_no, placed, flush.at, is_previous);
        }
    }

    /// Repeats for a minute what an earlier gen showed last: whoever waited for its last slot has to
    /// come back first, and will not look for it there.
    pub(crate) fn carry(&mut self, repeats: Vec<Repeat>, now: Wall) {
        let place = SEGMENT_REPEATS_MAX.saturating_sub(self.lasting.len());
        self.lasting.extend(repeats.into_iter().take(place).map(|it| (now, it)));
    }

    /// No longer repeats an item.
    pub(crate) fn recall(&mut self, id: ItemId) {
        self.previous.retain(|it| it.placed.item.id != id);
        self.lasting.retain(|(_, it)| it.placed.item.id != id);
    }

    /// Ids recalled lately.
    pub(crate) fn recalled(&self) -> Vec<ItemId> {
        self.lasting.iter().filter_map(|(_, it)| it.placed.item.body.recalls()).collect()
    }

    fn remember(&mut self, gen_no: Gen, placed: &Placed, at: Wall, is_previous: bool) {
        let repeat = Repeat { gen_no, placed: placed.clone() };
        if let Some(of) = placed.item.body.recalls() {
            self.recall(of);
            if self.lasting.len() >= SEGMENT_REPEATS_MAX {
                self.lasting.pop_front();
            }
            self.lasting.push_back((at, repeat));
        } else if placed.item.lane.is_protected()
            && is_previous
            && !self.is_recalled(placed.item.id)
        {
            self.previous.push(repeat);
        }
    }

    fn is_recalled(&self, id: ItemId) -> bool {
        self.lasting.iter().any(|(_, it)| it.placed.item.body.recalls() == Some(id))
    }
}
