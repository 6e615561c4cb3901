//! How many comments a room takes in a second, over all chatservers, each of which decides by
//! itself.
//!
//! Several times a second a chatserver tells what it saw of each room, and learns what all saw.
//! What a room may show is shared out by need: where less is wanted than that, a chatserver may
//! pass all that the others leave; where more is, its part is as large as its part of what is
//! wanted, less if all together have passed too much. A chatserver that hears nothing keeps to its
//! part of the whole, all being equal: never nothing, never everything.
//!
//! What nobody wants is saved, and lets a burst pass: over any time no more than the rate and one
//! [`BURST`], and a burst only after quiet. What passes of it is not told: it is nothing that the
//! others passed too much.
//!
//! Whoever is refused is given a time to come back, one after the other at the room's own pace.
//! Or, where a room samples, lots are drawn: for a while a fair part of the viewers is heard, and
//! the others are not.

mod bucket;

use std::time::Duration;

use proto::id::{AppId, RoomId};
use proto::time::{Mono, millis};

use bucket::{Bucket, COMMENT, Share, Source};

/// How often a chatserver tells and hears.
pub const TURN: Duration = Duration::from_millis(100);
/// What a room shows in so long may pass at once, after as long a quiet. The broadcaster gives up
/// what has waited for three seconds, unless it is configured otherwise, and some of it goes to
/// gifts and notices.
pub const BURST: Duration = Duration::from_millis(2500);
/// What was heard counts for so long.
const HEARD_MAX: Duration = Duration::from_secs(1);
/// A room in which nobody spoke for so long has nothing to be told.
const QUIET_MAX: Duration = Duration::from_secs(2);
/// Nobody is told to wait longer; beyond it many have the same time.
pub const WAIT_MAX: Duration = Duration::from_secs(10);
/// So long a lot counts.
pub const LOT: Duration = Duration::from_secs(10);
/// Lots are drawn from so many.
pub const LOTS: u16 = 1000;

/// What this chatserver says of a room.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Tally {
    /// App of the room.
    pub app: AppId,
    /// Which room.
    pub room: RoomId,
    /// Comments that are wanted a second, lately; they passed every other check.
    pub wanted_per_s: u32,
    /// Comments that passed since it was last told.
    pub passed: u32,
}

/// What all chatservers say of a room.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Seen {
    /// Comments that are wanted a second.
    pub wanted_per_s: u32,
    /// Those that are wanted here.
    pub own_per_s: u32,
    /// Comments that passed within the last second.
    pub passed: u32,
}

/// A room's limit, and who shares it.
#[derive(Clone, Copy, Debug)]
pub struct Limit {
    /// Comments a second, over all chatservers.
    pub per_s: u32,
    /// Chatservers, as far as is known; at least 1.
    pub nodes: u32,
}

/// Why a comment does not pass.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Held {
    /// It may after this time: its turn comes then.
    Turn(Duration),
    /// Its sender's lot is not among those that are heard.
    Lot,
}

/// What flows into one room here.
#[derive(Clone, Copy, Debug, Default)]
pub struct Stream {
    /// None: nobody spoke yet.
    bucket: Option<Bucket>,
    /// The rate that follows from what all said, in thousandths a second, and when that was.
    heard: Option<(u64, Mono)>,
    /// Up to when the refused have a time of their own.
    turns_until: Mono,
    asked: u32,
    passed: u32,
    /// What was last told to be wanted.
    wanted_per_s: Option<u32>,
    told: Mono,
    /// When somebody last spoke; none: nothing is to be told.
    used: Option<Mono>,
}

impl Stream {
    /// Counts a comment, and says why it may not pass now, if it may not. `lot` is its sender's,
    /// below [`LOTS`]; none where no lots are drawn. Whoever passes is taken off with
    /// [`Stream::take`].
    ///
    /// # Errors
    /// Why, and until when.
    pub fn ask(&mut self, limit: Limit, lot: Option<u16>, now: Mono) -> Result<(), Held> {
        if self.used.is_none() {
            self.told = now;
        }
        self.used = Some(now);
        self.asked = self.asked.saturating_add(1);
        let share = self.share(limit, now);
        let bucket = self.bucket.get_or_insert_with(|| Bucket::new(share, now));
        bucket.fill(share, now);
        let bucket = *bucket;
        if lot.is_some_and(|it| !bucket.has_savings() && it >= self.lots_heard(share)) {
            return Err(Held::Lot);
        }
        if bucket.is_free() { Ok(()) } else { Err(Held::Turn(self.give_turn(bucket, share, now))) }
    }

