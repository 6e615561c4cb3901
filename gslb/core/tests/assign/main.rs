//! Assignments from planned snapshots.
#![expect(clippy::unwrap_used, reason = "the helpers below are part of the tests")]

mod nodes;
mod rules;

use std::collections::{BTreeMap, BTreeSet};

use gslb_core::assign::{Assignment, Refusal, Request, Wants};
use gslb_core::fleet::Fleet;
use gslb_core::policy::Policy;
use gslb_core::snapshot::{Snapshot, plan};
use proptest::prelude::*;
use proto::address::{Address, Carrier, Transport};
use proto::id::NodeId;
use proto::time::Mono;

use Transport::{National, Quic, Tcp, Tls, Ws, Wss};
use nodes::{Node, any_carrier, any_node, any_transport, node};

#[test]
fn an_expired_lease_gets_no_viewers() {
    let mut fleet = Fleet::default();
    fleet.handle(node(1).report(1), Mono(0)).unwrap();

    fleet.tick(Mono(299));
    let before = plan_once(&fleet, Mono(299));
    fleet.tick(Mono(300));
    let after = plan_once(&fleet, Mono(300));

    assert_eq!(hosts(&ask(&before, &[]).unwrap()), ["link-1"]);
    assert_eq!(ask(&after, &[]).unwrap_err(), Refusal::NoneLive);
}

#[test]
fn no_fleet_is_none_live() {
    assert_eq!(ask(&Snapshot::default(), &[]).unwrap_err(), Refusal::NoneLive);
}

#[test]
fn draining_besieged_and_full_nodes_are_left_out() {
    let nodes = [
        node(1).load(|it| it.draining = true),
        node(2).load(|it| it.besieged = true),
        node(3).load(|it| it.sessions = it.sessions_max),
        node(4).load(|it| (it.sessions, it.handshakes) = (it.sessions_max - 5, 5)),
        node(5),
    ];
    let snapshot = snapshot_of(&nodes);

    for _ in 0..200 {
        assert_eq!(hosts(&ask(&snapshot, &[]).unwrap()), ["link-5"]);
    }
}

#[test]
fn a_fleet_of_full_nodes_is_full_and_one_of_draining_nodes_is_not_live() {
    let full = node(1).load(|it| it.sessions = it.sessions_max);
    let draining = node(2).load(|it| it.draining = true);

    let refusal = |nodes: &[Node]| ask(&snapshot_of(nodes), &[]).unwrap_err();

    assert_eq!(refusal(&[full, draining.clone()]), Refusal::Full);
    assert_eq!(refusal(&[draining]), Refusal::NoneLive);
}

#[test]
fn a_client_that_no_node_understands_is_told_so() {
    let snapshot = snapshot_of(&[node(1).listeners(&[Tls, Wss])]);

    let refused = ask(&snapshot, &[National, Quic]).unwrap_err();

    assert_eq!(refused, Refusal::NoTransport);
}

#[test]
fn every_node_offers_what_the_client_likes_best() {
    let snapshot = snapshot_of(&[
        node(1).listeners(&[Ws, Tcp]),
        node(2).listeners(&[Tcp]),
        node(3).listeners(&[Ws]),
        node(4).listeners(&[Quic]),
    ]);

    for _ in 0..100 {
        let assignment = ask(&snapshot, &[Tcp, Ws]).unwrap();

        let mut found: Vec<_> = assignment.listeners().map(transport_of).collect();
        found.sort();
        assert_eq!(found, [("link-1", Tcp), ("link-2", Tcp), ("link-3", Ws)]);
    }
}

#[test]
fn the_only_speaker_of_a_transport_is_found_among_many() {
    let mut nodes: Vec<Node> = (1..500).map(node).collect();
    nodes.push(node(500).listeners(&[Tls, Quic]));
    let snapshot = snapshot_of(&nodes);

    assert_eq!(hosts(&ask(&snapshot, &[Quic]).unwrap()), ["link-500"]);
}

#[test]
fn a_lonely_node_offers_its_other_listeners_in_the_clients_order() {
    let snapshot = snapshot_of(&[node(1).listeners(&[Tcp, Tcp, Tls, Ws])]);

    let assignment = ask(&snapshot, &[Ws, Tcp]).unwrap();
    let alone = ask(&snapshot, &[Tls]).unwrap();

    let found: Vec<_> = assignment.listeners().map(|it| it.address().transport).collect();
    assert_eq!(found, [Ws, Tcp, Tcp]);
    assert_eq!(alone.listeners().count(), 1);
}

#[test]
fn listeners_of_one_node_take_turns() {
    let snapshot = snapshot_of(&[node(1).listeners(&[Tcp; 4])]);
    let mut counts = BTreeMap::new();

    for _ in 0..400 {
        let assignment = ask(&snapshot, &[Tcp]).unwrap();
        let first = assignment.listeners().next().unwrap();
        *counts.entry(first.authority().to_owned()).or_insert(0) += 1;
    }

    assert_eq!(counts.len(), 4);
    assert!(counts.values().all(|it| (80..=120).contains(it)), "{counts:?}");
}

