//! The fleet through its verbs, in virtual time.

use std::time::Duration;

use gslb_core::fleet::{Fleet, Heard, Limits, Output, Refusal};
use proptest::prelude::*;
use proto::address::{Address, Carrier, Transport};
use proto::id::{NodeId, UnitId};
use proto::limits::{ADDRESSES_MAX, REGION_NODES_MAX, WORD_BYTES_MAX};
use proto::load::{KnownReport, Load, LoadReport, Numbers, RegionLoads, RegionView, ReportView};
use proto::time::{Mono, Wall};

#[test]
fn a_lease_holds_until_it_expires_and_not_longer() {
    let mut fleet = Fleet::default();
    fleet.handle(report(1, 0, 1), Mono(1_000)).unwrap();

    assert_eq!(fleet.deadline(), Some(Mono(1_300)));
    fleet.tick(Mono(1_299));
    assert_eq!(fleet.len(), 1);
    fleet.tick(Mono(1_300));
    assert!(fleet.is_empty());
    assert_eq!(fleet.deadline(), None);
}

#[test]
fn joining_and_expiring_is_told_once() {
    let mut fleet = Fleet::default();

    assert_eq!(fleet.handle(report(1, 0, 1), Mono(0)), Ok(Heard::Joined));
    assert_eq!(fleet.handle(report(1, 0, 2), Mono(5)), Ok(Heard::Renewed));
    fleet.tick(Mono(305));
    fleet.tick(Mono(400));
    assert_eq!(fleet.handle(report(1, 0, 3), Mono(500)), Ok(Heard::Joined));

    let told: Vec<Output> = std::iter::from_fn(|| fleet.poll()).collect();
    let (joined, expired) = (Output::Joined(NodeId(1)), Output::Expired(NodeId(1)));
    assert_eq!(told, [joined, expired, joined]);
}

#[test]
fn the_newest_report_counts_by_start_then_counter() {
    let mut fleet = Fleet::default();
    fleet.handle(report(1, 100, 50), Mono(0)).unwrap();

    assert_eq!(fleet.handle(report(1, 100, 50), Mono(1)), Err(Refusal::Replayed));
    assert_eq!(fleet.handle(report(1, 100, 49), Mono(1)), Err(Refusal::Replayed));
    assert_eq!(fleet.handle(report(1, 99, 1_000), Mono(1)), Err(Refusal::Replayed));
    assert_eq!(fleet.handle(report(1, 100, 51), Mono(1)), Ok(Heard::Renewed));
    assert_eq!(fleet.handle(report(1, 101, 0), Mono(1)), Ok(Heard::Renewed));
}

#[test]
fn a_replay_does_not_bring_a_dead_node_back() {
    let mut fleet = Fleet::default();
    fleet.handle(report(1, 0, 7), Mono(0)).unwrap();
    fleet.tick(Mono(10_000));

    assert_eq!(fleet.handle(report(1, 0, 7), Mono(10_001)), Err(Refusal::Replayed));
    assert!(fleet.is_empty());
}

#[test]
fn a_node_whose_clock_was_set_back_is_heard_after_ten_minutes() {
    let mut fleet = Fleet::default();
    fleet.handle(report(1, 1_000, 7), Mono(0)).unwrap();

    fleet.tick(Mono(599_000));
    assert_eq!(fleet.handle(report(1, 10, 0), Mono(599_000)), Err(Refusal::Replayed));
    fleet.tick(Mono(601_000));
    assert_eq!(fleet.handle(report(1, 10, 0), Mono(601_000)), Ok(Heard::Joined));
}

