//! What rooms hold back, and what takes it out.

use proto::control::{Action, Review};

use super::*;
use crate::review::{Fail, Found, Rule};
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
fn what_is_held_back_is_refused_by_a_word_that_came_meanwhile() {
    let mut shard = shard(RoomSettings { hold_ms: 10_000, ..RoomSettings::default() });
    hold(&mut shard, "v", 1);
    list(&mut shard, Action::Refuse);

    let told = feed(&mut shard, Input::Release, 10_000);

    assert_eq!(told, vec![ack(1, drop(Reason::Words, 0))]);
}

#[test]
fn what_is_held_back_is_masked_and_shadowed_by_words_that_came_meanwhile() {
    let mut masking = shard(RoomSettings { hold_ms: 10_000, ..RoomSettings::default() });
    let mut shadowing = shard(RoomSettings { hold_ms: 10_000, ..RoomSettings::default() });
    hold(&mut masking, "v", 1);
    let id = hold(&mut shadowing, "v", 1);
    list(&mut masking, Action::Mask);
    list(&mut shadowing, Action::Shadow);

    let masked = feed(&mut masking, Input::Release, 10_000);
    let shadowed = feed(&mut shadowing, Input::Release, 10_000);

    let [Output::Publish(accepted)] = &masked[..] else { panic!("{masked:?}") };
    assert_eq!(accepted.item.body.text(), Some("*"));
    assert_eq!(shadowed, vec![ack(1, Verdict::Shadow(id))]);
}

#[test]
fn what_is_held_back_is_reviewed_once_by_a_word_that_came_meanwhile() {
    let rule = Rule { when: Review::Listed, fail: Fail::Closed, calls_max: 2 };
    let settings = RoomSettings { hold_ms: 10_000, ..RoomSettings::default() };
    let mut shard = shard(settings).reviewed_by([(AppId(1), rule)]);
    let id = hold(&mut shard, "v", 1);
    list(&mut shard, Action::Review);

    let asked = feed(&mut shard, Input::Release, 10_000);
    let answer = Input::Reviewed { id, answer: Some(Answer::Allow) };
    let shown = feed(&mut shard, answer, 10_100);

    let [Output::Review(question)] = &asked[..] else { panic!("{asked:?}") };
    assert_eq!((question.id, question.found), (id, Found::Marked));
    assert!(matches!(&shown[..], [Output::Publish(it)] if it.item.id == id), "{shown:?}");
    assert_eq!(shard.held_count(), 0);
}

#[test]
fn what_was_reviewed_before_it_was_held_back_is_not_reviewed_again() {
    let rule = Rule { when: Review::Listed, fail: Fail::Closed, calls_max: 2 };
    let settings = RoomSettings { hold_ms: 10_000, ..RoomSettings::default() };
    let mut shard = shard(settings).reviewed_by([(AppId(1), rule)]);
    list(&mut shard, Action::Review);
    let asked = say(&mut shard, "v", 1, "x", 0);
    let [Output::Review(Question { id, .. })] = asked[..] else { panic!("{asked:?}") };
    let held = feed(&mut shard, Input::Reviewed { id, answer: Some(Answer::Allow) }, 100);

    let shown = feed(&mut shard, Input::Release, 10_100);

    assert_eq!(held, vec![]);
    assert!(matches!(&shown[..], [Output::Publish(it)] if it.item.id == id), "{shown:?}");
}

#[test]
fn what_is_held_back_is_refused_by_a_mute_a_ban_and_a_silence_that_came_meanwhile() {
    let settings = RoomSettings { hold_ms: 10_000, ..RoomSettings::default() };
    let until = START + Duration::from_secs(11);
    let (app, viewer) = (AppId(1), ViewerId::parse("v").unwrap());
    let ban = Fact::Ban { app, room: room(), viewer, until };
    let silence = RoomSettings { mute_all: true, ..settings.clone() };
    let acts = [
        (mute("v", until), drop(Reason::Muted, 1000)),
        (Input::Fact(ban), drop(Reason::Banned, 1000)),
        (room_fact(2, silence), drop(Reason::RoomMuted, 0)),
    ];

    for (act, verdict) in acts {
        let mut shard = shard(settings.clone());
        hold(&mut shard, "v", 1);
        feed(&mut shard, act, 5000);

        assert_eq!(feed(&mut shard, Input::Release, 10_000), vec![ack(1, verdict)]);
    }
}

#[test]
fn what_is_held_back_is_refused_by_links_that_are_refused_meanwhile() {
    let settings = RoomSettings { hold_ms: 10_000, ..RoomSettings::default() };
    let mut shard = shard(settings.clone());
    assert_eq!(say(&mut shard, "v", 1, "see http://a.example/b", 0), vec![]);
    feed(&mut shard, room_fact(2, RoomSettings { links: Action::Refuse, ..settings }), 5000);

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

/// From now on the room lists what is said in these tests.
fn list(shard: &mut Shard, action: Action) {
    let word = Word { text: "x".into(), action };
    let words = Some(Arc::new(Words::compile(&[word]).unwrap()));
    feed(shard, Input::Words { app: AppId(1), room: Some(room()), words }, 5000);
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
