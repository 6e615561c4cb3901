//! One link node, as far as gslb can notice.

use std::collections::{BTreeMap, VecDeque};

use proto::address::{Address, Carrier, Transport};
use proto::id::{NodeId, UnitId};
use proto::load::{Load, LoadReport};
use proto::time::Wall;

use crate::simulate::file::{Act, ArrivalsFile, FleetFile, Nodes};
use crate::simulate::outcome::ByGroup;

/// Milliseconds over which connections are compared with what can be logged in.
const WINDOW_MS: u64 = 1_000;

/// A node. Its port is its number.
pub(super) struct Node {
    group: String,
    report: LoadReport,
    session_bps: u64,
    is_up: bool,
    /// When it reports, within `report_ms`.
    phase_ms: u64,
    /// It reports at once.
    is_changed: bool,
    report_ms: u64,
    snapshot_ms: u64,
    /// Logins that it could do by now, in thousandths.
    logins: u64,
    /// Connections of each step of the last second, and of all of them.
    window: VecDeque<u64>,
    in_window: u64,
    in_window_max: u64,
    /// Viewers sent here first.
    given: u64,
    given_in_row: u64,
    /// Whether something happened to it.
    is_touched: bool,
}

impl Node {
    /// All nodes of a fleet.
    pub(super) fn all(fleet: &FleetFile, arrivals: &ArrivalsFile) -> Vec<Self> {
        let groups = fleet.nodes.iter().flat_map(|it| (0..it.count).map(move |at| (it, at)));
        let numbered = (0..).zip(groups);
        numbered.map(|(number, (group, at))| Self::new(number, group, at, arrivals)).collect()
    }

    fn new(number: u32, group: &Nodes, at: u32, arrivals: &ArrivalsFile) -> Self {
        let machine_room = &group.machine_rooms[at as usize % group.machine_rooms.len()];
        let addresses = group.carriers.iter().map(|&carrier| Address {
            host: "link.example".to_owned(),
            port: u16::try_from(number).expect("a fleet has at most 2^15 nodes"),
            transport: Transport::Tls,
            carrier,
            machine_room: machine_room.clone(),
        });
        let report = LoadReport {
            node: NodeId(number),
            unit: UnitId(0),
            region: group.region.clone(),
            counter: 0,
            start: Wall(0),
            addresses: addresses.collect(),
            reserve: Vec::new(),
            load: Load {
                sessions: group.sessions,
                sessions_max: group.sessions_max,
                handshakes_per_s_max: group.handshakes_per_s_max,
                ..Load::default()
            },
        };
        let steps = WINDOW_MS.div_ceil(arrivals.snapshot_ms).max(1);
        Self {
            group: group.name.clone(),
            report,
            session_bps: group.session_bps,
            is_up: true,
            is_changed: false,
            // Spread, so that not all of them report at the same time.
            phase_ms: u64::from(number) * 7_919 % arrivals.report_ms,
            report_ms: arrivals.report_ms,
            snapshot_ms: arrivals.snapshot_ms,
            logins: 0,
            window: (0..steps).map(|_| 0).collect(),
            in_window: 0,
            in_window_max: 0,
            given: 0,
            given_in_row: 0,
            is_touched: false,
        }
    }

    pub(super) fn is_of(&self, group: &str) -> bool {
        self.group == group
    }

    /// Something happens to it.
    pub(super) fn suffer(&mut self, act: Act, now: u64) {
        self.is_touched = true;
        self.is_changed = true;
        let load = &mut self.report.load;
        match act {
            Act::Stop => self.is_up = false,
            Act::Start => {
                self.is_up = true;
                self.report.start = Wall(now);
                *load = Load {
                    sessions_max: load.sessions_max,
                    handshakes_per_s_max: load.handshakes_per_s_max,
                    ..Load::default()
                };
            }
            Act::Drain => load.draining = true,
            Act::Besiege => load.besieged = true,
            Act::Relieve => load.besieged = false,
            Act::TableAway | Act::TableBack => {}
        }
    }

