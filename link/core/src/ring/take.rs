//! Reading a ring: what a cursor gets, and what it has to leave out.

use bytes::Bytes;
use proto::frame::{Downlink, Place};

use super::{AUDIENCES, Audience, Block, ByAudience, Reading, Ring};
use crate::framing::Form;
use crate::resume::{self, Trimmed};

/// A session's place in a ring.
#[derive(Clone, Debug)]
pub struct Cursor {
    /// Position of the next block to read.
    next: u64,
    reading: Reading,
    /// Unprotected items before `next`.
    plain_before: ByAudience<u32>,
    /// What a returning session missed or knows; none once the cursor is past both.
    replay: Option<Box<Replay>>,
}

/// Blocks that are read as if the room had been cold: a returning session gets all it missed, and
/// nothing that it knows.
#[derive(Clone, Debug)]
struct Replay {
    /// Position behind the last of them.
    until: u64,
    /// Unprotected items before `until`.
    plain_before: ByAudience<u32>,
    /// Items up to this place are known to the session, also of blocks that come later: the node
    /// may lag behind the one that the session was at.
    known: Option<Place>,
}

/// Items of a block that a returning session knows already.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Known {
    /// The last of them.
    pub(crate) place: Place,
    /// How many of them are not protected.
    pub(crate) plain: u32,
}

/// How much one reading brought.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Taken {
    /// Bytes.
    pub bytes: usize,
    /// Bytes that compression took off them.
    pub saved_bytes: usize,
    /// Items left out because the session is slow.
    pub skipped: u32,
    /// Whether more is waiting.
    pub more: bool,
}

/// The session is so slow that protected items would be lost: it must be closed.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("the session reads too slowly")]
pub struct Slow;

/// What one reading may bring.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Allowance {
    pub(crate) form: Form,
    /// More than this waiting, and the session skips.
    pub(crate) backlog_bytes_max: usize,
    /// Bytes of one reading; one block more than this is possible.
    pub(crate) write_bytes_max: usize,
}

impl Ring {
    /// A cursor behind the newest block.
    #[must_use]
    pub const fn cursor(&self, reading: Reading) -> Cursor {
        Cursor { next: self.next, reading, plain_before: self.plain, replay: None }
    }

    /// A cursor behind the newest block, for a session that knows items up to `place`, which have
    /// not all come here.
    pub(crate) fn cursor_behind(&self, place: Place, reading: Reading) -> Cursor {
        let replay = Replay { until: self.next, plain_before: self.plain, known: Some(place) };
        Cursor { replay: Some(Box::new(replay)), ..self.cursor(reading) }
    }

    /// A cursor at the block with this position, from which everything is read again but what is
    /// known of that block.
    pub(crate) fn cursor_at(
        &self,
        position: u64,
        reading: Reading,
        known: Option<Known>,
    ) -> Cursor {
        let mut plain_before = self.plain;
        if let Some(block) = self.at(position) {
            plain_before = block.plain_before;
            let before = &mut plain_before[block.audience as usize];
            *before = before.wrapping_add(known.map_or(0, |it| it.plain));
        }
        let known = known.map(|it| it.place);
        let replay = Replay { until: self.next, plain_before: self.plain, known };
        Cursor { next: position, reading, plain_before, replay: Some(Box::new(replay)) }
    }

    /// The oldest position that is still here.
    pub(crate) fn oldest(&self) -> u64 {
        self.blocks.front().map_or(self.next, |it| it.position)
    }

    /// Moves a cursor on and collects what it passes.
    pub(crate) fn take(
        &self,
        cursor: &mut Cursor,
        allowance: Allowance,
        out: &mut Vec<Bytes>,
    ) -> Result<Taken, Slow> {
        let mut taken = Taken::default();
        if let Some(known) = self.known_here(cursor) {
            // No backlog of the session, and nothing that it loses.
            let is_new = |it: &Block| it.last().is_some_and(|last| last > known);
            let from = cursor.next;
            self.read_on(cursor, allowance, is_new, &mut taken, out);
            if cursor.next > from {
                cursor.plain_before = self.plain_before(cursor.next);
            }
        }
        let target = self.target(cursor, allowance.backlog_bytes_max);
        if target > cursor.next {
            self.skip(cursor, target, allowance.form, &mut taken, out)?;
        }
        taken.more = self.read_on(cursor, allowance, |_| false, &mut taken, out);
        cursor.plain_before = self.plain_before(cursor.next);
        cursor.replay.take_if(|it| cursor.next >= it.until && it.known.is_none());
        Ok(taken)
    }

    /// Items up to here are known to the session, if all from its cursor on is still in the ring.
    fn known_here(&self, cursor: &Cursor) -> Option<Place> {
        let known = cursor.replay.as_ref().and_then(|it| it.known);
        known.filter(|_| cursor.next >= self.oldest())
    }

    /// Reads block after block, until one that `is_end`, and as much as is allowed: then more waits.
    fn read_on(
        &self,
        cursor: &mut Cursor,
        allowance: Allowance,
        is_end: impl Fn(&Block) -> bool,
        taken: &mut Taken,
        out: &mut Vec<Bytes>,
    ) -> bool {
        for block in self.behind(cursor.next).take_while(|it| !is_end(it)) {
            if taken.bytes >= allowance.write_bytes_max {
                return true;
            }
            if cursor.sees(block) {
                cursor.read(block, allowance.form, taken, out);
            }
            cursor.next = block.position + 1;
        }
        false
    }

    /// Unprotected items before a position.
    fn plain_before(&self, position: u64) -> ByAudience<u32> {
        self.at(position).map_or(self.plain, |it| it.plain_before)
    }

