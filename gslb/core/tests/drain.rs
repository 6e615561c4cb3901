//! Where the sessions of nodes that drain go on.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::time::Duration;

use gslb_core::fleet::Fleet;
use gslb_core::refuge::{Heard, Move, Moves, Why};
use proptest::prelude::*;
use proto::address::{Address, Carrier, Transport};
use proto::control::Fact;
use proto::id::{NodeId, UnitId};
use proto::limits::MOVE_ADDRESSES_MAX;
use proto::load::{Load, LoadReport};
use proto::time::{Mono, Wall};

const START: Wall = Wall(5);
const DRAIN: Why = Why::Drain { start: START };

#[test]
fn a_node_that_drains_is_told_once_the_published_addresses_of_its_unit() {
    let mut fleet = Fleet::default();
    let mut moves = Moves::default();
    hear(&mut fleet, node(1, |it| it.load.draining = true));
    hear(&mut fleet, node(2, |_| {}));
    hear(&mut fleet, node(3, |it| it.unit = UnitId(2)));
    hear(&mut fleet, node(4, |it| it.load.draining = true));
    hear(&mut fleet, node(5, |it| it.load.besieged = true));
    hear(&mut fleet, node(6, |it| it.load.sessions = 1_000));
    hear(&mut fleet, node(7, |it| it.region = "south".to_owned()));

    let planned = moves.plan(&fleet, Mono(0));

    let draining: Vec<_> = planned.iter().filter(|it| it.why == DRAIN).collect();
    let told: Vec<_> = draining.iter().map(|it| (it.node.0, hosts(it))).collect();
    assert_eq!(told, [(1, vec!["link-2"]), (4, vec!["link-2"])], "its region has room");
    assert!(draining.iter().all(|it| it.staying == 0));
    let later = moves.plan(&fleet, Mono(600_000));
    assert!(later.iter().all(|it| it.why == Why::Siege), "{later:?}");
}

#[test]
fn other_regions_take_in_what_the_own_one_has_no_room_for() {
    let mut fleet = Fleet::default();
    hear(&mut fleet, node(2, |it| it.load.handshakes_per_s_max = 10_000));
    let south = |it: &mut LoadReport| {
        (it.region, it.load.handshakes_per_s_max) = ("south".to_owned(), 10_000);
    };
    hear(&mut fleet, node(7, south));
    let draining = |sessions, counter| {
        let load = |it: &mut LoadReport| (it.load.draining, it.load.sessions) = (true, sessions);
        LoadReport { counter, ..node(1, load) }
    };

    hear(&mut fleet, draining(990, 1));
    assert_eq!(hosts(&Moves::default().plan(&fleet, Mono(0))[0]), ["link-2"]);

    hear(&mut fleet, draining(991, 2));
    let planned = Moves::default().plan(&fleet, Mono(0));
    assert_eq!(hosts(&planned[0]), ["link-2", "link-7"]);
    assert_eq!(planned[0].staying, 0);
}

#[test]
fn each_life_of_a_node_is_told_where_its_sessions_go_on() {
    let mut fleet = Fleet::default();
    let mut moves = Moves::default();
    hear(&mut fleet, node(2, |_| {}));
    hear(&mut fleet, node(1, |it| it.load.draining = true));
    assert_eq!(moves.plan(&fleet, Mono(0)).len(), 1);

    hear(&mut fleet, node(1, |it| it.start = Wall(6)));
    assert_eq!(moves.plan(&fleet, Mono(100)), []);
    hear(&mut fleet, node(1, |it| (it.start, it.load.draining) = (Wall(7), true)));

    let planned = moves.plan(&fleet, Mono(200));
    assert_eq!(planned[0].why, Why::Drain { start: Wall(7) });
    assert_eq!(moves.plan(&fleet, Mono(600_000)), []);
}

