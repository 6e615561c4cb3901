//! Where the sessions of besieged nodes go, and when they are told to.
//!
//! They go to reserve addresses of other nodes of their unit: nobody who was not told knows these,
//! and resume tickets hold there. All besieged nodes share what the others have left of places and
//! logins; sessions that do not fit stay, and their node is looked at again soon.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::time::Duration;

use proto::address::{Address, Transport};
use proto::id::NodeId;
use proto::limits::MOVE_ADDRESSES_MAX;
use proto::load::LoadReport;
use proto::time::Mono;

use crate::fleet::Fleet;

/// Shortest time over which a node's sessions leave, in milliseconds.
const WINDOW_MS_MIN: u64 = 1_000;
/// Longest: an attack lasts, and so long viewers are held up by it.
const WINDOW_MS_MAX: u64 = 30_000;
/// What part of their logins a second the nodes that take the sessions in use for that: one in so
/// many, since viewers go on arriving.
const LOGINS_PART: u64 = 2;
/// Who has not left this long after the window is told again, and who had to stay is looked at
/// again.
const GRACE: Duration = Duration::from_secs(5);
/// Who could not be told is told after so long.
const UNTOLD: Duration = Duration::from_secs(1);

/// A node's sessions are to leave.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Move {
    /// Which node.
    pub node: NodeId,
    /// How many of its sessions.
    pub sessions: u32,
    /// How many more it has, for which no room is left.
    pub staying: u32,
    /// Over how many milliseconds.
    pub window_ms: u32,
    /// Where to, nodes of its region first, and the emptiest of these; at most
    /// [`MOVE_ADDRESSES_MAX`]. Empty: nowhere is room for any.
    pub addresses: Vec<Address>,
}

/// Remembers who was told, so that sessions move once, and stragglers again. A siege that ends and
/// begins anew changes nothing: those that were told are under way, and need their places.
#[derive(Debug, Default)]
pub struct Moves {
    told: BTreeMap<NodeId, Told>,
}

/// What a besieged node was told.
#[derive(Debug)]
struct Told {
    /// When the window ends.
    until: Mono,
    /// When it may be told again.
    again: Mono,
    /// Sessions for which no room was left.
    staying: u32,
    /// Who takes its sessions in.
    parts: Vec<Part>,
}

/// The sessions that one node takes in from another, at most: nobody says over which transports
/// they come. They need places until the other may be told again: loads do not tell of those that
/// are under way.
#[derive(Clone, Copy, Debug)]
struct Part {
    refuge: NodeId,
    sessions: u64,
    logins_per_s: u64,
}

/// What becomes of a besieged node's sessions.
#[derive(Debug)]
struct Sent {
    node: NodeId,
    sessions: u32,
    staying: u32,
    parts: Vec<Part>,
}

/// A node with a reserve, and what is left of it.
#[derive(Debug)]
struct Refuge<'a> {
    report: &'a LoadReport,
    places: u64,
    logins_per_s: u64,
    /// Sessions that are sent there now.
    sent: u64,
    /// Its own addresses.
    spread: Spread,
}

/// By transport, reserve addresses: a session goes to one of its own transport.
type Spread = BTreeMap<Transport, u64>;

/// Those that can take sessions in.
#[derive(Debug)]
struct Refuges<'a>(BTreeMap<NodeId, Refuge<'a>>);

impl Moves {
    /// The moves that are due now.
    pub fn plan(&mut self, fleet: &Fleet, now: Mono) -> Vec<Move> {
        self.told.retain(|_, it| now < it.again);
        let is_due = |it: &&NodeId| !self.told.contains_key(it);
        let due: Vec<_> = fleet.besieged().iter().filter(is_due).collect();
        if due.is_empty() {
            return Vec::new();
        }
        let mut refuges = Refuges::of(fleet);
        self.told.values().for_each(|it| refuges.keep_for(it, now));
        let reports = due.into_iter().filter_map(|it| fleet.report(*it));
        let reports = reports.filter(|it| it.load.sessions > 0);
        let sent: Vec<_> = reports.map(|it| refuges.send(it)).collect();
        let mut moves = Vec::new();
        // Only now it is known how many go to each refuge.
        for sent in sent {
            let (it, told) = refuges.order(sent, now);
            self.told.insert(it.node, told);
            moves.push(it);
        }
        moves
    }

    /// A move that was planned did not get to its node: nobody is under way, and it is planned again
    /// soon.
    pub fn untold(&mut self, node: NodeId, now: Mono) {
        if let Some(it) = self.told.get_mut(&node) {
            (it.until, it.again) = (now, now + UNTOLD);
            it.parts.clear();
        }
    }

    /// Sessions that stay for want of room, by the last plan of each node.
    #[must_use]
    pub fn staying(&self) -> u32 {
        self.told.values().fold(0, |sum, it| sum.saturating_add(it.staying))
    }
}

