//! Comments that wait for a review hook.

use std::collections::BTreeMap;

use auth_core::secret::Secret;
use chatserver::{Config, ReviewConfig};
use chatserver_core::review::Fail;
use proto::envelope::Reply;
use proto::frame::Outcome;
use proto::verdict::{Reason, Verdict};
use reqwest::Method;
use serde_json::{Value, json};

use super::hook::{Hook, Mode, SECRET};
use super::world::*;

/// Long enough that no answer of loopback is late.
const PATIENT_MS: u32 = 10_000;

fn config(hook: &Hook, change: impl FnOnce(&mut ReviewConfig)) -> Config {
    let mut review = ReviewConfig {
        app: APP,
        url: hook.url(),
        secret: Secret::new(SECRET.to_owned()),
        deadline_ms: PATIENT_MS,
        ..ReviewConfig::default()
    };
    change(&mut review);
    Config { outward: hook.outward(), review: vec![review], ..Config::default() }
}

/// A world with the room `r`, in which `odd` is to be reviewed.
async fn world(config: Config, settings: Value) -> World {
    let world = World::start_as(config).await;
    world.room(settings).await;
    let words = json!({"words": [{"text": "odd", "action": "review"}]});
    assert_eq!(world.call(Method::PUT, "/v1/words", &[], Some(words)).await.0, 200);
    world
}

