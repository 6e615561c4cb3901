//! What waits for a hook, in virtual time.

use proptest::prelude::*;
use proto::id::SenderRef;
use proto::item::{Item, Lane, Style};

use super::*;

const APP: AppId = AppId(1);
const RULE: Rule = Rule { when: Review::Listed, fail: Fail::Closed, calls_max: 4 };

fn comment(id: u64) -> Accepted {
    let body =
        Body::Comment { text: "as sent".into(), style: Style::default(), media_ms: None, count: 1 };
    let item = Item {
        id: ItemId(id),
        lane: Lane::Comment,
        sender: SenderRef(1),
        role: Role::Viewer,
        at: Wall(0),
        body,
    };
    Accepted { app: APP, room: RoomId::parse("r").unwrap(), item }
}

fn reviews(rule: Rule) -> Reviews {
    Reviews::new([(APP, rule)])
}

fn refused(id: u64, retry_after_ms: u32) -> Ruling {
    Ruling::Refuse(ItemId(id), Refusal { reason: Reason::Review, retry_after_ms })
}

#[test]
fn who_is_asked_about_what_is_the_rooms_say_and_else_the_apps() {
    let step = |when, room, found| {
        let mut reviews = reviews(Rule { when, ..RULE });
        reviews.submit(comment(1), found, room, Mono(0))
    };
    let show = || Step::Rule(Ruling::Show(comment(1)));
    let refuse = || Step::Rule(refused(1, 0));

    for (app, room) in [
        (Review::Listed, None),
        (Review::None, Some(Review::Listed)),
        (Review::All, Some(Review::Listed)),
    ] {
        assert_eq!(step(app, room, Found::Nothing), show());
        assert_eq!(step(app, room, Found::Marked), Step::Ask);
    }
    for (app, room) in [(Review::All, None), (Review::None, Some(Review::All))] {
        assert_eq!(step(app, room, Found::Nothing), Step::Ask);
        assert_eq!(step(app, room, Found::Marked), Step::Ask);
    }
    for (app, room) in [(Review::None, None), (Review::All, Some(Review::None))] {
        assert_eq!(step(app, room, Found::Nothing), show());
        assert_eq!(step(app, room, Found::Marked), refuse());
    }
}

#[test]
fn without_a_hook_what_is_to_be_reviewed_is_refused() {
    let mut none = Reviews::default();

    let marked = none.submit(comment(1), Found::Marked, None, Mono(0));
    let plain = none.submit(comment(2), Found::Nothing, None, Mono(0));
    let all = none.submit(comment(3), Found::Nothing, Some(Review::All), Mono(0));

    assert_eq!(marked, Step::Unasked(Unasked::NoHook, refused(1, 0)));
    assert_eq!(plain, Step::Rule(Ruling::Show(comment(2))));
    assert_eq!(all, Step::Unasked(Unasked::NoHook, refused(3, 0)));
}

#[test]
fn every_answer_is_followed() {
    let ruling = |answer| {
        let mut reviews = reviews(RULE);
        assert_eq!(reviews.submit(comment(1), Found::Marked, None, Mono(0)), Step::Ask);
        let ruling = reviews.answer(ItemId(1), answer, Mono(100)).unwrap();
        assert_eq!(reviews.waiting(), 0);
        ruling
    };
    let masked = Answer::read("mask", Some("as ****".to_owned())).unwrap();

    assert_eq!(ruling(Some(Answer::Allow)), Ruling::Show(comment(1)));
    assert_eq!(ruling(Some(Answer::Refuse)), refused(1, 0));
    assert_eq!(ruling(Some(Answer::Shadow)), Ruling::Shadow(ItemId(1)));
    assert_eq!(ruling(None), refused(1, 1000));
    let Ruling::Show(shown) = ruling(Some(masked)) else { panic!() };
    assert_eq!(shown.item.body.text(), Some("as ****"));
}