#[test]
fn three_machines_in_two_rooms_and_the_last_one_is_bgp() {
    let mut nodes: Vec<Node> = (1..=8).map(|it| node(it).carrier(Carrier::Telecom)).collect();
    nodes.push(node(9).machine_room("b").carrier(Carrier::Telecom));
    nodes.push(node(10));
    let snapshot = snapshot_of(&nodes);

    for _ in 0..500 {
        let assignment = ask_on(Carrier::Telecom, &snapshot, &[]).unwrap();

        assert_eq!(hosts(&assignment).iter().collect::<BTreeSet<_>>().len(), 3);
        let addresses: Vec<_> = assignment.listeners().map(|it| it.address()).collect();
        let carriers: Vec<_> = addresses.iter().map(|it| it.carrier).collect();
        assert_eq!(carriers, [Carrier::Telecom, Carrier::Telecom, Carrier::Bgp]);
        let rooms: BTreeSet<_> = addresses.iter().map(|it| it.machine_room.as_str()).collect();
        assert_eq!(rooms.len(), 2);
    }
}

#[test]
fn a_viewer_whose_pool_is_missing_or_full_gets_bgp_then_anything_alive() {
    let full = node(1).carrier(Carrier::Unicom).load(|it| it.sessions = it.sessions_max);
    let far = Node { region: "south", ..node(3) }.carrier(Carrier::Mobile);
    let first = |it: &Snapshot| hosts(&ask_on(Carrier::Unicom, it, &[]).unwrap())[0].to_owned();

    let with_bgp = snapshot_of(&[full.clone(), node(2), far.clone()]);
    let without = snapshot_of(&[full, far.clone()]);
    let elsewhere = snapshot_of(&[far]);

    assert_eq!(first(&with_bgp), "link-2");
    assert_eq!(first(&without), "link-3");
    assert_eq!(first(&elsewhere), "link-3");
}

#[test]
fn answers_are_shared_out_by_logins_and_free_places() {
    let snapshot = snapshot_of(&[
        node(1).load(|it| it.handshakes_per_s_max *= 2),
        node(2),
        node(3).load(|it| (it.sessions, it.handshakes_per_s_max) = (3_333, 1_500_000)),
    ]);

    let counts = first_addresses(&snapshot, 8_000);

    assert!((3_900..4_100).contains(&counts[&NodeId(1)]), "{counts:?}");
    assert!((1_900..2_100).contains(&counts[&NodeId(2)]), "{counts:?}");
    assert!((1_900..2_100).contains(&counts[&NodeId(3)]), "{counts:?}");
}

#[test]
fn a_lightly_loaded_node_is_not_stampeded() {
    let mut nodes: Vec<Node> =
        (1..=50).map(|it| node(it).load(|it| it.sessions = it.sessions_max - 100)).collect();
    nodes.push(node(51));
    let snapshot = snapshot_of(&nodes);

    let counts = first_addresses(&snapshot, 2_000);

    let mean = 2_000 / 51;
    assert!(counts[&NodeId(51)] <= 5 * mean, "{counts:?}");
    assert!(counts.len() == 51, "{counts:?}");
}

#[test]
fn short_snapshots_share_out_as_fairly_as_long_ones() {
    let mut fleet = Fleet::default();
    for id in 1..=10 {
        fleet.handle(node(id).report(1), Mono(0)).unwrap();
    }
    let mut snapshot = plan_once(&fleet, Mono(0));
    let mut counts = BTreeMap::new();

    for _ in 0..500 {
        for _ in 0..2 {
            *counts.entry(first(&snapshot)).or_insert(0) += 1;
        }
        snapshot = plan(&fleet, &Policy::default(), &snapshot, Mono(1));
    }

    assert!(counts.values().all(|it| (90..=110).contains(it)), "{counts:?}");
}

#[test]
fn an_answer_is_load_until_the_next_report() {
    let mut fleet = Fleet::default();
    let small = node(1).load(|it| it.sessions_max = 3);
    fleet.handle(small.report(1), Mono(0)).unwrap();
    let mut snapshot = plan_once(&fleet, Mono(0));

    for _ in 0..3 {
        assert_eq!(first(&snapshot), NodeId(1));
        snapshot = plan(&fleet, &Policy::default(), &snapshot, Mono(1));
    }
    assert_eq!(ask(&snapshot, &[]).unwrap_err(), Refusal::Full);

    fleet.handle(node(2).report(1), Mono(2)).unwrap();
    snapshot = plan(&fleet, &Policy::default(), &snapshot, Mono(2));
    assert_eq!(first_addresses(&snapshot, 50), BTreeMap::from([(NodeId(2), 50)]));

    fleet.handle(small.report(2), Mono(3)).unwrap();
    snapshot = plan(&fleet, &Policy::default(), &snapshot, Mono(3));
    assert!(first_addresses(&snapshot, 2_000).contains_key(&NodeId(1)));
}

