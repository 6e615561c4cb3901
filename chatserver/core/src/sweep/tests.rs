//! What a search finds, and what it leaves.

use proto::id::{SenderRef, Seq};
use proto::item::{Item, Lane, Role, Style};
use proto::time::Wall;

use super::*;
use crate::words::Word;

const APP: AppId = AppId(1);

#[test]
fn a_search_finds_what_was_said_before_it_began_in_bounded_steps() {
    let mut sweep = Sweep::new(10_000);
    for (id, text) in [(1, "a badword"), (2, "fine"), (3, "badword")] {
        say(&mut sweep, "r", id, text, 0);
    }
    say(&mut sweep, "other", 4, "badword", 0);
    let words = list("badword", Action::Refuse);

    sweep.begin(APP, Some(&room("r")), Mono(0));
    say(&mut sweep, "r", 5, "badword", 0);
    let first = step(&mut sweep, &[&words], 2).unwrap();
    let second = step(&mut sweep, &[&words], 2).unwrap();

    assert_eq!((first.ids, first.comments, first.is_over), (vec![ItemId(1)], 2, false));
    assert_eq!((second.ids, second.comments, second.is_over), (vec![ItemId(3)], 1, true));
    assert_eq!(step(&mut sweep, &[&words], 2), None);
}

#[test]
fn an_apps_list_is_looked_for_in_all_its_rooms_and_only_refused_words_count() {
    let mut sweep = Sweep::new(10_000);
    say(&mut sweep, "a", 1, "badword", 0);
    say(&mut sweep, "b", 2, "mild", 0);
    let words = [list("badword", Action::Refuse), list("mild", Action::Mask)];
    let lists: Vec<&Words> = words.iter().collect();

    sweep.begin(AppId(2), None, Mono(0));
    assert_eq!(sweep.next(), None);
    sweep.begin(APP, None, Mono(0));
    let found: Vec<_> = std::iter::from_fn(|| step(&mut sweep, &lists, 10)).collect();

    assert_eq!(found.iter().map(|it| it.ids.len()).collect::<Vec<_>>(), [1, 0]);
}

#[test]
fn what_was_recalled_or_is_old_is_not_found() {
    let mut sweep = Sweep::new(10_000);
    let words = list("badword", Action::Refuse);
    for (id, now) in [(1, 0), (2, 1), (3, 2)] {
        say(&mut sweep, "r", id, "badword", now);
    }
    let recall = placed(9, Body::Tombstone { of: ItemId(2) });
    sweep.show(APP, &room("r"), &[recall], Mono(3));

    sweep.expire(Mono(600_000));
    sweep.begin(APP, None, Mono(0));

    assert_eq!(step(&mut sweep, &[&words], 10).unwrap().ids, [ItemId(3)]);
}

#[test]
fn the_oldest_makes_way_and_is_counted() {
    let mut sweep = Sweep::new(3 * (OVERHEAD_BYTES + 7));
    let words = list("badword", Action::Refuse);
    for id in 1..=5 {
        say(&mut sweep, "r", id, "badword", id);
    }

    sweep.begin(APP, None, Mono(0));

    assert_eq!(step(&mut sweep, &[&words], 10).unwrap().ids, [3, 4, 5].map(ItemId));
    assert_eq!((sweep.forgotten(), sweep.forgotten()), (2, 0));
    sweep.expire(Mono(1_000_000));
    assert_eq!((sweep.bytes(), sweep.rooms.len(), sweep.order.len()), (0, 0, 0));
}

#[test]
fn no_room_is_looked_at_with_the_lists_of_another() {
    let mut sweep = Sweep::new(10_000);
    let words = list("badword", Action::Refuse);
    for name in ["a", "b"] {
        say(&mut sweep, name, 1, "badword", 0);
    }
    sweep.begin(APP, None, Mono(0));
    let first = sweep.next().unwrap();

    sweep.begin(APP, Some(&room("a")), Mono(0));

    assert_eq!(sweep.step(&first, &[&words], 10), None);
    let found: Vec<_> = std::iter::from_fn(|| step(&mut sweep, &[&words], 10)).collect();
    assert_eq!(found.iter().map(|it| it.room.as_str()).collect::<Vec<_>>(), ["a", "b"]);
}

#[test]
fn a_room_that_is_being_looked_at_begins_anew_behind_those_that_wait() {
    let mut sweep = Sweep::new(10_000);
    let words = list("badword", Action::Refuse);
    for (id, name) in [(1, "a"), (2, "a"), (3, "b"), (4, "c")] {
        say(&mut sweep, name, id, "badword", 0);
    }
    sweep.begin(APP, None, Mono(0));
    step(&mut sweep, &[&words], 1);

    sweep.begin(APP, None, Mono(0));
    let found: Vec<_> = std::iter::from_fn(|| step(&mut sweep, &[&words], 10)).collect();

    let ids: Vec<_> = found.into_iter().flat_map(|it| it.ids).map(|it| it.0).collect();
    assert_eq!(ids, [3, 4, 1, 2]);
}

#[test]
fn what_was_judged_by_the_old_list_and_shown_after_the_change_is_found() {
    let mut sweep = Sweep::new(10_000);
    let words = list("badword", Action::Refuse);
    say(&mut sweep, "r", 1, "badword", 0);
    sweep.begin(APP, Some(&room("r")), Mono(0));
    assert_eq!(step(&mut sweep, &[&words], 10).unwrap().ids, [ItemId(1)]);

    let mut found = Vec::new();
    for second in 1..=40 {
        let now = second * 1000;
        say(&mut sweep, "r", second + 1, "badword", now - 1);
        say(&mut sweep, "other", second + 100, "badword", now - 1);
        sweep.tick(Mono(now));
        found.extend(step(&mut sweep, &[&words], 10).into_iter().flat_map(|it| it.ids));
    }

    assert_eq!(found, (2..=36).map(ItemId).collect::<Vec<_>>());
    assert_eq!(sweep.deadline(), None);
}

#[test]
fn a_room_is_searched_until_its_search_is_over() {
    let mut sweep = Sweep::new(10_000);
    say(&mut sweep, "r", 1, "fine", 0);
    sweep.begin(APP, None, Mono(0));
    assert!(sweep.is_searched(&(APP, room("r"))));

    sweep.expire(Mono(600_000));
    let found = step(&mut sweep, &[], 10).unwrap();

    assert_eq!((found.comments, found.is_over), (0, true));
    assert!(!sweep.is_searched(&(APP, room("r"))));
}

fn step(sweep: &mut Sweep, lists: &[&Words], comments_max: usize) -> Option<Found> {
    let next = sweep.next()?;
    sweep.step(&next, lists, comments_max)
}

fn list(text: &str, action: Action) -> Words {
    Words::compile(&[Word { text: text.to_owned(), action }]).unwrap()
}

fn say(sweep: &mut Sweep, name: &str, id: u64, text: &str, now: u64) {
    let body =
        Body::Comment { text: text.into(), style: Style::default(), media_ms: None, count: 1 };
    sweep.show(APP, &room(name), &[placed(id, body)], Mono(now));
}

fn placed(id: u64, body: Body) -> Placed {
    let (lane, role, at) = (Lane::Comment, Role::Viewer, Wall(id));
    let item = Item { id: ItemId(id), lane, sender: SenderRef(1), role, at, body };
    Placed { seq: Seq(id), item }
}

fn room(name: &str) -> RoomId {
    RoomId::parse(name).unwrap()
}
