//! What one partition has to say at once, and what follows when it has been said.

use std::collections::VecDeque;

use bytes::Bytes;
use proto::control::Fact;
use proto::envelope::{RoomBatch, RoomEntry, RoomEvent};
use proto::id::ItemId;
use proto::item::{Body, Placed};
use proto::limits::ENVELOPE_ENTRIES_MAX;

use crate::press::Job;

/// Bytes of one record, as estimated: two of the largest flushes fit, and the bus takes twice this.
const RECORD_BYTES_MAX: usize = 512 * 1024;
/// Bytes of an item besides its text, at most.
const ITEM_BYTES: usize = 96;
/// Bytes of an event besides its items, at most.
const EVENT_BYTES: usize = 160;

/// Events in records, and what may happen only after they are published.
#[derive(Debug, Default)]
pub(crate) struct Parcel {
    /// Records for `sealed` with their counterparts for `downlink`, in order.
    pub(crate) records: VecDeque<Letter>,
    /// For the press.
    pub(crate) jobs: Vec<Job>,
    /// For `control`.
    pub(crate) facts: Vec<Fact>,
    /// Items that have their fate.
    pub(crate) done: Vec<ItemId>,
}

/// One record for `sealed`, and the same without what links need not know.
#[derive(Clone, Debug)]
pub(crate) struct Letter {
    pub(crate) sealed: Bytes,
    pub(crate) downlink: Option<Bytes>,
}

impl Letter {
    /// Whether a gift is shown by it: where tests have the process die.
    pub(crate) fn shows_gift(&self) -> bool {
        let batch = RoomBatch::decode(&self.sealed);
        batch.is_ok_and(|it| it.entries.iter().any(|it| shows_gift(&it.event)))
    }
}

impl Parcel {
    /// Packs events into records.
    pub(crate) fn pack(&mut self, entries: Vec<RoomEntry>) {
        let mut batch = Vec::new();
        let mut bytes = 0;
        for entry in entries {
            let size = size(&entry.event);
            if !batch.is_empty()
                && (bytes + size > RECORD_BYTES_MAX || batch.len() >= ENVELOPE_ENTRIES_MAX)
            {
                self.records.push_back(letter(std::mem::take(&mut batch)));
                bytes = 0;
            }
            bytes += size;
            batch.push(entry);
        }
        if !batch.is_empty() {
            self.records.push_back(letter(batch));
        }
    }

    /// Whether there is nothing to do.
    pub(crate) fn is_empty(&self) -> bool {
        let Self { records, jobs, facts, done } = self;
        records.is_empty() && jobs.is_empty() && facts.is_empty() && done.is_empty()
    }
}

fn shows_gift(event: &RoomEvent) -> bool {
    match event {
        RoomEvent::Flush { items, .. } => {
            items.iter().any(|it| matches!(it.item.body, Body::Gift { .. }))
        }
        RoomEvent::Opened { .. }
        | RoomEvent::Seal { .. }
        | RoomEvent::Fates { .. }
        | RoomEvent::Heat { .. } => false,
    }
}

fn letter(entries: Vec<RoomEntry>) -> Letter {
    let batch = RoomBatch { entries };
    let sealed = batch.encode();
    let count = batch.entries.len();
    let entries: Vec<_> = batch.entries.into_iter().filter(|it| is_for_links(&it.event)).collect();
    let downlink = match entries.len() {
        0 => None,
        all if all == count => Some(sealed.clone()),
        _ => Some(RoomBatch { entries }.encode()),
    };
    Letter { sealed, downlink }
}

const fn is_for_links(event: &RoomEvent) -> bool {
    match event {
        RoomEvent::Flush { .. } | RoomEvent::Seal { .. } | RoomEvent::Heat { .. } => true,
        RoomEvent::Opened { .. } | RoomEvent::Fates { .. } => false,
    }
}

fn size(event: &RoomEvent) -> usize {
    let text = |it: &Placed| it.item.body.text().map_or(0, str::len) + ITEM_BYTES;
    EVENT_BYTES
        + match event {
            RoomEvent::Flush { items, .. } => items.iter().map(text).sum(),
            RoomEvent::Fates { fates } => fates.len() * ITEM_BYTES,
            RoomEvent::Opened { .. } | RoomEvent::Seal { .. } | RoomEvent::Heat { .. } => 0,
        }
}

#[cfg(test)]
mod tests {
    use proto::id::{AppId, Gen, RoomId, SlotNo};
    use proto::time::Wall;
    use proto::verdict::{Fate, Reason};

    use super::*;

    fn entry(event: RoomEvent) -> RoomEntry {
        RoomEntry { app: AppId(1), room: RoomId::parse("r").unwrap(), event }
    }

    #[test]
    fn links_do_not_hear_of_fates() {
        let fates = vec![(ItemId(1), Fate::Shed { reason: Reason::OverBudget })];
        let seal = RoomEvent::Seal { gen_no: Gen(1), slot: SlotNo(0), items: 0, crc: 0 };
        let mut parcel = Parcel::default();

        parcel.pack(vec![entry(RoomEvent::Fates { fates }), entry(seal.clone())]);

        let Letter { sealed, downlink } = parcel.records.pop_front().unwrap();
        assert_eq!(RoomBatch::decode(&sealed).unwrap().entries.len(), 2);
        let heard = RoomBatch::decode(&downlink.unwrap()).unwrap();
        assert_eq!(heard.entries, [entry(seal)]);
    }

    #[test]
    fn many_events_take_several_records() {
        let flush = || {
            let (gen_no, slot) = (Gen(1), SlotNo(0));
            entry(RoomEvent::Flush { gen_no, slot, part: 0, at: Wall(0), items: Vec::new() })
        };
        let mut parcel = Parcel::default();

        parcel.pack((0..2500).map(|_| flush()).collect());

        let counts: Vec<usize> = parcel
            .records
            .iter()
            .map(|it| RoomBatch::decode(&it.sealed).unwrap().entries.len())
            .collect();
        assert_eq!(counts, [1000, 1000, 500]);
    }
}
