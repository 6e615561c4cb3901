//! How many come into a room in a second, over all nodes, each of which decides by itself.
//!
//! Several times a second a node tells what it saw ([`Turnstile::tell`]) and learns what all saw
//! ([`Turnstile::hear`]). From that follows its own rate: its share of what is wanted, where more is
//! wanted than may pass; what it needs and its part of what is free, where less is. What passed is
//! taken from one bucket that all nodes share, and what that did not have is owed
//! ([`Turnstile::owe`]): the node lets so many fewer in. A node that hears nothing, or of fewer
//! nodes than there are, keeps to the limit divided by the nodes it knows of.
//!
//! Who is refused is given a time of their own, so that the refused come back at the rate at which
//! they can come in.

mod turns;

use std::collections::BTreeMap;
use std::time::Duration;

use proto::id::RoomId;
use proto::time::{Mono, millis};

use crate::bucket::{Bucket, Rate};
use turns::Turns;

/// How often a node tells and hears.
pub const TURN: Duration = Duration::from_millis(100);
/// What was heard counts for so long.
pub const HEARD_MAX: Duration = Duration::from_secs(1);
/// Nobody is told to wait longer.
pub const WAIT_MAX: Duration = Duration::from_secs(30);
/// Logins that nobody has checked get turns of their own so far ahead, and no farther: forged ones,
/// which never come back, keep nobody away for longer.
const UNCHECKED_WAIT_MAX: Duration = Duration::from_secs(10);
/// A room that nobody asked for is forgotten: its tallies are told, and its tokens are full again.
const QUIET_MAX: Duration = Duration::from_secs(2);

/// Times the limit that a node may say it needs.
const WANTED_MAX: u32 = 4;

/// One join in the unit of levels: a rate in thousandths a second is so many a millisecond.
const JOIN: i64 = 1_000_000;
const MICROS_PER_MS: u64 = 1_000;
const MICROS_PER_S: u64 = 1_000_000;

/// What is held to.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Joins a second into one room, over all nodes; 0 sets no limit.
    pub room_per_s: u32,
    /// Joins into all rooms of this node.
    pub node: Rate,
    /// Nodes that share a room's limit, at least.
    pub nodes_min: u32,
    /// Rooms that are counted at a time; joins into others pass only the node's limit.
    pub rooms_max: usize,
}

/// What this node says of a room.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Tally {
    /// Which room.
    pub room: RoomId,
    /// Joins that are wanted a second, lately.
    pub wanted_per_s: u32,
    /// Joins that passed since it was last told; to be taken from the room's bucket.
    pub passed: u32,
}

/// What all nodes say of a room.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Seen {
    /// Joins that are wanted a second.
    pub wanted_per_s: u32,
    /// Those that are wanted here.
    pub own_per_s: u32,
    /// Joins that passed within the last second.
    pub passed: u32,
}

/// Why a join does not pass, and when it may.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Refusal {
    /// Too many want to come into the room.
    Room {
        /// It is of no use to come back before.
        wait: Duration,
    },
    /// Too many want to come into rooms of this node.
    Node {
        /// It is of no use to come back before.
        wait: Duration,
    },
}

/// Lets joins pass.
#[derive(Debug)]
pub struct Turnstile {
    limits: Limits,
    node: Bucket,
    node_turns: Turns,
    rooms: BTreeMap<RoomId, Room>,
    /// Nodes that the last answer told of.
    nodes: u32,
    heard: Option<Mono>,
}

#[derive(Debug)]
struct Room {
    /// Joins that may pass, in millionths; below zero while some are owed.
    level: i64,
    filled: Mono,
    /// Joins a second in thousandths, as heard.
    rate_milli: Option<u64>,
    /// What was last told to be wanted.
    wanted_per_s: Option<u32>,
    /// Joins that were wanted since then.
    asked: u32,
    passed: u32,
    told: Mono,
    /// When somebody last asked.
    used: Mono,
    turns: Turns,
}

impl Turnstile {
    /// One that nobody has passed yet, and that has heard nothing.
    #[must_use]
    pub const fn new(limits: Limits) -> Self {
        let node = Bucket::new(limits.node);
        let node_turns = Turns::NONE;
        Self { limits, node, node_turns, rooms: BTreeMap::new(), nodes: 0, heard: None }
    }

