//! What a store was not given because its queue was full: its heads do not name it.

use std::collections::BTreeMap;

use broadcaster_core::head;
use bytes::Bytes;
use proto::head::Head;
use proto::id::{Gen, RoomId, SlotNo};

use crate::store::{File, Stamp};

/// Rooms with a gap that one store remembers; beyond, a head may name a slot that is not there.
const ROOMS_MAX: usize = 10_000;

/// Slots that a playlist names at most.
const PLAYLIST_SLOTS: u64 = 8;

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

    /// Makes of a room's heads what the store may have: they name nothing before the gap, and a
    /// playlist, which cannot leave a slot out, waits until the gap is behind its slots.
    pub(super) fn adapt(&mut self, room: &RoomId, heads: &mut Vec<(File, Bytes, Stamp)>) {
        let Some(&(gen_no, slot)) = self.first.get(room) else {
            return;
        };
        let Some((_, bytes, _)) = heads.iter_mut().find(|it| matches!(it.0, File::Head(_))) else {
            return;
        };
        let Ok(mut head) = serde_json::from_slice::<Head>(bytes) else {
            return;
        };
        if head::first(&head) >= (gen_no, slot) {
            self.first.remove(room);
            return;
        }
        shorten(&mut head, gen_no, slot);
        if let Ok(shortened) = serde_json::to_vec(&head) {
            *bytes = shortened.into();
        }
        let slots = (head.slot.0 + 1).saturating_sub(head.oldest.0);
        // Its newest slot is missing too, or stands in an older gen.
        if slots == 0 || head.gen_no < gen_no {
            heads.clear();
        } else if slots < PLAYLIST_SLOTS {
            heads.retain(|it| !matches!(it.0, File::Playlist(_)));
        }
    }

    /// The room is no longer written.
    pub(super) fn forget(&mut self, room: &RoomId) {
        self.first.remove(room);
    }
}

/// Takes out of a head what is before a slot of a gen.
fn shorten(head: &mut Head, gen_no: Gen, slot: SlotNo) {
    head.past.retain(|it| it.info.gen_no >= gen_no);
    for past in head.past.iter_mut().filter(|it| it.info.gen_no == gen_no) {
        past.oldest = past.oldest.max(slot);
    }
    head.past.retain(|it| it.oldest <= it.end);
    if head.gen_no == gen_no {
        head.oldest = head.oldest.max(slot);
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
        let adapt = |gaps: &mut Gaps, bytes: &[u8]| adapt(gaps, &room, bytes).0;
        let whole = |bytes: &[u8]| serde_json::from_slice::<Head>(bytes).ok();
        assert_eq!(adapt(&mut gaps, &head(2, 10, 20, &[])), whole(&head(2, 10, 20, &[])));

        gaps.note(&room, &head(2, 10, 20, &[]));

        let same = adapt(&mut gaps, &head(2, 10, 22, &[(1, 0, 9)])).unwrap();
        assert_eq!((same.oldest, same.past), (SlotNo(21), vec![]));
        let next = adapt(&mut gaps, &head(3, 0, 0, &[(1, 5, 9), (2, 12, 30)])).unwrap();
        assert_eq!((next.oldest, next.past.len()), (SlotNo(0), 1));
        assert_eq!((next.past[0].info.gen_no, next.past[0].oldest), (Gen(2), SlotNo(21)));
        for whole_again in [head(3, 0, 9, &[(2, 21, 30)]), head(2, 10, 20, &[])] {
            assert_eq!(adapt(&mut gaps, &whole_again), whole(&whole_again), "it is over");
        }
    }

    #[test]
    fn a_head_that_names_nothing_but_the_gap_is_not_written() {
        let room = RoomId::parse("r").unwrap();
        let mut gaps = Gaps::default();
        gaps.note(&room, &head(2, 10, 20, &[]));

        let ended = adapt(&mut gaps, &room, &head(2, 10, 20, &[]));
        gaps.forget(&room);
        let of_next_owner = adapt(&mut gaps, &room, &head(2, 10, 20, &[]));

        assert_eq!(ended, (None, Playlist::Waits));
        assert_eq!(
            (of_next_owner.0.unwrap().oldest, of_next_owner.1),
            (SlotNo(10), Playlist::Goes)
        );
    }

    #[test]
    fn a_playlist_waits_until_the_gap_is_behind_its_slots() {
        let room = RoomId::parse("r").unwrap();
        let mut gaps = Gaps::default();
        gaps.note(&room, &head(2, 10, 20, &[]));

        let waits = adapt(&mut gaps, &room, &head(2, 10, 27, &[]));
        let goes = adapt(&mut gaps, &room, &head(2, 10, 28, &[]));

        assert_eq!((waits.0.unwrap().oldest, waits.1), (SlotNo(21), Playlist::Waits));
        assert_eq!((goes.0.unwrap().oldest, goes.1), (SlotNo(21), Playlist::Goes));
    }

    #[derive(Debug, Eq, PartialEq)]
    enum Playlist {
        Goes,
        Waits,
    }

    /// What becomes of a head, and of the playlist beside it.
    fn adapt(gaps: &mut Gaps, room: &RoomId, bytes: &[u8]) -> (Option<Head>, Playlist) {
        let file = |file, bytes: &[u8]| (file, Bytes::copy_from_slice(bytes), Stamp::default());
        let playlist = file(File::Playlist(room.clone()), b"");
        let mut heads = vec![file(File::Head(room.clone()), bytes), playlist];

        gaps.adapt(room, &mut heads);

        let is_head = |it: &&(File, Bytes, Stamp)| matches!(it.0, File::Head(_));
        let head = heads.iter().find(is_head).map(|it| serde_json::from_slice(&it.1).unwrap());
        let goes = heads.iter().any(|it| matches!(it.0, File::Playlist(_)));
        (head, if goes { Playlist::Goes } else { Playlist::Waits })
    }
}