    /// Where the cursor has to go on: where it is, or, if too much waits, far enough ahead that
    /// half of what is allowed remains.
    fn target(&self, cursor: &Cursor, backlog_bytes_max: usize) -> u64 {
        let from = cursor.next.max(self.oldest());
        let seen = || self.behind(from).filter(|it| cursor.sees(it));
        let mut backlog: usize = seen().map(Block::bytes).sum();
        if backlog <= backlog_bytes_max {
            return from;
        }
        for block in seen() {
            backlog -= block.bytes();
            if backlog <= backlog_bytes_max / 2 {
                return block.position + 1;
            }
        }
        self.next
    }

    /// Leaves out what lies between the cursor and `target`, except what must not be missed.
    fn skip(
        &self,
        cursor: &mut Cursor,
        target: u64,
        form: Form,
        taken: &mut Taken,
        out: &mut Vec<Bytes>,
    ) -> Result<(), Slow> {
        for audience in ALL {
            let lost = self.kept_lost[audience as usize];
            if cursor.may_see(audience) && lost > cursor.next {
                return Err(Slow);
            }
        }
        let plain_there = self.plain_before(target);
        let skipped = cursor.plain_between(target, &plain_there);
        let passed = |it: &&Block| (cursor.next..target).contains(&it.position) && cursor.sees(it);
        let kept: Vec<&Block> = self.kept.iter().filter(passed).collect();
        for block in kept {
            cursor.read(block, form, taken, out);
        }
        cursor.next = target;
        if skipped > 0 {
            let frame = Downlink::Skipped { room: self.room.clone(), items: skipped }.encode();
            let bytes = form.framing.wrap(&frame);
            taken.bytes += bytes.len();
            taken.skipped = skipped;
            out.push(bytes);
        }
        Ok(())
    }

    fn at(&self, position: u64) -> Option<&Block> {
        let index = position.checked_sub(self.oldest())?;
        self.blocks.get(usize::try_from(index).ok()?)
    }

    fn behind(&self, position: u64) -> impl Iterator<Item = &Block> {
        let index = position.saturating_sub(self.oldest());
        let index = usize::try_from(index).unwrap_or(usize::MAX).min(self.blocks.len());
        self.blocks.range(index..)
    }
}

const ALL: [Audience; AUDIENCES] =
    [Audience::Everyone, Audience::Push, Audience::Promoted, Audience::Returning];

impl Cursor {
    /// How the session reads the room.
    #[must_use]
    pub const fn reading(&self) -> Reading {
        self.reading
    }

    fn sees(&self, block: &Block) -> bool {
        if self.replay.as_ref().is_some_and(|it| block.position < it.until) {
            is_missed(block.audience)
        } else {
            self.reading.sees(block.audience)
        }
    }

    /// Whether some block of this audience, behind the cursor, may be for the session.
    fn may_see(&self, audience: Audience) -> bool {
        self.reading.sees(audience) || self.missed().is_some() && is_missed(audience)
    }

    /// What it missed, until it is read.
    fn missed(&self) -> Option<&Replay> {
        self.replay.as_deref().filter(|it| self.next < it.until)
    }

    /// Unprotected items between the cursor and `target`, before which there are `there`.
    fn plain_between(&self, target: u64, there: &ByAudience<u32>) -> u32 {
        match self.missed() {
            None => between(&self.plain_before, there, |it| self.reading.sees(it)),
            Some(replay) if target <= replay.until => between(&self.plain_before, there, is_missed),
            Some(replay) => {
                let missed = between(&self.plain_before, &replay.plain_before, is_missed);
                let seen = between(&replay.plain_before, there, |it| self.reading.sees(it));
                missed.saturating_add(seen)
            }
        }
    }

    /// Collects what the session gets of a block: nothing, if it knows all that is in it.
    fn read(&mut self, block: &Block, form: Form, taken: &mut Taken, out: &mut Vec<Bytes>) {
        let bytes = match self.trim(block) {
            Some(Trimmed::Nothing) => return,
            Some(Trimmed::Rest(frame)) => form.framing.wrap(&frame),
            Some(Trimmed::Whole) | None => {
                taken.saved_bytes += block.frames.saved(form);
                block.frames.bytes(form).clone()
            }
        };
        taken.bytes += bytes.len();
        out.push(bytes);
    }

    /// What is new to the session in a block; nothing, if it knows no items at all, or none more.
    fn trim(&mut self, block: &Block) -> Option<Trimmed> {
        let (first, last) = block.first().zip(block.last())?;
        let known = &mut self.replay.as_mut()?.known;
        let place = (*known)?;
        if last <= place {
            return Some(Trimmed::Nothing);
        }
        *known = None;
        (first <= place).then(|| resume::trimmed(block.frames.frame(), place))
    }
}

/// Whether a session that was away missed such a block: all but what is there twice, and news,
/// which the answer to its join tells.
const fn is_missed(audience: Audience) -> bool {
    matches!(audience, Audience::Push | Audience::Promoted)
}

/// Of counts that wrap around, the one that is less than half of all numbers ahead is the later one.
fn between(
    before: &ByAudience<u32>,
    there: &ByAudience<u32>,
    counts: impl Fn(Audience) -> bool,
) -> u32 {
    let between = |it: usize| there[it].wrapping_sub(before[it]).cast_signed().max(0);
    let counted = ALL.into_iter().filter(|&it| counts(it));
    counted.map(|it| between(it as usize).cast_unsigned()).fold(0, u32::saturating_add)
}
