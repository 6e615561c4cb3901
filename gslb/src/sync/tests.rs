//! The reader of the load table and the packer of a collector together, in virtual time.

mod nodes;

use std::collections::BTreeSet;

use auth_core::node::{NodeRole, NodeSecret};
use auth_core::policy::Policies;
use auth_core::secret::Secret;
use auth_core::ticket::TicketKeys;
use gslb_core::assign::{Request, Wants};
use gslb_core::fleet::Heard;
use gslb_core::listener::Listener;
use proto::address::{Address, Carrier, Transport};
use proto::id::{NodeId, UnitId};
use proto::load::{Load, LoadReport};
use proto::time::Wall;

use super::*;
use crate::collector::{Packer, Unheard};
use crate::table::{Fault, FaultyTable, MemoryTable};

/// Nodes report so often, each at a time of its own.
const REPORT_MS: u64 = 100;
const LEASE_MS: u64 = 300;

#[tokio::test]
async fn while_the_table_is_away_answers_go_on_and_nobody_leaves() {
    for (fault, away_ms) in [
        (Fault::Away, 100),
        (Fault::Away, 1_000),
        (Fault::Stale, 1_000),
        (Fault::Away, 12_000),
        (Fault::Stale, 12_000),
    ] {
        let mut scene = Scene::new(&[1, 2, 3]);
        scene.play(1_000).await;
        assert_eq!(scene.answered(), BTreeSet::from([1, 2, 3]));

        scene.table.set(fault);
        let until = scene.now + Duration::from_millis(away_ms);
        while scene.now < until {
            scene.play(50).await;
            assert_eq!(scene.live(), 3, "{fault:?} for {away_ms} ms, at {:?}", scene.now);
            assert!(!scene.answered().is_empty(), "{fault:?} for {away_ms} ms");
        }

        scene.table.set(Fault::None);
        for _ in 0..20 {
            scene.play(50).await;
            assert_eq!(scene.live(), 3, "{fault:?} for {away_ms} ms, back at {:?}", scene.now);
        }
        assert_eq!(scene.answered(), BTreeSet::from([1, 2, 3]));
    }
}

#[tokio::test]
async fn a_table_that_does_not_answer_is_as_good_as_away() {
    let mut scene = Scene::new(&[1, 2]);
    scene.play(500).await;

    scene.table.set(Fault::Silent);
    scene.now = scene.now + Duration::from_secs(1);
    scene.syncs[0].turn(scene.now).await;

    assert_eq!(scene.live(), 2);
    assert!(!scene.answered().is_empty());
}

#[tokio::test]
async fn who_died_while_the_table_was_away_leaves_within_a_lease_of_its_return() {
    let mut scene = Scene::new(&[1, 2, 3]);
    scene.play(1_000).await;
    scene.table.set(Fault::Away);
    scene.play(400).await;
    scene.nodes.remove(&2);
    scene.play(1_000).await;
    assert_eq!(scene.live(), 3);

    scene.table.set(Fault::None);
    scene.play(LEASE_MS + 5).await;

    assert_eq!(scene.live(), 2);
    assert_eq!(scene.answered(), BTreeSet::from([1, 3]));
}

#[tokio::test]
async fn a_new_collector_that_has_not_heard_everybody_yet_drops_nobody() {
    let mut scene = Scene::new(&[1, 2, 3, 4, 5, 6, 7, 8]);
    scene.play(1_000).await;
    scene.table.set(Fault::Stale);
    scene.play(250).await;
    scene.packer = packer(scene.now);
    scene.table.set(Fault::None);

    for _ in 0..100 {
        scene.play(5).await;
        assert_eq!(scene.live(), 8, "at {:?}", scene.now);
    }
}

