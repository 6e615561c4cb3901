//! Moves of besieged nodes, in virtual time.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use gslb_core::fleet::{Fleet, Output};
use gslb_core::refuge::{Move, Moves};
use proto::address::{Address, Carrier, Transport};
use proto::control::Fact;
use proto::id::{NodeId, UnitId};
use proto::limits::{FACT_BYTES_MAX, HOST_BYTES_MAX, MOVE_ADDRESSES_MAX, WORD_BYTES_MAX};
use proto::load::{Load, LoadReport};
use proto::time::{Mono, Wall};

#[test]
fn a_siege_is_told_once_and_its_sessions_move_to_reserves_of_their_unit_alone() {
    let mut fleet = Fleet::default();
    let mut moves = Moves::default();
    hear(&mut fleet, report(1, 1, 1));
    hear(&mut fleet, LoadReport { unit: UnitId(2), ..report(2, 1, 1) });
    hear(&mut fleet, LoadReport { reserve: Vec::new(), ..report(3, 1, 1) });
    hear(&mut fleet, with(report(4, 1, 1), |it| it.draining = true));
    hear(&mut fleet, with(report(5, 1, 1), |it| it.sessions = 50));
    hear(&mut fleet, report(6, 1, 1));
    assert_eq!(moves.plan(&fleet, Mono(0)), []);

    hear(&mut fleet, with(report(1, 1, 2), |it| it.besieged = true));
    hear(&mut fleet, with(report(1, 1, 3), |it| it.besieged = true));
    let planned = moves.plan(&fleet, Mono(0));

    let told: Vec<_> = std::iter::from_fn(|| fleet.poll()).collect();
    assert_eq!(told.iter().filter(|it| **it == Output::Besieged(NodeId(1))).count(), 1);
    assert_eq!(planned.len(), 1);
    let hosts: Vec<_> = planned[0].addresses.iter().map(|it| it.host.as_str()).collect();
    assert_eq!((planned[0].node, hosts), (NodeId(1), vec!["reserve-6", "reserve-5"]));
}

#[test]
fn the_window_is_as_long_as_the_others_need_for_half_of_their_logins() {
    let window = |sessions| {
        let mut fleet = Fleet::default();
        hear(&mut fleet, report(2, 1, 1));
        hear(&mut fleet, report(3, 1, 1));
        let besieged = |it: &mut Load| (it.besieged, it.sessions) = (true, sessions);
        hear(&mut fleet, with(report(1, 1, 1), besieged));
        Moves::default().plan(&fleet, Mono(0))[0].window_ms
    };

    // 2 × 100 logins a second, half of them for this.
    assert_eq!(window(500), 5_000);
    assert_eq!(window(1), 1_000);
    assert_eq!(window(1_900), 19_000);
}

#[test]
fn a_node_whose_sessions_fit_nowhere_keeps_them_until_there_is_room() {
    let mut fleet = Fleet::default();
    let mut moves = Moves::default();
    hear(&mut fleet, report(2, 1, 1));
    hear(&mut fleet, besieged(1, 991));

    // One place too few, however many in another unit.
    hear(&mut fleet, LoadReport { unit: UnitId(2), ..report(3, 1, 1) });
    assert_eq!(told(&moves.plan(&fleet, Mono(0))), [(1, 0, vec![])]);
    assert_eq!(moves.plan(&fleet, Mono(4_999)), [], "operators are not told all the time");

    hear(&mut fleet, with(report(2, 1, 2), |it| it.sessions = 9));
    let planned = moves.plan(&fleet, Mono(5_000));
    assert_eq!(told(&planned), [(1, 19_820, vec![2])]);
}

#[test]
fn all_besieged_nodes_together_get_the_places_that_there_are() {
    let mut fleet = Fleet::default();
    let mut moves = Moves::default();
    let fast = |node, sessions| {
        with(report(node, 1, 1), |it| (it.handshakes_per_s_max, it.sessions) = (10_000, sessions))
    };
    hear(&mut fleet, fast(11, 0));
    hear(&mut fleet, fast(12, 600));
    for node in 1..=3 {
        hear(&mut fleet, besieged(node, 700));
    }

    let planned = moves.plan(&fleet, Mono(0));

    // 350 each; then 700 in the 650 that one has left and the 50 of the other.
    assert_eq!(hosts(&planned), [vec![11, 12], vec![], vec![]]);
    assert_eq!(planned[0].window_ms, 1_000);

    // Those of the first are under way, which the loads do not tell yet.
    assert_eq!(hosts(&moves.plan(&fleet, Mono(5_000))), [vec![], vec![]] as [Vec<u32>; 2]);

    let calm = |it: &mut Load| (it.besieged, it.draining) = (false, true);
    hear(&mut fleet, LoadReport { counter: 2, ..with(besieged(1, 0), calm) });
    hear(&mut fleet, fast(13, 0));
    assert_eq!(hosts(&moves.plan(&fleet, Mono(10_000))), [vec![11, 13, 12], vec![11, 13]]);
}

