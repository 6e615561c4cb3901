//! A courier through its verbs, in virtual time.

use proptest::prelude::*;

use super::*;

const LIMITS: Limits = Limits {
    events_max: 16,
    batch_max: 4,
    linger: Duration::from_millis(1000),
    viewers_per_s_max: 10,
    age_max: Duration::from_mins(5),
};

fn event(kind: Kind, at: u64) -> Event {
    Event::new(kind, RoomId::parse("r").unwrap(), Wall(at))
}

fn feed(courier: &mut Courier, input: Input, now: u64) -> Vec<Output> {
    courier.handle(input, Mono(now));
    std::iter::from_fn(|| courier.poll()).collect()
}

fn tick(courier: &mut Courier, now: u64) -> Vec<Output> {
    courier.tick(Mono(now));
    std::iter::from_fn(|| courier.poll()).collect()
}

fn mute(at: u64) -> Input {
    Input::Event(event(Kind::Mute, at))
}

fn batch(no: u64, at: &[u64], missed: u64) -> Output {
    let events = at.iter().map(|it| event(Kind::Mute, *it)).collect();
    Output::Send(Batch { no, events, missed })
}

#[test]
fn a_batch_goes_when_it_is_full_or_its_first_event_waited() {
    let mut courier = Courier::new(LIMITS, Mono(0));

    assert_eq!(feed(&mut courier, mute(1), 0), []);
    assert_eq!(courier.deadline(), Some(Mono(1000)));
    assert_eq!(feed(&mut courier, mute(2), 999), []);
    assert_eq!(tick(&mut courier, 1000), [batch(0, &[1, 2], 0)]);
    assert_eq!(feed(&mut courier, Input::Delivered, 1001), []);

    (3..6).for_each(|it| assert_eq!(feed(&mut courier, mute(it), 2000), []));
    assert_eq!(feed(&mut courier, mute(6), 2000), [batch(1, &[3, 4, 5, 6], 0)]);
}

#[test]
fn one_batch_is_under_way_at_a_time_and_the_next_follows_at_once() {
    let mut courier = Courier::new(LIMITS, Mono(0));
    let sent: Vec<Output> = (0..9).flat_map(|it| feed(&mut courier, mute(it), 0)).collect();

    assert_eq!(sent, [batch(0, &[0, 1, 2, 3], 0)]);
    assert_eq!(tick(&mut courier, 60_000), []);
    assert_eq!(feed(&mut courier, Input::Delivered, 60_000), [batch(1, &[4, 5, 6, 7], 0)]);
}

#[test]
fn a_batch_that_failed_is_sent_again_after_longer_and_longer_pauses() {
    let mut courier = Courier::new(LIMITS, Mono(0));
    (0..4).for_each(|it| drop(feed(&mut courier, mute(it), 0)));
    let mut now = 0;

    for most_ms in [500, 1000, 2000, 4000, 8000] {
        // The longest pause that the jitter gives.
        assert_eq!(feed(&mut courier, Input::Failed { roll: most_ms - 1 }, now), []);
        now += most_ms - 1;
        assert_eq!(courier.deadline(), Some(Mono(now)));
        assert_eq!(tick(&mut courier, now - 1), []);
        assert_eq!(tick(&mut courier, now), [batch(0, &[0, 1, 2, 3], 0)]);
    }
}

#[test]
fn a_batch_that_is_too_old_is_lost_and_the_next_one_says_so() {
    let mut courier = Courier::new(LIMITS, Mono(0));
    (0..6).for_each(|it| drop(feed(&mut courier, mute(it), 0)));

    let outputs = feed(&mut courier, Input::Failed { roll: 1 }, 300_000);

    assert_eq!(outputs, [Output::Lost(Lost::Old, 4), batch(1, &[4, 5], 4)]);
}

