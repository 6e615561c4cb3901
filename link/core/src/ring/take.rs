//! Reading a ring: what a cursor gets, and what it has to leave out.

use bytes::Bytes;
use proto::frame::{Downlink, Place};

use super::{AUDIENCES, Audience, Block, ByAudience, Reading, Ring};
use crate::framing::Framing;
use crate::resume;

/// A session's place in a ring.
#[derive(Clone, Debug)]
pub struct Cursor {
    /// Position of the next block to read.
    next: u64,
    reading: Reading,
    /// Unprotected items before `next`.
    plain_before: ByAudience,
    /// Blocks before this position are read as if the room had been cold: a returning session
    /// gets all it missed.
    replay_until: u64,
    /// Items of the first block up to this place are known to the session.
    known: Option<Place>,
}

/// How much one reading brought.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Taken {
    /// Bytes.
    pub bytes: usize,
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
    pub(crate) framing: Framing,
    /// More than this waiting, and the session skips.
    pub(crate) backlog_bytes_max: usize,
    /// Bytes of one reading; one block more than this is possible.
    pub(crate) write_bytes_max: usize,
}

impl Ring {
    /// A cursor behind the newest block.
    #[must_use]
    pub const fn cursor(&self, reading: Reading) -> Cursor {
        Cursor { next: self.next, reading, plain_before: self.plain, replay_until: 0, known: None }
    }

    /// A cursor at the block with this position, from which everything is read again.
    pub(crate) fn cursor_at(
        &self,
        position: u64,
        reading: Reading,
        known: Option<Place>,
    ) -> Cursor {
        let plain_before = self.at(position).map_or(self.plain, |it| it.plain_before);
        Cursor { next: position, reading, plain_before, replay_until: self.next, known }
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
        let target = self.target(cursor, allowance.backlog_bytes_max);
        let mut taken = Taken::default();
        if target > cursor.next {
            self.skip(cursor, target, allowance.framing, &mut taken, out)?;
        }
        for block in self.behind(cursor.next) {
            if taken.bytes >= allowance.write_bytes_max {
                taken.more = true;
                break;
            }
            if cursor.sees(block) {
                let bytes = cursor.bytes_of(block, allowance.framing);
                taken.bytes += bytes.len();
                out.push(bytes);
            }
            cursor.next = block.position + 1;
        }
        cursor.plain_before = self.at(cursor.next).map_or(self.plain, |it| it.plain_before);
        Ok(taken)
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
        framing: Framing,
        taken: &mut Taken,
        out: &mut Vec<Bytes>,
    ) -> Result<(), Slow> {
        for audience in ALL {
            let lost = self.kept_lost[audience as usize];
            if cursor.reading.sees(audience) && lost > cursor.next {
                return Err(Slow);
            }
        }
        let plain_there = self.at(target).map_or(self.plain, |it| it.plain_before);
        let skipped = cursor.plain_between(&plain_there);
        let passed = |it: &&Block| (cursor.next..target).contains(&it.position);
        for block in self.kept.iter().filter(passed).filter(|it| cursor.sees(it)) {
            let bytes = block.frames.bytes(framing).clone();
            taken.bytes += bytes.len();
            out.push(bytes);
        }
        cursor.next = target;
        cursor.known = None;
        if skipped > 0 {
            let frame = Downlink::Skipped { room: self.room.clone(), items: skipped }.encode();
            let bytes = framing.wrap(&frame);
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

    const fn sees(&self, block: &Block) -> bool {
        if block.position < self.replay_until {
            matches!(block.audience, Audience::Push | Audience::Promoted)
        } else {
            self.reading.sees(block.audience)
        }
    }

    fn plain_between(&self, there: &ByAudience) -> u32 {
        let replaying = self.next < self.replay_until;
        let reading = if replaying { Reading::Promoted } else { self.reading };
        let counted = ALL.into_iter().filter(|&it| reading.sees(it));
        let items: u64 = counted
            .map(|it| there[it as usize].saturating_sub(self.plain_before[it as usize]))
            .sum();
        u32::try_from(items).unwrap_or(u32::MAX)
    }

    fn bytes_of(&mut self, block: &Block, framing: Framing) -> Bytes {
        let known = if block.seqs.is_some() { self.known.take() } else { None };
        let trimmed = known.and_then(|place| resume::trimmed(block.frames.frame(), place));
        match trimmed {
            Some(frame) => framing.wrap(&frame),
            None => block.frames.bytes(framing).clone(),
        }
    }
}