#[tokio::test]
async fn loads_that_mean_nothing_any_more_spread_viewers_evenly_at_half_the_speed() {
    let mut scene = Scene::new(&[1, 2]);
    scene.load = |node, load| load.sessions = if node == 1 { 900 } else { 0 };
    scene.play(1_000).await;
    let fresh = scene.shared(100).await;
    assert!(fresh[0] * 3 < fresh[1], "{fresh:?}");

    scene.table.set(Fault::Away);
    scene.play(11_000).await;
    let stale = scene.shared(100).await;
    let most = scene.given_in(1_000).await;

    assert!(stale[0].abs_diff(stale[1]) <= 2, "{stale:?}");
    // 100 logins a second each, half of them, and one burst.
    assert!((95..=110).contains(&(most[0] + most[1])), "{most:?}");
}

#[tokio::test]
async fn operators_are_told_of_the_silence_and_the_process_stays_ready() {
    let mut scene = Scene::new(&[1]);
    scene.play(200).await;
    assert_eq!(scene.warning(), None);

    scene.table.set(Fault::Stale);
    scene.play(350).await;
    assert!(scene.warning().is_some_and(|it| it.contains("less and less")));
    assert!(scene.health.failures().is_empty());
    scene.play(10_000).await;
    assert!(scene.warning().is_some_and(|it| it.contains("by capacity alone")));
    let silence = scene.meter.gauge(list::GSLB_TABLE_SILENCE_MILLISECONDS, &[]).get();
    assert!((10_250..=10_450).contains(&silence), "{silence}");

    scene.table.set(Fault::None);
    scene.play(105).await;
    assert_eq!(scene.warning(), None);
}

#[test]
fn reports_that_are_lost_on_their_way_are_counted() {
    let mut packer = packer(Mono(0));
    let mut hear = |counter, now| hear(&mut packer, &report(1, counter), Mono(now)).unwrap();
    hear(1, 0);
    hear(2, 5);
    hear(5, 10);

    assert_eq!(packer.take_lost(), 2);
    assert_eq!(packer.take_lost(), 0);
}

#[test]
fn a_value_with_a_new_node_is_read_as_a_whole_and_the_next_by_its_numbers() {
    let mut scene = Scene::new(&[1]);
    let mut now = Mono(10_000);
    let mut packer = packer(now);
    for (node, counter) in [(1, 1), (2, 1), (1, 2), (2, 2), (1, 3)] {
        now = now + Duration::from_millis(5);
        hear(&mut packer, &report(node, counter), now).unwrap();
        let values = packer.pack(now, Wall(now.0)).unwrap();

        assert!(scene.syncs[0].read(values.clone(), now));
        assert!(!scene.syncs[0].read(values, now));
    }

    assert_eq!(scene.syncs[0].fleet.len(), 2);
    assert_eq!(scene.syncs[0].fleet.deadline(), Some(Mono(10_020 + LEASE_MS)));
}

struct Scene {
    now: Mono,
    table: Arc<FaultyTable>,
    packer: Packer,
    syncs: Vec<Sync>,
    nodes: BTreeSet<u32>,
    load: fn(u32, &mut Load),
    counter: u64,
    health: Health,
    meter: Meter,
}

impl Scene {
    fn new(nodes: &[u32]) -> Self {
        Self::of(nodes, 1)
    }

    fn of(nodes: &[u32], replicas: u32) -> Self {
        let table = FaultyTable::new(MemoryTable::new());
        let (health, meter, clock) = (Health::default(), Meter::new(), Clock::system());
        let sync = |no: u32| {
            let config = Config { lease_ms: 300, ..Config::default() };
            let first_turn = no.wrapping_mul(0x5bd1_e995);
            let policy = Policy { replicas, first_turn, ..config.policy.clone() };
            let found = Found {
                table: Arc::clone(&table) as Arc<dyn LoadTable>,
                known: Arc::new(known()),
                clock: clock.clone(),
                carriers: &Carriers::default(),
                health: &health,
                meter: &meter,
            };
            Sync::new(&config, policy, found)
        };
        Self {
            now: Mono(10_000),
            syncs: (0..replicas).map(sync).collect(),
            packer: packer(Mono(10_000)),
            nodes: nodes.iter().copied().collect(),
            load: |_, _| {},
            counter: 0,
            table,
            health,
            meter,
        }
    }

