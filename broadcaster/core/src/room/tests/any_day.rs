//! Whatever happens to a room, nothing is lost, doubled or out of order.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::*;

#[derive(Clone, Debug)]
enum Step {
    Items { lane: Lane, count: u32 },
    Again,
    Advance(u64),
    StandStill(u64),
    SetClock(i64),
    Interval(u32),
    Crowd { sessions: u32, seconds: u64 },
    TakeOver,
}

fn step() -> impl Strategy<Value = Step> {
    let lane = prop::sample::select(Lane::ALL.to_vec());
    prop_oneof![
        6 => (lane, 1..60_u32).prop_map(|(lane, count)| Step::Items { lane, count }),
        1 => Just(Step::Again),
        6 => (1..1500_u64).prop_map(Step::Advance),
        1 => (1..60_000_u64).prop_map(Step::StandStill),
        1 => (-60_000..60_000_i64).prop_map(Step::SetClock),
        1 => prop::sample::select(vec![300, 500, 1000, 2000]).prop_map(Step::Interval),
        2 => (prop::sample::select(vec![0, 20_000, 500_000, 5_000_000]), 1..80_u64)
            .prop_map(|(sessions, seconds)| Step::Crowd { sessions, seconds }),
        1 => Just(Step::TakeOver),
    ]
}

/// Plays the steps; gives the stage and how many items were sent.
fn play(steps: &[Step], settings: &RoomSettings) -> (Stage, u64) {
    let mut stage = Stage::new(settings);
    let (mut sent, mut lanes) = (0, Vec::new());
    for step in steps {
        match *step {
            Step::Items { lane, count } => {
                for _ in 0..count {
                    sent += 1;
                    lanes.push(lane);
                    stage.tell(Input::Item(item(sent, lane, sent % 3)));
                }
            }
            Step::Again if sent > 0 => {
                stage.tell(Input::Item(item(sent, lanes[lanes.len() - 1], sent % 3)));
            }
            Step::Again => {}
            Step::Advance(ms) => stage.advance(ms),
            Step::StandStill(ms) => stage.pass(ms),
            Step::SetClock(ms) => stage.now.wall.0 = stage.now.wall.0.saturating_add_signed(ms),
            Step::Interval(interval_ms) => {
                let settings = RoomSettings { interval_ms, ..settings.clone() };
                stage.tell(Input::Open(Box::new(limits(&settings))));
            }
            Step::Crowd { sessions, seconds } => {
                for _ in 0..seconds {
                    stage.tell(Input::Gauge { people: sessions, sessions });
                    stage.advance(1000);
                }
            }
            Step::TakeOver => {
                stage.take_over(settings);
                // What has no fate comes again, by the bus or by its journal.
                stage.deferred.clear();
                for (id, &lane) in (1..).zip(&lanes) {
                    stage.tell(Input::Item(item(id, lane, id % 3)));
                }
            }
        }
    }
    while !stage.room.is_idle() {
        stage.advance(1000);
    }
    stage.advance(5000);
    (stage, sent)
}

fn every_item_has_one_fate(stage: &Stage, sent: u64) {
    let mut shed = BTreeSet::new();
    for told in &stage.fates {
        if let Fate::Shed { .. } = told.fate {
            assert!(!told.lane.is_protected());
            shed.insert(told.id.0);
        }
    }
    let shown = stage.shown();
    let distinct: BTreeSet<u64> = shown.iter().copied().collect();
    assert_eq!(distinct.len(), shown.len(), "an item was shown twice");
    assert!(distinct.is_disjoint(&shed), "an item was shown and shed");
    let deferred: BTreeSet<u64> = stage.deferred.iter().map(|it| it.0).collect();
    assert_eq!((distinct.len() + shed.len() + deferred.len()) as u64, sent);
}

fn places_rise_and_slots_have_no_hole(stage: &Stage) {
    let mut last = (Gen(0), Seq(0));
    for flush in &stage.flushes {
        for placed in &flush.items {
            let place = (flush.gen_no, placed.seq);
            assert!(place > last, "{place:?} after {last:?}");
            last = place;
        }
    }
    let mut next: BTreeMap<u32, u64> = BTreeMap::new();
    let mut newest = 0;
    for (gen_no, slot) in stage.slots() {
        assert!(gen_no >= newest, "gen {gen_no} after {newest}");
        newest = gen_no;
        let expected = next.entry(gen_no).or_default();
        assert_eq!(slot, *expected, "slots of gen {gen_no}");
        *expected += 1;
    }
}

fn segments_hold_the_flushes(stage: &Stage) {
    let sealed: Vec<u64> =
        stage.seals.iter().flat_map(|it| &it.full.items).map(|it| it.item.id.0).collect();
    assert_eq!(sealed, stage.shown());
}

fn senders_keep_their_order(stage: &Stage) {
    let mut newest: BTreeMap<(Lane, u64), u64> = BTreeMap::new();
    for placed in stage.flushes.iter().flat_map(|it| &it.items) {
        let item = &placed.item;
        let last = newest.entry((item.lane, item.sender.0)).or_default();
        assert!(item.id.0 > *last, "{} after {last}", item.id);
        *last = item.id.0;
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn nothing_is_lost_doubled_or_out_of_order(
        steps in prop::collection::vec(step(), 1..60),
        items_per_s in prop::sample::select(vec![1, 7, 50, 333]),
    ) {
        let settings = RoomSettings { items_per_s, ..RoomSettings::default() };

        let (stage, sent) = play(&steps, &settings);

        every_item_has_one_fate(&stage, sent);
        places_rise_and_slots_have_no_hole(&stage);
        segments_hold_the_flushes(&stage);
        senders_keep_their_order(&stage);
    }

    #[test]
    fn no_second_carries_more_than_its_budget(
        bursts in prop::collection::vec((1..400_u64, 0..200_u32), 1..60),
        items_per_s in prop::sample::select(vec![1, 7, 50, 333]),
    ) {
        let settings = RoomSettings { items_per_s, ..RoomSettings::default() };
        let steps: Vec<Step> = bursts
            .into_iter()
            .flat_map(|(ms, count)| {
                [Step::Items { lane: Lane::Comment, count }, Step::Advance(ms)]
            })
            .collect();

        let (stage, _) = play(&steps, &settings);

        for sealed in &stage.seals {
            prop_assert!(sealed.full.items.len() <= items_per_s as usize);
        }
    }
}