#[test]
fn the_fleet_is_bounded_and_silent_nodes_give_way() {
    let limits = Limits { lease: Duration::from_millis(300), nodes_max: 2 };
    let mut fleet = Fleet::new(limits);
    fleet.handle(report(1, 0, 1), Mono(0)).unwrap();
    fleet.handle(report(2, 0, 1), Mono(200)).unwrap();

    assert_eq!(fleet.handle(report(3, 0, 1), Mono(200)), Err(Refusal::NodesMax));
    fleet.tick(Mono(300));
    assert_eq!(fleet.handle(report(3, 0, 1), Mono(300)), Ok(Heard::Joined));
    assert_eq!(fleet.len(), 2);
}

#[test]
fn a_report_with_too_many_addresses_is_refused() {
    let mut fleet = Fleet::default();
    let mut large = report(1, 0, 1);
    large.addresses = vec![large.addresses[0].clone(); ADDRESSES_MAX + 1];

    assert_eq!(fleet.handle(large.clone(), Mono(0)), Err(Refusal::Addresses));
    large.addresses.pop();
    assert_eq!(fleet.handle(large, Mono(0)), Ok(Heard::Joined));
}

#[test]
fn a_region_is_bounded_by_what_its_value_can_hold() {
    let mut fleet = Fleet::default();
    let most = u32::try_from(REGION_NODES_MAX).unwrap();
    for node in 1..=most {
        assert_eq!(fleet.handle(report(node, 0, 1), Mono(0)), Ok(Heard::Joined));
    }
    let elsewhere = |counter| LoadReport { region: "south".into(), ..report(most + 1, 0, counter) };

    assert_eq!(fleet.handle(report(most + 1, 0, 1), Mono(1)), Err(Refusal::RegionMax));
    assert_eq!(fleet.handle(elsewhere(2), Mono(1)), Ok(Heard::Joined));
    assert_eq!(fleet.handle(report(most + 1, 0, 3), Mono(1)), Err(Refusal::RegionMax));
    assert_eq!(fleet.handle(report(1, 0, 2), Mono(1)), Ok(Heard::Renewed));
}

#[test]
fn nodes_are_told_by_region_also_of_an_emptied_one() {
    let mut fleet = Fleet::default();
    fleet.handle(LoadReport { region: "south".into(), ..report(2, 0, 1) }, Mono(0)).unwrap();
    fleet.handle(report(1, 0, 1), Mono(200)).unwrap();
    fleet.tick(Mono(300));

    let told: Vec<_> = fleet.by_region().collect();

    assert_eq!(told, [("north", vec![NodeId(1)]), ("south", vec![])]);
}

#[test]
fn a_packed_value_read_again_and_again_renews_nothing() {
    let report = report(1, 0, 1).encode();
    let packed = RegionLoads::pack("north", Wall(0), &[&report]);
    let mut reader = Fleet::default();

    for now in (0..300).step_by(5) {
        for report in RegionView::read(&packed).unwrap().nodes() {
            let _refused_from_the_second_time_on = reader.hear(report, Mono(now));
        }
        reader.tick(Mono(now));
        assert_eq!(reader.len(), 1);
    }
    reader.tick(Mono(300));

    assert!(reader.is_empty());
}

#[test]
fn a_report_whose_values_are_not_allowed_is_refused() {
    let mut fleet = Fleet::default();
    let long = LoadReport { region: "r".repeat(WORD_BYTES_MAX + 1), ..report(1, 0, 1) }.encode();

    let heard = fleet.hear(ReportView::read(&long).unwrap(), Mono(0));

    assert_eq!(heard, Err(Refusal::Malformed));
}

