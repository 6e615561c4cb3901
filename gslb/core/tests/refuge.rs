//! Moves of nodes that are besieged or drain, in virtual time.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use gslb_core::fleet::{Fleet, Output};
use gslb_core::refuge::{Move, Moves, Why};
use proto::address::{Address, Carrier, Transport};
use proto::control::{Fact, MoveShare};
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
    hear(&mut fleet, with(report(4, 1, 1), |it| (it.draining, it.sessions) = (true, 0)));
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
fn sessions_that_fit_nowhere_stay_until_there_is_room() {
    let mut fleet = Fleet::default();
    let mut moves = Moves::default();
    hear(&mut fleet, with(report(2, 1, 1), |it| it.sessions = 1_000));
    hear(&mut fleet, besieged(1, 991));

    // No place, however many in another unit.
    hear(&mut fleet, LoadReport { unit: UnitId(2), ..report(3, 1, 1) });
    let planned = moves.plan(&fleet, Mono(0));
    assert_eq!(told(&planned), [(1, 0, vec![])]);
    assert_eq!((planned[0].sessions, planned[0].staying), (0, 991));
    assert_eq!(moves.plan(&fleet, Mono(4_999)), [], "operators are not told all the time");

    // One place too few.
    hear(&mut fleet, report(2, 1, 2));
    let planned = moves.plan(&fleet, Mono(5_000));
    assert_eq!(told(&planned), [(1, 19_800, vec![2])]);
    assert_eq!((planned[0].sessions, planned[0].staying), (990, 1));
}

#[test]
fn a_node_that_is_too_large_moves_as_many_sessions_as_its_refuges_take_together() {
    let mut fleet = Fleet::default();
    let free = |node, places: u32| {
        let sessions = 1_000 - places;
        with(report(node, 1, 1), |it| (it.sessions, it.handshakes_per_s_max) = (sessions, 1_000))
    };
    hear(&mut fleet, free(2, 1));
    hear(&mut fleet, free(3, 600));
    hear(&mut fleet, free(4, 500));
    let two = free(5, 900);
    let reserve = [&two.reserve[..], &two.reserve[..]].concat();
    hear(&mut fleet, LoadReport { reserve, ..two });
    hear(&mut fleet, besieged(1, 10_000));

    let planned = Moves::default().plan(&fleet, Mono(0));

    // Each address is told to as many: 450 at each of four are more than 500 at each of two.
    assert_eq!(hosts(&planned), [vec![5, 5, 3, 4]]);
    assert_eq!((planned[0].sessions, planned[0].staying), (1_800, 8_200));
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

    // 350 each; then the 650 that one has left, and the 50 of the other.
    assert_eq!(hosts(&planned), [vec![11, 12], vec![11], vec![12]]);
    let staying: Vec<_> = planned.iter().map(|it| (it.sessions, it.staying)).collect();
    assert_eq!(staying, [(700, 0), (650, 50), (50, 650)]);
    assert!(planned.iter().all(|it| it.window_ms == 1_000));
    // They are under way, which the loads do not tell yet.
    assert_eq!(moves.plan(&fleet, Mono(5_999)), []);

    let calm = |it: &mut Load| (it.besieged, it.draining) = (false, true);
    hear(&mut fleet, LoadReport { counter: 2, ..with(besieged(1, 0), calm) });
    hear(&mut fleet, fast(13, 0));
    assert_eq!(hosts(&moves.plan(&fleet, Mono(6_000))), [vec![11, 13, 12], vec![11, 13]]);
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
    assert_eq!(told(&planned), [1, 2, 3].map(|it| (it, 30_000, vec![9])));
    assert_eq!((planned[2].sessions, planned[2].staying), (300, 300));

    // They use them all until the end of their windows.
    hear(&mut fleet, besieged(4, 600));
    assert_eq!(told(&moves.plan(&fleet, Mono(20_000))), [(4, 0, vec![])]);
    assert_eq!(told(&moves.plan(&fleet, Mono(30_000))), [(4, 12_000, vec![9])]);
}

#[test]
fn who_has_not_left_is_told_again_however_often_the_siege_ends() {
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
    assert_eq!(moves.plan(&fleet, Mono(11_999)), [], "those that were told are under way");
    assert_eq!(moves.plan(&fleet, Mono(12_000)).len(), 1);
    hear(&mut fleet, with(report(1, 1, 4), |it| (it.besieged, it.sessions) = (true, 0)));
    assert_eq!(moves.plan(&fleet, Mono(60_000)), []);
}

