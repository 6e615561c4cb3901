//! Where the sessions of besieged nodes go, and when they are told to.
//!
//! They go to reserve addresses of other nodes of their unit: nobody who was not told knows these,
//! and resume tickets hold there. All besieged nodes share what the others have left of places and
//! logins; sessions that do not fit stay, and their node is looked at again soon.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::time::Duration;

use proto::address::Address;
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

/// Remembers who was told, so that each siege moves the sessions once, and stragglers again.
#[derive(Debug, Default)]
pub struct Moves {
    told: BTreeMap<NodeId, Told>,
}

/// What a besieged node was told.
#[derive(Debug)]
struct Told {
    /// When the window ends; it may be told again [`GRACE`] later.
    until: Mono,
    /// Who takes its sessions in.
    parts: Vec<Part>,
}

/// The sessions that one node takes in from another. They need places until the other may be told
/// again: loads do not tell of those that are under way.
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
}

/// Those that can take sessions in.
#[derive(Debug)]
struct Refuges<'a>(BTreeMap<NodeId, Refuge<'a>>);

impl Moves {
    /// The moves that are due now.
    pub fn plan(&mut self, fleet: &Fleet, now: Mono) -> Vec<Move> {
        self.told.retain(|node, it| fleet.besieged().contains(node) && now < it.until + GRACE);
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
}

impl<'a> Refuges<'a> {
    /// Before any sessions are sent there.
    fn of(fleet: &'a Fleet) -> Self {
        let can =
            |it: &LoadReport| !it.reserve.is_empty() && !it.load.besieged && !it.load.draining;
        let refuge = |slot: u32, report| {
            let row = &fleet.rows()[slot as usize];
            let logins_per_s = u64::from(row.rate) / LOGINS_PART;
            Refuge { report, places: row.places.into(), logins_per_s, sent: 0 }
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
        let each = sessions.checked_div(addresses(&chosen)).unwrap_or(0);
        let part = |it: &&Refuge<'_>| Part {
            refuge: it.report.node,
            sessions: each * it.addresses(),
            logins_per_s: 0,
        };
        let parts: Vec<_> = chosen.iter().map(part).collect();
        for part in &parts {
            let it = self.0.get_mut(&part.refuge);
            it.expect("parts are of these").sent += part.sessions;
        }
        let sessions = u32::try_from(sessions).unwrap_or(u32::MAX).min(besieged.load.sessions);
        Sent { node: besieged.node, sessions, staying: besieged.load.sessions - sessions, parts }
    }

    /// The refuges that together take most sessions of a node, and how many: a multiple of their
    /// addresses, which sessions are told in turn.
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
        // Without the smallest the others get more each, if they are enough.
        while let Some((least, each)) = smallest(&left) {
            let addresses = addresses(&left);
            let wanted = u64::from(besieged.load.sessions).div_ceil(addresses);
            let sessions = wanted.min(each) * addresses;
            if sessions > best.1 {
                best = (left.clone(), sessions);
            }
            if wanted <= each {
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
        (Move { node, sessions, staying, window_ms, addresses }, Told { until, parts })
    }
}

impl Refuge<'_> {
    /// Sessions more that it can let in within the longest window.
    fn room(&self) -> u64 {
        let logins = self.logins_per_s * WINDOW_MS_MAX / 1000;
        self.places.min(logins).saturating_sub(self.sent)
    }

    fn addresses(&self) -> u64 {
        self.report.reserve.len() as u64
    }

    /// How long it needs for the sessions that are sent there.
    fn needed_ms(&self) -> u64 {
        (self.sent * 1000).div_ceil(self.logins_per_s.max(1))
    }
}

/// Of several refuges.
fn addresses(refuges: &[&Refuge<'_>]) -> u64 {
    refuges.iter().map(|it| it.addresses()).sum()
}

/// Which has room for the fewest sessions at each of its addresses, and for how many.
fn smallest(refuges: &[&Refuge<'_>]) -> Option<(usize, u64)> {
    let each = refuges.iter().map(|it| it.room() / it.addresses().max(1));
    each.enumerate().min_by_key(|(_, each)| *each)
}
