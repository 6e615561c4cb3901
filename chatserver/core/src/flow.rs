//! How many comments a room takes in a second, over all chatservers, each of which decides by
//! itself.
//!
//! Several times a second a chatserver tells what it saw of each room, and learns what all saw.
//! What a room may show is shared out by need: where less is wanted than that, a chatserver may
//! pass all that the others leave; where more is, its part is as large as its part of what is
//! wanted, less if all together have passed too much. A chatserver that hears nothing keeps to its
//! part of the whole, all being equal: never nothing, never everything.
//!
//! Whoever is refused is given a time to come back, one after the other at the room's own pace.

use std::time::Duration;

use proto::id::{AppId, RoomId};
use proto::time::{Mono, millis};

/// How often a chatserver tells and hears.
pub const TURN: Duration = Duration::from_millis(100);
/// What was heard counts for so long.
const HEARD_MAX: Duration = Duration::from_secs(1);
/// A room in which nobody spoke for so long has nothing to be told.
const QUIET_MAX: Duration = Duration::from_secs(2);
/// What comes together in this time may pass at once: comments come in batches.
const BURST: Duration = Duration::from_millis(250);
/// Nobody is told to wait longer; beyond it many have the same time.
pub const WAIT_MAX: Duration = Duration::from_secs(10);

/// One comment in the unit of levels: a rate in thousandths a second is so many a millisecond.
const COMMENT: i64 = 1_000_000;

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

/// What flows into one room here.
#[derive(Clone, Copy, Debug, Default)]
pub struct Stream {
    /// Comments that may pass, in millionths; below zero when somebody passed who may always.
    level: i64,
    filled: Mono,
    /// What may pass a second, in thousandths, and when that was heard.
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
    /// Counts a comment, and says when it may pass, if that is not now. Whoever passes is taken off
    /// with [`Stream::take`].
    ///
    /// # Errors
    /// The time after which it is this one's turn.
    pub fn ask(&mut self, limit: Limit, now: Mono) -> Result<(), Duration> {
        if self.used.is_none() {
            *self = Self { level: depth(self.rate_milli(limit, now)), told: now, ..*self };
            self.filled = now;
        }
        self.used = Some(now);
        self.asked = self.asked.saturating_add(1);
        let rate_milli = self.rate_milli(limit, now);
        let gained = level_of(rate_milli, now.since(self.filled));
        self.level = self.level.saturating_add(gained).min(depth(rate_milli));
        self.filled = now;
        if self.level >= COMMENT { Ok(()) } else { Err(self.give_turn(rate_milli, now)) }
    }