#[test]
fn numbers_renew_a_lease_only_of_whose_last_report_they_continue() {
    let mut fleet = Fleet::default();
    let numbers = |start, before, counter| {
        let load = Load { sessions: 7, sessions_max: 100, ..Load::default() };
        Numbers { node: NodeId(1), start: Wall(start), before, counter, load }
    };
    assert_eq!(fleet.renew_numbers(numbers(5, 1, 2), Mono(0)), None, "it is not known");
    fleet.handle(report(1, 5, 1), Mono(0)).unwrap();

    assert_eq!(fleet.renew_numbers(numbers(4, 1, 2), Mono(100)), None, "of another start");
    assert_eq!(fleet.renew_numbers(numbers(5, 0, 2), Mono(100)), None, "of an older report");
    assert_eq!(fleet.renew_numbers(numbers(5, 1, 1), Mono(100)), Some(Err(Refusal::Replayed)));
    assert_eq!(fleet.deadline(), Some(Mono(300)));
    assert_eq!(fleet.renew_numbers(numbers(5, 1, 2), Mono(100)), Some(Ok(Heard::Renewed)));
    assert_eq!(fleet.deadline(), Some(Mono(400)));
    fleet.tick(Mono(400));
    assert_eq!(fleet.renew_numbers(numbers(5, 2, 3), Mono(400)), None, "its lease expired");
}

proptest! {
    /// Reports heard in their bytes, their numbers alone where that is enough, and reports taken over whole make the same fleet.
    #[test]
    fn a_report_counts_alike_in_its_bytes_and_on_its_own(
        steps in prop::collection::vec((0u32..3, 0u64..3, 0u64..6, 0u16..4, 0u64..200), 1..80),
    ) {
        let (mut bytes, mut whole) = (Fleet::default(), Fleet::default());
        let mut kept = std::collections::BTreeMap::<u32, KnownReport>::new();
        let mut now = 0;

        for (node, start, counter, kind, pause) in steps {
            now += pause;
            let mut report = report(node, start, counter);
            report.load.draining = kind == 1;
            report.load.besieged = kind == 2;
            report.unit = UnitId(kind / 3);
            let encoded = report.encode();
            let view = ReportView::read(&encoded).unwrap();

            let numbers = kept.get(&node).and_then(|it| it.compare(&encoded));
            let renewed = numbers.and_then(|it| bytes.renew_numbers(it, Mono(now)));
            let heard = renewed.unwrap_or_else(|| bytes.hear(view, Mono(now)));
            prop_assert_eq!(heard, whole.handle(report, Mono(now)));
            if heard.is_ok() {
                kept.insert(node, KnownReport::new(view, &encoded));
            }
            bytes.tick(Mono(now));
            whole.tick(Mono(now));
            prop_assert_eq!(format!("{bytes:?}"), format!("{whole:?}"));
        }
    }

    /// The model: a node is under lease while its newest accepted stamp is younger than 300 ms.
    #[test]
    fn a_fleet_agrees_with_its_model(
        steps in prop::collection::vec((0u32..4, 0u64..3, 0u64..6, 0u64..200), 1..80),
    ) {
        let mut fleet = Fleet::default();
        let mut model = std::collections::BTreeMap::new();
        let mut now = 0;

        for (node, start, counter, pause) in steps {
            now += pause;
            fleet.tick(Mono(now));
            let heard = fleet.handle(report(node, start, counter), Mono(now)).is_ok();
            let newer = model.get(&node).is_none_or(|&(stamp, _)| stamp < (start, counter));
            prop_assert_eq!(heard, newer);
            if newer {
                model.insert(node, ((start, counter), now + 300));
            }
            let live = model.values().filter(|it| it.1 > now);
            prop_assert_eq!(fleet.len(), live.clone().count());
            prop_assert_eq!(fleet.deadline(), live.map(|it| Mono(it.1)).min());
        }
    }
}

fn report(node: u32, start: u64, counter: u64) -> LoadReport {
    let address = Address {
        host: format!("link-{node}.example"),
        port: 443,
        transport: Transport::Tls,
        carrier: Carrier::Bgp,
        machine_room: String::new(),
    };
    LoadReport {
        node: NodeId(node),
        unit: UnitId(1),
        region: "north".into(),
        counter,
        start: Wall(start),
        addresses: vec![address],
        reserve: Vec::new(),
        load: Load { sessions_max: 100, ..Load::default() },
    }
}