#[test]
fn an_answer_that_no_comment_may_be_is_none() {
    let read = |verdict, text: Option<&str>| Answer::read(verdict, text.map(str::to_owned));

    assert_eq!(read("allow", Some("ignored")), Ok(Answer::Allow));
    assert_eq!(read("mask", None), Err(BadAnswer::Text));
    assert_eq!(read("mask", Some("")), Err(BadAnswer::Text));
    assert_eq!(read("mask", Some("a\u{202E}b")), Err(BadAnswer::Text));
    assert_eq!(read("mask", Some(&"x".repeat(TEXT_BYTES_MAX + 1))), Err(BadAnswer::Text));
    assert_eq!(read("ALLOW", None), Err(BadAnswer::Verdict));
    assert_eq!(read("", None), Err(BadAnswer::Verdict));
}

#[test]
fn beyond_its_calls_a_hook_is_not_asked_and_the_rule_decides() {
    for (fail, expected) in
        [(Fail::Open, Ruling::Show(comment(5))), (Fail::Closed, refused(5, 1000))]
    {
        let mut reviews = reviews(Rule { fail, ..RULE });
        for id in 1..=4 {
            let step = reviews.submit(comment(id), Found::Marked, None, Mono(0));
            assert_eq!(step, Step::Ask);
        }

        let fifth = reviews.submit(comment(5), Found::Marked, None, Mono(0));
        reviews.answer(ItemId(2), Some(Answer::Allow), Mono(10));
        let sixth = reviews.submit(comment(6), Found::Marked, None, Mono(10));

        assert_eq!(fifth, Step::Unasked(Unasked::Full, expected));
        assert_eq!(sixth, Step::Ask);
    }
}

#[test]
fn a_hook_that_fails_is_left_alone_and_asked_again_later() {
    let mut reviews = reviews(RULE);
    for id in 0..8 {
        assert_eq!(reviews.submit(comment(id), Found::Marked, None, Mono(id)), Step::Ask);
        reviews.answer(ItemId(id), None, Mono(id));
    }

    let shut = reviews.submit(comment(20), Found::Marked, None, Mono(900));
    assert_eq!((shut, reviews.shut()), (Step::Unasked(Unasked::Shut, refused(20, 1000)), 1));
    for id in 30..33 {
        let now = Mono(1010 + id);
        assert_eq!(reviews.submit(comment(id), Found::Marked, None, now), Step::Ask);
        reviews.answer(ItemId(id), Some(Answer::Allow), now);
    }

    assert_eq!(reviews.shut(), 0);
}

#[test]
fn an_answer_comes_once() {
    let mut reviews = reviews(RULE);
    reviews.submit(comment(1), Found::Marked, None, Mono(0));

    assert!(reviews.answer(ItemId(1), Some(Answer::Allow), Mono(1)).is_some());
    assert_eq!(reviews.answer(ItemId(1), Some(Answer::Allow), Mono(1)), None);
    assert_eq!(reviews.answer(ItemId(9), None, Mono(1)), None);
}

proptest! {
    /// However many come, and however slowly the hook answers.
    #[test]
    fn calls_are_never_more_than_the_rule_says(
        each_ms in proptest::collection::vec(0_u64..400, 1..400),
        calls_max in 1_usize..8,
    ) {
        let mut reviews = reviews(Rule { when: Review::All, calls_max, ..RULE });
        let mut under_way: Vec<(u64, ItemId)> = Vec::new();

        for (now, takes_ms) in (0..).zip(each_ms) {
            let ended = under_way.extract_if(.., |it| it.0 <= now).collect::<Vec<_>>();
            for (_, id) in ended {
                prop_assert!(reviews.answer(id, Some(Answer::Allow), Mono(now)).is_some());
            }
            let step = reviews.submit(comment(now), Found::Nothing, None, Mono(now));
            if step == Step::Ask {
                under_way.push((now + takes_ms, ItemId(now)));
            } else {
                prop_assert_eq!(step, Step::Unasked(Unasked::Full, refused(now, 1000)));
            }

            prop_assert!(under_way.len() <= calls_max);
            prop_assert_eq!(reviews.waiting(), under_way.len());
        }
    }
}
