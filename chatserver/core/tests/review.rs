//! Comments that wait for a review hook, through the shard.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;
use std::time::Duration;

use chatserver_core::judge::Now;
use chatserver_core::review::{Answer, Fail, Found, Question, Rule, Unasked};
use chatserver_core::sender::SenderSecret;
use chatserver_core::shard::{Input, Limits, Output, Shard, Whom};
use chatserver_core::words::{Word, Words};
use proto::control::{Action, Fact, Review, RoomFact, RoomSettings};
use proto::envelope::{Act, Reply, UplinkEntry};
use proto::frame::Outcome;
use proto::id::{AppId, Cid, ItemId, NodeId, RoomId, SessionId, ViewerId};
use proto::item::{Role, Style};
use proto::time::{Mono, Wall};
use proto::verdict::{Reason, Verdict};

const APP: AppId = AppId(1);
const NODE: NodeId = NodeId(7);
const NOW: Now = Now { mono: Mono(1000), wall: Wall(1_800_000_000_000) };
const RULE: Rule = Rule { when: Review::Listed, fail: Fail::Closed, calls_max: 2 };

/// A shard with one room, in which `odd` is reviewed and `meh` masked.
fn shard(rules: impl IntoIterator<Item = (AppId, Rule)>) -> Shard {
    let limits = Limits { shard: 1, rooms_max: 4, senders_max: 100, asked_max: 100, nodes_min: 1 };
    let mut shard = Shard::new(limits, SenderSecret::new([1; 32]), Wall(0)).reviewed_by(rules);
    shard.handle(room_fact(true, RoomSettings::default()), NOW);
    let word = |text: &str, action| Word { text: text.to_owned(), action };
    let words = [word("odd", Action::Review), word("meh", Action::Mask)];
    let words = Some(Arc::new(Words::compile(&words).unwrap()));
    shard.handle(Input::Words { app: APP, room: None, words }, NOW);
    shard
}

fn room_fact(open: bool, settings: RoomSettings) -> Input {
    Input::Fact(Fact::Room(RoomFact { app: APP, room: room(), version: 1, open, settings }))
}

fn room() -> RoomId {
    RoomId::parse("r").unwrap()
}

fn viewer() -> ViewerId {
    ViewerId::parse("v").unwrap()
}

fn feed(shard: &mut Shard, input: Input) -> Vec<Output> {
    shard.handle(input, NOW);
    std::iter::from_fn(|| shard.poll()).collect()
}

fn say(shard: &mut Shard, session: u64, cid: u64, text: &str) -> Vec<Output> {
    let style = Style::default();
    let entry = UplinkEntry {
        session: SessionId(session),
        app: APP,
        room: room(),
        viewer: viewer(),
        role: Role::Viewer,
        may_send: true,
        at: NOW.wall,
        origin: None,
        act: Act::Comment { cid: Cid(cid), text: text.to_owned(), style, media_ms: None },
    };
    feed(shard, Input::Uplink { node: NODE, entry })
}

fn ask(shard: &mut Shard, cid: u64, text: &str) -> Question {
    let mut outputs = say(shard, 1, cid, text);
    let Some(Output::Review(question)) = outputs.pop() else { panic!("it is not asked") };
    assert_eq!(outputs, []);
    question
}

fn answer(shard: &mut Shard, id: ItemId, answer: Option<Answer>) -> Vec<Output> {
    feed(shard, Input::Reviewed { id, answer })
}

fn reply(session: u64, cid: u64, verdict: Verdict) -> Output {
    let outcome = Outcome::Verdict(verdict);
    let reply = Reply::Ack { session: SessionId(session), cid: Cid(cid), outcome };
    Output::Reply { node: NODE, reply, whom: Whom { app: APP, room: room(), viewer: viewer() } }
}

fn refused(retry_after_ms: u32) -> Verdict {
    Verdict::Drop { reason: Reason::Review, retry_after_ms }
}

#[test]
fn a_marked_comment_is_published_once_the_hook_allows_it() {
    let mut shard = shard([(APP, RULE)]);

    let question = ask(&mut shard, 1, "meh, odd");
    let shown = answer(&mut shard, question.id, Some(Answer::Allow));
    let told = feed(&mut shard, Input::Published(question.id));

    assert_eq!((&*question.text, question.found), ("meh, odd", Found::Marked));
    let [Output::Publish(accepted)] = &shown[..] else { panic!("{shown:?}") };
    assert_eq!(accepted.item.body.text(), Some("***, odd"), "masks hold for what is reviewed");
    assert_eq!(told, [reply(1, 1, Verdict::Admit(question.id))]);
}