    /// Refuses a login that could pass into none of its rooms, before anybody has checked it. One
    /// that is not refused still has to [`Turnstile::pass`], when it is known to be honest.
    ///
    /// It is refused in the room where its turn comes first. It may be forged: those that only look
    /// count as wanted up to a bound, and get turns for a short time ahead.
    ///
    /// # Errors
    /// When it is of use to come back.
    pub fn look(&mut self, rooms: &[RoomId], now: Mono) -> Result<(), Duration> {
        let base_milli = self.base_milli(now);
        let mut soonest: Option<(Duration, &RoomId)> = None;
        for id in rooms {
            let Some(room) = self.rooms.get_mut(id) else {
                return Ok(());
            };
            if room.is_free(base_milli, now) {
                return Ok(());
            }
            let wait = room.wait(base_milli, now);
            if soonest.as_ref().is_none_or(|it| wait < it.0) {
                soonest = Some((wait, id));
            }
        }
        let Some(room) = soonest.and_then(|(_, id)| self.rooms.get_mut(id)) else {
            return Ok(());
        };
        room.asked = room.asked.saturating_add(1);
        Err(room.give_turn(base_milli, UNCHECKED_WAIT_MAX, now))
    }

    /// Lets a join pass, or says when it may.
    ///
    /// # Errors
    /// Why it does not pass.
    pub fn pass(&mut self, room: &RoomId, now: Mono) -> Result<(), Refusal> {
        let base_milli = self.base_milli(now);
        let mut counted = None;
        if self.is_counted(room) {
            let room = self.rooms.entry(room.clone()).or_insert_with(|| Room::new(base_milli, now));
            if !room.is_free(base_milli, now) {
                room.ask(now);
                return Err(Refusal::Room { wait: room.give_turn(base_milli, WAIT_MAX, now) });
            }
            counted = Some(room);
        }
        if let Err(wait) = self.node.take(now) {
            let each_micros = MICROS_PER_S.div_ceil(self.limits.node.per_s.max(1).into());
            let wait = self.node_turns.give(micros(wait), each_micros, WAIT_MAX, now);
            return Err(Refusal::Node { wait });
        }
        if let Some(room) = counted {
            room.level -= JOIN;
            room.ask(now);
            room.passed = room.passed.saturating_add(1);
        }
        Ok(())
    }

    /// What this node sees now. Rooms for which nobody asks are forgotten.
    pub fn tell(&mut self, now: Mono) -> Vec<Tally> {
        self.rooms.retain(|_, it| now.since(it.used) < QUIET_MAX);
        let limit_per_s = self.limits.room_per_s;
        let told = self.rooms.iter_mut().map(|(id, room)| Tally {
            room: id.clone(),
            wanted_per_s: room.measure(limit_per_s, now),
            passed: std::mem::take(&mut room.passed),
        });
        told.collect()
    }

    /// The answer to what was told: how many nodes share the limits, and what they saw of rooms.
    pub fn hear(&mut self, nodes: u32, rooms: &[(RoomId, Seen)], now: Mono) {
        let base_milli = self.base_milli(now);
        (self.nodes, self.heard) = (nodes, Some(now));
        // Others are there that this centre has not heard of: what it saw is not all.
        let are_all = nodes >= self.limits.nodes_min;
        let (limit_milli, nodes) = (self.limit_milli(), u64::from(self.nodes()));
        for (id, seen) in rooms {
            if let Some(room) = self.rooms.get_mut(id) {
                room.fill(base_milli, now);
                room.rate_milli = are_all.then(|| share_milli(*seen, limit_milli, nodes));
            }
        }
    }

    /// The room's bucket did not have so many of the joins that passed.
    pub fn owe(&mut self, room: &RoomId, missing: u32, now: Mono) {
        let base_milli = self.base_milli(now);
        if let Some(room) = self.rooms.get_mut(room) {
            room.fill(base_milli, now);
            // At most what the node may let in within a second: wants move on to other nodes.
            let debt_max = level_of(room.rate(base_milli), Duration::from_secs(1));
            room.level = (room.level - i64::from(missing) * JOIN).max(-debt_max);
        }
    }

    /// Nodes that share the limits, as far as is known.
    #[must_use]
    pub fn nodes(&self) -> u32 {
        self.nodes.max(self.limits.nodes_min).max(1)
    }

    fn is_counted(&self, room: &RoomId) -> bool {
        self.limits.room_per_s > 0
            && (self.rooms.len() < self.limits.rooms_max || self.rooms.contains_key(room))
    }