    /// Lets time pass, in the steps of the collector and of the readers.
    async fn play(&mut self, ms: u64) {
        for _ in 0..ms / 5 {
            self.now = self.now + Duration::from_millis(5);
            for node in self.nodes.clone() {
                if self.now.0 % REPORT_MS == u64::from(node) * 35 % REPORT_MS {
                    let report = self.report(node);
                    hear(&mut self.packer, &report, self.now).ok();
                }
            }
            self.put(self.now).await;
            for sync in &mut self.syncs {
                sync.turn(self.now).await;
            }
        }
    }

    async fn put(&mut self, now: Mono) {
        if let Some(values) = self.packer.pack(now, Wall(now.0)) {
            self.table.put(values).await.ok();
        }
    }

    fn report(&mut self, node: u32) -> LoadReport {
        self.counter += 1;
        let mut report = report(node, self.counter);
        (self.load)(node, &mut report.load);
        report
    }

    fn live(&self) -> usize {
        self.syncs[0].known.sight().snapshot.nodes()
    }

    /// Nodes that viewers are sent to first.
    fn answered(&self) -> BTreeSet<u32> {
        (0..20).filter_map(|_| first(&self.syncs[0])).collect()
    }

    /// How so many viewers are shared out who come one by one.
    async fn shared(&mut self, viewers: u32) -> Vec<u32> {
        let mut given = vec![0; self.nodes.len()];
        for _ in 0..viewers {
            if let Some(node) = first(&self.syncs[0]) {
                given[node as usize - 1] += 1;
            }
            self.play(20).await;
        }
        given
    }

    /// Viewers given to each node, if there are more than all can take.
    async fn given_in(&mut self, ms: u64) -> Vec<u32> {
        let mut given = vec![0; self.nodes.len()];
        for _ in 0..ms / 5 {
            for sync in &self.syncs {
                while let Some(node) = first(sync) {
                    given[node as usize - 1] += 1;
                }
            }
            self.play(5).await;
        }
        given
    }

    fn warning(&self) -> Option<String> {
        let warnings = self.health.warnings();
        warnings.into_iter().find(|it| it.0 == "gslb.table").map(|it| it.1)
    }
}

fn first(sync: &Sync) -> Option<u32> {
    let sight = sync.known.sight();
    let snapshot = &sight.snapshot;
    let region = snapshot.region("local");
    let request = Request { region, carrier: Carrier::Bgp, wants: Wants::default() };
    let assignment = snapshot.assign(&request).ok()?;
    let number = |it: &Listener| u32::from(it.address().port);
    assignment.listeners().next().map(number)
}

fn known() -> Known {
    let tickets = TicketKeys::new(&[], &BTreeMap::new(), None).unwrap();
    Known::new(tickets, Policies::default(), 1)
}

fn packer(now: Mono) -> Packer {
    let config = Config { lease_ms: 300, ..Config::default() };
    Packer::new(config.fleet(), Duration::from_millis(config.collector.idle_ms.into()), now)
}

fn hear(packer: &mut Packer, report: &LoadReport, now: Mono) -> Result<Heard, Unheard> {
    let node = NodeSecret {
        node: report.node,
        role: NodeRole::Link,
        secret: Secret::new(String::new()),
        unit: report.unit,
        hosts: report.addresses.iter().map(|it| it.host.clone()).collect(),
    };
    packer.hear(&report.encode(), &node, now)
}

/// A node with 1,000 places and 100 logins a second; its port is its number.
fn report(node: u32, counter: u64) -> LoadReport {
    LoadReport {
        node: NodeId(node),
        unit: UnitId(1),
        region: "local".to_owned(),
        counter,
        start: Wall(1),
        addresses: vec![Address {
            host: format!("link-{node}.example"),
            port: u16::try_from(node).unwrap(),
            transport: Transport::Tls,
            carrier: Carrier::Bgp,
            machine_room: String::new(),
        }],
        reserve: Vec::new(),
        load: Load { sessions_max: 1_000, handshakes_per_s_max: 100, ..Load::default() },
    }
}