#[test]
fn viewers_have_a_rate_and_leave_places_to_moderators() {
    let mut courier = Courier::new(Limits { batch_max: 100, ..LIMITS }, Mono(0));
    let join = || Input::Event(event(Kind::Join, 0));

    let lost = (0..15).map(|_| feed(&mut courier, join(), 0).len()).sum::<usize>();
    assert_eq!((lost, courier.waiting()), (5, 10));
    let lost = (0..15).map(|_| feed(&mut courier, join(), 900).len()).sum::<usize>();
    assert_eq!((lost, courier.waiting()), (11, 14));
    let full = (0..3).flat_map(|it| feed(&mut courier, mute(it), 900)).collect::<Vec<_>>();

    assert_eq!((full, courier.waiting()), (vec![Output::Lost(Lost::Full, 1)], 16));
    let outputs = tick(&mut courier, 1000);
    assert!(matches!(&outputs[..], [Output::Send(Batch { missed: 17, .. })]), "{outputs:?}");
}

#[test]
fn facts_of_moderators_are_events() {
    let room = RoomId::parse("r").unwrap();
    let viewer = ViewerId::parse("v").unwrap();
    let app = AppId(1);
    let mute = Fact::Mute { app, room: room.clone(), viewer: viewer.clone(), until: Wall(9) };
    let keep = Fact::Keep { app, room: room.clone(), keep_permille: 1 };

    let event = Event::of_fact(&mute, Wall(5));

    let expected = Event {
        account: Some(viewer),
        until: Some(Wall(9)),
        ..Event::new(Kind::Mute, room, Wall(5))
    };
    assert_eq!(event, Some((app, expected)));
    assert_eq!(Event::of_fact(&keep, Wall(5)), None);
}

proptest! {
    /// Whatever fails: every event is in one batch, or is said to be missed.
    #[test]
    fn every_event_arrives_or_is_counted(
        steps in proptest::collection::vec((0_u8..4, any::<u64>(), 0_u64..200_000), 1..200),
    ) {
        let mut courier = Courier::new(LIMITS, Mono(0));
        let (mut now, mut told, mut lost, mut missed, mut given) = (0, 0, 0, 0, 0);
        let mut under_way: Option<Batch> = None;

        for (what, roll, ms) in steps {
            now += ms;
            let outputs = match (what, under_way.take()) {
                (0, Some(batch)) => {
                    told += batch.events.len() as u64;
                    missed += batch.missed;
                    feed(&mut courier, Input::Delivered, now)
                }
                (1, Some(_)) => feed(&mut courier, Input::Failed { roll }, now),
                (_, batch) => {
                    under_way = batch;
                    given += 1;
                    let kind = if what == 2 { Kind::Join } else { Kind::Ban };
                    feed(&mut courier, Input::Event(event(kind, now)), now)
                }
            };
            for output in outputs {
                match output {
                    Output::Send(batch) => {
                        prop_assert!(under_way.is_none() && batch.events.len() <= 4);
                        under_way = Some(batch);
                    }
                    Output::Lost(_, events) => lost += events,
                }
            }
            prop_assert!(courier.waiting() <= LIMITS.events_max);
        }

        let under_way_missed = courier.under_way.as_ref().map_or(0, |it| it.batch.missed);
        prop_assert_eq!(told + courier.waiting() as u64 + lost, given);
        prop_assert_eq!(missed + courier.missed + under_way_missed, lost);
    }
}

#[test]
fn what_was_lost_on_the_way_is_said_by_the_next_batch_alone() {
    let mut courier = Courier::new(LIMITS, Mono(0));

    assert_eq!(feed(&mut courier, Input::Missed(3), 0), []);
    assert_eq!(courier.deadline(), None, "it sends no batch of its own");
    feed(&mut courier, mute(1), 1);
    assert_eq!(tick(&mut courier, 1001), [batch(0, &[1], 3)]);

    feed(&mut courier, Input::Delivered, 1002);
    feed(&mut courier, mute(1003), 1003);
    assert_eq!(tick(&mut courier, 2003), [batch(1, &[1003], 0)]);
}
