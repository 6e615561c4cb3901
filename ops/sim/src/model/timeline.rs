//! What happened to a room, whether this node was given it or not.

use std::time::Duration;

use link_core::ring::{Reading, Switch};
use proto::frame::{Batch, Control, Downlink, Place, Resumed, Seal};
use proto::heat::Heat;
use proto::id::{Gen, ItemId, SenderRef, Seq, SlotNo};
use proto::item::{Body, Item, Lane, Placed, Role, Style};
use proto::time::{Mono, Wall};

use super::due::{Due, What};
use super::subject::{RING, room_id};

/// Flushes of one slot.
const FLUSHES_MAX: u32 = 4;
/// What a switch that is announced late brings back is no older.
const LATE_MAX: Duration = Duration::from_secs(30);

/// A room's history.
pub(super) struct Timeline {
    room: u8,
    gen_no: Gen,
    slot: SlotNo,
    flushes: u32,
    seq: u64,
    /// What the node was given last.
    last: Option<Batch>,
    /// The slot that is being filled, as far as the node knows.
    open: Option<(Gen, SlotNo)>,
    before: Heat,
    now: Heat,
    /// From where on the heat is `now`.
    turned: (Gen, SlotNo),
    blocks: Vec<Block>,
    /// Bytes that ever came into the ring, and those of them that must not be missed.
    bytes: usize,
    kept_bytes: usize,
    /// Blocks before this one were given up.
    cut: usize,
}

/// A flush or a seal.
struct Block {
    gen_no: Gen,
    slot: SlotNo,
    /// Whether it came to those alone who keep the push.
    is_hot: bool,
    /// Whether the node was given it.
    has_come: bool,
    at: Mono,
    /// None in a seal.
    items: Vec<(Place, bool)>,
    bytes: usize,
    kept_bytes: usize,
    /// What had come into the ring before.
    bytes_before: usize,
    kept_before: usize,
}

impl Timeline {
    pub(super) const fn new(room: u8) -> Self {
        Self {
            room,
            gen_no: Gen(1),
            slot: SlotNo(0),
            flushes: 0,
            seq: 0,
            last: None,
            open: None,
            before: Heat::Cold,
            now: Heat::Cold,
            turned: (Gen(0), SlotNo(0)),
            blocks: Vec::new(),
            bytes: 0,
            kept_bytes: 0,
            cut: 0,
        }
    }

    /// The next flush; none if it is empty, or the slot is full.
    pub(super) fn flush(&mut self, comments: u8, gifts: u8) -> Option<Batch> {
        if comments + gifts == 0 || self.flushes >= FLUSHES_MAX {
            return None;
        }
        self.flushes += 1;
        let lanes = (0..comments + gifts).map(|it| match it {
            it if it >= gifts => Lane::Comment,
            0 => Lane::HighGift,
            _ => Lane::LowGift,
        });
        let items = lanes.map(|lane| {
            self.seq += 1;
            placed(self.seq, lane)
        });
        let items = items.collect();
        let (gen_no, slot, part) = (self.gen_no, self.slot, self.flushes);
        Some(Batch { room: room_id(self.room), gen_no, slot, part, items })
    }

    /// The end of the slot.
    pub(super) fn seal(&mut self) -> Seal {
        let seal = Seal {
            room: room_id(self.room),
            gen_no: self.gen_no,
            slot: self.slot,
            items: self.flushes,
            crc: 0,
        };
        (self.slot, self.flushes) = (SlotNo(self.slot.0 + 1), 0);
        seal
    }

    pub(super) const fn new_gen(&mut self) {
        self.gen_no = Gen(self.gen_no.0 + 1);
        (self.slot, self.flushes, self.seq) = (SlotNo(0), 0, 0);
    }

    /// The next switch. Only one is ahead at a time, and none goes back behind the last one.
    pub(super) fn turn(&self, ahead: u8, is_late: bool, at: Mono) -> Option<Switch> {
        if self.pending().is_some() || self.open.is_none_or(|it| it.0 != self.gen_no) {
            return None;
        }
        let recent = |it: &&Block| (it.gen_no, it.slot.0 + 1) >= (self.gen_no, self.slot.0);
        let is_young =
            self.blocks.iter().rev().take_while(recent).all(|it| at.since(it.at) < LATE_MAX);
        let slot = match (is_late, ahead) {
            (true, 0 | 1) if is_young => self.slot.0.saturating_sub(1),
            (true, _) if is_young => self.slot.0,
            _ => self.slot.0 + 1 + u64::from(ahead),
        };
        let slot = if self.turned.0 == self.gen_no { slot.max(self.turned.1.0 + 1) } else { slot };
        let heat = if self.now == Heat::Cold { Heat::Hot } else { Heat::Cold };
        Some(Switch { heat, gen_no: self.gen_no, slot: SlotNo(slot) })
    }

