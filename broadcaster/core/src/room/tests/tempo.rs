//! A room whose slots grow longer while very many fetch them.

use super::*;

/// Sessions that want slots of 1, 2 and 5 seconds.
const CROWDS: [u32; 3] = [300_000, 600_000, 5_000_000];

impl Stage {
    /// So many are there for some seconds, and are counted each second.
    fn crowd(&mut self, sessions: u32, seconds: u64) {
        for _ in 0..seconds {
            self.tell(Input::Gauge { people: sessions, sessions });
            self.advance(1000);
        }
    }

    fn intervals(&self) -> Vec<u32> {
        self.opened.iter().map(|it| it.interval_ms).collect()
    }

    /// Each gen that was announced begins where the one before ends, and has its slots from 0 on.
    fn check_gens(&self) {
        for (next, info) in (1..).zip(&self.opened) {
            let slots = self.seals.iter().map(|it| &it.full.header);
            let slots: Vec<_> = slots.filter(|it| it.gen_no == info.gen_no).collect();
            let numbers: Vec<u64> = slots.iter().map(|it| it.slot.0).collect();
            assert_eq!(numbers, (0..slots.len() as u64).collect::<Vec<_>>());
            let Some(following) = self.opened.get(next) else { continue };
            let last = slots[slots.len() - 1];
            let end = info.epoch_ms.0 + (last.slot.0 + 1) * u64::from(info.interval_ms);
            assert_eq!(following.epoch_ms, Wall(end), "no hole between the gens, and no overlap");
            assert_eq!((last.end, last.next), (Some(last.slot), Some(*following)));
            let mut ahead = slots.iter().rev().take(2);
            assert!(ahead.all(|it| it.next == Some(*following)), "it is announced ahead");
        }
    }
}

#[test]
fn slots_grow_with_the_crowd_of_a_hot_room_and_shrink_when_it_leaves() {
    let mut stage = Stage::new(&RoomSettings::default());

    stage.crowd(CROWDS[0], 120);
    assert_eq!(stage.intervals(), [1000]);
    stage.crowd(CROWDS[1], 30);
    stage.crowd(CROWDS[2], 30);
    stage.crowd(CROWDS[1], 120);
    assert_eq!(stage.intervals(), [1000, 2000, 5000], "600,000 are no less than the 80 percent");
    stage.crowd(CROWDS[0], 120);
    stage.crowd(0, 120);

    assert_eq!(stage.intervals(), [1000, 2000, 5000, 2000, 1000]);
    stage.check_gens();
    let spreads: Vec<u32> = stage.seals.iter().map(|it| it.full.header.spread_ms).collect();
    assert_eq!((spreads[0], spreads.iter().max()), (300, Some(&1500)));
}

#[test]
fn a_room_that_is_pushed_to_keeps_its_slots() {
    let cold = RoomSettings { hot_sessions: u32::MAX, ..RoomSettings::default() };
    let mut stage = Stage::new(&cold);

    stage.crowd(CROWDS[2], 60);

    assert_eq!(stage.intervals(), [1000]);
}

#[test]
fn a_room_that_wants_to_be_instant_stays_so() {
    let instant = RoomSettings { interval_ms_max: Some(1000), ..RoomSettings::default() };
    let mut stage = Stage::new(&instant);

    stage.crowd(CROWDS[2], 60);

    assert_eq!(stage.intervals(), [1000]);
}

#[test]
fn slots_stay_short_where_a_longer_one_would_not_hold_a_second_s_items_five_times() {
    let busy = RoomSettings { items_per_s: 1000, ..RoomSettings::default() };
    let mut stage = Stage::new(&busy);

    stage.crowd(CROWDS[2], 60);

    assert_eq!(stage.intervals(), [1000, 2000]);
}

#[test]
fn another_broadcaster_keeps_the_length_and_the_announced_change() {
    let settings = RoomSettings::default();
    let mut stage = Stage::new(&settings);
    stage.crowd(CROWDS[1], 30);
    assert_eq!(stage.intervals(), [1000, 2000]);

    stage.take_over(&settings);
    stage.crowd(CROWDS[1], 30);
    assert_eq!(stage.intervals(), [1000, 2000], "it goes on as it was");

    while stage.seals.last().is_none_or(|it| it.full.header.next.is_none()) {
        stage.crowd(CROWDS[2], 1);
    }
    stage.take_over(&settings);
    stage.crowd(CROWDS[2], 30);

    assert_eq!(stage.intervals(), [1000, 2000, 5000]);
    stage.check_gens();
}