impl<'a> Refuges<'a> {
    /// Before any sessions are sent there.
    fn of(fleet: &'a Fleet) -> Self {
        let can =
            |it: &LoadReport| !it.reserve.is_empty() && !it.load.besieged && !it.load.draining;
        let refuge = |slot: u32, report: &'a LoadReport| {
            let row = &fleet.rows()[slot as usize];
            let logins_per_s = u64::from(row.rate) / LOGINS_PART;
            let spread = spread(&report.reserve);
            Refuge { report, places: row.places.into(), logins_per_s, sent: 0, spread }
        };
        let live = fleet.live().filter(|(_, it)| can(&it.report));
        Self(live.map(|(slot, it)| (it.report.node, refuge(slot, &it.report))).collect())
    }

    /// Takes away what the sessions of a node that was told need.
    fn keep_for(&mut self, told: &Told, now: Mono) {
        for part in &told.parts {
            let Some(it) = self.0.get_mut(&part.refuge) else { continue };
            it.places = it.places.saturating_sub(part.sessions);
            if now < told.until {
                it.logins_per_s = it.logins_per_s.saturating_sub(part.logins_per_s);
            }
        }
    }

    /// Sends as many sessions of a node to refuges as these have room for.
    fn send(&mut self, besieged: &LoadReport) -> Sent {
        let (chosen, sessions) = self.choose(besieged);
        let all = together(&chosen);
        let part = |it: &&Refuge<'_>| Part {
            refuge: it.report.node,
            sessions: it.share(&all, sessions),
            logins_per_s: 0,
        };
        let parts: Vec<_> = chosen.iter().map(part).collect();
        for part in &parts {
            let it = self.0.get_mut(&part.refuge);
            it.expect("parts are of these").sent += part.sessions;
        }
        let sessions = u32::try_from(sessions).expect("it has no more than a u32 of them");
        Sent { node: besieged.node, sessions, staying: besieged.load.sessions - sessions, parts }
    }

    /// The refuges that together take most sessions of a node, and how many.
    fn choose(&self, besieged: &LoadReport) -> (Vec<&Refuge<'a>>, u64) {
        let of_unit = self.0.values().filter(|it| it.report.unit == besieged.unit);
        let mut left: Vec<_> = of_unit.filter(|it| it.room() > 0).collect();
        left.sort_by_key(|it| {
            (it.report.region != besieged.region, Reverse(it.room()), it.report.node)
        });
        let mut told = 0;
        let fitting = left.iter().take_while(|it| {
            told += it.report.reserve.len();
            told <= MOVE_ADDRESSES_MAX
        });
        let fitting = fitting.count();
        left.truncate(fitting);
        let mut best = (Vec::new(), 0);
        let wanted = u64::from(besieged.load.sessions);
        // Without the smallest the others get more each, if they are enough.
        while let Some((least, sessions)) = smallest(&left) {
            if sessions.min(wanted) > best.1 {
                best = (left.clone(), sessions.min(wanted));
            }
            if wanted <= sessions {
                break;
            }
            left.remove(least);
        }
        best
    }

    /// What a node is told: its window is as long as the refuges need for all that is sent there.
    fn order(&self, sent: Sent, now: Mono) -> (Move, Told) {
        let Sent { node, sessions, staying, mut parts } = sent;
        let chosen: Vec<_> = parts.iter().filter_map(|it| self.0.get(&it.refuge)).collect();
        let longest_ms = chosen.iter().map(|it| it.needed_ms()).max();
        let window_ms = longest_ms.map_or(0, |it| it.clamp(WINDOW_MS_MIN, WINDOW_MS_MAX));
        for it in &mut parts {
            it.logins_per_s = (it.sessions * 1000).div_ceil(window_ms);
        }
        let addresses = chosen.iter().flat_map(|it| &it.report.reserve).cloned().collect();
        let until = now + Duration::from_millis(window_ms);
        let window_ms = u32::try_from(window_ms).expect("it is at most WINDOW_MS_MAX");
        let told = Told { until, again: until + GRACE, staying, parts };
        (Move { node, sessions, staying, window_ms, addresses }, told)
    }
}

impl Refuge<'_> {
    /// Sessions more that it can let in within the longest window.
    fn room(&self) -> u64 {
        let logins = self.logins_per_s * WINDOW_MS_MAX / 1000;
        self.places.min(logins).saturating_sub(self.sent)
    }

    /// How many of so many sessions may come here, over whichever transport: they are told all
    /// addresses of theirs in turn.
    fn share(&self, all: &Spread, sessions: u64) -> u64 {
        let shares = self.spread.iter().map(|(it, own)| sessions.div_ceil(all[it]) * own);
        shares.max().unwrap_or(0)
    }

    /// How many sessions all may be sent, so that it has room for its share.
    fn bound(&self, all: &Spread) -> u64 {
        let bounds = self.spread.iter().map(|(it, own)| self.room() / own * all[it]);
        bounds.min().unwrap_or(0)
    }

    /// How long it needs for the sessions that are sent there.
    fn needed_ms(&self) -> u64 {
        (self.sent * 1000).div_ceil(self.logins_per_s.max(1))
    }
}

fn spread<'a>(reserve: impl IntoIterator<Item = &'a Address>) -> Spread {
    let mut spread = Spread::new();
    reserve.into_iter().for_each(|it| *spread.entry(it.transport).or_default() += 1);
    spread
}

/// The addresses of several refuges.
fn together(refuges: &[&Refuge<'_>]) -> Spread {
    spread(refuges.iter().flat_map(|it| &it.report.reserve))
}

/// Which of them has the least room for its share, and how many sessions may be sent to all.
fn smallest(refuges: &[&Refuge<'_>]) -> Option<(usize, u64)> {
    let all = together(refuges);
    refuges.iter().map(|it| it.bound(&all)).enumerate().min_by_key(|(_, it)| *it)
}