    /// The node was given a flush, or, if not, it is lost; gives what sessions must get of it.
    pub(super) fn add(&mut self, batch: &Batch, has_come: bool, at: Mono) -> Given {
        let place = |it: &Placed| Place { gen_no: batch.gen_no, seq: it.seq };
        let items: Vec<_> =
            batch.items.iter().map(|it| (place(it), it.item.lane.is_protected())).collect();
        let bytes = Downlink::Batch(batch.clone()).encode().len();
        let kept: Vec<_> =
            batch.items.iter().filter(|it| it.item.lane.is_protected()).cloned().collect();
        let kept_bytes = if kept.is_empty() {
            0
        } else {
            Downlink::Batch(Batch { items: kept, ..batch.clone() }).encode().len()
        };
        if has_come {
            self.last = Some(batch.clone());
            self.open = self.open.max(Some((batch.gen_no, batch.slot)));
        }
        self.append(batch.gen_no, batch.slot, items, (bytes, kept_bytes), has_come, at)
    }

    /// The node was given a seal.
    pub(super) fn end(&mut self, seal: &Seal, at: Mono) -> Given {
        self.open = self.open.max(Some((seal.gen_no, SlotNo(seal.slot.0 + 1))));
        let bytes = Downlink::Seal(seal.clone()).encode().len();
        self.append(seal.gen_no, seal.slot, Vec::new(), (bytes, 0), true, at)
    }

    fn append(
        &mut self,
        gen_no: Gen,
        slot: SlotNo,
        items: Vec<(Place, bool)>,
        (bytes, kept_bytes): (usize, usize),
        has_come: bool,
        at: Mono,
    ) -> Given {
        let is_hot = self.heat_at((gen_no, slot)) == Heat::Hot;
        let block = Block {
            gen_no,
            slot,
            is_hot,
            has_come,
            at,
            items,
            bytes,
            kept_bytes,
            bytes_before: self.bytes,
            kept_before: self.kept_bytes,
        };
        let whats = block.whats();
        self.blocks.push(block);
        if has_come {
            self.bytes += bytes;
            self.kept_bytes += kept_bytes;
        }
        Given { whats, is_hot, bytes, kept_bytes }
    }

    /// The node was given a switch: what sessions that come back to push get besides, and the news.
    pub(super) fn switch(&mut self, switch: Switch) -> (Given, Control) {
        let Switch { heat, gen_no, slot } = switch;
        (self.before, self.now, self.turned) = (self.now, heat, (gen_no, slot));
        let mut back = Given::default();
        if heat == Heat::Cold {
            let is_late =
                |it: &Block| it.has_come && it.is_hot && (it.gen_no, it.slot) >= (gen_no, slot);
            for (number, block) in self.blocks.iter().enumerate().filter(|it| is_late(it.1)) {
                // Of what was given up, what must not be missed is still there.
                let is_whole = number >= self.cut;
                let is_there =
                    |it: &What| is_whole || matches!(it, What::Item { is_protected: true, .. });
                back.whats.extend(block.whats().into_iter().filter(is_there));
                back.bytes += if is_whole { block.bytes } else { block.kept_bytes };
                back.kept_bytes += block.kept_bytes;
            }
        }
        let news = Control::Heat { room: room_id(self.room), heat, gen_no, slot };
        let bytes = Downlink::Control(news.clone()).encode().len();
        self.bytes += back.bytes + bytes;
        self.kept_bytes += back.kept_bytes + bytes;
        (back, news)
    }

    /// The bus has lost something.
    pub(super) const fn cut(&mut self) {
        self.cut = self.blocks.len();
    }

    pub(super) const fn last(&self) -> Option<&Batch> {
        self.last.as_ref()
    }

    fn heat_at(&self, at: (Gen, SlotNo)) -> Heat {
        if at < self.turned { self.before } else { self.now }
    }

    /// A switch that is still ahead.
    pub(super) fn pending(&self) -> Option<Control> {
        let (gen_no, slot) = self.turned;
        let is_ahead = self.open.is_some_and(|it| it < self.turned);
        is_ahead.then(|| Control::Heat { room: room_id(self.room), heat: self.now, gen_no, slot })
    }

    pub(super) fn open_heat(&self) -> Heat {
        if self.pending().is_some() { self.before } else { self.now }
    }

    /// The newest place that the node was given.
    pub(super) fn latest(&self) -> Option<Place> {
        let come = self.blocks.iter().rev().filter(|it| it.has_come);
        come.flat_map(|it| it.items.last()).map(|it| it.0).next()
    }