#[test]
fn sieges_and_drains_share_what_the_others_have_left() {
    let mut fleet = Fleet::default();
    let mut moves = Moves::default();
    let roomy = |it: &mut LoadReport| {
        (it.load.sessions, it.load.handshakes_per_s_max) = (0, 10_000);
        it.reserve = vec![address("reserve", Transport::Tls, Carrier::Bgp)];
    };
    hear(&mut fleet, node(9, roomy));
    hear(&mut fleet, node(1, |it| (it.load.draining, it.load.sessions) = (true, 700)));
    hear(&mut fleet, node(2, |it| (it.load.besieged, it.load.sessions) = (true, 600)));

    let planned = moves.plan(&fleet, Mono(0));

    let told: Vec<_> = planned.iter().map(|it| (hosts(it), it.sessions, it.staying)).collect();
    assert_eq!(told, [(vec!["reserve"], 600, 0), (vec!["link-9"], 400, 300)]);
    assert_eq!(moves.staying(), 0, "who does not fit asks enter");

    hear(&mut fleet, node(3, |it| (it.load.draining, it.load.sessions) = (true, 10)));
    assert_eq!(moves.plan(&fleet, Mono(1_000))[0].sessions, 0, "all of it is promised");
}

#[test]
fn a_besieged_node_that_drains_is_told_where_those_that_are_left_go_on() {
    let mut fleet = Fleet::default();
    let mut moves = Moves::default();
    let roomy = |it: &mut LoadReport| {
        (it.load.sessions, it.load.handshakes_per_s_max) = (0, 10_000);
        it.reserve = vec![address("reserve", Transport::Tls, Carrier::Bgp)];
    };
    hear(&mut fleet, node(9, roomy));
    let besieged = |draining, counter| {
        let load = move |it: &mut LoadReport| {
            (it.load.besieged, it.load.draining, it.load.sessions) = (true, draining, 700);
        };
        LoadReport { counter, ..node(1, load) }
    };
    hear(&mut fleet, besieged(false, 1));
    assert_eq!(moves.plan(&fleet, Mono(0))[0].why, Why::Siege);

    hear(&mut fleet, besieged(true, 2));

    let planned = moves.plan(&fleet, Mono(100));
    assert_eq!((planned[0].why, planned[0].sessions, planned.len()), (DRAIN, 700, 1));
    assert_eq!(hosts(&planned[0]), ["link-9"]);
    assert_eq!(moves.plan(&fleet, Mono(600_000)), []);
}

#[test]
fn a_node_that_could_not_be_told_is_told_in_a_second() {
    let mut fleet = Fleet::default();
    let mut moves = Moves::default();
    hear(&mut fleet, node(2, |_| {}));
    hear(&mut fleet, node(1, |it| it.load.draining = true));
    moves.plan(&fleet, Mono(0));

    moves.untold(NodeId(1), DRAIN, Mono(0));

    assert_eq!(moves.plan(&fleet, Mono(999)), []);
    assert_eq!(moves.plan(&fleet, Mono(1_000)).len(), 1);
}

#[test]
fn addresses_that_no_session_can_use_are_not_told() {
    let mut fleet = Fleet::default();
    let spoken = |transports: &'static [Transport]| {
        move |it: &mut LoadReport| {
            let address = |it: &Transport| address(it.name(), *it, Carrier::Bgp);
            it.addresses = transports.iter().map(address).collect();
        }
    };
    hear(&mut fleet, node(2, spoken(&[Transport::Wss, Transport::Tls, Transport::Quic])));
    hear(&mut fleet, node(3, spoken(&[Transport::Ws])));
    let tls_and_quic = spoken(&[Transport::Tls, Transport::Quic]);
    hear(
        &mut fleet,
        node(1, |it| {
            tls_and_quic(it);
            it.load.draining = true;
        }),
    );

    let planned = Moves::default().plan(&fleet, Mono(0));

    assert_eq!(hosts(&planned[0]), ["tls", "quic"]);
}

