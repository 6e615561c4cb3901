//! What a policy rules: logins, ramps, stale loads, lines, reserve addresses, the order of pools.

use std::collections::BTreeSet;

use gslb_core::assign::{Refusal, Request, Wants};
use gslb_core::fleet::Fleet;
use gslb_core::policy::{Line, Policy, Pool, Weights};
use gslb_core::region::Region;
use gslb_core::snapshot::{Snapshot, plan};
use proto::address::{Address, Carrier, Transport};
use proto::id::NodeId;
use proto::load::{Load, LoadReport};
use proto::time::Mono;

use crate::nodes::{Node, node};
use crate::{ask, ask_on, first_addresses, hosts};

#[test]
fn viewers_of_a_lost_node_spread_over_all_others() {
    let (_, snapshot) = planned((1..=50).map(node), &Policy::default());

    let answers = (0..20_000).map(|_| hosts(&ask(&snapshot, &[]).unwrap()).join(" "));
    let others: BTreeSet<String> = answers
        .filter_map(|it| it.strip_prefix("link-1 ").map(str::to_owned))
        .filter_map(|it| it.split(' ').next().map(str::to_owned))
        .collect();

    assert!(others.len() > 40, "{others:?}");
}

#[test]
fn a_node_is_sent_what_it_can_log_in_and_a_burst() {
    let small = node(1).load(|it| it.handshakes_per_s_max = 100);
    let policy = Policy::default();
    let (mut fleet, mut snapshot) = planned([small], &policy);

    let mut given = take_all(&snapshot);
    for now in (5..=1_000).step_by(5) {
        fleet.resume(Mono(now));
        snapshot = plan(&fleet, &policy, &snapshot, Mono(now));
        given += take_all(&snapshot);
    }

    assert_eq!(given, 105);
}

#[test]
fn replicas_hand_out_their_parts() {
    let small = node(1).load(|it| it.handshakes_per_s_max = 100);
    let policy = Policy { replicas: 4, burst_ms: 1_000, ..Policy::default() };
    let (_, snapshot) = planned([small.clone().load(|it| it.sessions = 9_990)], &policy);
    let (_, empty) = planned([small], &policy);

    assert_eq!(take_all(&snapshot), 3);
    assert_eq!(take_all(&empty), 25);
}

#[test]
fn a_node_that_joins_or_was_besieged_grows_to_its_share() {
    let policy = Policy::default();
    let (mut fleet, mut snapshot) = planned((1..=3).map(node), &policy);
    let besieged = node(3).load(|it| it.besieged = true);
    let mut say = |counter, node: &Node, now| {
        fleet.handle(node.report(counter), Mono(now)).unwrap();
        snapshot = plan(&fleet, &policy, &snapshot, Mono(now));
        share(&snapshot, NodeId(node.id))
    };

    let shares = [
        say(2, &besieged, 10_000),
        say(1, &node(4), 10_000),
        say(2, &node(4), 14_000),
        say(3, &node(4), 20_000),
        say(3, &node(3), 20_000),
        say(4, &node(3), 50_000),
        say(5, &node(3), 80_000),
    ];

    // A little more than their parts, since the others carry what they were sent meanwhile.
    let expected = [0, 25, 180, 365, 18, 165, 290];
    assert!(shares.iter().zip(expected).all(|(it, share)| it.abs_diff(share) < 8), "{shares:?}");
}

#[test]
fn a_fleet_that_was_just_heard_of_is_not_new() {
    let policy = Policy::default();
    let (mut fleet, snapshot) = planned([node(1)], &policy);
    fleet.handle(node(2).report(1), Mono(299)).unwrap();
    fleet.handle(node(3).report(1), Mono(300)).unwrap();

    let snapshot = plan(&fleet, &policy, &snapshot, Mono(300));

    assert!(share(&snapshot, NodeId(2)) > 400 && share(&snapshot, NodeId(3)) < 100);
}

#[test]
fn loads_that_grow_old_mean_less_until_they_mean_nothing() {
    let full = node(1).load(|it| it.sessions = it.sessions_max);
    let nodes = [full, node(2).load(|it| it.cpu_permille = 800), node(3)];
    let policy = Policy::default();
    let (fleet, fresh) = planned(nodes, &policy);
    let at = |now| plan(&fleet, &policy, &fresh, Mono(now));

    let shares = |it: &Snapshot| [1, 2, 3].map(|id| share(it, NodeId(id)));

    let [full, busy, free] = shares(&at(300));
    assert!(full == 0 && busy < 250 && free > 750);
    let [full, busy, _] = shares(&at(5_150));
    assert!(full == 0 && (370..400).contains(&busy));
    let [full, busy, free] = shares(&at(10_000));
    assert!([full, busy, free].iter().all(|it| (330..337).contains(it)));
}

#[test]
fn after_a_silence_of_all_leases_run_on_and_dead_nodes_expire() {
    let policy = Policy::default();
    let (mut fleet, _) = planned([node(1), node(2)], &policy);

    fleet.resume(Mono(60_000));
    fleet.tick(Mono(60_000));
    assert_eq!(fleet.len(), 2);
    fleet.handle(node(1).report(2), Mono(60_100)).unwrap();
    fleet.tick(Mono(60_300));

    assert_eq!(fleet.len(), 1);
}