#[tokio::test]
async fn what_is_listed_for_review_gets_the_hooks_verdict() {
    let hook = Hook::start(Mode::Says(json!({"verdict": "allow"}))).await;
    let world = world(config(&hook, |_| {}), json!({})).await;
    let (mut accepted, mut replies) = (world.accepted().await, world.replies().await);
    let mut told = async |cid, verdict: Value| {
        hook.turn(Mode::Says(verdict));
        world.say("v", &[(cid, &format!("odd {cid}"))]).await;
        let Reply::Ack { outcome: Outcome::Verdict(verdict), .. } = replies.next().await else {
            panic!("no verdict")
        };
        verdict
    };

    let allowed = told(1, json!({"verdict": "allow"})).await;
    let refused = told(2, json!({"verdict": "refuse"})).await;
    let shadowed = told(3, json!({"verdict": "shadow"})).await;
    let masked = told(4, json!({"verdict": "mask", "text": "*** 4"})).await;

    assert!(matches!(allowed, Verdict::Admit(_)) && matches!(masked, Verdict::Admit(_)));
    assert_eq!(refused, Verdict::Drop { reason: Reason::Review, retry_after_ms: 0 });
    assert!(matches!(shadowed, Verdict::Shadow(_)));
    let shown = [accepted.next().await, accepted.next().await].map(|it| it.item);
    assert_eq!(shown.each_ref().map(|it| it.body.text()), [Some("odd 1"), Some("*** 4")]);
    let asked = &hook.heard()[0];
    assert_eq!(asked["id"], json!(shown[0].id));
    assert_eq!(
        (&asked["app"], &asked["room"], &asked["account"]),
        (&json!(1), &json!("r"), &json!("v"))
    );
    assert_eq!((&asked["text"], &asked["why"]), (&json!("odd 1"), &json!("listed")));
    assert_eq!((hook.calls(), hook.unsigned()), (4, 0));
    assert_eq!(world.metric(r#"chatserver_reviews_total{outcome="shadow"}"#), Some(1));
}

#[tokio::test]
async fn a_comment_that_waits_holds_back_no_other() {
    let hook = Hook::start(Mode::Waits).await;
    let world = world(config(&hook, |_| {}), json!({})).await;
    let mut accepted = world.accepted().await;

    world.say("v", &[(1, "odd"), (2, "plain")]).await;
    let first = accepted.next().await.item;
    world.until("asked", |_| hook.calls() == 1).await;
    hook.let_go();
    let second = accepted.next().await.item;

    assert_eq!([first.body.text(), second.body.text()], [Some("plain"), Some("odd")]);
}

#[tokio::test]
async fn a_room_says_itself_what_is_reviewed() {
    let hook = Hook::start(Mode::Says(json!({"verdict": "refuse"}))).await;
    let world = world(config(&hook, |_| {}), json!({"review": "all"})).await;
    let mut replies = world.replies().await;

    world.say("v", &[(1, "plain")]).await;
    assert_eq!(replies.next().await, refused(1, Reason::Review, 0));
    let body = json!({"review": "none"});
    assert_eq!(world.call(Method::PATCH, "/v1/rooms/r", &[], Some(body)).await.0, 200);
    world.say("v", &[(2, "plain")]).await;

    assert!(is_admitted(&replies.next().await));
    assert_eq!(hook.heard()[0]["why"], "all");
}

#[tokio::test]
async fn a_hook_that_answers_badly_meets_the_apps_rule() {
    for (fail, mode, outcome) in [
        (Fail::Closed, Mode::Status(500), "status"),
        (Fail::Closed, Mode::Redirect, "redirect"),
        (Fail::Open, Mode::Huge, "too_large"),
        (Fail::Closed, Mode::Breaks, "unreachable"),
        (Fail::Open, Mode::Says(json!({"verdict": "perhaps"})), "answer"),
        (Fail::Closed, Mode::Says(json!({"verdict": "mask", "text": "\u{202E}"})), "answer"),
        (Fail::Open, Mode::Waits, "deadline"),
    ] {
        let hook = Hook::start(mode).await;
        let is_slow = outcome == "deadline";
        let change = |it: &mut ReviewConfig| {
            it.fail = fail;
            it.deadline_ms = if is_slow { 50 } else { PATIENT_MS };
        };
        let world = world(config(&hook, change), json!({})).await;
        let mut replies = world.replies().await;

        world.say("v", &[(1, "odd")]).await;
        let reply = replies.next().await;

        match fail {
            Fail::Open => assert!(is_admitted(&reply), "{outcome}: {reply:?}"),
            Fail::Closed => assert_eq!(reply, refused(1, Reason::Review, 1000), "{outcome}"),
        }
        let counted = format!(r#"chatserver_reviews_total{{outcome="{outcome}"}}"#);
        assert_eq!((world.metric(&counted), hook.misled()), (Some(1), 0), "{outcome}");
    }
}

#[tokio::test]
async fn a_dead_hook_is_left_alone_and_asked_again_when_it_lives() {
    let hook = Hook::start(Mode::Status(503)).await;
    let world = world(config(&hook, |_| {}), json!({"items_per_s": 2000})).await;
    let mut replies = world.replies().await;

    for cid in 0..8 {
        world.say(&format!("v{cid}"), &[(cid, "odd")]).await;
        assert_eq!(replies.next().await, refused(cid, Reason::Review, 1000));
    }
    let calls = hook.calls();
    for cid in 8..20 {
        world.say(&format!("v{cid}"), &[(cid, "odd")]).await;
        assert_eq!(replies.next().await, refused(cid, Reason::Review, 1000));
    }
    let shut = hook.calls() - calls;
    hook.turn(Mode::Says(json!({"verdict": "allow"})));
    let mut cid = 20;
    let mut well = 0;
    while well < 5 {
        world.say(&format!("v{cid}"), &[(cid, "odd")]).await;
        well = if is_admitted(&replies.next().await) { well + 1 } else { 0 };
        cid += 1;
    }

    // A pause may end among the twelve.
    assert!(shut <= 1, "{shut} calls of a hook that is left alone");
    world.until("open", |it| it.metric("chatserver_review_hooks_shut") == Some(0)).await;
}

#[tokio::test]
async fn twenty_times_a_rooms_share_costs_the_hook_one_share() {
    const PER_S: usize = 50;
    /// Twenty times what the room takes in two seconds.
    const SAID: usize = 2000;
    const CALLS_MAX: u32 = 16;
    let hook = Hook::start(Mode::Says(json!({"verdict": "allow"}))).await;
    let settings = json!({"review": "all", "items_per_s": PER_S});
    let world = world(config(&hook, |it| it.calls_max = CALLS_MAX), settings).await;
    let mut replies = world.replies().await;
    let start = world.clock.mono();
    let mut verdicts: BTreeMap<&'static str, usize> = BTreeMap::new();

    for no in 0..SAID as u64 {
        world.say(&format!("v{no}"), &[(no, &format!("hello {no}"))]).await;
    }
    for _ in 0..SAID {
        let reply = replies.next().await;
        let word = if is_admitted(&reply) { "admit" } else { reason(&reply) };
        *verdicts.entry(word).or_default() += 1;
    }
    let spent_ms = usize::try_from(world.clock.mono().since(start).as_millis()).unwrap();

    // What may be asked: the room's share for so long, and its burst.
    let calls_max = PER_S * (spent_ms + 2500) * 11 / 10_000;
    assert!(hook.calls() <= calls_max, "{} calls, at most {calls_max}", hook.calls());
    assert!(hook.busiest() <= CALLS_MAX as usize, "{} at a time", hook.busiest());
    assert_eq!(verdicts.values().sum::<usize>(), SAID);
    assert!(verdicts["admit"] <= hook.calls(), "{verdicts:?}");
}

#[tokio::test]
async fn a_hook_that_may_not_be_called_stops_the_start() {
    let hook = Hook::start(Mode::Status(200)).await;
    let mut config = config(&hook, |_| {});
    config.outward.networks = chatserver_core::reach::Reach::default();

    let error = World::refuse(config).await;

    assert!(error.contains("review hook of app 1"), "{error}");
    assert!(error.contains("loopback"), "{error}");
}

fn is_admitted(reply: &Reply) -> bool {
    matches!(reply, Reply::Ack { outcome: Outcome::Verdict(Verdict::Admit(_)), .. })
}

fn reason(reply: &Reply) -> &'static str {
    let Reply::Ack { outcome: Outcome::Verdict(Verdict::Drop { reason, .. }), .. } = reply else {
        panic!("{reply:?}")
    };
    reason.name()
}