#[test]
fn a_busy_cpu_gets_fewer_viewers_but_some() {
    let snapshot = snapshot_of(&[node(1).load(|it| it.cpu_permille = 1_000), node(2)]);

    let counts = first_addresses(&snapshot, 4_200);

    assert!((150..450).contains(&counts[&NodeId(1)]), "{counts:?}");
}

#[test]
fn a_listener_is_found_by_its_authority_also_while_its_node_drains() {
    let snapshot = snapshot_of(&[node(1).load(|it| it.draining = true), node(2)]);

    assert_eq!(snapshot.find("link-1:100").unwrap().address().host, "link-1");
    assert!(snapshot.find("link-1:101").is_none());
    assert!(snapshot.find("link-3:100").is_none());
}

#[test]
fn a_nodes_moved_address_replaces_the_old_one() {
    let mut fleet = Fleet::default();
    fleet.handle(node(1).report(1), Mono(0)).unwrap();
    let old = plan_once(&fleet, Mono(0));
    fleet.handle(node(1).listeners(&[Tls, Ws]).report(2), Mono(1)).unwrap();

    let new = plan(&fleet, &Policy::default(), &old, Mono(1));

    assert!(ask(&old, &[Ws]).is_err());
    assert_eq!(ask(&new, &[Ws]).unwrap().listeners().count(), 1);
}

proptest! {
    #[test]
    fn whatever_the_fleet_the_addresses_are_as_promised(
        nodes in prop::collection::vec(any_node(), 0..12),
        wants in prop::collection::vec(any_transport(), 0..4),
        carrier in any_carrier(),
        rounds in 1usize..40,
    ) {
        let nodes: Vec<Node> = (1..).zip(nodes).map(|(id, it)| Node { id, ..it }).collect();
        let snapshot = snapshot_of(&nodes);
        let spoken = if wants.is_empty() { vec![Tls, Wss, Quic, Tcp, Ws] } else { wants.clone() };
        let speaks = |it: &&Node| it.addresses.iter().any(|it| spoken.contains(&it.transport));
        let usable: Vec<&Node> = nodes.iter().filter(|it| it.has_places()).filter(speaks).collect();

        for _ in 0..rounds {
            let Ok(assignment) = ask_on(carrier, &snapshot, &wants) else {
                prop_assert!(usable.is_empty());
                continue;
            };

            let addresses: Vec<&Address> = assignment.listeners().map(|it| it.address()).collect();
            let machines: BTreeSet<_> = addresses.iter().map(|it| it.host.as_str()).collect();
            prop_assert_eq!(machines.len(), usable.len().min(3));
            let rooms: BTreeSet<_> = usable.iter().map(|it| it.addresses[0].machine_room.as_str()).collect();
            let found: BTreeSet<_> = addresses.iter().map(|it| it.machine_room.as_str()).collect();
            prop_assert!(found.len() >= rooms.len().min(2));
            for (at, address) in addresses.iter().enumerate() {
                prop_assert!(spoken.contains(&address.transport));
                let own = |it: &&&Node| address.host == format!("link-{}", it.id);
                prop_assert!(usable.iter().any(|it| own(&it)));
                prop_assert!(!addresses[..at].contains(address));
            }
        }
    }
}

fn snapshot_of(nodes: &[Node]) -> Snapshot {
    let mut fleet = Fleet::default();
    for node in nodes {
        fleet.handle(node.report(1), Mono(0)).unwrap();
    }
    plan_once(&fleet, Mono(0))
}

fn plan_once(fleet: &Fleet, now: Mono) -> Snapshot {
    plan(fleet, &Policy::default(), &Snapshot::default(), now)
}

/// For a viewer in the north without a carrier.
fn ask<'a>(snapshot: &'a Snapshot, wants: &[Transport]) -> Result<Assignment<'a>, Refusal> {
    ask_on(Carrier::Bgp, snapshot, wants)
}

fn ask_on<'a>(
    carrier: Carrier,
    snapshot: &'a Snapshot,
    wants: &[Transport],
) -> Result<Assignment<'a>, Refusal> {
    let region = snapshot.region("north");
    snapshot.assign(&Request { region, carrier, wants: Wants::new(wants) })
}

fn hosts<'a>(assignment: &Assignment<'a>) -> Vec<&'a str> {
    assignment.listeners().map(|it| it.address().host.as_str()).collect()
}

fn transport_of(listener: &gslb_core::listener::Listener) -> (&str, Transport) {
    (&listener.address().host, listener.address().transport)
}

fn first(snapshot: &Snapshot) -> NodeId {
    let assignment = ask(snapshot, &[]).unwrap();
    let host = &assignment.listeners().next().unwrap().address().host;
    NodeId(host.trim_start_matches("link-").parse().unwrap())
}

/// How many of `answers` viewers were sent to each node first.
fn first_addresses(snapshot: &Snapshot, answers: usize) -> BTreeMap<NodeId, usize> {
    let mut counts = BTreeMap::new();
    for _ in 0..answers {
        *counts.entry(first(snapshot)).or_insert(0) += 1;
    }
    counts
}
