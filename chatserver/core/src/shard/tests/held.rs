//! What rooms hold back, and what takes it out.

use proto::control::Action;

use super::*;
use crate::words::Word;

#[test]
fn a_recall_takes_out_what_its_own_room_holds_back_and_no_other_does() {
    let mut shard = shard(RoomSettings { hold_ms: 30_000, ..RoomSettings::default() });
    let id = hold(&mut shard, "v", 1);

    let elsewhere = [
        RoomEntry { app: AppId(2), ..recall(id) },
        RoomEntry { room: RoomId::parse("other").unwrap(), ..recall(id) },
    ];
    for entry in elsewhere {
        assert_eq!(feed(&mut shard, Input::Event(entry), 10), vec![]);
    }
    assert_eq!(shard.held_count(), 1);

    let told = feed(&mut shard, Input::Event(recall(id)), 10);

    assert_eq!(told, vec![ack(1, drop(Reason::Recalled, 0))]);
    assert_eq!(shard.held_count(), 0);
}

#[test]
fn a_recall_takes_out_what_is_held_back_also_when_its_asker_is_forgotten() {
    let mut shard =
        Shard::new(Limits { asked_max: 1, ..LIMITS }, SenderSecret::new([1; 32]), Wall(0));
    let settings = RoomSettings { hold_ms: 30_000, ..RoomSettings::default() };
    feed(&mut shard, room_fact(1, settings), 0);
    let id = hold(&mut shard, "v", 1);
    hold(&mut shard, "w", 1);

    feed(&mut shard, Input::Event(recall(id)), 10);

    assert_eq!(shard.held((AppId(1), &room()), 0, 10, at(10)).0.len(), 1);
}

#[test]
fn what_is_held_back_is_read_again_when_it_goes_on() {
    let mut shard = shard(RoomSettings { hold_ms: 10_000, ..RoomSettings::default() });
    hold(&mut shard, "v", 1);
    let word = Word { text: "x".into(), action: Action::Refuse };
    let words = Some(Arc::new(Words::compile(&[word]).unwrap()));
    feed(&mut shard, Input::Words { app: AppId(1), room: Some(room()), words }, 5000);

    let told = feed(&mut shard, Input::Release, 10_000);

    assert_eq!(told, vec![ack(1, drop(Reason::Words, 0))]);
}

#[test]
fn what_is_held_back_is_told_in_pages() {
    let mut shard = shard(RoomSettings { hold_ms: 10_000, ..RoomSettings::default() });
    let ids = ["a", "b", "c"].map(|it| hold(&mut shard, it, 1));
    let page = |after| shard.held((AppId(1), &room()), after, 2, at(0)).0;

    let first = page(0);
    let second = page(first[1].0);

    let told = first.iter().chain(&second).map(|it| it.1.accepted.item.id);
    assert_eq!((first.len(), told.collect::<Vec<_>>()), (2, ids.to_vec()));
}

/// Says something that is held back; gives its id.
fn hold(shard: &mut Shard, viewer: &str, cid: u64) -> ItemId {
    assert_eq!(say(shard, viewer, cid, "x", 0), vec![]);
    let (held, _) = shard.held((AppId(1), &room()), 0, 10, at(0));
    held.last().unwrap().1.accepted.item.id
}

fn recall(of: ItemId) -> RoomEntry {
    let item = Item {
        id: ItemId(9),
        lane: Lane::Notice,
        sender: proto::id::SenderRef(0),
        role: Role::Host,
        at: START,
        body: Body::Tombstone { of },
    };
    let items = vec![Placed { seq: Seq(1), item }];
    let event = RoomEvent::Flush { gen_no: Gen(1), slot: SlotNo(1), part: 0, at: START, items };
    RoomEntry { app: AppId(1), room: room(), event }
}
