//! Where the sessions of nodes go that are besieged or drain, and when they are told to.
//!
//! They go to other nodes of their unit, since resume tickets hold there: from a besieged node to
//! reserve addresses, which nobody who was not told knows; from one that drains to published ones.
//! All share what the others have left of places and logins. Sessions that do not fit stay, and a
//! besieged node is looked at again soon; a node that drains sends them to `enter`.

mod room;

use std::collections::BTreeMap;
use std::time::Duration;

use proto::address::Address;
use proto::control::{Fact, MoveShare};
use proto::id::NodeId;
use proto::load::LoadReport;
use proto::time::{Mono, Wall};

use crate::fleet::Fleet;
use room::{Leaving, Refuges, WINDOW_MS_MAX};

/// Who has not left this long after the window is told again, and who had to stay is looked at
/// again.
const GRACE: Duration = Duration::from_secs(5);
/// Who could not be told is told after so long.
const UNTOLD: Duration = Duration::from_secs(1);

/// Why a node's sessions leave it.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Why {
    /// It is attacked.
    Siege,
    /// It ends, and waits a moment to hear where they may go.
    Drain {
        /// When the life of the node began that ends.
        start: Wall,
    },
}

/// How a gslb came to hear what a node was told.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Heard {
    /// Just now, whatever the clock of whoever told says.
    Live,
    /// From what lay on `control` already, at this time.
    ReadBack(Wall),
}

/// A node's sessions are to leave.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Move {
    /// Which node.
    pub node: NodeId,
    /// Why.
    pub why: Why,
    /// How many of its sessions.
    pub sessions: u32,
    /// How many more it has, for which no room is left.
    pub staying: u32,
    /// Over how many milliseconds.
    pub window_ms: u32,
    /// Where to, nodes of its region alone if they have room, and the emptiest first; at most
    /// [`MOVE_ADDRESSES_MAX`](proto::limits::MOVE_ADDRESSES_MAX). Empty: nowhere is room for any.
    pub addresses: Vec<Address>,
    /// Who takes them in.
    pub shares: Vec<MoveShare>,
}

/// Remembers who was told, so that sessions move once, and stragglers again. A siege that ends and
/// begins anew changes nothing: those that were told are under way, and need their places.
#[derive(Debug, Default)]
pub struct Moves {
    told: BTreeMap<(NodeId, Why), Told>,
}

/// What a node was told.
#[derive(Debug)]
struct Told {
    /// When the window ends.
    until: Mono,
    /// When all are taken to have arrived: the loads tell of them from then on.
    arrived: Mono,
    /// When it may be told again. A node that drains hears one answer.
    again: Mono,
    /// Sessions for which no room was left.
    staying: u32,
    /// Who takes its sessions in.
    parts: Vec<Part>,
}

/// The sessions that one node takes in from another, at most: nobody says by which addresses they
/// came. They need places until they have arrived: loads do not tell of those that are under way.
#[derive(Clone, Copy, Debug)]
struct Part {
    refuge: NodeId,
    sessions: u64,
    logins_per_s: u64,
}

impl Moves {
    /// The moves that are due now.
    pub fn plan(&mut self, fleet: &Fleet, now: Mono) -> Vec<Move> {
        self.settle(fleet, now);
        let due = self.due(fleet, now);
        if due.is_empty() {
            return Vec::new();
        }
        for it in due.iter().filter(|it| it.why != Why::Siege) {
            // Those that are left when a node drains are told anew.
            self.told.remove(&(it.report.node, Why::Siege));
        }
        let mut refuges = Refuges::of(fleet);
        self.told.values().for_each(|it| refuges.keep_for(it, now));
        let sent: Vec<_> = due.into_iter().map(|it| refuges.send(it)).collect();
        let mut moves = Vec::new();
        // Only now it is known how many go to each refuge.
        for sent in sent {
            let (it, parts) = refuges.order(sent);
            let told = Told::new(it.why, Duration::from_millis(it.window_ms.into()), now);
            self.told.insert((it.node, it.why), Told { staying: it.staying, parts, ..told });
            moves.push(it);
        }
        moves
    }

