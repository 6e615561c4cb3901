//! A room's recent frames, encoded once and shared by every session of the room.
//!
//! Frames lie in blocks with rising positions; a session holds a [`Cursor`]. Old blocks fall off by
//! age and by bytes. What must not be missed, protected items and news of the room, lies a second
//! time in a small ring of its own, from which a session that lags is still served.

mod block;
mod take;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use proto::frame::{Batch, Control, Downlink, Place, Seal};
use proto::heat::Heat;
use proto::id::{Gen, RoomId, Seq, SlotNo};
use proto::item::Placed;
use proto::time::Mono;

use crate::framing::Frames;
use block::{AUDIENCES, Audience, Block, ByAudience};

pub use block::{Reading, Wake};
pub(crate) use take::{Allowance, Known};
pub use take::{Cursor, Slow, Taken};

/// So long a count of the people in all holds: it is told with switches of the heat, and a room that
/// filled and emptied again must not turn people away for what it was then.
const PEOPLE_KEPT: Duration = Duration::from_secs(10);

/// How much a ring keeps.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Limits {
    /// Bytes of blocks.
    pub bytes_max: usize,
    /// Bytes of the small ring.
    pub kept_bytes_max: usize,
    /// Age of the oldest block.
    pub keep: Duration,
}

/// The ring.
#[derive(Debug)]
pub struct Ring {
    room: RoomId,
    limits: Limits,
    blocks: VecDeque<Block>,
    bytes: usize,
    kept: VecDeque<Block>,
    kept_bytes: usize,
    /// Behind the newest kept block that was pushed out, for each audience.
    kept_lost: ByAudience<u64>,
    next: u64,
    plain: ByAudience<u32>,
    /// The newest place that was pushed.
    latest: Option<Place>,
    /// Every item behind this place is in `blocks`. None: nothing is known yet.
    floor: Option<Place>,
    /// The slot that is being filled.
    open: Option<(Gen, SlotNo)>,
    heat: HeatState,
}

/// The heat before and after the newest switch.
#[derive(Clone, Copy, Debug, Default)]
struct HeatState {
    before: Heat,
    now: Heat,
    gen_no: Gen,
    slot: SlotNo,
    people: u32,
    /// When they were counted.
    counted: Option<Mono>,
}

impl HeatState {
    fn at(&self, gen_no: Gen, slot: SlotNo) -> Heat {
        if (gen_no, slot) < (self.gen_no, self.slot) { self.before } else { self.now }
    }
}

/// A switch of a room's heat, from a slot on.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Switch {
    /// The new heat.
    pub heat: Heat,
    /// Gen of the switch.
    pub gen_no: Gen,
    /// First slot on the new path.
    pub slot: SlotNo,
}

impl Ring {
    /// An empty ring that knows nothing of its room yet.
    #[must_use]
    pub fn new(room: RoomId, limits: Limits) -> Self {
        Self {
            room,
            limits,
            blocks: VecDeque::new(),
            bytes: 0,
            kept: VecDeque::new(),
            kept_bytes: 0,
            kept_lost: [0; AUDIENCES],
            next: 0,
            plain: [0; AUDIENCES],
            latest: None,
            floor: None,
            open: None,
            heat: HeatState::default(),
        }
    }

    /// Takes in a flush. What the ring has already, as after a takeover of the room, is left out.
    pub fn flush(&mut self, mut batch: Batch, now: Mono) -> Wake {
        self.open = self.open.max(Some((batch.gen_no, batch.slot)));
        if let Some(latest) = self.latest {
            if batch.gen_no < latest.gen_no {
                return Wake::Nobody;
            }
            if batch.gen_no == latest.gen_no {
                batch.items.retain(|it| it.seq > latest.seq);
            }
        }
        let (Some(first), Some(last)) = (batch.items.first(), batch.items.last()) else {
            return Wake::Nobody;
        };
        let seqs = (first.seq, last.seq);
        self.floor.get_or_insert_with(|| place_before(batch.gen_no, seqs.0));
        self.latest = Some(Place { gen_no: batch.gen_no, seq: seqs.1 });
        let audience = self.audience(batch.gen_no, batch.slot);
        let protected = protected_only(&batch);
        let items = count(&batch.items);
        let plain = items - protected.as_ref().map_or(0, |it| count(&it.items));
        let block = Block {
            position: self.next,
            audience,
            since: now,
            gen_no: batch.gen_no,
            slot: batch.slot,
            seqs: Some(seqs),
            items,
            plain,
            plain_before: self.plain,
            frames: with_items(batch),
        };
        let kept = protected.map(|it| match plain {
            0 => block.clone(),
            _ => Block { frames: with_items(it), ..block.clone() },
        });
        self.append(block);
        if let Some(kept) = kept {
            self.keep(kept);
        }
        audience.wake()
    }