#[test]
fn every_other_word_of_the_hook_is_told_to_the_sender() {
    let mut shard = shard([(APP, RULE)]);
    let mut told = |cid, said| {
        let id = ask(&mut shard, cid, "odd").id;
        (id, answer(&mut shard, id, said))
    };

    let (_, refusal) = told(1, Some(Answer::Refuse));
    let (id, shadow) = told(2, Some(Answer::Shadow));
    let (_, silence) = told(3, None);

    assert_eq!(refusal, [reply(1, 1, refused(0))]);
    assert_eq!(shadow, [reply(1, 2, Verdict::Shadow(id))]);
    assert_eq!(silence, [reply(1, 3, refused(1000))]);
    assert_eq!((shard.asked(), shard.reviews().waiting()), (0, 0));
}

#[test]
fn what_is_not_marked_waits_for_nobody() {
    let mut shard = shard([(APP, RULE)]);

    ask(&mut shard, 1, "odd");
    let plain = say(&mut shard, 1, 2, "plain");

    assert!(matches!(plain[..], [Output::Publish(_)]), "{plain:?}");
}

#[test]
fn the_same_comment_again_is_not_asked_again_and_its_last_session_is_told() {
    let mut shard = shard([(APP, RULE)]);

    let id = ask(&mut shard, 1, "odd").id;
    let again = say(&mut shard, 2, 1, "odd");
    let told = answer(&mut shard, id, Some(Answer::Refuse));
    let later = say(&mut shard, 2, 1, "odd");

    assert_eq!(again, []);
    assert_eq!(told, [reply(2, 1, refused(0))]);
    assert_eq!(later, told);
}

#[test]
fn who_is_not_asked_is_said_with_the_verdict() {
    let mut busy = shard([(APP, RULE)]);
    ask(&mut busy, 1, "odd");
    ask(&mut busy, 2, "odd one");

    let full = say(&mut busy, 1, 3, "odd two");
    let nobody = say(&mut shard([]), 1, 1, "odd");

    assert_eq!(full, [Output::Unasked(Unasked::Full), reply(1, 3, refused(1000))]);
    assert_eq!(nobody, [Output::Unasked(Unasked::NoHook), reply(1, 1, refused(0))]);
}

#[test]
fn what_a_moderator_did_while_a_comment_waited_counts() {
    let until = NOW.wall + Duration::from_secs(60);
    let (app, settings) = (APP, RoomSettings::default());
    let mute_all = RoomSettings { mute_all: true, ..settings.clone() };
    let acts = [
        (
            Input::Fact(Fact::Mute { app, room: room(), viewer: viewer(), until }),
            (Reason::Muted, 60_000),
        ),
        (
            Input::Fact(Fact::Ban { app, room: room(), viewer: viewer(), until }),
            (Reason::Banned, 60_000),
        ),
        (room_fact(true, mute_all), (Reason::RoomMuted, 0)),
        (room_fact(false, settings), (Reason::RoomClosed, 0)),
    ];

    for (act, (reason, retry_after_ms)) in acts {
        for (fail, said) in [(Fail::Closed, Some(Answer::Allow)), (Fail::Open, None)] {
            let mut shard = shard([(APP, Rule { fail, ..RULE })]);
            let id = ask(&mut shard, 1, "odd").id;
            feed(&mut shard, act.clone());

            let told = answer(&mut shard, id, said);

            let refused = Verdict::Drop { reason, retry_after_ms };
            assert_eq!(told, [reply(1, 1, refused)]);
            assert_eq!(shard.asked(), 0);
        }
    }
}

#[test]
fn what_no_hook_answered_may_be_sent_again_in_a_slow_room_that_takes_no_repeats() {
    let mut shard = shard([(APP, RULE)]);
    let settings =
        RoomSettings { slow_mode_ms: 10_000, repeat_ms: 60_000, ..RoomSettings::default() };
    feed(&mut shard, room_fact(true, settings));

    let id = ask(&mut shard, 1, "odd").id;
    let silence = answer(&mut shard, id, None);
    let second = ask(&mut shard, 2, "odd").id;

    assert_eq!(silence, [reply(1, 1, refused(1000))]);
    let shown = answer(&mut shard, second, Some(Answer::Allow));
    assert!(matches!(shown[..], [Output::Publish(_)]), "{shown:?}");
    let slow = Verdict::Drop { reason: Reason::SlowMode, retry_after_ms: 10_000 };
    assert_eq!(say(&mut shard, 1, 3, "odd"), [reply(1, 3, slow)]);
}