    /// Takes one off, whether or not there is one.
    pub fn take(&mut self, limit: Limit, now: Mono) {
        let share = self.share(limit, now);
        let bucket = self.bucket.get_or_insert_with(|| Bucket::new(share, now));
        if bucket.take(share) == Source::Rate {
            self.passed = self.passed.saturating_add(1);
        }
    }

    /// Whether [`Stream::tell`] has something to say.
    #[must_use]
    pub const fn is_used(&self) -> bool {
        self.used.is_some()
    }

    /// What is wanted a second here, and how many passed since this was last asked. None: nobody
    /// has spoken for a while, and what passed is told.
    pub fn tell(&mut self, now: Mono) -> Option<(u32, u32)> {
        let used = self.used?;
        if now.since(used) >= QUIET_MAX && self.passed == 0 {
            (self.used, self.wanted_per_s) = (None, None);
            return None;
        }
        let turn_ms = millis(now.since(self.told).max(TURN));
        let latest = u64::from(std::mem::take(&mut self.asked)) * 1000 / turn_ms;
        let latest = u32::try_from(latest).unwrap_or(u32::MAX);
        // One half of it is from before, if somebody spoke before.
        let wanted_per_s = self.wanted_per_s.map_or(latest, |it| it.midpoint(latest));
        (self.wanted_per_s, self.told) = (Some(wanted_per_s), now);
        Some((wanted_per_s, std::mem::take(&mut self.passed)))
    }

    /// The answer to what was told.
    pub fn hear(&mut self, seen: Seen, limit: Limit, now: Mono) {
        // What came in until now came at the rate that was known.
        let share = self.share(limit, now);
        if let Some(bucket) = &mut self.bucket {
            bucket.fill(share, now);
        }
        self.heard = Some((share_milli(seen, limit.per_s), now));
    }

    fn share(&self, limit: Limit, now: Mono) -> Share {
        let Limit { per_s: limit_per_s, nodes } = limit;
        let nodes = nodes.max(1);
        let heard = self.heard.filter(|it| now.since(it.1) <= HEARD_MAX);
        // What the others leave is left to each of them; a part of the whole is one's own.
        let (rate_milli, spared_by) = match heard {
            Some((rate_milli, _)) => (rate_milli, nodes),
            None => (u64::from(limit_per_s) * 1000 / u64::from(nodes), 1),
        };
        Share { rate_milli: rate_milli.max(1), spared_by, limit_per_s, nodes }
    }

    /// How many of [`LOTS`] are heard: the part of what is wanted here that may pass.
    fn lots_heard(&self, share: Share) -> u16 {
        let wanted_per_s = u64::from(self.wanted_per_s.unwrap_or_default());
        let lots = (share.rate_milli * u64::from(LOTS) / 1000).checked_div(wanted_per_s);
        lots.and_then(|it| u16::try_from(it).ok()).unwrap_or(LOTS)
    }

    fn give_turn(&mut self, bucket: Bucket, share: Share, now: Mono) -> Duration {
        let free_ms = bucket.free_ms(share);
        let turn = (now + Duration::from_millis(free_ms)).max(self.turns_until);
        let wait = turn.since(now);
        if wait >= WAIT_MAX {
            return WAIT_MAX;
        }
        let each_ms = COMMENT.unsigned_abs().div_ceil(share.rate_milli);
        self.turns_until = turn + Duration::from_millis(each_ms);
        wait
    }
}

/// The rate that follows for one chatserver from what all say.
fn share_milli(seen: Seen, limit_per_s: u32) -> u64 {
    let milli = |it: u32| u64::from(it) * 1000;
    let (limit, wanted, own) =
        (milli(limit_per_s), milli(seen.wanted_per_s), milli(seen.own_per_s));
    if wanted <= limit {
        return limit - wanted.saturating_sub(own);
    }
    // Half of what was too much within the last second is made up for in the next.
    let less = (milli(seen.passed).saturating_sub(limit) / 2).min(limit / 2);
    let share = u128::from(limit - less) * u128::from(own) / u128::from(wanted);
    u64::try_from(share).unwrap_or(limit)
}

#[cfg(test)]
mod tests;
