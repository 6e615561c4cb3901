//! A journal in virtual time.

use proptest::prelude::*;
use proto::id::{AppId, SenderRef, Seq};
use proto::item::{Body, Item, Lane, Placed, Role};

use super::*;

const WROTE: Wall = Wall(1_800_000_000_000);

#[test]
fn an_open_entry_is_published_again_every_three_seconds() {
    let mut journal = Journal::default();

    assert_eq!(scan(&mut journal, &["a"], 100), vec![]);
    assert_eq!(scan(&mut journal, &["a"], 3099), vec![]);
    assert_eq!(scan(&mut journal, &["a"], 3100), vec![Output::Republish(accepted("a"))]);
    assert_eq!(scan(&mut journal, &["a"], 6099), vec![]);
    assert_eq!(scan(&mut journal, &["a"], 6100), vec![Output::Republish(accepted("a"))]);
}

#[test]
fn an_entry_of_an_earlier_life_is_published_at_once() {
    let mut journal = Journal::default();
    let now = Now { mono: Mono(5), wall: WROTE + Duration::from_hours(1) };

    journal.handle(Input::Scan(vec![open("a")]), now);

    assert_eq!(journal.poll(), Some(Output::Republish(accepted("a"))));
}

#[test]
fn a_flushed_item_is_forgotten_when_its_slot_is_sealed() {
    let mut journal = Journal::default();
    see(&mut journal, flush(7, &["a", "b"]), 300);
    see(&mut journal, flush(8, &["c"]), 1300);

    assert_eq!(scan(&mut journal, &["a", "b", "c"], 9000), vec![]);
    assert_eq!(see(&mut journal, seal(6), 9000), vec![]);
    let forgotten = see(&mut journal, seal(7), 9000);
    let in_order_of_ids = if id("a") < id("b") { ["a", "b"] } else { ["b", "a"] };

    assert_eq!(forgotten, in_order_of_ids.map(forget));
    assert_eq!(see(&mut journal, seal(9), 9000), vec![forget("c")]);
    assert_eq!(see(&mut journal, seal(9), 9000), vec![]);
}

#[test]
fn a_second_showing_counts_as_the_first() {
    let mut journal = Journal::default();
    let fate = Fate::Sealed { gen_no: Gen(1), seq: Seq(4), slot: SlotNo(7) };
    see(&mut journal, RoomEvent::Fates { fates: vec![(id("a"), fate)] }, 300);

    assert_eq!(scan(&mut journal, &["a"], 9000), vec![]);
    assert_eq!(see(&mut journal, seal(20), 9000), vec![forget("a")]);
}

#[test]
fn a_room_without_seals_keeps_by_time() {
    let mut journal = Journal::default();
    see(&mut journal, flush(7, &["a"]), 300);

    journal.tick(at(30_299));
    assert_eq!(journal.poll(), None);
    assert_eq!(journal.deadline(), Some(Mono(30_300)));
    journal.tick(at(30_300));

    assert_eq!(journal.poll(), Some(forget("a")));
    assert_eq!(journal.deadline(), None);
    assert_eq!(see(&mut journal, seal(7), 30_301), vec![]);
}

#[test]
fn a_shed_gift_stays_open_unless_its_room_is_gone() {
    let mut journal = Journal::default();
    let shed = |reason| RoomEvent::Fates { fates: vec![(id("a"), Fate::Shed { reason })] };

    assert_eq!(see(&mut journal, shed(Reason::OverBudget), 0), vec![]);
    assert_eq!(see(&mut journal, shed(Reason::RoomClosed), 0), vec![forget("a")]);
}

#[test]
fn one_turn_publishes_a_bounded_number_and_the_next_goes_on() {
    let mut journal = Journal::default();
    let names: Vec<String> = (0..REPUBLISH_MAX + 5).map(|n| n.to_string()).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();

    assert_eq!(scan(&mut journal, &names, 3000).len(), 0);
    assert_eq!(scan(&mut journal, &names, 6000).len(), REPUBLISH_MAX);
    assert_eq!(scan(&mut journal, &names, 6500).len(), 5);
}