#[test]
fn all_besieged_nodes_together_get_half_of_the_logins() {
    let mut fleet = Fleet::default();
    let mut moves = Moves::default();
    hear(&mut fleet, with(report(9, 1, 1), |it| it.sessions_max = 100_000));
    for node in 1..=3 {
        hear(&mut fleet, besieged(node, 600));
    }

    // 50 logins a second, in 30 seconds at most.
    let planned = moves.plan(&fleet, Mono(0));
    assert_eq!(told(&planned), [(1, 24_000, vec![9]), (2, 24_000, vec![9]), (3, 0, vec![])]);

    // They use them all until the end of their windows.
    assert_eq!(told(&moves.plan(&fleet, Mono(20_000))), [(3, 0, vec![])]);
    assert_eq!(told(&moves.plan(&fleet, Mono(25_000))), [(3, 12_000, vec![9])]);
}

#[test]
fn who_has_not_left_is_told_again_and_a_new_siege_at_once() {
    let mut fleet = Fleet::default();
    let mut moves = Moves::default();
    hear(&mut fleet, report(2, 1, 1));
    hear(&mut fleet, with(report(1, 1, 1), |it| it.besieged = true));
    assert_eq!(moves.plan(&fleet, Mono(0)).len(), 1);

    assert_eq!(moves.plan(&fleet, Mono(5_999)), []);
    assert_eq!(moves.plan(&fleet, Mono(6_000)).len(), 1);
    hear(&mut fleet, report(1, 1, 2));
    assert_eq!(moves.plan(&fleet, Mono(6_100)), []);
    hear(&mut fleet, with(report(1, 1, 3), |it| it.besieged = true));
    assert_eq!(moves.plan(&fleet, Mono(6_200)).len(), 1);
    hear(&mut fleet, with(report(1, 1, 4), |it| (it.besieged, it.sessions) = (true, 0)));
    assert_eq!(moves.plan(&fleet, Mono(60_000)), []);
}

#[test]
fn a_silent_node_is_besieged_no_more() {
    let mut fleet = Fleet::default();
    hear(&mut fleet, with(report(1, 1, 1), |it| it.besieged = true));
    assert_eq!(fleet.besieged().len(), 1);

    fleet.tick(Mono(300));

    assert!(fleet.besieged().is_empty());
}

#[test]
fn as_many_addresses_as_are_told_fit_a_fact() {
    let mut fleet = Fleet::default();
    hear(&mut fleet, with(report(1, 1, 1), |it| it.besieged = true));
    let long = Address {
        host: "h".repeat(HOST_BYTES_MAX),
        port: u16::MAX,
        transport: Transport::National,
        carrier: Carrier::Telecom,
        machine_room: "m".repeat(WORD_BYTES_MAX),
    };
    for node in 2..40 {
        hear(&mut fleet, LoadReport { reserve: vec![long.clone(); 3], ..report(node, 1, 1) });
    }

    let planned = Moves::default().plan(&fleet, Mono(0)).pop().unwrap();

    assert_eq!(planned.addresses.len(), MOVE_ADDRESSES_MAX / 3 * 3);
    let addresses = vec![long; MOVE_ADDRESSES_MAX];
    let fact = Fact::Move { node: NodeId(1), window_ms: 30_000, addresses, at: Wall(u64::MAX) };
    assert!(fact.encode().len() <= FACT_BYTES_MAX);
    assert_eq!(Fact::decode(&fact.encode()), Ok(fact));
}

#[test]
fn a_move_without_addresses_is_understood() {
    let old = br#"{"fact":"move","node":7,"window_ms":500}"#;

    let fact = Fact::decode(old).unwrap();

    let addresses = Vec::new();
    assert_eq!(fact, Fact::Move { node: NodeId(7), window_ms: 500, addresses, at: Wall(0) });
}

/// By besieged node: its window, and the nodes that take its sessions in.
fn told(moves: &[Move]) -> Vec<(u32, u32, Vec<u32>)> {
    let one = |(it, hosts): (&Move, _)| (it.node.0, it.window_ms, hosts);
    moves.iter().zip(hosts(moves)).map(one).collect()
}

fn hosts(moves: &[Move]) -> Vec<Vec<u32>> {
    let number = |it: &Address| it.host.strip_prefix("reserve-").unwrap().parse().unwrap();
    moves.iter().map(|it| it.addresses.iter().map(number).collect()).collect()
}

fn besieged(node: u32, sessions: u32) -> LoadReport {
    with(report(node, 1, 1), |it| (it.besieged, it.sessions) = (true, sessions))
}

fn hear(fleet: &mut Fleet, report: LoadReport) {
    fleet.handle(report, Mono(0)).unwrap();
}

fn with(mut report: LoadReport, change: impl FnOnce(&mut Load)) -> LoadReport {
    change(&mut report.load);
    report
}

/// A node with a reserve address, 10 sessions of 1,000, and 100 logins a second.
fn report(node: u32, unit: u16, counter: u64) -> LoadReport {
    let address = |host: String| Address {
        host,
        port: 443,
        transport: Transport::Tls,
        carrier: Carrier::Bgp,
        machine_room: String::new(),
    };
    LoadReport {
        node: NodeId(node),
        unit: UnitId(unit),
        region: "north".to_owned(),
        counter,
        start: Wall(0),
        addresses: vec![address(format!("link-{node}"))],
        reserve: vec![address(format!("reserve-{node}"))],
        load: Load {
            sessions: 10,
            sessions_max: 1_000,
            handshakes_per_s_max: 100,
            ..Load::default()
        },
    }
}
