//! What holds whatever comes in: a minute and more of random loads.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::*;

const SECONDS: usize = 70;
const FLUSHES_PER_S: usize = 5;
/// Places of a protected lane.
const PLACES: usize = 500;

/// How much comes in while it lasts.
#[derive(Clone, Debug)]
struct Load {
    flushes: usize,
    /// Items of each lane in each flush.
    items: [u64; 4],
    senders: u64,
}

#[derive(Clone, Debug)]
struct Case {
    items_max: u32,
    percents: [u32; 4],
    /// So many different texts, and whether equal ones are merged.
    texts: u64,
    merges_equal: bool,
    loads: Vec<Load>,
}

fn case() -> impl Strategy<Value = Case> {
    let load = (1..200_usize, [0..8_u64, 0..20_u64, 0..20_u64, 0..60_u64], 1..50_u64)
        .prop_map(|(flushes, items, senders)| Load { flushes, items, senders });
    let percents = [1..=20_u32, 1..=30_u32, 1..=20_u32, 1..=30_u32];
    let loads = prop::collection::vec(load, 1..6);
    (10..200_u32, percents, 1..100_u64, any::<bool>(), loads).prop_map(
        |(items_max, percents, texts, merges_equal, loads)| Case {
            items_max,
            percents,
            texts,
            merges_equal,
            loads,
        },
    )
}

/// An item that was taken.
#[derive(Debug)]
struct Taken {
    second: usize,
    at: Mono,
    item: Item,
}

/// What became of everything that was pushed.
#[derive(Debug, Default)]
struct Run {
    pushed: BTreeMap<u64, Mono>,
    taken: Vec<Taken>,
    settled: Vec<Settled>,
    refused: BTreeSet<u64>,
    waiting: usize,
    /// Which lanes still waited after each flush.
    backlog: Vec<[bool; 4]>,
}

fn run(case: &Case) -> Run {
    let mut scheduler = Scheduler::new(Limits {
        shares: Shares::new(case.percents).unwrap(),
        protected_waiting_max: PLACES,
        merges_equal: case.merges_equal,
        ..limits(case.items_max, 1 << 20)
    });
    let mut run = Run::default();
    let flushes = case.loads.iter().cycle().flat_map(|it| (0..it.flushes).map(move |_| it));
    for (flush, load) in (0..SECONDS * FLUSHES_PER_S).zip(flushes) {
        let now = Mono((flush as u64 + 1) * 200);
        for (lane, &count) in Lane::ALL.into_iter().zip(&load.items) {
            for _ in 0..count {
                let id = run.pushed.len() as u64 + 1;
                run.pushed.insert(id, now);
                let sender = SenderRef(id % load.senders);
                let text = format!("text {}", id % case.texts);
                if scheduler.push(Item { sender, ..item(id, lane, &text) }, now).is_err() {
                    run.refused.insert(id);
                }
            }
        }
        let second = flush / FLUSHES_PER_S;
        let elapsed_ms = u32::try_from((flush % FLUSHES_PER_S + 1) * 200).unwrap();
        let items = scheduler.take(Span { second: second as u64, elapsed_ms }, CAPS, now);
        run.taken.extend(items.into_iter().map(|item| Taken { second, at: now, item }));
        run.settled.extend(settled(&mut scheduler));
        run.backlog.push(Lane::ALL.map(|lane| scheduler.waiting(lane) > 0));
    }
    run.waiting = scheduler.lanes.iter().flatten().map(|it| 1 + it.joined.len()).sum();
    run
}

