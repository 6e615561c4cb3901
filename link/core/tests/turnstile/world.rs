//! Nodes, arrivals, and the centre that counts, with messages that take time and get lost.

use std::collections::{BTreeMap, VecDeque};

use link_core::bucket::Rate;
use link_core::turnstile::{Limits, Refusal, Seen, TURN, Tally, Turnstile};
use proto::id::RoomId;
use proto::time::{Mono, millis};

/// Joins a second.
pub(crate) const LIMIT: u32 = 1_000;
/// Clients that were told a time come back up to so much later, and up to twice as much after each
/// refusal.
const JITTER_MS: u64 = 500;

/// What happens to messages.
#[derive(Clone, Copy)]
pub(crate) struct Faults {
    pub(crate) delay_ms_max: u64,
    pub(crate) lost_percent: u64,
    /// From when on the centre answers nobody.
    pub(crate) away_from_ms: u64,
}

/// Who comes.
pub(crate) struct Crowd {
    /// New viewers a second, and for how long.
    pub(crate) per_s: u32,
    pub(crate) until_ms: u64,
    /// Whether the refused come back when they are told to.
    pub(crate) comes_back: bool,
    /// Logins a second at the first node that only look.
    pub(crate) forged_at_first: u32,
}

impl Crowd {
    pub(crate) fn steady(per_s: u32) -> Self {
        Self { per_s, until_ms: u64::MAX, comes_back: false, forged_at_first: 0 }
    }

    /// All within a second; they come back until they are in.
    pub(crate) fn rush(viewers: u32) -> Self {
        Self { per_s: viewers, until_ms: 1_000, comes_back: true, forged_at_first: 0 }
    }
}

pub(crate) struct World {
    nodes: Vec<Turnstile>,
    /// How often arrivals go to each node, in all `weight_sum`.
    weights: Vec<u32>,
    weight_sum: u32,
    faults: Faults,
    centre: Centre,
    /// What happens when, in the order in which it was said.
    messages: BTreeMap<(u64, u64), Message>,
    /// How many come back when, to which node, after how many refusals.
    returns: BTreeMap<(u64, usize, u32), u32>,
    random: u64,
    said: u64,
    asked: u32,
    viewers: u32,
}

enum Message {
    /// To the centre.
    Told(usize, Vec<Tally>),
    /// To a node.
    Heard(usize, Vec<(RoomId, Seen)>, Vec<Tally>),
    /// To the centre's bucket.
    Bill(usize, Vec<Tally>),
    /// To a node: so many were not there.
    Owed(usize, RoomId, u32),
}

/// Exactly what a window and a bucket are.
#[derive(Default)]
struct Centre {
    passed: VecDeque<(u64, u32)>,
    /// What each node said last, and when.
    wants: BTreeMap<usize, (u64, u32)>,
    level_milli: u64,
    filled_ms: u64,
}

impl World {
    pub(crate) fn new(seed: u64, weights: &[u32], faults: Faults) -> Self {
        let limits = Limits {
            room_per_s: LIMIT,
            node: Rate { burst: 1_000_000, per_s: 1_000_000 },
            nodes_min: if faults.away_from_ms == 0 {
                u32::try_from(weights.len()).unwrap()
            } else {
                1
            },
            rooms_max: 10,
        };
        let mut nodes: Vec<_> = weights.iter().map(|_| Turnstile::new(limits)).collect();
        // They have run for a while, and know how many they are.
        if faults.away_from_ms > 0 {
            let count = u32::try_from(nodes.len()).unwrap();
            nodes.iter_mut().for_each(|it| it.hear(count, &[], Mono(0)));
        }
        Self {
            nodes,
            weights: weights.to_vec(),
            weight_sum: weights.iter().sum(),
            faults,
            centre: Centre::default(),
            messages: BTreeMap::new(),
            returns: BTreeMap::new(),
            random: seed,
            said: 0,
            asked: 0,
            viewers: 0,
        }
    }

    /// Attempts of honest viewers.
    pub(crate) fn asked(&self) -> u32 {
        self.asked
    }

    /// Honest viewers.
    pub(crate) fn viewers(&self) -> u32 {
        self.viewers
    }

    /// How many came in, second by second.
    pub(crate) fn run(&mut self, crowd: &Crowd, until_ms: u64) -> Vec<u32> {
        let mut passed = vec![0; usize::try_from(until_ms / 1_000).unwrap()];
        for now in 0..until_ms {
            while let Some(entry) = self.messages.first_entry().filter(|it| it.key().0 <= now) {
                let message = entry.remove();
                self.deliver(message, now);
            }
            for node in 0..self.nodes.len() {
                // Nodes do not take their turns at the same time.
                if now % millis(TURN) == (node as u64 * 37) % millis(TURN) {
                    let tallies = self.nodes[node].tell(Mono(now));
                    self.send(Message::Told(node, tallies), now);
                }
            }
            let second = usize::try_from(now / 1_000).unwrap();
            passed[second] += self.arrive(crowd, now);
        }
        passed
    }

