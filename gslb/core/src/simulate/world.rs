//! Nodes, gslb processes and viewers, step by step.

mod node;

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use proto::address::Carrier;
use proto::load::LoadReport;
use proto::time::Mono;

use super::Invalid;
use super::file::{Act, Arrivals, ArrivalsFile, FleetFile};
use super::outcome::{ByCarrier, Outcome, Row};
use crate::assign::{ADDRESSES_PER_ANSWER, Request, Wants};
use crate::fleet::{Fleet, Limits};
use crate::policy::Policy;
use crate::snapshot::{Snapshot, plan};
use node::Node;

/// Leases outlast reports that are late on purpose.
const LEASE: Duration = Duration::from_millis(300);
/// Turns apart that replicas begin, as far as chance would set them.
const TURNS_APART: u32 = 0x5bd1_e995;

/// Everything.
pub(super) struct World<'a> {
    file: &'a ArrivalsFile,
    nodes: Vec<Node>,
    replicas: Vec<Replica>,
    /// Reports under way: when they are heard, and what they say.
    reports: VecDeque<(u64, LoadReport)>,
    is_table_away: bool,
    /// Viewers on their way, by the step in which they connect.
    coming: BTreeMap<u64, Vec<Viewer>>,
    /// Viewers who came, by rule: thousandths of one, then turns of replicas.
    owed: Vec<u64>,
    asked: usize,
    carriers: BTreeMap<Carrier, ByCarrier>,
    row: Row,
    outcome: Outcome,
}

/// One gslb process.
struct Replica {
    policy: Policy,
    fleet: Fleet,
    snapshot: Snapshot,
}

/// A viewer and the nodes that are left to try.
struct Viewer {
    nodes: [Option<usize>; ADDRESSES_PER_ANSWER],
}

impl<'a> World<'a> {
    pub(super) fn new(fleet: &FleetFile, file: &'a ArrivalsFile) -> Result<Self, Invalid> {
        fleet.check()?;
        file.check(fleet)?;
        let nodes: Vec<Node> = Node::all(fleet, file);
        let late = Duration::from_millis(file.report_ms.max(file.delay_ms));
        let limits = Limits { lease: LEASE.max(3 * late), nodes_max: nodes.len() };
        let replica = |number: u32| Replica {
            policy: Policy {
                replicas: file.replicas,
                first_turn: number.wrapping_mul(TURNS_APART),
                ..fleet.policy.clone()
            },
            fleet: Fleet::new(limits),
            snapshot: Snapshot::default(),
        };
        Ok(Self {
            replicas: (0..file.replicas).map(replica).collect(),
            reports: VecDeque::new(),
            is_table_away: false,
            coming: BTreeMap::new(),
            owed: vec![0; file.arrivals.len()],
            asked: 0,
            carriers: BTreeMap::new(),
            row: Row::default(),
            outcome: Outcome {
                nodes: nodes.len(),
                replicas: file.replicas,
                run_ms: file.run_ms,
                ..Outcome::default()
            },
            nodes,
            file,
        })
    }

    pub(super) fn play(mut self) -> Outcome {
        // Everybody has reported before the first viewer comes.
        for node in &mut self.nodes {
            self.reports.push_back((0, node.report()));
        }
        let mut now = 0;
        while now < self.file.run_ms {
            self.happen(now);
            self.connect(now);
            self.report(now);
            self.plan(now);
            self.arrive(now);
            now += self.file.snapshot_ms;
            if now % self.file.row_ms < self.file.snapshot_ms || now >= self.file.run_ms {
                self.end_row(now);
            }
        }
        self.outcome.spread_permille = node::spread_permille(&self.nodes);
        let overshoots = self.nodes.iter().map(Node::overshoot_permille);
        self.outcome.overshoot_permille = overshoots.max().unwrap_or(0);
        self.outcome.groups = node::by_group(&self.nodes);
        self.outcome.carriers = self.carriers.into_values().collect();
        self.outcome
    }

    fn happen(&mut self, now: u64) {
        let step = now..now + self.file.snapshot_ms;
        for event in self.file.events.iter().filter(|it| step.contains(&it.at_ms)) {
            match event.act {
                Act::TableAway => self.is_table_away = true,
                Act::TableBack => {
                    self.is_table_away = false;
                    self.replicas.iter_mut().for_each(|it| it.fleet.resume(Mono(now)));
                }
                Act::Stop | Act::Start | Act::Drain | Act::Besiege | Act::Relieve => {
                    let named = self.nodes.iter_mut().filter(|it| it.is_of(&event.nodes));
                    let count = if event.count == 0 { usize::MAX } else { event.count as usize };
                    named.take(count).for_each(|it| it.suffer(event.act, now));
                }
            }
        }
    }