#[test]
fn reserve_addresses_are_only_for_viewers_of_besieged_nodes() {
    let mut fleet = Fleet::default();
    for id in 1..=3 {
        let report = node(id).load(|it| it.besieged = id == 1).report(1);
        let reserve = report.addresses.iter();
        let reserve = reserve.map(|it| Address { host: format!("reserve-{id}"), ..it.clone() });
        let reserve: Vec<Address> = reserve.collect();
        fleet.handle(LoadReport { reserve, ..report }, Mono(0)).unwrap();
    }
    let snapshot = plan(&fleet, &Policy::default(), &Snapshot::default(), Mono(0));
    let request = |wants: &[Transport]| {
        let region = snapshot.region("north");
        Request { region, carrier: Carrier::Bgp, wants: Wants::new(wants) }
    };

    let published = snapshot.assign(&request(&[])).unwrap();
    let reserved = snapshot.reserve(&request(&[])).unwrap();

    let sorted = |hosts: Vec<&str>| hosts.into_iter().map(str::to_owned).collect::<BTreeSet<_>>();
    assert_eq!(sorted(hosts(&published)), ["link-2", "link-3"].map(str::to_owned).into());
    assert_eq!(sorted(hosts(&reserved)), ["reserve-2", "reserve-3"].map(str::to_owned).into());
    assert!(snapshot.find("reserve-1:100").is_some());
    let none = snapshot.reserve(&request(&[Transport::Quic])).unwrap_err();
    assert_eq!(none, Refusal::NoReserve);
}

#[test]
fn a_line_without_headroom_gets_nobody_and_a_dear_one_fewer() {
    let nodes = || (1..=4).map(|id| node(id).machine_room(if id <= 2 { "a" } else { "b" }));
    let line = |egress_bps_max, cost| Policy {
        lines: vec![Line {
            machine_room: "a".to_owned(),
            carrier: Carrier::Bgp,
            egress_bps_max,
            cost,
        }],
        ..Policy::default()
    };
    let busy = || nodes().map(|it| it.load(|it| it.egress_bps = 500_000));
    let in_a = |policy: &Policy| {
        let (_, snapshot) = planned(busy(), policy);
        share(&snapshot, NodeId(1)) + share(&snapshot, NodeId(2))
    };

    assert!((495..=505).contains(&in_a(&Policy::default())));
    assert!((325..=340).contains(&in_a(&line(2_000_000, 100))));
    assert_eq!(in_a(&line(1_000_000, 100)), 0);
    assert!((420..=435).contains(&in_a(&line(0, 200))));
    let indifferent = Weights { cost: 0, ..Weights::default() };
    assert!((495..=505).contains(&in_a(&Policy { weights: indifferent, ..line(0, 200) })));
}

#[test]
fn the_order_of_pools_is_the_operators() {
    let far = Node { region: "south", ..node(1) }.carrier(Carrier::Telecom);
    let nodes = [far, node(2), Node { region: "south", ..node(3) }.carrier(Carrier::C7)];
    let first = |policy: &Policy, carrier| {
        let (_, snapshot) = planned(nodes.clone(), policy);
        hosts(&ask_on(carrier, &snapshot, &[]).unwrap())[0].to_owned()
    };
    let region_first = vec![Pool::Own, Pool::RegionBgp, Pool::Carrier, Pool::Any];
    let region_first = Policy { pools: region_first, ..Policy::default() };

    assert_eq!(first(&Policy::default(), Carrier::Telecom), "link-1");
    assert_eq!(first(&region_first, Carrier::Telecom), "link-2");
    assert_eq!(first(&Policy::default(), Carrier::C7), "link-3");
    assert_eq!(first(&Policy::default(), Carrier::C8), "link-2");
}

#[test]
fn a_viewer_from_an_unknown_region_has_a_carrier_all_the_same() {
    let nodes = [node(1), node(2).carrier(Carrier::Unicom)];
    let (_, snapshot) = planned(nodes, &Policy::default());
    let wants = Wants::default();
    let request = Request { region: Region::UNKNOWN, carrier: Carrier::Unicom, wants };

    assert_eq!(snapshot.region("nowhere"), Region::UNKNOWN);
    assert_eq!(hosts(&snapshot.assign(&request).unwrap()), ["link-2", "link-1"]);
}

#[test]
fn a_node_that_does_not_say_what_it_can_log_in_fills_up_in_a_second() {
    let silent = node(1).load(|it| it.handshakes_per_s_max = 0);
    let (_, snapshot) = planned([silent], &Policy::default());

    assert_eq!(take_all(&snapshot), 500);
}

#[test]
fn logins_that_wait_keep_further_viewers_away() {
    let behind = |it: &mut Load| (it.handshakes_per_s_max, it.handshakes) = (100, 50);
    let at_ease = |it: &mut Load| it.handshakes_per_s_max = 100;
    let policy = Policy { burst_ms: 60_000, ..Policy::default() };
    let (_, snapshot) = planned([node(1).load(behind), node(2).load(at_ease)], &policy);

    assert!((320..350).contains(&share(&snapshot, NodeId(1))));
}

fn planned(nodes: impl IntoIterator<Item = Node>, policy: &Policy) -> (Fleet, Snapshot) {
    let mut fleet = Fleet::default();
    for node in nodes {
        fleet.handle(node.report(1), Mono(0)).unwrap();
    }
    let snapshot = plan(&fleet, policy, &Snapshot::default(), Mono(0));
    (fleet, snapshot)
}

/// Answers until there is no place left.
fn take_all(snapshot: &Snapshot) -> usize {
    std::iter::repeat_with(|| ask(snapshot, &[])).take_while(Result::is_ok).count()
}

/// Of a thousand viewers, those sent to a node.
fn share(snapshot: &Snapshot, node: NodeId) -> usize {
    first_addresses(snapshot, 1_000).get(&node).copied().unwrap_or(0)
}