    fn arrive(&mut self, crowd: &Crowd, now: u64) -> u32 {
        for _ in 0..self.so_many(crowd.forged_at_first) {
            self.nodes[0].look(&[room()], Mono(now)).ok();
        }
        let mut coming = Vec::new();
        if now < crowd.until_ms {
            for _ in 0..self.so_many(crowd.per_s) {
                coming.push((self.draw_node(), 0));
            }
        }
        self.viewers += u32::try_from(coming.len()).unwrap();
        while let Some(entry) = self.returns.first_entry().filter(|it| it.key().0 <= now) {
            let ((_, node, refusals), count) = entry.remove_entry();
            coming.extend((0..count).map(|_| (node, refusals)));
        }
        self.asked += u32::try_from(coming.len()).unwrap();
        coming.into_iter().map(|it| self.try_one(it, crowd, now)).sum()
    }

    /// What a link does with a login, and the client with its answer.
    fn try_one(&mut self, (node, refusals): (usize, u32), crowd: &Crowd, now: u64) -> u32 {
        let (turnstile, room) = (&mut self.nodes[node], room());
        let looked = turnstile.look(std::slice::from_ref(&room), Mono(now));
        let passed = looked.and_then(|()| {
            turnstile.pass(&room, Mono(now)).map_err(|it| match it {
                Refusal::Room { wait } | Refusal::Node { wait } => wait,
            })
        });
        match passed {
            Ok(()) => 1,
            Err(wait) => {
                if crowd.comes_back {
                    let jitter = self.draw((JITTER_MS << refusals.min(6)) + 1);
                    let key = (now + millis(wait) + jitter + 1, node, refusals + 1);
                    *self.returns.entry(key).or_default() += 1;
                }
                0
            }
        }
    }

    fn deliver(&mut self, message: Message, now: u64) {
        match message {
            Message::Told(node, tallies) => {
                let seen = self.centre.share(node, &tallies, now);
                self.send(Message::Heard(node, seen, tallies), now);
            }
            Message::Heard(node, seen, tallies) => {
                let count = u32::try_from(self.nodes.len()).unwrap();
                self.nodes[node].hear(count, &seen, Mono(now));
                self.send(Message::Bill(node, tallies), now);
            }
            Message::Bill(node, tallies) => {
                for Tally { room, passed, .. } in tallies {
                    let missing = passed - self.centre.take(passed, now);
                    self.send(Message::Owed(node, room, missing), now);
                }
            }
            Message::Owed(node, room, missing) => {
                self.nodes[node].owe(&room, missing, Mono(now));
            }
        }
    }

    fn send(&mut self, message: Message, now: u64) {
        let is_lost = self.draw(100) < self.faults.lost_percent;
        let at = now + 1 + self.draw(self.faults.delay_ms_max);
        if !is_lost && now < self.faults.away_from_ms {
            self.said += 1;
            self.messages.insert((at, self.said), message);
        }
    }

    /// How many of so many a second come in one millisecond.
    fn so_many(&mut self, per_s: u32) -> u64 {
        let twice = u64::from(per_s) * 2;
        let (whole, part) = (twice / 1_000, twice % 1_000);
        let twice = whole + u64::from(self.draw(1_000) < part);
        self.draw(twice + 1)
    }

    fn draw_node(&mut self) -> usize {
        let mut left = self.draw(u64::from(self.weight_sum));
        for (node, weight) in self.weights.iter().enumerate() {
            match left.checked_sub(u64::from(*weight)) {
                None => return node,
                Some(rest) => left = rest,
            }
        }
        0
    }

    fn draw(&mut self, below: u64) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.random ^ (self.random >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % below.max(1)
    }
}

impl Centre {
    fn share(&mut self, node: usize, tallies: &[Tally], now: u64) -> Vec<(RoomId, Seen)> {
        self.passed.retain(|it| it.0 + 1_000 > now);
        self.wants.retain(|_, it| it.0 + 1_000 > now);
        for tally in tallies {
            self.passed.push_back((now, tally.passed));
            self.wants.insert(node, (now, tally.wanted_per_s));
        }
        let seen = Seen {
            wanted_per_s: self.wants.values().map(|it| it.1).sum(),
            own_per_s: self.wants.get(&node).map_or(0, |it| it.1),
            passed: self.passed.iter().map(|it| it.1).sum(),
        };
        tallies.iter().map(|it| (it.room.clone(), seen)).collect()
    }

    fn take(&mut self, wanted: u32, now: u64) -> u32 {
        let full_milli = u64::from(LIMIT) * 250;
        if self.filled_ms == 0 {
            self.level_milli = full_milli;
        }
        let gained = (now - self.filled_ms) * u64::from(LIMIT);
        self.level_milli = (self.level_milli + gained).min(full_milli);
        self.filled_ms = now;
        let granted = wanted.min(u32::try_from(self.level_milli / 1_000).unwrap());
        self.level_milli -= u64::from(granted) * 1_000;
        granted
    }
}

fn room() -> RoomId {
    RoomId::parse("r").unwrap()
}
