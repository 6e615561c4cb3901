//! What nodes have room for, and how the sessions of others are shared out to them.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use proto::address::Address;
use proto::control::MoveShare;
use proto::id::NodeId;
use proto::limits::MOVE_ADDRESSES_MAX;
use proto::load::LoadReport;
use proto::time::Mono;

use super::{Move, Part, Told, Why};
use crate::fleet::Fleet;

/// Shortest time over which a node's sessions leave, in milliseconds.
const WINDOW_MS_MIN: u64 = 1_000;
/// Longest: an attack lasts, and so long viewers are held up by it.
pub(super) const WINDOW_MS_MAX: u64 = 30_000;
/// What part of their logins a second the nodes that take the sessions in use for that: one in so
/// many, since viewers go on arriving.
const LOGINS_PART: u64 = 2;

/// A node whose sessions leave.
#[derive(Clone, Copy, Debug)]
pub(super) struct Leaving<'a> {
    pub(super) why: Why,
    pub(super) report: &'a LoadReport,
}

/// What becomes of a node's sessions.
#[derive(Debug)]
pub(super) struct Sent<'a> {
    leaving: Leaving<'a>,
    sessions: u32,
    /// Who takes how many of them in.
    parts: Vec<(NodeId, u64)>,
}

/// Those that can take sessions in.
#[derive(Debug)]
pub(super) struct Refuges<'a>(BTreeMap<NodeId, Refuge<'a>>);

/// What is left of a node.
#[derive(Debug)]
struct Refuge<'a> {
    report: &'a LoadReport,
    places: u64,
    logins_per_s: u64,
    /// Sessions that are sent there now.
    sent: u64,
}

/// Some refuges that may take a node's sessions in, and how these would spread.
#[derive(Debug)]
struct Choice<'a> {
    refuges: Vec<&'a Refuge<'a>>,
    /// By address that the sessions came by: of the addresses that they are told first, how many
    /// there are, and how many each refuge has. All of them get as many.
    first: Vec<(u64, Vec<u64>)>,
}

impl<'a> Leaving<'a> {
    /// The addresses that its sessions may have come by, one for each kind.
    fn kinds(self) -> Vec<&'a Address> {
        let listeners = self.report.addresses.iter().chain(&self.report.reserve);
        let kinds: BTreeMap<_, _> = listeners.map(|it| ((it.transport, it.carrier), it)).collect();
        kinds.into_values().collect()
    }

    /// The addresses of another node that its sessions can use and may know.
    fn offered(self, refuge: &LoadReport) -> Vec<&Address> {
        let all = match self.why {
            Why::Siege => &refuge.reserve,
            Why::Drain { .. } => &refuge.addresses,
        };
        let kinds = self.kinds();
        let is_of_use = |it: &&Address| kinds.iter().any(|own| it.detour(own).is_some());
        all.iter().filter(is_of_use).collect()
    }
}

impl<'a> Refuges<'a> {
    /// Before any sessions are sent there.
    pub(super) fn of(fleet: &'a Fleet) -> Self {
        let can = |it: &LoadReport| !it.load.besieged && !it.load.draining;
        let refuge = |slot: u32, report: &'a LoadReport| {
            let row = &fleet.rows()[slot as usize];
            let logins_per_s = u64::from(row.rate) / LOGINS_PART;
            Refuge { report, places: row.places.into(), logins_per_s, sent: 0 }
        };
        let live = fleet.live().filter(|(_, it)| can(&it.report));
        Self(live.map(|(slot, it)| (it.report.node, refuge(slot, &it.report))).collect())
    }

    /// Takes away what the sessions of a node that was told need.
    pub(super) fn keep_for(&mut self, told: &Told, now: Mono) {
        if now >= told.arrived {
            return;
        }
        for part in &told.parts {
            let Some(it) = self.0.get_mut(&part.refuge) else { continue };
            it.places = it.places.saturating_sub(part.sessions);
            if now < told.until {
                it.logins_per_s = it.logins_per_s.saturating_sub(part.logins_per_s);
            }
        }
    }

    /// Sends as many sessions of a node to refuges as these have room for.
    pub(super) fn send<'b>(&mut self, leaving: Leaving<'b>) -> Sent<'b> {
        let wanted = u64::from(leaving.report.load.sessions);
        let (parts, sessions) = self.choose(leaving).map_or_else(Default::default, |it| {
            let sessions = it.bound().min(wanted);
            (it.shares(sessions), sessions)
        });
        for (node, sessions) in &parts {
            let it = self.0.get_mut(node);
            it.expect("parts are of these").sent += sessions;
        }
        let sessions = u32::try_from(sessions).expect("it has no more than a u32 of them");
        Sent { leaving, sessions, parts }
    }

    /// The refuges that together take most sessions of a node: those of its region, if they are
    /// enough, or else these and others.
    fn choose(&self, leaving: Leaving<'_>) -> Option<Choice<'_>> {
        let report = leaving.report;
        let of_unit = self.0.values().filter(|it| it.report.unit == report.unit);
        let mut all: Vec<_> = of_unit.filter(|it| it.room() > 0).collect();
        all.retain(|it| !leaving.offered(it.report).is_empty());
        all.sort_by_key(|it| {
            (it.report.region != report.region, Reverse(it.room()), it.report.node)
        });
        let near = all.iter().filter(|it| it.report.region == report.region);
        let near = best(leaving, near.copied().collect());
        let is_enough = |it: &Choice<'_>| it.bound() >= report.load.sessions.into();
        near.filter(is_enough).or_else(|| best(leaving, all))
    }

    /// What a node is told: its window is as long as the refuges need for all that is sent there.
    pub(super) fn order(&self, sent: Sent<'_>) -> (Move, Vec<Part>) {
        let Sent { leaving: leaving @ Leaving { why, report }, sessions, parts } = sent;
        let chosen: Vec<_> = parts.iter().filter_map(|(it, _)| self.0.get(it)).collect();
        let longest_ms = chosen.iter().map(|it| it.needed_ms()).max();
        let window_ms = longest_ms.map_or(0, |it| it.clamp(WINDOW_MS_MIN, WINDOW_MS_MAX));
        let addresses = chosen.iter().flat_map(|it| leaving.offered(it.report)).cloned().collect();
        let share = |&(node, sessions): &(NodeId, u64)| MoveShare {
            node,
            sessions: u32::try_from(sessions).unwrap_or(u32::MAX),
        };
        let order = Move {
            node: report.node,
            why,
            sessions,
            staying: report.load.sessions - sessions,
            window_ms: u32::try_from(window_ms).expect("it is at most WINDOW_MS_MAX"),
            addresses,
            shares: parts.iter().map(share).collect(),
        };
        let parts = parts.into_iter().map(|(it, sessions)| Part::new(it, sessions, window_ms));
        (order, parts.collect())
    }
}