proptest! {
    /// Whatever comes in whatever order: what was never shown is published again and stays
    /// open, and what was shown is forgotten and not published again.
    #[test]
    fn what_is_not_shown_is_published_and_what_is_shown_is_forgotten(
        steps in proptest::collection::vec((0..4_u8, 0..6_usize, 0..2000_u64), 1..60)
    ) {
        const KEYS: [&str; 6] = ["a", "b", "c", "d", "e", "f"];
        let mut journal = Journal::default();
        let (mut open, mut shown) = (KEYS.to_vec(), BTreeSet::new());
        let (mut ms, mut slot) = (0, 0);
        let settle = |open: &mut Vec<&str>, shown: &BTreeSet<&str>, outputs: Vec<Output>| {
            for output in outputs {
                match output {
                    Output::Forget { id: done, .. } => {
                        assert!(shown.iter().any(|it| id(it) == done));
                        open.retain(|it| id(it) != done);
                    }
                    Output::Republish(it) => {
                        assert!(!shown.iter().any(|key| id(key) == it.item.id));
                    }
                }
            }
        };

        for (act, key, wait) in steps {
            ms += wait;
            let outputs = match act {
                0 => scan(&mut journal, &open, ms),
                1 => {
                    shown.insert(KEYS[key]);
                    see(&mut journal, flush(slot, &[KEYS[key]]), ms)
                }
                2 => {
                    slot += 1;
                    see(&mut journal, seal(slot - 1), ms)
                }
                _ => {
                    journal.tick(at(ms));
                    std::iter::from_fn(|| journal.poll()).collect()
                }
            };
            settle(&mut open, &shown, outputs);
        }
        let last = see(&mut journal, seal(slot), ms);
        settle(&mut open, &shown, last);

        let left: Vec<_> = KEYS.into_iter().filter(|it| !shown.contains(it)).collect();
        prop_assert_eq!(&open, &left);
        scan(&mut journal, &open, ms);
        let due = scan(&mut journal, &open, ms + 4000);
        prop_assert_eq!(due, left.iter().map(|it| Output::Republish(accepted(it))).collect::<Vec<_>>());
    }
}

fn at(ms: u64) -> Now {
    Now { mono: Mono(ms), wall: WROTE + Duration::from_millis(ms.min(1000)) }
}

fn room() -> RoomId {
    RoomId::parse("r").unwrap()
}

fn id(key: &str) -> ItemId {
    gift::id(AppId(1), &room(), key)
}

fn accepted(key: &str) -> Accepted {
    let body = Body::Gift { gift_no: 1, count: 1, text: String::new() };
    let item = Item {
        id: id(key),
        lane: Lane::HighGift,
        sender: SenderRef(1),
        role: Role::Viewer,
        at: WROTE,
        body,
    };
    Accepted { app: AppId(1), room: room(), item }
}

fn forget(key: &str) -> Output {
    Output::Forget { room: room(), id: id(key) }
}

fn open(key: &str) -> Open {
    Open { accepted: accepted(key), written_at: WROTE }
}

fn flush(slot: u64, keys: &[&str]) -> RoomEvent {
    let items = (0..).zip(keys).map(|(n, key)| Placed { seq: Seq(n), item: accepted(key).item });
    RoomEvent::Flush {
        gen_no: Gen(1),
        slot: SlotNo(slot),
        part: 0,
        at: WROTE,
        items: items.collect(),
    }
}

fn seal(slot: u64) -> RoomEvent {
    RoomEvent::Seal { gen_no: Gen(1), slot: SlotNo(slot), items: 0, crc: 0 }
}

fn scan(journal: &mut Journal, keys: &[&str], ms: u64) -> Vec<Output> {
    journal.handle(Input::Scan(keys.iter().map(|it| open(it)).collect()), at(ms));
    std::iter::from_fn(|| journal.poll()).collect()
}

fn see(journal: &mut Journal, event: RoomEvent, ms: u64) -> Vec<Output> {
    journal.handle(Input::Event { room: room(), event }, at(ms));
    std::iter::from_fn(|| journal.poll()).collect()
}
