//! Lanes, shares and shedding, by the verbs push and take.

use proto::id::SenderRef;
use proto::item::{Body, Role, Style};
use proto::time::Wall;

use super::*;

mod properties;

const CAPS: Budget = Budget { items_max: 1000, bytes_max: 1 << 20 };

fn limits(items_max: u32, bytes_max: u32) -> Limits {
    Limits {
        budget: Budget { items_max, bytes_max },
        shares: Shares::default(),
        wait_ms_max: 3000,
        protected_waiting_max: 100,
        combo: Duration::ZERO,
        merges_equal: false,
    }
}

fn item(id: u64, lane: Lane, text: &str) -> Item {
    let body =
        Body::Comment { text: text.into(), style: Style::default(), media_ms: None, count: 1 };
    Item { id: ItemId(id), lane, sender: SenderRef(1), role: Role::Viewer, at: Wall(0), body }
}

fn fill(scheduler: &mut Scheduler, lane: Lane, ids: std::ops::Range<u64>) {
    for id in ids {
        scheduler.push(item(id, lane, "text"), Mono(0)).unwrap();
    }
}

fn ids(items: &[Item]) -> Vec<u64> {
    items.iter().map(|it| it.id.0).collect()
}

fn of_lane(items: &[Item], lane: Lane) -> usize {
    items.iter().filter(|it| it.lane == lane).count()
}

const FIRST: Span = Span { second: 1, elapsed_ms: 200 };
const WHOLE: Span = Span { second: 1, elapsed_ms: 1000 };

#[test]
fn each_lane_gets_its_share_when_all_are_full() {
    let mut scheduler = Scheduler::new(limits(100, 1 << 20));
    fill(&mut scheduler, Lane::Notice, 0..100);
    fill(&mut scheduler, Lane::HighGift, 100..200);
    fill(&mut scheduler, Lane::LowGift, 200..300);
    fill(&mut scheduler, Lane::Comment, 300..400);

    let items = scheduler.take(WHOLE, CAPS, Mono(0));

    let counts = Lane::ALL.map(|lane| of_lane(&items, lane));
    assert_eq!(counts, [10, 30, 20, 40]);
}

#[test]
fn an_unused_share_goes_to_the_lanes_that_wait() {
    let mut scheduler = Scheduler::new(limits(50, 1 << 20));
    fill(&mut scheduler, Lane::Comment, 0..100);
    assert_eq!(scheduler.take(FIRST, CAPS, Mono(0)).len(), 10);

    fill(&mut scheduler, Lane::LowGift, 100..200);
    let items = scheduler.take(Span { second: 2, elapsed_ms: 1000 }, CAPS, Mono(0));

    assert_eq!(of_lane(&items, Lane::LowGift), 30);
    assert_eq!(of_lane(&items, Lane::Comment), 20);
}

#[test]
fn bytes_bound_a_flush_as_items_do() {
    let mut scheduler = Scheduler::new(limits(100, 40));
    fill(&mut scheduler, Lane::Comment, 0..100);

    assert_eq!(ids(&scheduler.take(FIRST, CAPS, Mono(0))), [0, 1]);
    assert_eq!(scheduler.take(WHOLE, CAPS, Mono(0)).len(), 8);
    assert_eq!(scheduler.take(WHOLE, CAPS, Mono(0)).len(), 0);
}

#[test]
fn a_text_longer_than_a_second_is_shown_when_its_second_has_room() {
    let mut scheduler = Scheduler::new(limits(50, 100));
    scheduler.push(item(1, Lane::HighGift, &"x".repeat(2000)), Mono(0)).unwrap();
    fill(&mut scheduler, Lane::Comment, 2..60);

    let mut items = Vec::new();
    for elapsed_ms in [200, 400, 600, 800, 1000] {
        items.extend(scheduler.take(Span { second: 1, elapsed_ms }, CAPS, Mono(0)));
    }

    assert_eq!(of_lane(&items, Lane::HighGift), 1);
}

#[test]
fn a_comment_waits_three_seconds_and_is_then_shed() {
    let mut scheduler = Scheduler::new(limits(1, 1000));
    scheduler.push(item(1, Lane::Comment, "first"), Mono(0)).unwrap();
    scheduler.push(item(2, Lane::Comment, "second"), Mono(500)).unwrap();

    scheduler.expire(Reason::OverBudget, Mono(2999));
    assert_eq!(scheduler.poll(), None);
    assert_eq!(scheduler.deadline(), Some(Mono(3000)));

    scheduler.expire(Reason::OverBudget, Mono(3000));
    let fate = Fate::Shed { reason: Reason::OverBudget };
    assert_eq!(scheduler.poll(), Some(Settled { id: ItemId(1), lane: Lane::Comment, fate }));
    assert_eq!(scheduler.poll(), None);
}