    fn limit_milli(&self) -> u64 {
        u64::from(self.limits.room_per_s) * 1000
    }

    /// One node's part of the limit, all nodes being equal; and nothing else, once what was heard
    /// is old.
    fn base_milli(&mut self, now: Mono) -> u64 {
        if self.heard.take_if(|it| now.since(*it) > HEARD_MAX).is_some() {
            for room in self.rooms.values_mut() {
                room.rate_milli = None;
            }
        }
        self.limit_milli() / u64::from(self.nodes())
    }
}

impl Room {
    fn new(base_milli: u64, now: Mono) -> Self {
        Self {
            level: depth(base_milli),
            filled: now,
            rate_milli: None,
            wanted_per_s: None,
            asked: 0,
            passed: 0,
            told: now,
            used: now,
            turns: Turns::NONE,
        }
    }

    fn rate(&self, base_milli: u64) -> u64 {
        self.rate_milli.unwrap_or(base_milli).max(1)
    }

    /// What is wanted a second, one half of it from before.
    fn measure(&mut self, limit_per_s: u32, now: Mono) -> u32 {
        let turn_ms = millis(now.since(self.told).max(TURN));
        let asked_per_s = u64::from(std::mem::take(&mut self.asked)) * 1000 / turn_ms;
        // A flood of logins at one node must not take everything from the others.
        let wanted_max = limit_per_s.saturating_mul(WANTED_MAX);
        let latest = u32::try_from(asked_per_s).unwrap_or(u32::MAX).min(wanted_max);
        let wanted_per_s = self.wanted_per_s.map_or(latest, |it| it.midpoint(latest));
        (self.wanted_per_s, self.told) = (Some(wanted_per_s), now);
        wanted_per_s
    }

    fn fill(&mut self, base_milli: u64, now: Mono) {
        let rate_milli = self.rate(base_milli);
        let gained = level_of(rate_milli, now.since(self.filled));
        self.level = self.level.saturating_add(gained).min(depth(rate_milli));
        self.filled = now;
    }

    fn is_free(&mut self, base_milli: u64, now: Mono) -> bool {
        self.fill(base_milli, now);
        self.level >= JOIN
    }

    const fn ask(&mut self, now: Mono) {
        self.asked = self.asked.saturating_add(1);
        self.used = now;
    }

    /// The time after which it would be the turn of one more.
    fn wait(&self, base_milli: u64, now: Mono) -> Duration {
        self.turns.wait(self.free_micros(base_milli), now)
    }

    /// Refuses a join; gives the time after which it is the turn of this one.
    fn give_turn(&mut self, base_milli: u64, reach: Duration, now: Mono) -> Duration {
        let each_micros = micros_of(JOIN, self.rate(base_milli));
        self.turns.give(self.free_micros(base_milli), each_micros, reach, now)
    }

    /// How long until one may pass.
    fn free_micros(&self, base_milli: u64) -> u64 {
        micros_of(JOIN - self.level, self.rate(base_milli))
    }
}

/// In how many microseconds so much comes together at a rate.
fn micros_of(level: i64, rate_milli: u64) -> u64 {
    level.max(0).unsigned_abs().saturating_mul(MICROS_PER_MS).div_ceil(rate_milli)
}

fn micros(time: Duration) -> u64 {
    millis(time).saturating_mul(MICROS_PER_MS)
}

/// The rate that follows for one of the nodes from what all say.
fn share_milli(seen: Seen, limit_milli: u64, nodes: u64) -> u64 {
    let [wanted, own, passed] =
        [seen.wanted_per_s, seen.own_per_s, seen.passed].map(|it| u64::from(it) * 1000);
    if wanted <= limit_milli {
        return own + (limit_milli - wanted) / nodes;
    }
    // Half of what was too much within the last second is made up for in the next.
    let less_milli = (passed.saturating_sub(limit_milli) / 2).min(limit_milli / 2);
    let share = u128::from(limit_milli - less_milli) * u128::from(own) / u128::from(wanted);
    u64::try_from(share).unwrap_or(limit_milli)
}

/// What comes together at a rate in a while.
fn level_of(rate_milli: u64, time: Duration) -> i64 {
    i64::try_from(rate_milli.saturating_mul(millis(time))).unwrap_or(i64::MAX)
}

/// What may pass at once: so much as comes together in a turn, at least one.
fn depth(rate_milli: u64) -> i64 {
    level_of(rate_milli, TURN).max(JOIN)
}

#[cfg(test)]
mod tests;