#[test]
fn sessions_of_a_carrier_are_counted_where_they_go_first() {
    let mut fleet = Fleet::default();
    let on = |host: &'static str, carriers: &'static [Carrier], places: u32| {
        move |it: &mut LoadReport| {
            it.addresses = carriers.iter().map(|it| address(host, Transport::Tls, *it)).collect();
            it.load.sessions_max = it.load.sessions + places;
            it.load.handshakes_per_s_max = 10_000;
        }
    };
    hear(&mut fleet, node(2, on("telecom", &[Carrier::Telecom], 100)));
    hear(&mut fleet, node(3, on("bgp", &[Carrier::Bgp], 1_000)));
    let draining = |carriers| {
        node(1, move |it| {
            on("own", carriers, 0)(it);
            (it.load.draining, it.load.sessions) = (true, 500);
        })
    };

    // All may have come by the one carrier, and would go to the smaller node first.
    hear(&mut fleet, draining(&[Carrier::Telecom, Carrier::Bgp]));
    let planned = Moves::default().plan(&fleet, Mono(0));
    assert_eq!((hosts(&planned[0]), planned[0].sessions), (vec!["bgp"], 500));

    // Those of another carrier go where everybody may.
    hear(&mut fleet, LoadReport { counter: 2, ..draining(&[Carrier::Mobile]) });
    let planned = Moves::default().plan(&fleet, Mono(0));
    assert_eq!((hosts(&planned[0]), planned[0].sessions), (vec!["bgp"], 500));
}

#[test]
fn promises_that_were_read_back_hold_as_long_as_those_that_were_made() {
    let mut fleet = Fleet::default();
    hear(&mut fleet, node(9, |it| it.load.handshakes_per_s_max = 10_000));
    hear(&mut fleet, node(1, |it| (it.load.draining, it.load.sessions) = (true, 600)));
    let told = Moves::default().plan(&fleet, Mono(0)).remove(0);
    let fact = fact(&told, Wall(100_000));
    let second = |moves: &mut Moves, now| {
        let mut fleet = Fleet::default();
        let report = |it: &mut LoadReport| it.load.handshakes_per_s_max = 10_000;
        fleet.handle(node(9, report), now).unwrap();
        let draining = |it: &mut LoadReport| (it.load.draining, it.load.sessions) = (true, 600);
        fleet.handle(node(2, draining), now).unwrap();
        moves.plan(&fleet, now)[0].sessions
    };
    let window = Duration::from_millis(told.window_ms.into());

    let mut next = Moves::default();
    next.hear(&fact, Mono(7_000), Heard::ReadBack(Wall(100_500)));
    assert_eq!(second(&mut next, Mono(7_000)), 390, "of 990 places, 600 are promised");
    let mut late = Moves::default();
    let end = Wall(100_000) + window + Duration::from_secs(5);
    late.hear(&fact, Mono(7_000), Heard::ReadBack(end));
    assert_eq!(second(&mut late, Mono(7_000)), 600, "all have arrived");

    let mut live = Moves::default();
    live.hear(&fact, Mono(7_000), Heard::Live);
    assert_eq!(second(&mut live, Mono(7_000)), 390, "whatever the clock of the other gslb says");

    let mut same = Moves::default();
    same.hear(&fact, Mono(0), Heard::Live);
    assert_eq!(same.plan(&fleet, Mono(0)), [], "the node was told");
}