    /// A step passes: viewers who wait are logged in.
    pub(super) fn tick(&mut self, now: u64, elapsed_ms: u64) {
        self.in_window -= self.window.pop_front().unwrap_or(0);
        self.window.push_back(0);
        let load = &mut self.report.load;
        let per_step = u64::from(load.handshakes_per_s_max) * elapsed_ms;
        self.logins = if now == 0 { per_step } else { self.logins % 1000 + per_step };
        let done = (self.logins / 1000).min(load.handshakes.into());
        let done = u32::try_from(done).unwrap_or(u32::MAX);
        load.handshakes -= done;
        load.sessions += done;
        load.egress_bps = u64::from(load.sessions) * self.session_bps;
    }

    /// A viewer connects; false if nobody answers, or there is no place.
    pub(super) fn connect(&mut self) -> bool {
        let load = &mut self.report.load;
        self.in_window += 1;
        self.in_window_max = self.in_window_max.max(self.in_window);
        if let Some(step) = self.window.back_mut() {
            *step += 1;
        }
        let has_place = load.sessions + load.handshakes < load.sessions_max;
        if self.is_up && has_place {
            load.handshakes += 1;
        }
        self.is_up && has_place
    }

    /// A viewer is sent here.
    pub(super) fn give(&mut self) {
        self.given += 1;
        self.given_in_row += 1;
    }

    pub(super) fn is_due(&self, now: u64) -> bool {
        let since = (now + self.report_ms - self.phase_ms) % self.report_ms;
        self.is_up && (self.is_changed || since < self.snapshot_ms)
    }

    pub(super) fn report(&mut self) -> LoadReport {
        self.is_changed = false;
        self.report.counter += 1;
        self.report.clone()
    }

    /// Connections within the worst second, above what can be logged in, in thousandths.
    pub(super) fn overshoot_permille(&self) -> u64 {
        let logins = u64::from(self.report.load.handshakes_per_s_max).max(1);
        self.in_window_max.saturating_sub(logins) * 1000 / logins
    }

    /// Viewers sent here since the last call, and the same for what it can log in, in thousandths.
    pub(super) fn end_row(&mut self, elapsed_ms: u64) -> (u64, u64) {
        let given = std::mem::take(&mut self.given_in_row);
        let logins = u64::from(self.report.load.handshakes_per_s_max) * elapsed_ms;
        (given, (given * 1_000_000).checked_div(logins).unwrap_or(0))
    }
}

/// Which node an address is of.
pub(super) fn number(address: &Address) -> usize {
    address.port.into()
}

/// See [`Outcome::groups`](crate::simulate::Outcome::groups).
pub(super) fn by_group(nodes: &[Node]) -> Vec<ByGroup> {
    let groups = nodes.chunk_by(|a, b| a.group == b.group).map(|nodes| ByGroup {
        name: nodes[0].group.clone(),
        nodes: nodes.len(),
        sent: nodes.iter().map(|it| it.given).sum(),
        sessions: nodes.iter().map(|it| u64::from(it.report.load.sessions)).sum(),
    });
    groups.collect()
}

/// See [`Outcome::spread_permille`](crate::simulate::Outcome::spread_permille).
pub(super) fn spread_permille(nodes: &[Node]) -> u64 {
    let mut pools: BTreeMap<(&str, Vec<Carrier>), Vec<&Node>> = BTreeMap::new();
    for node in nodes.iter().filter(|it| !it.is_touched) {
        let carriers = node.report.addresses.iter().map(|it| it.carrier).collect();
        pools.entry((&node.report.region, carriers)).or_default().push(node);
    }
    let capacity = |it: &Node| u128::from(it.report.load.handshakes_per_s_max);
    let spreads = pools.values().flat_map(|pool| {
        let given: u128 = pool.iter().map(|it| u128::from(it.given)).sum();
        let total: u128 = pool.iter().map(|it| capacity(it)).sum();
        pool.iter().map(move |it| {
            let (even, real) = (given * capacity(it), u128::from(it.given) * total);
            let spread = (even.abs_diff(real) * 1000).checked_div(even).unwrap_or(0);
            u64::try_from(spread).unwrap_or(u64::MAX)
        })
    });
    spreads.max().unwrap_or(0)
}