    /// A gslb has told a node this, maybe another one, maybe a while ago: what it promised holds,
    /// and the node needs not be told again.
    pub fn hear(&mut self, fact: &Fact, now: Mono, heard: Heard) {
        let Fact::Move { node, window_ms, at, drain, shares, .. } = fact else {
            return;
        };
        let window_ms = u64::from(*window_ms).min(WINDOW_MS_MAX);
        let why = drain.map_or(Why::Siege, |start| Why::Drain { start });
        let part = |it: &MoveShare| Part::new(it.node, it.sessions.into(), window_ms);
        let parts = shares.iter().map(part).collect();
        let age = match heard {
            Heard::Live => Duration::ZERO,
            Heard::ReadBack(wall) => wall.since(*at),
        };
        let heard = Told::new(why, Duration::from_millis(window_ms), now).aged(age);
        let known = self.told.get(&(*node, why));
        if known.is_some_and(|it| it.arrived >= heard.arrived) {
            return;
        }
        let staying = known.map_or(0, |it| it.staying);
        if why != Why::Siege {
            self.told.remove(&(*node, Why::Siege));
        }
        self.told.insert((*node, why), Told { staying, parts, ..heard });
    }

    /// Forgets what is over.
    pub fn settle(&mut self, fleet: &Fleet, now: Mono) {
        self.told.retain(|(node, why), it| {
            now < it.arrived || now < it.again && is_current(fleet, *node, *why)
        });
    }

    /// A move that was planned did not get to its node: nobody is under way, and it is planned again
    /// soon.
    pub fn untold(&mut self, node: NodeId, why: Why, now: Mono) {
        if let Some(it) = self.told.get_mut(&(node, why)) {
            (it.until, it.arrived, it.again) = (now, now, now + UNTOLD);
            it.parts.clear();
        }
    }

    /// Sessions of besieged nodes that stay for want of room, by the last plan of each node.
    #[must_use]
    pub fn staying(&self) -> u32 {
        let besieged = self.told.iter().filter(|((_, why), _)| *why == Why::Siege);
        besieged.fold(0, |sum, (_, it)| sum.saturating_add(it.staying))
    }

    /// The nodes whose sessions are to be told. Besieged ones first: those are locked out. One that
    /// drains, besieged or not, waits for the answer to its drain.
    fn due<'a>(&self, fleet: &'a Fleet, now: Mono) -> Vec<Leaving<'a>> {
        let draining = fleet.draining();
        let besieged = fleet.besieged().iter().filter(|it| !draining.contains(it));
        let besieged = besieged.map(|it| (it, true));
        let leaving = besieged.chain(draining.iter().map(|it| (it, false)));
        let leaving = leaving.filter_map(|(node, is_besieged)| {
            let report = fleet.report(*node)?;
            let drain = Why::Drain { start: report.start };
            Some(Leaving { why: if is_besieged { Why::Siege } else { drain }, report })
        });
        let is_due = |it: &Leaving<'_>| {
            let told = self.told.get(&(it.report.node, it.why));
            it.report.load.sessions > 0 && told.is_none_or(|it| now >= it.again)
        };
        leaving.filter(is_due).collect()
    }
}

impl Told {
    /// Told just now; nobody has taken anyone in yet.
    fn new(why: Why, window: Duration, now: Mono) -> Self {
        let until = now + window;
        let arrived = until + GRACE;
        let again = match why {
            Why::Siege => arrived,
            Why::Drain { .. } => Mono(u64::MAX),
        };
        Self { until, arrived, again, staying: 0, parts: Vec::new() }
    }

    /// The same, told so long ago.
    fn aged(self, age: Duration) -> Self {
        let age_ms = u64::try_from(age.as_millis()).unwrap_or(u64::MAX);
        let ago = |it: Mono| Mono(it.0.saturating_sub(age_ms));
        let again = if self.again == self.arrived { ago(self.again) } else { self.again };
        Self { until: ago(self.until), arrived: ago(self.arrived), again, ..self }
    }
}

impl Part {
    fn new(refuge: NodeId, sessions: u64, window_ms: u64) -> Self {
        Self { refuge, sessions, logins_per_s: (sessions * 1000).div_ceil(window_ms.max(1)) }
    }
}

/// Whether a node still wants to hear what it was told, if it was told for this reason.
fn is_current(fleet: &Fleet, node: NodeId, why: Why) -> bool {
    let is_of = |start: Wall| fleet.report(node).is_some_and(|it: &LoadReport| it.start == start);
    match why {
        Why::Siege => true,
        Why::Drain { start } => fleet.draining().contains(&node) && is_of(start),
    }
}
