//! What `sealed` tells of a room's last minutes, so that another broadcaster can go on.

use proto::envelope::RoomEvent;
use proto::head::GenInfo;
use proto::heat::Heat;
use proto::id::{Gen, Seq, SlotNo};
use proto::item::Lane;
use proto::verdict::Fate;

use crate::room::{Resume, Told};
use crate::timeline::Flush;

/// Flushes and fates kept of one room: two minutes of the usual room. Beyond, the oldest half goes.
pub const EVENTS_MAX: usize = 4000;

/// What was found of one room, event by event.
#[derive(Clone, Debug, Default)]
pub struct Found {
    gen_no: Gen,
    info: Option<GenInfo>,
    sealed: Option<SlotNo>,
    next_seq: Seq,
    flushes: Vec<Flush>,
    told: Vec<Told>,
    heat: Heat,
}

impl Found {
    /// Takes the next event of the room.
    pub fn observe(&mut self, event: RoomEvent) {
        match event {
            RoomEvent::Opened { gen_no, epoch_ms, interval_ms, layout } => {
                self.enter(gen_no);
                self.info = Some(GenInfo { gen_no, epoch_ms, interval_ms, layout });
            }
            RoomEvent::Flush { gen_no, slot, part, at, items } => {
                self.enter(gen_no);
                if let Some(last) = items.last()
                    && gen_no == self.gen_no
                {
                    self.next_seq = self.next_seq.max(Seq(last.seq.0 + 1));
                }
                let flush = Flush { gen_no, slot, part, at, items };
                if !self.flushes.iter().rev().any(|it| is_same(it, &flush)) {
                    push(&mut self.flushes, flush);
                }
            }
            RoomEvent::Seal { gen_no, slot, .. } => {
                self.enter(gen_no);
                if gen_no == self.gen_no {
                    self.sealed = self.sealed.max(Some(slot));
                }
            }
            RoomEvent::Fates { fates } => {
                for (id, fate) in fates {
                    if let Fate::Shed { .. } | Fate::Merged { .. } = fate {
                        push(&mut self.told, Told { id, lane: Lane::Comment, fate });
                    }
                }
            }
            RoomEvent::Heat { heat, .. } => self.heat = heat,
        }
    }

    /// The newest gen, if there is one.
    #[must_use]
    pub fn gen_no(&self) -> Option<Gen> {
        (self.gen_no > Gen(0)).then_some(self.gen_no)
    }

    /// What the newest gen fixes, if its beginning was among the events.
    #[must_use]
    pub const fn info(&self) -> Option<GenInfo> {
        self.info
    }

    /// How the room was delivered last.
    #[must_use]
    pub const fn heat(&self) -> Heat {
        self.heat
    }

    /// Goes on with the newest gen, which fixes `info`.
    #[must_use]
    pub fn resume(self, info: GenInfo) -> Resume {
        let of_gen = |it: &&Flush| it.gen_no == info.gen_no;
        let slot = match self.sealed {
            Some(sealed) => SlotNo(sealed.0 + 1),
            None => self.flushes.iter().filter(of_gen).map(|it| it.slot).min().unwrap_or_default(),
        };
        let open = |it: &&Flush| it.gen_no == info.gen_no && it.slot >= slot;
        Resume {
            info,
            slot,
            next_seq: self.next_seq.max(Seq(1)),
            flushes: self.flushes.iter().filter(open).cloned().collect(),
            shown: self.flushes,
            told: self.told,
        }
    }

    fn enter(&mut self, gen_no: Gen) {
        if gen_no > self.gen_no {
            self.gen_no = gen_no;
            self.info = None;
            self.sealed = None;
            self.next_seq = Seq(1);
        }
    }
}

/// Whether a flush is there twice: a publish that timed out was tried again.
fn is_same(one: &Flush, other: &Flush) -> bool {
    (one.gen_no, one.slot, one.part) == (other.gen_no, other.slot, other.part)
}

fn push<T>(queue: &mut Vec<T>, value: T) {
    if queue.len() >= EVENTS_MAX {
        queue.drain(..EVENTS_MAX / 2);
    }
    queue.push(value);
}

#[cfg(test)]
mod tests {
    use proto::id::{ItemId, SenderRef};
    use proto::item::{Body, Item, Placed, Role};
    use proto::time::Wall;
    use proto::verdict::Reason;

    use super::*;

    fn flush(gen_no: u32, slot: u64, part: u32, seq: u64) -> RoomEvent {
        let item = Item {
            id: ItemId(seq),
            lane: Lane::HighGift,
            sender: SenderRef(1),
            role: Role::Viewer,
            at: Wall(0),
            body: Body::Entry,
        };
        let items = vec![Placed { seq: Seq(seq), item }];
        RoomEvent::Flush { gen_no: Gen(gen_no), slot: SlotNo(slot), part, at: Wall(0), items }
    }

    fn seal(gen_no: u32, slot: u64) -> RoomEvent {
        RoomEvent::Seal { gen_no: Gen(gen_no), slot: SlotNo(slot), items: 1, crc: 0 }
    }

    fn found(events: Vec<RoomEvent>) -> Found {
        let mut found = Found::default();
        for event in events {
            found.observe(event);
        }
        found
    }

    const INFO: GenInfo =
        GenInfo { gen_no: Gen(2), epoch_ms: Wall(0), interval_ms: 1000, layout: 1 };

    #[test]
    fn a_room_goes_on_after_its_newest_seal() {
        let found = found(vec![
            flush(1, 7, 0, 90),
            flush(2, 3, 0, 5),
            seal(2, 3),
            flush(2, 4, 0, 6),
            flush(2, 4, 0, 6),
            flush(2, 4, 1, 7),
        ]);
        assert_eq!(found.gen_no(), Some(Gen(2)));

        let resume = found.resume(INFO);

        assert_eq!((resume.slot, resume.next_seq), (SlotNo(4), Seq(8)));
        assert_eq!(resume.flushes.len(), 2);
        assert_eq!(resume.shown.len(), 4);
    }

    #[test]
    fn a_gen_without_a_seal_starts_with_its_first_flush() {
        let with_flush = found(vec![flush(2, 3, 0, 5)]).resume(INFO);
        assert_eq!(with_flush.slot, SlotNo(3));

        let opened =
            RoomEvent::Opened { gen_no: Gen(2), epoch_ms: Wall(0), interval_ms: 1000, layout: 1 };
        let without = found(vec![seal(1, 100), opened]);
        assert_eq!(without.info(), Some(INFO));
        assert_eq!(without.resume(INFO).slot, SlotNo(0));
    }

    #[test]
    fn only_what_was_given_up_is_told() {
        let shed = Fate::Shed { reason: Reason::OverBudget };
        let again = Fate::Sealed { gen_no: Gen(1), seq: Seq(1), slot: SlotNo(0) };
        let fates = vec![(ItemId(1), shed), (ItemId(2), again)];

        let resume = found(vec![RoomEvent::Fates { fates }]).resume(INFO);

        assert_eq!(resume.told, [Told { id: ItemId(1), lane: Lane::Comment, fate: shed }]);
    }
}