proptest! {
    /// Whoever is chosen is a live node of the same unit that is neither besieged nor drains, and
    /// gets no more sessions than it has places for, however many nodes leave at once.
    #[test]
    fn nobody_is_sent_more_than_there_is_room_for(
        nodes in proptest::collection::vec(any_node(), 1..12),
        later in proptest::collection::vec(any_node(), 0..6),
    ) {
        let mut fleet = Fleet::default();
        let mut moves = Moves::default();
        let mut planned = Vec::new();
        for (number, wave) in (0_u32..).zip([nodes, later]) {
            for (node, report) in (number * 100..).zip(wave) {
                let report = LoadReport { node: NodeId(node), ..report };
                hear(&mut fleet, report);
            }
            let now = Mono(u64::from(number) * 100);
            planned.extend(moves.plan(&fleet, now));
        }
        let reports: BTreeMap<_, _> =
            fleet.by_region().flat_map(|(_, it)| it).map(|it| (it, report(&fleet, it))).collect();

        let mut taken: BTreeMap<NodeId, u64> = BTreeMap::new();
        for it in &planned {
            prop_assert!(it.addresses.len() <= MOVE_ADDRESSES_MAX);
            prop_assert_eq!(it.sessions + it.staying, reports[&it.node].load.sessions);
            for share in &it.shares {
                let (from, to) = (&reports[&it.node], &reports[&share.node]);
                prop_assert_eq!(from.unit, to.unit);
                prop_assert!(!to.load.besieged && !to.load.draining);
                *taken.entry(share.node).or_default() += u64::from(share.sessions);
            }
            let all = it.shares.iter().flat_map(|it| {
                reports[&it.node].addresses.iter().chain(&reports[&it.node].reserve)
            });
            let all: Vec<_> = all.collect();
            prop_assert!(it.addresses.iter().all(|it| all.contains(&it)));
            let is_published = |address: &Address| address.host.starts_with("link");
            prop_assert!(it.addresses.iter().all(|own| is_published(own) == (it.why == DRAIN)));
            let shared: u64 = it.shares.iter().map(|it| u64::from(it.sessions)).sum();
            prop_assert!(shared >= u64::from(it.sessions));
        }
        for (node, sessions) in taken {
            let load = reports[&node].load;
            prop_assert!(sessions <= u64::from(load.sessions_max - load.sessions), "{}", node);
        }
    }
}

fn any_node() -> impl Strategy<Value = LoadReport> {
    let carriers = [Carrier::Bgp, Carrier::Telecom, Carrier::Mobile];
    let address = (0_usize..3, prop_oneof![Just(Transport::Tls), Just(Transport::Wss)])
        .prop_map(move |(carrier, transport)| address("link", transport, carriers[carrier]));
    let addresses = proptest::collection::vec(address, 1..9);
    let numbers = (0_u32..1_000, 1_u32..3_000, 1_u16..3, 0_u8..6);
    (addresses, numbers).prop_map(|(addresses, (free, rate, unit, state))| {
        node(0, |it| {
            it.reserve = addresses.clone();
            it.reserve.iter_mut().for_each(|it| it.host = "reserve".to_owned());
            (it.addresses, it.unit) = (addresses, UnitId(unit));
            (it.load.sessions_max, it.load.sessions) = (1_000, 1_000 - free);
            it.load.handshakes_per_s_max = rate;
            (it.load.besieged, it.load.draining) = (state == 0, state == 1);
        })
    })
}

/// What a node that was heard said last.
fn report(fleet: &Fleet, node: NodeId) -> LoadReport {
    let snapshot = gslb_core::snapshot::Snapshot::default();
    let mut looks = fleet.look(&snapshot, Mono(0));
    looks.find(|it| it.report.node == node).unwrap().report.clone()
}

fn fact(order: &Move, at: Wall) -> Fact {
    let Move { node, window_ms, addresses, shares, .. } = order.clone();
    Fact::Move { node, sessions: None, window_ms, addresses, at, drain: Some(START), shares }
}

fn hosts(order: &Move) -> Vec<&str> {
    order.addresses.iter().map(|it| it.host.as_str()).collect()
}

fn hear(fleet: &mut Fleet, report: LoadReport) {
    fleet.handle(report, Mono(0)).unwrap();
}

/// A node with 10 sessions of 1,000, and 100 logins a second.
fn node(number: u32, change: impl FnOnce(&mut LoadReport)) -> LoadReport {
    let mut report = LoadReport {
        node: NodeId(number),
        unit: UnitId(1),
        region: "north".to_owned(),
        counter: 1,
        start: START,
        addresses: vec![address(&format!("link-{number}"), Transport::Tls, Carrier::Bgp)],
        reserve: Vec::new(),
        load: Load {
            sessions: 10,
            sessions_max: 1_000,
            handshakes_per_s_max: 100,
            ..Load::default()
        },
    };
    change(&mut report);
    report
}

fn address(host: &str, transport: Transport, carrier: Carrier) -> Address {
    let machine_room = String::new();
    Address { host: host.to_owned(), port: 443, transport, carrier, machine_room }
}