/// Those of `left`, in this order, that together take most sessions of a node, as far as their
/// addresses can be told.
fn best<'a>(leaving: Leaving<'_>, mut left: Vec<&'a Refuge<'a>>) -> Option<Choice<'a>> {
    let mut told = 0;
    let fitting = left.iter().take_while(|it| {
        told += leaving.offered(it.report).len();
        told <= MOVE_ADDRESSES_MAX
    });
    let fitting = fitting.count();
    left.truncate(fitting);
    let wanted = u64::from(leaving.report.load.sessions);
    let mut best: Option<Choice<'_>> = None;
    // Without the smallest the others get more each, if they are enough.
    while !left.is_empty() {
        let choice = Choice::new(leaving, left.clone());
        let (least, bound) = choice.smallest()?;
        if bound > 0 && best.as_ref().is_none_or(|it| bound > it.bound()) {
            best = Some(choice);
        }
        if wanted <= bound {
            break;
        }
        left.remove(least);
    }
    best
}

impl Refuge<'_> {
    /// Sessions more that it can let in within the longest window.
    fn room(&self) -> u64 {
        let logins = self.logins_per_s * WINDOW_MS_MAX / 1000;
        self.places.min(logins).saturating_sub(self.sent)
    }

    /// How long it needs for the sessions that are sent there.
    fn needed_ms(&self) -> u64 {
        (self.sent * 1000).div_ceil(self.logins_per_s.max(1))
    }
}

impl<'a> Choice<'a> {
    fn new(leaving: Leaving<'_>, refuges: Vec<&'a Refuge<'a>>) -> Self {
        let offered: Vec<_> = refuges.iter().map(|it| leaving.offered(it.report)).collect();
        let first = |kind: &Address| {
            let nearest = offered.iter().flatten().filter_map(|it| it.detour(kind)).min();
            let count = |its: &Vec<&Address>| {
                let firsts = its.iter().filter(|it| it.detour(kind) == nearest);
                nearest.map_or(0, |_| firsts.count() as u64)
            };
            let counts: Vec<_> = offered.iter().map(count).collect();
            (counts.iter().sum(), counts)
        };
        Self { refuges, first: leaving.kinds().into_iter().map(first).collect() }
    }

    /// How many of so many sessions each refuge gets, whatever they came by.
    fn shares(&self, sessions: u64) -> Vec<(NodeId, u64)> {
        let share = |number: usize| {
            let shares = self.first.iter().filter(|(_, counts)| counts[number] > 0);
            shares.map(|(all, counts)| sessions.div_ceil(*all) * counts[number]).max()
        };
        let nodes = self.refuges.iter().map(|it| it.report.node).enumerate();
        nodes.map(|(number, node)| (node, share(number).unwrap_or(0))).collect()
    }

    /// The refuge with the least room for its share, and how many sessions may be sent to all.
    /// One that nobody is told first is the smallest.
    fn smallest(&self) -> Option<(usize, u64)> {
        let bound = |number: usize, it: &&Refuge<'_>| {
            let firsts = self.first.iter().filter(|(_, counts)| counts[number] > 0);
            let bounds = firsts.map(|(all, counts)| it.room() / counts[number] * all);
            (number, bounds.min().unwrap_or(0))
        };
        let bounds = self.refuges.iter().enumerate().map(|(number, it)| bound(number, it));
        bounds.min_by_key(|(_, it)| *it)
    }

    /// How many sessions may be sent to all.
    fn bound(&self) -> u64 {
        self.smallest().map_or(0, |(_, it)| it)
    }
}
