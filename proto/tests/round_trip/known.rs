//! Reports compared with the ones before, beside what decoding says.

use proptest::prelude::*;
use proptest::sample::Index;
use proto::id::{NodeId, UnitId};
use proto::load::{
    KnownRegion, KnownReport, Load, LoadReport, Numbers, RegionLoads, RegionView, ReportView,
};
use proto::time::Wall;

use crate::strategy;

proptest! {
    #[test]
    fn a_report_that_differs_in_numbers_alone_is_compared(
        (known, other) in (strategy::load::report(), strategy::load::report()),
        (counter, place, flip) in (1_u64.., any::<Index>(), any::<u8>()),
    ) {
        let known = LoadReport { counter: known.counter.max(1), ..known };
        let next = next(&known, counter, other.load);
        let (bytes, mut next_bytes) = (known.encode(), next.encode().to_vec());

        let kept = KnownReport::new(ReportView::read(&bytes).unwrap(), &bytes);

        prop_assert_eq!(ReportView::peek(&bytes), Some(known.node));
        prop_assert_eq!(kept.compare(&next_bytes), Some(numbers(&known, &next)));
        // Whatever else differs is not compared.
        next_bytes[place.index(bytes.len())] ^= flip;
        if let Some(compared) = kept.compare(&next_bytes) {
            let read = LoadReport::decode(&next_bytes).unwrap();
            prop_assert_eq!(compared, numbers(&known, &read));
            prop_assert_eq!(LoadReport { counter: known.counter, load: known.load, ..read }, known);
        }
    }

    #[test]
    fn a_region_that_differs_in_numbers_alone_is_compared(
        reports in prop::collection::vec(strategy::load::report(), 1..6),
        (spoke, load) in (any::<Index>(), strategy::load::report()),
        (place, flip) in any::<(Index, u8)>(),
    ) {
        let node = |(no, it): (u32, LoadReport)| LoadReport { node: NodeId(no), counter: 1, ..it };
        let known: Vec<_> = (0..).zip(reports).map(node).collect();
        let mut after = known.clone();
        let spoke = spoke.index(known.len());
        after[spoke] = next(&known[spoke], 2, load.load);
        let (bytes, mut next_bytes) = (pack(&known, 1), pack(&after, 2));

        let mut kept = KnownRegion::new(bytes.clone().into(), RegionView::read(&bytes).ok());

        let compared: Vec<_> = kept.compare(&next_bytes).unwrap().collect();
        prop_assert_eq!(compared, [numbers(&known[spoke], &after[spoke])]);
        next_bytes[place.index(bytes.len())] ^= flip;
        if let Some(compared) = kept.compare(&next_bytes).map(Iterator::collect::<Vec<_>>) {
            let read = RegionLoads::decode(&next_bytes).unwrap();
            let news = known.iter().zip(&read.nodes).filter(|(known, it)| known.counter != it.counter);
            let news: Vec<_> = news.map(|(known, it)| numbers(known, it)).collect();
            prop_assert_eq!(compared, news);
        }
        kept.renew(next_bytes.clone().into());
        prop_assert_eq!(kept.bytes(), &next_bytes);
    }
}

#[test]
fn bytes_that_others_write_are_not_compared() {
    let report = LoadReport {
        node: NodeId(1),
        unit: UnitId(1),
        region: "north".to_owned(),
        counter: 1,
        start: Wall(1),
        addresses: Vec::new(),
        reserve: Vec::new(),
        load: Load::default(),
    };
    let longer = [&report.encode()[..], &[0; 8]].concat();

    let kept = KnownReport::new(ReportView::read(&longer).unwrap(), &longer);

    assert_eq!(kept.bytes(), longer);
    assert_eq!(kept.compare(&longer), None);
}

/// What a node says after `known`.
fn next(known: &LoadReport, counter: u64, load: Load) -> LoadReport {
    let handshakes_per_s_max = known.load.handshakes_per_s_max;
    LoadReport { counter, load: Load { handshakes_per_s_max, ..load }, ..known.clone() }
}

fn numbers(known: &LoadReport, next: &LoadReport) -> Numbers {
    Numbers {
        node: known.node,
        start: known.start,
        before: known.counter,
        counter: next.counter,
        load: next.load,
    }
}

fn pack(reports: &[LoadReport], at: u64) -> Vec<u8> {
    let encoded: Vec<_> = reports.iter().map(LoadReport::encode).collect();
    let reports: Vec<&[u8]> = encoded.iter().map(AsRef::as_ref).collect();
    RegionLoads::pack("north", Wall(at), &reports).to_vec()
}