    /// Viewers reach their node, or find nobody there and try the next one.
    fn connect(&mut self, now: u64) {
        self.nodes.iter_mut().for_each(|it| it.tick(now, self.file.snapshot_ms));
        while let Some(entry) = self.coming.first_entry() {
            if *entry.key() > now {
                break;
            }
            for Viewer { nodes: [first, rest @ ..] } in entry.remove() {
                let Some(first) = first else {
                    self.outcome.lost += 1;
                    continue;
                };
                if self.nodes[first].connect() {
                    continue;
                }
                let again = Viewer { nodes: [rest[0], rest[1], None] };
                if again.nodes[0].is_some() {
                    self.outcome.tried_again += 1;
                    self.row.tried_again += 1;
                }
                let patience = self.file.patience_ms.max(self.file.snapshot_ms);
                self.coming.entry(now + patience).or_default().push(again);
            }
        }
    }

    fn report(&mut self, now: u64) {
        let due = now + self.file.delay_ms;
        for node in self.nodes.iter_mut().filter(|it| it.is_due(now)) {
            self.reports.push_back((due, node.report()));
        }
    }

    fn plan(&mut self, now: u64) {
        let mono = Mono(now);
        while self.reports.front().is_some_and(|it| it.0 <= now) {
            let Some((_, report)) = self.reports.pop_front() else { break };
            if !self.is_table_away {
                for replica in &mut self.replicas {
                    // Whatever is refused has no effect, as in the gslb itself.
                    replica.fleet.handle(report.clone(), mono).ok();
                }
            }
        }
        for Replica { policy, fleet, snapshot } in &mut self.replicas {
            if !self.is_table_away {
                fleet.tick(mono);
            }
            while fleet.poll().is_some() {}
            *snapshot = plan(fleet, policy, snapshot, mono);
        }
    }

    fn arrive(&mut self, now: u64) {
        let file = self.file;
        let mut viewers = Vec::new();
        for (at, rule) in file.arrivals.iter().enumerate() {
            if !(rule.from_ms..rule.until_ms).contains(&now) {
                continue;
            }
            self.owed[at] += rule.per_s * file.snapshot_ms;
            let come = self.owed[at] / 1000;
            viewers.extend((0..come).filter_map(|_| self.ask(rule)));
            self.owed[at] %= 1000;
        }
        let connect_ms = file.connect_ms.max(file.snapshot_ms);
        self.coming.entry(now + connect_ms).or_default().extend(viewers);
    }

    /// A viewer asks, and gets addresses or none.
    fn ask(&mut self, rule: &Arrivals) -> Option<Viewer> {
        let Arrivals { carrier, .. } = *rule;
        let replica = &self.replicas[self.asked % self.replicas.len()];
        self.asked += 1;
        let region = replica.snapshot.region(&rule.region);
        let request = Request { region, carrier, wants: Wants::default() };
        let nobody = ByCarrier { carrier, arrived: 0, own: 0, elsewhere: 0, refused: 0 };
        let counts = self.carriers.entry(carrier).or_insert(nobody);
        counts.arrived += 1;
        self.row.arrived += 1;
        let Ok(assignment) = replica.snapshot.assign(&request) else {
            counts.refused += 1;
            self.row.refused += 1;
            return None;
        };
        let mut nodes = [None; ADDRESSES_PER_ANSWER];
        for (place, listener) in nodes.iter_mut().zip(assignment.listeners()) {
            *place = Some(node::number(listener.address()));
        }
        let own = assignment.listeners().next().map(|it| it.address().carrier) == Some(carrier);
        counts.own += u64::from(own);
        counts.elsewhere += u64::from(!own);
        if let Some(first) = nodes[0] {
            self.nodes[first].give();
        }
        Some(Viewer { nodes })
    }

    fn end_row(&mut self, now: u64) {
        let mut row = Row { from_ms: now, ..Row::default() };
        std::mem::swap(&mut row, &mut self.row);
        let elapsed = now - row.from_ms;
        for node in &mut self.nodes {
            let (given, permille) = node.end_row(elapsed);
            row.nodes += u64::from(given > 0);
            row.busiest_permille = row.busiest_permille.max(permille);
        }
        self.outcome.rows.push(row);
    }
}