#[test]
fn a_flood_keeps_the_newest_comments() {
    let mut scheduler = Scheduler::new(limits(50, 1 << 20));

    fill(&mut scheduler, Lane::Comment, 0..1000);

    assert_eq!(scheduler.waiting(Lane::Comment), 150);
    assert_eq!(std::iter::from_fn(|| scheduler.poll()).count(), 850);
    assert_eq!(ids(&scheduler.take(FIRST, CAPS, Mono(0))), (850..860).collect::<Vec<_>>());
}

#[test]
fn a_full_protected_lane_refuses_and_never_sheds() {
    let mut scheduler = Scheduler::new(limits(50, 1 << 20));
    fill(&mut scheduler, Lane::HighGift, 0..100);

    assert_eq!(scheduler.push(item(100, Lane::HighGift, ""), Mono(0)), Err(Full));
    scheduler.expire(Reason::OverBudget, Mono(1_000_000));
    assert_eq!(scheduler.poll(), None);
}

#[test]
fn caps_bound_a_flush_besides_the_budget() {
    let mut scheduler = Scheduler::new(limits(10_000, 1 << 20));
    fill(&mut scheduler, Lane::Comment, 0..5000);

    let caps = Budget { items_max: 7, bytes_max: 20 };

    assert_eq!(scheduler.take(WHOLE, caps, Mono(0)).len(), 5);
}

#[test]
fn equal_gifts_of_one_sender_become_one_with_their_sum() {
    let mut scheduler = Scheduler::new(Limits { combo: COMBO, ..limits(50, 1 << 20) });
    for (id, sender, at) in [(1, 1, 0), (2, 2, 10), (3, 1, 990), (4, 1, 1000)] {
        scheduler.push(gift(id, sender, Lane::LowGift), Mono(at)).unwrap();
    }

    let early = scheduler.take(WHOLE, CAPS, Mono(999));
    let first = scheduler.take(Span { second: 2, elapsed_ms: 1000 }, CAPS, Mono(1000));

    assert_eq!(early, []);
    assert_eq!(first.iter().map(counted).collect::<Vec<_>>(), [(1, 4)]);
    let fate = Fate::Merged { into: ItemId(1) };
    assert_eq!(settled(&mut scheduler), [Settled { id: ItemId(3), lane: Lane::LowGift, fate }]);
    let rest = scheduler.take(Span { second: 4, elapsed_ms: 1000 }, CAPS, Mono(3000));
    assert_eq!(rest.iter().map(counted).collect::<Vec<_>>(), [(2, 2), (4, 2)]);
}

#[test]
fn a_high_gift_waits_for_none_and_takes_in_those_that_wait_too() {
    let mut scheduler = Scheduler::new(Limits { combo: COMBO, ..limits(50, 1 << 20) });
    scheduler.push(gift(1, 1, Lane::HighGift), Mono(0)).unwrap();
    scheduler.push(gift(2, 1, Lane::HighGift), Mono(100)).unwrap();

    let items = scheduler.take(FIRST, CAPS, Mono(200));

    assert_eq!(items.iter().map(counted).collect::<Vec<_>>(), [(1, 4)]);
}

#[test]
fn a_recalled_gift_leaves_its_combo_and_the_rest_goes_on_under_the_next_one() {
    let mut scheduler = Scheduler::new(Limits { combo: COMBO, ..limits(50, 1 << 20) });
    for id in 1..=4 {
        scheduler.push(gift(id, 1, Lane::LowGift), Mono(0)).unwrap();
    }
    let first = |it: &Scheduler| counted(&it.lanes[index(Lane::LowGift)][0].item);

    assert!(scheduler.recall(ItemId(2)));
    assert_eq!(first(&scheduler), (1, 6));
    assert!(scheduler.recall(ItemId(1)));
    assert_eq!(first(&scheduler), (3, 4));
    assert!(scheduler.recall(ItemId(3)));
    assert_eq!(first(&scheduler), (4, 2));
    assert!(scheduler.recall(ItemId(4)));

    assert!(scheduler.is_empty() && !scheduler.recall(ItemId(4)));
    let ids: Vec<u64> = settled(&mut scheduler).iter().map(|it| it.id.0).collect();
    assert_eq!(ids, [2, 1, 3, 4]);
}

