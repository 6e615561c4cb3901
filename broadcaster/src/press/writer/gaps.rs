//! What a store was not given because its queue was full: its heads do not name it.

use std::collections::BTreeMap;

use bytes::Bytes;
use proto::head::Head;
use proto::id::{Gen, RoomId, SlotNo};

/// Rooms with a gap that one store remembers; beyond, a head may name a slot that is not there.
const ROOMS_MAX: usize = 10_000;

/// By room, the first slot behind the newest gap.
#[derive(Debug, Default)]
pub(super) struct Gaps {
    first: BTreeMap<RoomId, (Gen, SlotNo)>,
}

impl Gaps {
    /// The store goes without the slot that this head names as its newest.
    pub(super) fn note(&mut self, room: &RoomId, head: &[u8]) {
        if self.first.len() >= ROOMS_MAX && !self.first.contains_key(room) {
            return;
        }
        if let Ok(head) = serde_json::from_slice::<Head>(head) {
            let first = (head.gen_no, SlotNo(head.slot.0.saturating_add(1)));
            self.first.insert(room.clone(), first);
        }
    }

    /// A head as the store may have it; `None` if it is good as it is.
    pub(super) fn adapt(&mut self, room: &RoomId, head: &[u8]) -> Option<Bytes> {
        let &(gen_no, slot) = self.first.get(room)?;
        let mut head: Head = serde_json::from_slice(head).ok()?;
        let oldest =
            head.past.first().map_or((head.gen_no, head.oldest), |it| (it.info.gen_no, it.oldest));
        if oldest >= (gen_no, slot) {
            self.first.remove(room);
            return None;
        }
        head.past.retain(|it| it.info.gen_no >= gen_no);
        for past in head.past.iter_mut().filter(|it| it.info.gen_no == gen_no) {
            past.oldest = past.oldest.max(slot);
        }
        head.past.retain(|it| it.oldest <= it.end);
        if head.gen_no == gen_no {
            head.oldest = head.oldest.max(slot);
        }
        serde_json::to_vec(&head).ok().map(Bytes::from)
    }
}

#[cfg(test)]
mod tests {
    use proto::head::{GenInfo, Past};
    use proto::time::Wall;
    use serde_json::json;

    use super::*;

    fn head(gen_no: u32, oldest: u64, slot: u64, past: &[(u32, u64, u64)]) -> Vec<u8> {
        let past = past.iter().map(|&(gen_no, oldest, end)| Past {
            info: GenInfo { gen_no: Gen(gen_no), epoch_ms: Wall(0), interval_ms: 1000, layout: 1 },
            oldest: SlotNo(oldest),
            end: SlotNo(end),
        });
        serde_json::to_vec(&json!({
            "v": 1, "gen": gen_no, "epoch_ms": 0, "interval_ms": 1000, "slot": slot,
            "oldest": oldest, "now_ms": 0, "spread_ms": 0, "tiers": ["full"], "heat": "hot",
            "online": 0, "sealed": false, "recalled": [], "catalogue": 0,
            "past": past.collect::<Vec<_>>(),
        }))
        .unwrap()
    }

    #[test]
    fn heads_begin_behind_a_gap_until_nothing_older_is_served() {
        let room = RoomId::parse("r").unwrap();
        let mut gaps = Gaps::default();
        let adapt = |gaps: &mut Gaps, bytes: &[u8]| {
            let adapted = gaps.adapt(&room, bytes)?;
            serde_json::from_slice::<Head>(&adapted).ok()
        };
        assert_eq!(adapt(&mut gaps, &head(2, 10, 20, &[])), None);

        gaps.note(&room, &head(2, 10, 20, &[]));

        let same = adapt(&mut gaps, &head(2, 10, 22, &[(1, 0, 9)])).unwrap();
        assert_eq!((same.oldest, same.past), (SlotNo(21), vec![]));
        let next = adapt(&mut gaps, &head(3, 0, 0, &[(1, 5, 9), (2, 12, 30)])).unwrap();
        assert_eq!((next.oldest, next.past.len()), (SlotNo(0), 1));
        assert_eq!((next.past[0].info.gen_no, next.past[0].oldest), (Gen(2), SlotNo(21)));
        assert_eq!(adapt(&mut gaps, &head(3, 0, 9, &[(2, 21, 30)])), None);
        assert_eq!(adapt(&mut gaps, &head(2, 10, 20, &[])), None, "it is over");
    }
}