    /// Takes one off, whether or not there is one: at most as much is owed as may be had.
    pub fn take(&mut self, limit: Limit, now: Mono) {
        let owed_max = depth(self.rate_milli(limit, now));
        self.level = (self.level - COMMENT).max(-owed_max);
        self.passed = self.passed.saturating_add(1);
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
    pub fn hear(&mut self, seen: Seen, limit_per_s: u32, now: Mono) {
        self.heard = Some((share_milli(seen, limit_per_s), now));
    }

    fn rate_milli(&self, limit: Limit, now: Mono) -> u64 {
        let heard = self.heard.filter(|it| now.since(it.1) <= HEARD_MAX);
        let alone = || u64::from(limit.per_s) * 1000 / u64::from(limit.nodes.max(1));
        heard.map_or_else(alone, |it| it.0).max(1)
    }

    fn give_turn(&mut self, rate_milli: u64, now: Mono) -> Duration {
        let free_ms = (COMMENT - self.level).unsigned_abs().div_ceil(rate_milli);
        let turn = (now + Duration::from_millis(free_ms)).max(self.turns_until);
        let wait = turn.since(now);
        if wait >= WAIT_MAX {
            return WAIT_MAX;
        }
        self.turns_until =
            turn + Duration::from_millis(COMMENT.unsigned_abs().div_ceil(rate_milli));
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

/// What comes together at a rate in a while.
fn level_of(rate_milli: u64, time: Duration) -> i64 {
    i64::try_from(rate_milli.saturating_mul(millis(time))).unwrap_or(i64::MAX)
}

/// What may pass at once: at least one.
fn depth(rate_milli: u64) -> i64 {
    level_of(rate_milli, BURST).max(COMMENT)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Limit = Limit { per_s: 100, nodes: 1 };

    /// Comments that pass when one comes every millisecond.
    fn pass(stream: &mut Stream, limit: Limit, ms: std::ops::Range<u64>) -> usize {
        let mut passes = |it: &u64| {
            let asked = stream.ask(limit, Mono(*it));
            if asked.is_ok() {
                stream.take(limit, Mono(*it));
            }
            asked.is_ok()
        };
        ms.filter(|it| passes(it)).count()
    }

    #[test]
    fn a_burst_passes_and_then_the_rate() {
        let mut stream = Stream::default();

        assert_eq!(pass(&mut stream, LIMIT, 0..1_000), 25 + 99);
        assert_eq!(pass(&mut stream, LIMIT, 1_000..2_000), 100);
    }

    #[test]
    fn the_refused_get_one_turn_each_up_to_a_bound() {
        let mut stream = Stream::default();
        while stream.ask(LIMIT, Mono(5)).is_ok() {
            stream.take(LIMIT, Mono(5));
        }

        let turns: Vec<_> = (0..3).map(|_| stream.ask(LIMIT, Mono(5)).unwrap_err()).collect();
        let later: Vec<_> = (0..5_000).map(|_| stream.ask(LIMIT, Mono(5)).unwrap_err()).collect();

        assert_eq!(turns, [20, 30, 40].map(Duration::from_millis));
        assert_eq!(later.last(), Some(&WAIT_MAX));
    }

    #[test]
    fn what_the_others_leave_may_pass() {
        let mut stream = Stream::default();
        pass(&mut stream, LIMIT, 0..1_000);

        stream.hear(Seen { wanted_per_s: 90, own_per_s: 10, passed: 90 }, 100, Mono(1_000));

        assert_eq!(pass(&mut stream, LIMIT, 1_000..2_000), 20);
    }

    #[test]
    fn a_part_of_what_is_wanted_is_a_part_of_what_passes() {
        let mut stream = Stream::default();
        pass(&mut stream, LIMIT, 0..1_000);

        stream.hear(Seen { wanted_per_s: 1_000, own_per_s: 250, passed: 100 }, 100, Mono(1_000));
        let fair = pass(&mut stream, LIMIT, 1_000..2_000);
        stream.hear(Seen { wanted_per_s: 1_000, own_per_s: 250, passed: 140 }, 100, Mono(2_000));
        let less = pass(&mut stream, LIMIT, 2_000..3_000);

        assert_eq!((fair, less), (25, 20));
    }

    #[test]
    fn what_was_heard_is_forgotten_when_it_is_old() {
        let limit = Limit { nodes: 4, ..LIMIT };
        let mut stream = Stream::default();
        pass(&mut stream, limit, 0..1_000);
        stream.hear(Seen { wanted_per_s: 4_000, own_per_s: 0, passed: 100 }, 100, Mono(1_000));

        assert_eq!(pass(&mut stream, limit, 1_000..2_000), 0);
        assert_eq!(pass(&mut stream, limit, 2_001..4_001), 50, "a quarter of the whole");
    }

    #[test]
    fn who_always_passes_is_counted_and_owed() {
        let mut stream = Stream::default();
        pass(&mut stream, LIMIT, 0..1_000);
        for _ in 0..1_000 {
            stream.take(LIMIT, Mono(1_000));
        }

        assert_eq!(pass(&mut stream, LIMIT, 1_001..1_251), 0);
        assert_eq!(stream.tell(Mono(1_251)).map(|it| it.1), Some(124 + 1_000));
    }

    #[test]
    fn a_quiet_room_has_nothing_to_tell() {
        let mut stream = Stream::default();
        assert!(!stream.is_used());
        pass(&mut stream, LIMIT, 0..1);

        assert_eq!(stream.tell(Mono(100)), Some((10, 1)));
        assert_eq!(stream.tell(Mono(200)), Some((5, 0)));
        assert_eq!(stream.tell(Mono(2_000)), None);
        assert!(!stream.is_used());
    }
}