#[test]
fn what_refuges_promised_outlasts_the_siege() {
    let mut fleet = Fleet::default();
    let mut moves = Moves::default();
    hear(
        &mut fleet,
        with(report(9, 1, 1), |it| (it.sessions, it.handshakes_per_s_max) = (0, 10_000)),
    );
    hear(&mut fleet, besieged(1, 700));
    assert_eq!(moves.plan(&fleet, Mono(0))[0].sessions, 700);

    hear(&mut fleet, LoadReport { reserve: Vec::new(), ..report(1, 1, 2) });
    hear(&mut fleet, besieged(2, 700));
    let planned = moves.plan(&fleet, Mono(100));

    assert_eq!((planned[0].sessions, planned[0].staying), (300, 400));
}

#[test]
fn a_move_that_was_not_told_promises_nothing_and_is_planned_again_in_a_second() {
    let mut fleet = Fleet::default();
    let mut moves = Moves::default();
    hear(&mut fleet, report(9, 1, 1));
    hear(&mut fleet, besieged(1, 990));
    hear(&mut fleet, besieged(2, 990));
    let planned = moves.plan(&fleet, Mono(0));
    assert_eq!(planned.iter().map(|it| it.sessions).collect::<Vec<_>>(), [990, 0]);
    assert_eq!(moves.staying(), 990);

    moves.untold(NodeId(1), Why::Siege, Mono(500));
    moves.untold(NodeId(3), Why::Siege, Mono(500));

    assert_eq!(moves.plan(&fleet, Mono(1_499)), []);
    assert_eq!(told(&moves.plan(&fleet, Mono(1_500))), [(1, 19_800, vec![9])]);
    assert_eq!(moves.staying(), 990);
}

#[test]
fn a_refuge_is_sent_what_it_has_room_for_over_any_transport() {
    let mut fleet = Fleet::default();
    let free = |node, places: u32, transports: &[Transport]| {
        let report = with(report(node, 1, 1), |it| {
            (it.sessions, it.handshakes_per_s_max) = (1_000 - places, 1_000);
        });
        LoadReport { reserve: over(&report, transports), ..report }
    };
    hear(&mut fleet, free(2, 300, &[Transport::Tls, Transport::Wss, Transport::Wss]));
    hear(&mut fleet, free(3, 300, &[Transport::Tls]));
    let both = besieged(1, 1_000);
    let addresses = over(&both, &[Transport::Tls, Transport::Wss]);
    hear(&mut fleet, LoadReport { addresses, ..both });

    // The first gets half of those that speak TLS, and all others. Three in four of all would let
    // 400 go.
    let planned = Moves::default().plan(&fleet, Mono(0));
    assert_eq!((planned[0].sessions, planned[0].staying), (300, 700));

    hear(&mut fleet, LoadReport { counter: 2, ..free(3, 300, &[Transport::Tls, Transport::Wss]) });
    // Two in three of those that speak over a web socket.
    let planned = Moves::default().plan(&fleet, Mono(0));
    assert_eq!((planned[0].sessions, planned[0].staying), (450, 550));
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
    let long = Address {
        host: "h".repeat(HOST_BYTES_MAX),
        port: u16::MAX,
        transport: Transport::National,
        carrier: Carrier::Telecom,
        machine_room: "m".repeat(WORD_BYTES_MAX),
    };
    let national = with(report(1, 1, 1), |it| it.besieged = true);
    hear(&mut fleet, LoadReport { addresses: vec![long.clone()], ..national });
    for node in 2..40 {
        hear(&mut fleet, LoadReport { reserve: vec![long.clone(); 3], ..report(node, 1, 1) });
    }

    let planned = Moves::default().plan(&fleet, Mono(0)).pop().unwrap();

    assert_eq!(planned.addresses.len(), MOVE_ADDRESSES_MAX / 3 * 3);
    let addresses = vec![long; MOVE_ADDRESSES_MAX];
    let (sessions, window_ms) = (Some(u32::MAX), 30_000);
    let (at, drain) = (Wall(u64::MAX), Some(Wall(u64::MAX)));
    let share = MoveShare { node: NodeId(u32::MAX), sessions: u32::MAX };
    let shares = vec![share; MOVE_ADDRESSES_MAX];
    let node = NodeId(u32::MAX);
    let fact = Fact::Move { node, sessions, window_ms, addresses, at, drain, shares };
    assert!(fact.encode().len() <= FACT_BYTES_MAX);
    assert_eq!(Fact::decode(&fact.encode()), Ok(fact));
}

#[test]
fn a_move_without_addresses_is_understood() {
    let old = br#"{"fact":"move","node":7,"window_ms":500}"#;

    let fact = Fact::decode(old).unwrap();

    let addresses = Vec::new();
    let (node, sessions, at, shares) = (NodeId(7), None, Wall(0), Vec::new());
    let window_ms = 500;
    assert_eq!(fact, Fact::Move { node, sessions, window_ms, addresses, at, drain: None, shares });
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

/// Addresses like a node's reserve, over these transports.
fn over(report: &LoadReport, transports: &[Transport]) -> Vec<Address> {
    let address = |it: &Transport| Address { transport: *it, ..report.reserve[0].clone() };
    transports.iter().map(address).collect()
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