#[test]
fn equal_comments_that_wait_become_one_with_their_count() {
    let mut scheduler = merging(50);
    for (id, text) in [(1, "666"), (2, "hello"), (3, "666"), (4, "666 "), (5, "666")] {
        scheduler.push(said(id, text), Mono(0)).unwrap();
    }

    let items = scheduler.take(WHOLE, CAPS, Mono(200));

    assert_eq!(items.iter().map(counted).collect::<Vec<_>>(), [(1, 3), (2, 1), (4, 1)]);
    let fate = Fate::Merged { into: ItemId(1) };
    let merged = |id| Settled { id: ItemId(id), lane: Lane::Comment, fate };
    assert_eq!(settled(&mut scheduler), [merged(3), merged(5)]);
    scheduler.push(said(6, "666"), Mono(300)).unwrap();
    assert_eq!(scheduler.waiting(Lane::Comment), 1, "what was shown takes in nothing");
}

#[test]
fn what_is_styled_or_said_by_somebody_special_stands_by_itself() {
    let mut scheduler = merging(50);
    let style = Style { color: 0xff_0000, ..Style::default() };
    let styled = Body::Comment { text: "666".into(), style, media_ms: None, count: 1 };
    for (id, role) in (0..6).zip([Role::Vip, Role::Moderator, Role::Host].into_iter().cycle()) {
        scheduler.push(Item { role, ..said(id, "666") }, Mono(0)).unwrap();
    }
    for id in 6..8 {
        scheduler.push(Item { body: styled.clone(), ..said(id, "") }, Mono(0)).unwrap();
    }
    scheduler.push(said(8, "666"), Mono(0)).unwrap();

    assert_eq!(scheduler.waiting(Lane::Comment), 9);
}

#[test]
fn a_recalled_comment_leaves_those_who_said_the_same() {
    let mut scheduler = merging(50);
    for id in 1..=3 {
        scheduler.push(said(id, "666"), Mono(0)).unwrap();
    }

    assert!(scheduler.recall(ItemId(1)));
    assert!(scheduler.recall(ItemId(3)));
    let items = scheduler.take(WHOLE, CAPS, Mono(200));

    let found: Vec<_> = items.iter().map(|it| (counted(it), it.sender)).collect();
    assert_eq!(found, [((2, 1), SenderRef(2))]);
    assert_eq!(scheduler.senders.of(SenderRef(2)), 0);
}

#[test]
fn what_several_said_gives_way_after_what_one_said_and_all_are_told() {
    let mut scheduler = merging(1);
    for (id, text) in [(1, "666"), (2, "666"), (3, "a"), (4, "b"), (5, "c")] {
        scheduler.push(said(id, text), Mono(0)).unwrap();
    }

    assert_eq!(settled(&mut scheduler).iter().map(|it| it.id.0).collect::<Vec<_>>(), [3]);
    scheduler.expire(Reason::OverBudget, Mono(3000));
    assert_eq!(settled(&mut scheduler).iter().map(|it| it.id.0).collect::<Vec<_>>(), [1, 2, 4, 5]);
}

fn merging(items_max: u32) -> Scheduler {
    Scheduler::new(Limits { merges_equal: true, ..limits(items_max, 1 << 20) })
}

/// A comment of a sender of its own.
fn said(id: u64, text: &str) -> Item {
    Item { sender: SenderRef(id), ..item(id, Lane::Comment, text) }
}

const COMBO: Duration = Duration::from_secs(1);

fn gift(id: u64, sender: u64, lane: Lane) -> Item {
    let body = Body::Gift { gift_no: 7, count: 2, text: String::new() };
    Item { body, sender: SenderRef(sender), ..item(id, lane, "") }
}

fn counted(item: &Item) -> (u64, u32) {
    match item.body {
        Body::Gift { count, .. } | Body::Comment { count, .. } => (item.id.0, count),
        Body::Like { .. }
        | Body::Entry
        | Body::Notice { .. }
        | Body::Tombstone { .. }
        | Body::System { .. }
        | Body::Effect { .. }
        | Body::Custom { .. }
        | Body::Erasure { .. } => (item.id.0, 0),
    }
}

fn settled(scheduler: &mut Scheduler) -> Vec<Settled> {
    std::iter::from_fn(|| scheduler.poll()).collect()
}