    /// Takes in the end of a slot.
    pub fn seal(&mut self, seal: Seal, now: Mono) -> Wake {
        self.open = self.open.max(Some((seal.gen_no, SlotNo(seal.slot.0.saturating_add(1)))));
        if self.latest.is_none() && (seal.slot, seal.items) == (SlotNo(0), 0) {
            // Of a gen that began in silence everything is known, although nothing is here.
            let start = Place { gen_no: seal.gen_no, seq: Seq(0) };
            self.floor.get_or_insert(start);
        }
        let audience = self.audience(seal.gen_no, seal.slot);
        let block = Block {
            gen_no: seal.gen_no,
            slot: seal.slot,
            frames: Arc::new(Frames::new(&Downlink::Seal(seal).encode())),
            ..self.blank(audience, now)
        };
        self.append(block);
        audience.wake()
    }

    /// Takes in news that every session of the room must get.
    pub fn news(&mut self, control: Control, now: Mono) -> Wake {
        let block = Block {
            frames: Arc::new(Frames::new(&Downlink::Control(control).encode())),
            ..self.blank(Audience::Everyone, now)
        };
        self.keep(block.clone());
        self.append(block);
        Wake::Everyone
    }

    /// Takes in a switch of the heat, and tells it to the sessions. The same or an older one
    /// changes nothing.
    pub fn switch(&mut self, switch: Switch, now: Mono) -> Wake {
        let Switch { heat, gen_no, slot } = switch;
        if heat == self.heat.now || (gen_no, slot) < (self.heat.gen_no, self.heat.slot) {
            return Wake::Nobody;
        }
        self.heat = HeatState { before: self.heat.now, now: heat, gen_no, slot, ..self.heat };
        if heat == Heat::Cold {
            self.catch_up(gen_no, slot, now);
        }
        let room = self.room.clone();
        self.news(Control::Heat { room, heat, gen_no, slot }, now)
    }

    /// Remembers how many people the room has in all.
    pub const fn count_people(&mut self, people: u32, now: Mono) {
        self.heat.people = people;
        self.heat.counted = Some(now);
    }

    /// Something was lost on the way here: places behind the newest one are not known any more.
    pub fn cut(&mut self) {
        while self.blocks.front().is_some() {
            self.drop_oldest();
        }
        self.floor = None;
    }

    /// Lets go of what is too old.
    pub fn tick(&mut self, now: Mono) {
        while self.blocks.front().is_some_and(|it| now.since(it.since) > self.limits.keep) {
            self.drop_oldest();
        }
    }

    /// The room.
    #[must_use]
    pub const fn room(&self) -> &RoomId {
        &self.room
    }

    /// Push or segments, as last announced.
    #[must_use]
    pub const fn heat(&self) -> Heat {
        self.heat.now
    }

    /// A switch that is announced, but not yet in force.
    #[must_use]
    pub fn pending(&self) -> Option<Switch> {
        let HeatState { now: heat, gen_no, slot, .. } = self.heat;
        let is_ahead = self.open.is_some_and(|it| it < (gen_no, slot));
        is_ahead.then_some(Switch { heat, gen_no, slot })
    }

    /// Push or segments, in the slot that is being filled.
    #[must_use]
    pub fn open_heat(&self) -> Heat {
        if self.pending().is_some() { self.heat.before } else { self.heat.now }
    }

    /// People in the room in all, as last counted.
    #[must_use]
    pub const fn people(&self) -> u32 {
        self.heat.people
    }

    /// The same, if it was counted within the last ten seconds; otherwise 0.
    #[must_use]
    pub fn people_lately(&self, now: Mono) -> u32 {
        let is_late = self.heat.counted.is_none_or(|it| now.since(it) > PEOPLE_KEPT);
        if is_late { 0 } else { self.heat.people }
    }

    /// The newest place.
    #[must_use]
    pub const fn latest(&self) -> Option<Place> {
        self.latest
    }