    /// The newest place of all.
    pub(super) fn newest(&self) -> Option<Place> {
        self.blocks.iter().rev().flat_map(|it| it.items.last()).map(|it| it.0).next()
    }

    /// What a session must get that shows everything up to `place` and was answered `resumed`; or
    /// why that was no honest answer.
    pub(super) fn resume(
        &self,
        place: Place,
        resumed: Resumed,
        reading: Reading,
        now: Mono,
    ) -> Result<Due, String> {
        let missed = self.blocks.iter().filter(|it| it.items.iter().any(|it| it.0 > place));
        let from = match resumed {
            Resumed::Fresh => return Err("the place was not looked at".to_owned()),
            Resumed::Recovered { items } => {
                let mut count = 0;
                for block in missed {
                    count += block.items.iter().filter(|it| it.0 > place).count();
                    if !block.has_come {
                        return Err(format!("recovered, though {:?} are lost", block.items));
                    }
                }
                if usize::try_from(items) != Ok(count) {
                    return Err(format!("recovered {items}, but {count} came after {place:?}"));
                }
                Place { seq: Seq(place.seq.0 + 1), ..place }
            }
            Resumed::Gap { from, to } => {
                if from != (Place { seq: Seq(place.seq.0 + 1), ..place }) || to < from {
                    return Err(format!("a gap from {from:?} to {to:?} after {place:?}"));
                }
                self.check_gap(place, to, now)?;
                to
            }
        };
        Ok(self.replay(from, reading))
    }

    /// A gap is told only of what may be gone, and of all that is.
    fn check_gap(&self, place: Place, to: Place, now: Mono) -> Result<(), String> {
        let latest = self.latest();
        for (number, block) in self.blocks.iter().enumerate() {
            let is_here = block.has_come
                && number >= self.cut
                && self.bytes - block.bytes_before <= RING.bytes_max
                && now.since(block.at) <= RING.keep;
            for &(it, _) in block.items.iter().filter(|it| it.0 > place) {
                if it < to && is_here {
                    return Err(format!("{it:?} is here, and was told to be in a gap to {to:?}"));
                }
                if it >= to && !block.has_come && latest.is_some_and(|latest| it < latest) {
                    return Err(format!("{it:?} is lost, and the gap ends at {to:?}"));
                }
            }
        }
        let has_reason = self.blocks.iter().enumerate().any(|(number, block)| {
            let is_after = block.items.iter().any(|it| it.0 > place);
            let is_gone =
                self.bytes - block.bytes_before > RING.bytes_max || now.since(block.at) > RING.keep;
            let ends = block.items.last().is_some_and(|it| it.0 >= place);
            is_after && is_gone || number < self.cut && ends
        });
        has_reason.then_some(()).ok_or_else(|| "a gap for no reason".to_owned())
    }

    fn replay(&self, from: Place, reading: Reading) -> Due {
        let mut due = Due::new(reading);
        let mut has_begun = false;
        due.replay();
        for block in self.blocks.iter().filter(|it| it.has_come) {
            let whats = block.whats().into_iter().filter(|what| match what {
                What::Item { place, .. } => *place >= from,
                What::Seal { .. } | What::News(_) => {
                    self.bytes - block.bytes_before <= RING.bytes_max
                }
            });
            whats.for_each(|it| due.push(it));
            // Behind a gap seals come that stand before its end.
            let is_seal =
                block.items.is_empty() && self.bytes - block.bytes_before <= RING.bytes_max;
            let is_first = block.items.last().is_some_and(|it| it.0 >= from);
            if !has_begun && (is_first || is_seal) {
                has_begun = true;
                let bytes = self.bytes - block.bytes_before;
                due.grow(bytes, self.kept_bytes - block.kept_before, block.at);
            }
        }
        due
    }
}

/// What an event gives to sessions.
#[derive(Debug, Default)]
pub(super) struct Given {
    pub(super) whats: Vec<What>,
    pub(super) is_hot: bool,
    pub(super) bytes: usize,
    pub(super) kept_bytes: usize,
}

impl Block {
    fn whats(&self) -> Vec<What> {
        if self.items.is_empty() {
            return vec![What::Seal { gen_no: self.gen_no, slot: self.slot }];
        }
        let items = self.items.iter();
        items.map(|&(place, is_protected)| What::Item { place, is_protected }).collect()
    }
}

fn placed(seq: u64, lane: Lane) -> Placed {
    let body = Body::Comment {
        text: "as long as most".into(),
        style: Style::default(),
        media_ms: None,
        count: 1,
    };
    let item =
        Item { id: ItemId(seq), lane, sender: SenderRef(1), role: Role::Viewer, at: Wall(1), body };
    Placed { seq: Seq(seq), item }
}