impl Run {
    /// Items of a lane in each second.
    fn seconds(&self, lane: Lane) -> Vec<u64> {
        let mut seconds = vec![0; SECONDS];
        for taken in self.taken.iter().filter(|it| it.item.lane == lane) {
            seconds[taken.second] += 1;
        }
        seconds
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn all_that_came_was_taken_settled_or_refused_once_or_waits(case in case()) {
        let run = run(&case);

        let taken = run.taken.iter().map(|it| it.item.id.0);
        let settled = run.settled.iter().map(|it| it.id.0);
        let ended: Vec<u64> = taken.chain(settled).chain(run.refused.iter().copied()).collect();
        let distinct: BTreeSet<u64> = ended.iter().copied().collect();
        prop_assert_eq!(distinct.len(), ended.len(), "something ended twice");
        prop_assert_eq!(ended.len() + run.waiting, run.pushed.len());
    }

    #[test]
    fn counts_say_how_many_were_merged_and_all_of_them_are_told(case in case()) {
        let run = run(&case);

        let mut counts: BTreeMap<ItemId, u32> = BTreeMap::new();
        for settled in &run.settled {
            if let Fate::Merged { into } = settled.fate {
                prop_assert!(case.merges_equal && settled.lane == Lane::Comment);
                *counts.entry(into).or_insert(1) += 1;
            }
        }
        for Taken { item, .. } in run.taken.iter().filter(|it| it.item.lane == Lane::Comment) {
            let (id, count) = counted(item);
            prop_assert_eq!(count, counts.remove(&ItemId(id)).unwrap_or(1));
        }
        prop_assert!(counts.is_empty(), "merged into what was not taken");
    }

    #[test]
    fn no_comment_waits_longer_than_it_may(case in case()) {
        let run = run(&case);

        for Taken { at, item, .. } in run.taken.iter().filter(|it| it.item.lane == Lane::Comment) {
            let waited = at.since(run.pushed[&item.id.0]);
            prop_assert!(waited <= Duration::from_millis(3200), "waited {:?}", waited);
        }
    }

    #[test]
    fn no_second_spends_more_than_its_budget(case in case()) {
        let run = run(&case);

        let lanes = Lane::ALL.map(|lane| run.seconds(lane));
        for second in 0..SECONDS {
            let spent: u64 = lanes.iter().map(|it| it[second]).sum();
            prop_assert!(spent <= u64::from(case.items_max), "{} in second {}", spent, second);
        }
    }

    #[test]
    fn protected_lanes_are_never_shed(case in case()) {
        let run = run(&case);

        prop_assert_eq!(run.settled.iter().find(|it| it.lane.is_protected()), None);
    }

    #[test]
    fn a_lane_that_waits_for_a_minute_gets_its_share_but_for_an_item(case in case()) {
        let run = run(&case);

        for (at, lane) in Lane::ALL.into_iter().enumerate() {
            let seconds = run.seconds(lane);
            let waits = run.backlog.chunks(FLUSHES_PER_S).map(|it| it.iter().all(|it| it[at]));
            let waits: Vec<bool> = waits.collect();
            let due = u64::from(case.items_max) * u64::from(case.percents[at]) * 60 / 100;
            for first in 0..=SECONDS - 60 {
                if waits[first..first + 60].iter().all(|it| *it) {
                    let got: u64 = seconds[first..first + 60].iter().sum();
                    prop_assert!(got + 1 >= due, "{lane:?} got {got} of {due}");
                }
            }
        }
    }

    #[test]
    fn nothing_protected_waits_longer_than_a_full_lane_takes(case in case()) {
        let run = run(&case);

        for (at, lane) in Lane::ALL.into_iter().enumerate().filter(|it| it.1.is_protected()) {
            let per_minute = u64::from(case.items_max) * u64::from(case.percents[at]) * 60 / 100;
            let age_max = Duration::from_secs(2 + (PLACES as u64 + 2) * 60 / per_minute);
            for Taken { at, item, .. } in run.taken.iter().filter(|it| it.item.lane == lane) {
                let waited = at.since(run.pushed[&item.id.0]);
                prop_assert!(waited <= age_max, "{lane:?} waited {waited:?} of {age_max:?}");
            }
        }
    }

    #[test]
    fn what_a_sender_says_keeps_its_order(case in case()) {
        let run = run(&case);

        let mut last: BTreeMap<(usize, SenderRef), ItemId> = BTreeMap::new();
        for Taken { item, .. } in &run.taken {
            let before = last.insert((index(item.lane), item.sender), item.id);
            prop_assert!(before.is_none_or(|it| it < item.id));
        }
    }

    #[test]
    fn one_loud_sender_pushes_out_none_of_a_hundred_quiet_ones(
        quiet in 1..=100_usize, loud in 200..2000_u64, loud_first in any::<bool>(),
    ) {
        let mut scheduler = Scheduler::new(limits(50, 1 << 20));
        let mut said: Vec<(u64, u64)> = (1..=quiet as u64).map(|id| (id, id)).collect();
        let noise = (1..=loud).map(|id| (1_000 + id, 0));
        said.splice(if loud_first { 0..0 } else { quiet..quiet }, noise);

        for (id, sender) in said {
            let sender = SenderRef(sender);
            scheduler.push(Item { sender, ..item(id, Lane::Comment, "x") }, Mono(0)).unwrap();
        }

        let shed = settled(&mut scheduler);
        prop_assert!(shed.iter().all(|it| it.id.0 > 1_000), "{:?}", shed);
        prop_assert_eq!(scheduler.waiting(Lane::Comment), 150);
        let newest = scheduler.lanes[index(Lane::Comment)].iter().map(|it| it.item.id.0).max();
        prop_assert_eq!(newest, Some(1_000 + loud), "the newest are kept");
    }
}
