//! What may pass here: so many a second, and in a burst what was saved before.
//!
//! What comes in and is not wanted is saved, up to what the broadcaster can still show before it
//! is too old. So a burst passes after quiet, and the broadcaster has it to show ahead of its
//! rate. Under a flood that lasts it would have it for ever, and show everything late: a part of
//! what comes in then makes up for it.

use std::time::Duration;

use proto::time::{Mono, millis};

use super::BURST;

/// One comment in the unit of levels: a rate in thousandths a second is so many a millisecond.
pub(super) const COMMENT: i64 = 1_000_000;
/// What comes together in this time may pass at once: comments come in batches.
const BATCH: Duration = Duration::from_millis(250);
/// A flood that lasts longer makes up for its burst.
const LASTING: Duration = Duration::from_secs(10);
/// One such part of what comes in makes up for it.
const PARTS: i64 = 12;

/// How fast a bucket fills.
#[derive(Clone, Copy, Debug)]
pub(super) struct Share {
    /// Comments a second, in thousandths; more than 0.
    pub(super) rate_milli: u64,
    /// Chatservers that have the same to spare; at least 1.
    pub(super) spared_by: u32,
    /// What all chatservers may save, and how many they are.
    pub(super) limit_per_s: u32,
    pub(super) nodes: u32,
}

/// From where a comment was taken.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Source {
    /// What comes in.
    Rate,
    /// What was saved.
    Savings,
}

/// What may pass, in millionths of a comment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bucket {
    /// Below zero when somebody passed who may always.
    level: i64,
    saved: i64,
    /// How much of what was saved passed, and is not made up for: the broadcaster has it to show.
    ahead: i64,
    filled: Mono,
    /// When more came in than was wanted.
    spared: Mono,
}

impl Bucket {
    /// A full one.
    pub(super) fn new(share: Share, now: Mono) -> Self {
        let (level, saved) = (share.depth(), share.savings());
        Self { level, saved, ahead: 0, filled: now, spared: now }
    }

    /// Takes in what came since it was last filled.
    pub(super) fn fill(&mut self, share: Share, now: Mono) {
        let gained = level_of(share.rate_milli, now.since(self.filled));
        self.filled = now;
        let is_lasting = now.since(self.spared) >= LASTING;
        let made_up = if is_lasting { self.ahead.min(gained / PARTS) } else { 0 };
        self.ahead -= made_up;
        self.level = self.level.saturating_add(gained - made_up);
        let spare = (self.level - share.depth()).max(0);
        if spare > 0 {
            self.level -= spare;
            self.spared = now;
        }
        let spare = spare / i64::from(share.spared_by);
        self.ahead = (self.ahead - spare).max(0);
        self.saved = self.saved.saturating_add(spare).min(share.savings());
    }

    /// Whether one may pass.
    pub(super) const fn is_free(&self) -> bool {
        self.level >= COMMENT || self.has_savings()
    }

    /// Whether one may pass who comes in a burst.
    pub(super) const fn has_savings(&self) -> bool {
        self.saved >= COMMENT
    }

    /// Takes one off, whether or not there is one: at most as much is owed as comes in a batch.
    pub(super) fn take(&mut self, share: Share) -> Source {
        if self.level < COMMENT && self.has_savings() {
            self.saved -= COMMENT;
            self.ahead += COMMENT;
            return Source::Savings;
        }
        self.level = (self.level - COMMENT).max(-share.depth());
        Source::Rate
    }

    /// After how many milliseconds one may pass.
    pub(super) fn free_ms(&self, share: Share) -> u64 {
        (COMMENT - self.level).max(0).unsigned_abs().div_ceil(share.rate_milli)
    }
}

impl Share {
    /// What may pass at once: at least one.
    fn depth(self) -> i64 {
        level_of(self.rate_milli, BATCH).max(COMMENT)
    }

    /// What is saved at most, here.
    fn savings(self) -> i64 {
        let all = level_of(u64::from(self.limit_per_s) * 1000, BURST.saturating_sub(BATCH));
        all / i64::from(self.nodes)
    }
}

/// What comes together at a rate in a while.
fn level_of(rate_milli: u64, time: Duration) -> i64 {
    i64::try_from(rate_milli.saturating_mul(millis(time))).unwrap_or(i64::MAX)
}