    /// Bytes that are kept.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        self.bytes + self.kept_bytes
    }

    pub(crate) const fn floor(&self) -> Option<Place> {
        self.floor
    }

    /// Blocks of items, oldest first: position, first and last place, items, and the frame.
    pub(crate) fn batches(&self) -> impl Iterator<Item = (u64, Place, Place, u32, &[u8])> {
        let firsts = self.blocks.iter().filter(|it| it.audience != Audience::Returning);
        firsts.filter_map(|it| {
            Some((it.position, it.first()?, it.last()?, it.items, it.frames.frame()))
        })
    }

    fn audience(&self, gen_no: Gen, slot: SlotNo) -> Audience {
        match self.heat.at(gen_no, slot) {
            Heat::Cold => Audience::Push,
            Heat::Hot => Audience::Promoted,
        }
    }

    /// Sessions that come back to push did not get the slots from `slot` on that arrived before the
    /// switch was announced: they get them now.
    fn catch_up(&mut self, gen_no: Gen, slot: SlotNo, now: Mono) {
        let missed = |it: &&Block| {
            it.audience == Audience::Promoted && (it.gen_no, it.slot) >= (gen_no, slot)
        };
        // Of what fell off the ring, what must not be missed is still here.
        let oldest = self.oldest();
        let gone = self.kept.iter().filter(missed).filter(|it| it.position < oldest);
        let gone = gone.map(|it| Block { plain: 0, ..it.clone() });
        let copies: Vec<_> = gone.chain(self.blocks.iter().filter(missed).cloned()).collect();
        for copy in copies {
            let again = Block {
                position: self.next,
                audience: Audience::Returning,
                since: now,
                plain_before: self.plain,
                ..copy
            };
            let kept = self.kept.iter().find(|it| it.position == copy.position);
            if let Some(frames) = kept.map(|it| it.frames.clone()) {
                self.keep(Block { frames, ..again.clone() });
            }
            self.append(again);
        }
    }

    fn blank(&self, audience: Audience, now: Mono) -> Block {
        Block {
            position: self.next,
            audience,
            frames: Arc::new(Frames::new(&[])),
            since: now,
            gen_no: Gen::default(),
            slot: SlotNo::default(),
            seqs: None,
            items: 0,
            plain: 0,
            plain_before: self.plain,
        }
    }

    fn append(&mut self, block: Block) {
        self.next = block.position + 1;
        self.bytes += block.bytes();
        let plain = &mut self.plain[block.audience as usize];
        *plain = plain.wrapping_add(block.plain);
        self.tick(block.since);
        self.blocks.push_back(block);
        while self.bytes > self.limits.bytes_max && self.blocks.len() > 1 {
            self.drop_oldest();
        }
    }

    fn drop_oldest(&mut self) {
        if let Some(block) = self.blocks.pop_front() {
            self.bytes -= block.bytes();
            if let Some(last) = block.last() {
                self.floor = self.floor.max(Some(last));
            }
        }
    }

    fn keep(&mut self, block: Block) {
        self.kept_bytes += block.bytes();
        self.kept.push_back(block);
        while self.kept_bytes > self.limits.kept_bytes_max && self.kept.len() > 1 {
            if let Some(block) = self.kept.pop_front() {
                self.kept_bytes -= block.bytes();
                self.kept_lost[block.audience as usize] = block.position + 1;
            }
        }
    }
}

fn protected_only(batch: &Batch) -> Option<Batch> {
    let is_protected = |it: &&Placed| it.item.lane.is_protected();
    let items: Vec<_> = batch.items.iter().filter(is_protected).cloned().collect();
    if items.is_empty() { None } else { Some(Batch { items, room: batch.room.clone(), ..*batch }) }
}

fn with_items(batch: Batch) -> Arc<Frames> {
    Arc::new(Frames::with_items(&Downlink::Batch(batch).encode()))
}

const fn place_before(gen_no: Gen, seq: Seq) -> Place {
    match (gen_no.0, seq.0) {
        (0, 0) => Place { gen_no, seq },
        (before, 0) => Place { gen_no: Gen(before - 1), seq: Seq(u64::MAX) },
        (_, before) => Place { gen_no, seq: Seq(before - 1) },
    }
}

fn count(items: &[Placed]) -> u32 {
    u32::try_from(items.len()).unwrap_or(u32::MAX)
}
