//! The session machine through its verbs, in virtual time.
#![expect(clippy::unwrap_used, reason = "a test may stop at what it did not expect")]
#![expect(clippy::wildcard_enum_match_arm, reason = "a test names what it expects")]

use std::sync::Arc;
use std::time::Duration;

use auth_core::policy::SdkPolicy;
use bytes::Bytes;
use link_core::Now;
use link_core::bucket::Rate;
use link_core::session::{Denial, Grant, Input, Limits, Output, Session};
use proto::close::CloseCode;
use proto::control::Fact;
use proto::envelope::{Act, UplinkEntry};
use proto::frame::{
    Ack, CODEC_IDENTITY, Close, Comment, Credential, Downlink, Hello, Join, JoinOutcome, Joined,
    Login, LoginOk, Outcome, PROTO_VERSION, Path, Refused, Resumed, Uplink,
};
use proto::heat::Heat;
use proto::id::{AppId, Cid, RoomId, SessionId, ViewerId};
use proto::item::{Role, Style};
use proto::policy::{SdkAct, SdkFact, SdkRule};
use proto::suite::Suite;
use proto::time::{Mono, Wall};
use proto::verdict::{Reason, Verdict};

#[test]
fn hello_and_login_in_one_flight_end_in_login_ok() {
    let mut session = session();

    session.handle(frame(&hello()), at(10));
    session.handle(frame(&login(&["r", "elsewhere"])), at(10));

    assert!(matches!(session.poll(), Some(Output::Send(Downlink::Welcome(_)))));
    let Some(Output::Verify(claim)) = session.poll() else { panic!("no claim") };
    assert_eq!(claim.hello, hello().encode());
    assert!(!claim.refresh);

    session.handle(Input::Granted(Box::new(grant())), at(11));
    assert_eq!(session.poll(), Some(Output::Join(join("r"))));
    session.handle(Input::Joined(entered("r")), at(11));

    assert!(matches!(
        session.poll(),
        Some(Output::Publish(UplinkEntry { act: Act::Join { age_ms: 0 }, .. }))
    ));
    let Some(Output::Send(Downlink::LoginOk(ok))) = session.poll() else { panic!("no LoginOk") };
    assert_eq!(ok.expires, Wall(1_000_011 + 3_000_000));
    assert_eq!(ok.resume_ticket, "ticket");
    assert_eq!(ok.rooms[0], entered("r"));
    assert_eq!(
        ok.rooms[1].outcome,
        JoinOutcome::Refused { code: CloseCode::NoRoom, retry_after_ms: 0 }
    );
    assert_eq!(session.poll(), None);
    assert!(session.is_open());
}

#[test]
fn a_bad_credential_is_refused_with_its_code_and_the_servers_time() {
    let mut session = session();
    session.handle(frame(&hello()), at(10));
    session.handle(frame(&login(&[])), at(10));
    drain(&mut session);

    let denial = Denial { code: CloseCode::TokenExpired, retry_after_ms: 0 };
    session.handle(Input::Denied(denial), at(20));

    let Some(Output::Send(Downlink::Refused(refused))) = session.poll() else { panic!() };
    assert_eq!((refused.code, refused.server_ms), (CloseCode::TokenExpired, Wall(1_000_020)));
    assert_eq!(session.poll(), Some(Output::Close(CloseCode::TokenExpired)));
    assert!(session.is_closed());
}

#[test]
fn each_phase_of_the_login_has_five_seconds_and_all_of_it_ten() {
    let mut silent = session();
    assert_eq!(silent.deadline(), Some(Mono(5000)));
    silent.tick(at(4999));
    assert!(!silent.is_closed());
    silent.tick(at(5000));
    assert_eq!(refusal(&mut silent), CloseCode::LoginTimeout);

    let mut slow = session();
    slow.handle(frame(&hello()), at(4000));
    assert_eq!(slow.deadline(), Some(Mono(9000)));

    let mut late = Session::new(SessionId(1), limits(), Suite::Plain, Mono(0), Mono(4900));
    late.handle(frame(&hello()), at(9800));
    assert_eq!(late.deadline(), Some(Mono(10_000)));
}

#[test]
fn an_unknown_version_is_told() {
    let mut session = session();
    let Uplink::Hello(mut from_the_future) = hello() else { unreachable!() };
    from_the_future.proto_min = 2;
    from_the_future.proto_max = 9;

    session.handle(frame(&Uplink::Hello(from_the_future)), at(1));

    assert_eq!(refusal(&mut session), CloseCode::NoCommonVersion);
}

#[test]
fn a_channel_that_was_not_offered_is_refused() {
    for suites in [vec![], vec!["P".to_owned()], vec!["T".to_owned(), "P".to_owned()]] {
        let mut session = national();
        let Uplink::Hello(mut offer) = hello() else { unreachable!() };
        offer.suites = suites;

        session.handle(frame(&Uplink::Hello(offer)), at(1));

        assert_eq!(refusal(&mut session), CloseCode::NoCommonVersion);
    }
}

#[test]
fn the_answer_names_version_channel_codec_and_the_offer_s_number() {
    let mut session = national();
    let Uplink::Hello(mut offer) = hello() else { unreachable!() };
    offer.proto_max = 9;
    offer.suites = vec!["T".to_owned(), "G".to_owned()];
    offer.codecs = vec!["zstd".to_owned()];

    session.handle(frame(&Uplink::Hello(offer)), at(1));

    let Some(Output::Send(Downlink::Welcome(welcome))) = session.poll() else { panic!() };
    assert_eq!((welcome.proto, welcome.nonce), (PROTO_VERSION, 9));
    assert_eq!((welcome.suite.as_str(), welcome.codec.as_str()), ("G", CODEC_IDENTITY));
}

#[test]
fn what_is_no_frame_or_comes_at_the_wrong_time_gets_its_code() {
    check_close(Input::TooLarge, CloseCode::FrameTooLarge);
    check_close(Input::Garbage, CloseCode::BadFrame);
    check_close(Input::Frame(Bytes::from_static(b"\x03\x00garbage")), CloseCode::BadFrame);
    check_close(Input::Frame(Bytes::new()), CloseCode::BadFrame);
    check_close(frame(&hello()), CloseCode::Unexpected);
    check_close(frame(&login(&[])), CloseCode::Unexpected);

    let mut early = session();
    early.handle(frame(&comment(1, "r")), at(1));
    assert_eq!(close_code(&mut early), CloseCode::Unexpected);
}

#[test]
fn a_silent_session_is_closed_and_a_speaking_one_is_not() {
    let mut session = open();

    session.handle(frame(&Uplink::Ping { nonce: 7 }), at(50_000));
    assert!(matches!(session.poll(), Some(Output::Send(Downlink::Pong { nonce: 7, .. }))));
    assert_eq!(session.deadline(), Some(Mono(110_000)));
    session.handle(Input::Heard, at(60_000));
    session.tick(at(119_999));
    assert!(session.is_open());

    session.tick(at(120_000));
    assert_eq!(close_code(&mut session), CloseCode::Silent);
    assert_eq!(session.deadline(), None);
}

#[test]
fn a_session_expires_unless_it_is_refreshed() {
    let mut expiring = open();
    for minute in 1..50 {
        expiring.handle(Input::Heard, at(minute * 60_000 - 1));
        expiring.tick(at(minute * 60_000));
    }
    expiring.tick(at(3_000_000));
    assert_eq!(close_code(&mut expiring), CloseCode::Expired);

    let mut refreshed = open();
    refreshed.handle(frame(&Uplink::Refresh { token: "t".to_owned() }), at(40_000));
    let Some(Output::Verify(claim)) = refreshed.poll() else { panic!() };
    assert!(claim.refresh);
    refreshed.handle(Input::Granted(Box::new(grant())), at(40_000));

    let Some(Output::Send(Downlink::LoginOk(LoginOk { expires, .. }))) = refreshed.poll() else {
        panic!()
    };
    assert_eq!(expires, Wall(4_040_000));
    let Some(Output::Publish(UplinkEntry { act, .. })) = refreshed.poll() else { panic!() };
    let again = Act::Join { age_ms: 40_000 };
    assert_eq!(act, again, "who remembers sessions for the time they live is told again");
}

#[test]
fn an_old_sdk_is_warned_and_a_too_old_one_is_not_served() {
    let rule = |below: &str, act| SdkRule {
        sdk: Some("test".to_owned()),
        from: None,
        below: Some(below.to_owned()),
        act,
    };
    let rules = vec![rule("1", SdkAct::Refuse), rule("2", SdkAct::Warn)];
    let mut sdks = SdkPolicy::default();
    sdks.handle(&Fact::Sdk(SdkFact { version: 1, rules }));
    let sdks = Arc::new(sdks);
    let says = |version: &str| {
        let Uplink::Hello(hello) = hello() else { unreachable!() };
        let hello = Hello { sdk_version: version.to_owned(), ..hello };
        let mut session = session().held_to(Arc::clone(&sdks));
        session.handle(frame(&Uplink::Hello(hello)), at(10));
        session.poll()
    };

    let Some(Output::Send(Downlink::Refused(refused))) = says("0.9.7") else { panic!() };
    let Some(Output::Send(Downlink::Welcome(warned))) = says("1.4.0") else { panic!() };
    let Some(Output::Send(Downlink::Welcome(served))) = says("2.0.0") else { panic!() };

    assert_eq!(refused.code, CloseCode::UpgradeRequired);
    assert_eq!((warned.upgrade, served.upgrade), (true, false));
}

#[test]
fn a_refused_refresh_ends_the_session_only_for_good() {
    let refused = |code| {
        let mut session = open();
        session.handle(frame(&Uplink::Refresh { token: "t".to_owned() }), at(1_000));
        session.poll();
        session.handle(Input::Denied(Denial { code, retry_after_ms: 500 }), at(1_000));
        session.is_open()
    };

    assert!(refused(CloseCode::Unavailable));
    assert!(refused(CloseCode::TokenExpired));
    assert!(!refused(CloseCode::Kicked));
}

#[test]
fn a_refresh_for_somebody_else_ends_the_session() {
    let mut session = open();
    session.handle(frame(&Uplink::Refresh { token: "t".to_owned() }), at(40_000));
    drain(&mut session);

    let viewer = ViewerId::parse("another").unwrap();
    session.handle(Input::Granted(Box::new(Grant { viewer, ..grant() })), at(40_000));

    assert_eq!(close_code(&mut session), CloseCode::TokenInvalid);
}

#[test]
fn a_comment_goes_up_with_the_sessions_own_name() {
    let mut session = open();

    session.handle(frame(&comment(5, "r")), at(100));

    let Some(Output::Publish(entry)) = session.poll() else { panic!() };
    assert_eq!(entry.viewer, grant().viewer);
    assert_eq!(entry.at, Wall(1_000_100));
    assert!(matches!(entry.act, Act::Comment { cid: Cid(5), .. }));
}

#[test]
fn a_comment_without_permission_is_answered_with_the_reason() {
    let mut outside = open();
    outside.handle(frame(&comment(1, "other")), at(100));
    assert_eq!(dropped(&mut outside), (Cid(1), Reason::NotJoined, 0));

    let mut guest = open_with(Grant { may_send: false, ..grant() });
    guest.handle(frame(&comment(2, "r")), at(100));
    assert_eq!(dropped(&mut guest), (Cid(2), Reason::ReadOnly, 0));

    let mut wordy = open();
    let Uplink::Comment(long) = comment(4, "r") else { unreachable!() };
    let long = Comment { text: "a\u{301}".repeat(10_000), ..long };
    wordy.handle(frame(&Uplink::Comment(long)), at(100));
    assert_eq!(dropped(&mut wordy), (Cid(4), Reason::TooLong, 0));

    let mut gone = open();
    gone.handle(frame(&Uplink::Leave { room: room("r") }), at(100));
    assert_eq!(gone.poll(), Some(Output::Leave(room("r"))));
    gone.handle(frame(&comment(3, "r")), at(100));
    assert_eq!(dropped(&mut gone), (Cid(3), Reason::NotJoined, 0));
}

#[test]
fn more_than_the_rate_is_answered_and_a_flood_is_closed() {
    let mut session = open();
    for cid in 0..40 {
        session.handle(frame(&comment(cid, "r")), at(1000));
        assert!(matches!(session.poll(), Some(Output::Publish(_))), "comment {cid}");
    }

    session.handle(frame(&comment(40, "r")), at(1000));
    assert_eq!(dropped(&mut session), (Cid(40), Reason::RateLimited, 50));
    session.handle(frame(&comment(41, "r")), at(1050));
    assert!(matches!(session.poll(), Some(Output::Publish(_))));

    for cid in 0..=200 {
        session.handle(frame(&comment(cid, "r")), at(1050));
    }
    let closed = std::iter::from_fn(|| session.poll()).last();
    assert_eq!(closed, Some(Output::Close(CloseCode::RateLimited)));
}

#[test]
fn a_later_join_is_asked_for_and_told() {
    let mut session = open_with(Grant { rooms: vec![room("r"), room("s")], ..grant() });

    session.handle(frame(&Uplink::Join(join("s"))), at(100));
    assert_eq!(session.poll(), Some(Output::Join(join("s"))));
    session.handle(Input::Joined(entered("s")), at(100));

    assert!(matches!(
        session.poll(),
        Some(Output::Publish(UplinkEntry { act: Act::Join { age_ms: 0 }, .. }))
    ));
    assert_eq!(session.poll(), Some(Output::Send(Downlink::Joined(entered("s")))));

    session.handle(frame(&Uplink::Join(join("not-in-the-token"))), at(100));
    let Some(Output::Send(Downlink::Joined(refused))) = session.poll() else { panic!() };
    assert!(matches!(refused.outcome, JoinOutcome::Refused { code: CloseCode::NoRoom, .. }));
}

#[test]
fn the_node_ends_a_session_once() {
    let mut session = open();
    let close = Close {
        code: CloseCode::Draining,
        reason: "draining".to_owned(),
        retry_after_ms: 321,
        addresses: Vec::new(),
    };

    session.handle(Input::End(close.clone()), at(100));
    session.handle(Input::End(close.clone()), at(101));
    session.handle(frame(&comment(1, "r")), at(102));

    assert_eq!(session.poll(), Some(Output::Send(Downlink::Close(close))));
    assert_eq!(session.poll(), Some(Output::Close(CloseCode::Draining)));
    assert_eq!(session.poll(), None);
}

fn check_close(input: Input, code: CloseCode) {
    let mut session = open();

    session.handle(input, at(100));

    assert_eq!(close_code(&mut session), code);
}

fn close_code(session: &mut Session) -> CloseCode {
    let Some(Output::Send(Downlink::Close(Close { code, .. }))) = session.poll() else {
        panic!("no Close")
    };
    assert_eq!(session.poll(), Some(Output::Close(code)));
    code
}

fn refusal(session: &mut Session) -> CloseCode {
    let last = std::iter::from_fn(|| session.poll()).find_map(|it| match it {
        Output::Send(Downlink::Refused(Refused { code, .. })) => Some(code),
        _ => None,
    });
    last.expect("no Refused")
}

fn dropped(session: &mut Session) -> (Cid, Reason, u32) {
    match session.poll() {
        Some(Output::Send(Downlink::Ack(Ack {
            cid,
            outcome: Outcome::Verdict(Verdict::Drop { reason, retry_after_ms }),
        }))) => (cid, reason, retry_after_ms),
        other => panic!("no drop, but {other:?}"),
    }
}

fn open() -> Session {
    open_with(grant())
}

fn open_with(grant: Grant) -> Session {
    let mut session = session();
    session.handle(frame(&hello()), at(0));
    session.handle(frame(&login(&["r"])), at(0));
    session.handle(Input::Granted(Box::new(grant)), at(0));
    session.handle(Input::Joined(entered("r")), at(0));
    drain(&mut session);
    assert!(session.is_open());
    session
}

fn drain(session: &mut Session) {
    while session.poll().is_some() {}
}

fn session() -> Session {
    Session::new(SessionId(1), limits(), Suite::Plain, Mono(0), Mono(0))
}

fn national() -> Session {
    Session::new(SessionId(1), limits(), Suite::National, Mono(0), Mono(0))
}

fn limits() -> Arc<Limits> {
    Arc::new(Limits {
        login: Duration::from_secs(10),
        phase: Duration::from_secs(5),
        silence: Duration::from_secs(60),
        heartbeat: Duration::from_secs(25),
        frames: Rate { burst: 40, per_s: 20 },
        frame_bytes_max: 65_536,
    })
}

fn grant() -> Grant {
    Grant {
        app: AppId(1),
        viewer: ViewerId::parse("viewer").unwrap(),
        role: Role::Viewer,
        may_send: true,
        rooms: vec![room("r")],
        life: Duration::from_secs(3000),
        confirm: None,
        resume_ticket: "ticket".to_owned(),
    }
}

fn at(ms: u64) -> Now {
    Now { mono: Mono(ms), wall: Wall(1_000_000 + ms) }
}

fn frame(uplink: &Uplink) -> Input {
    Input::Frame(uplink.encode())
}

fn hello() -> Uplink {
    Uplink::Hello(Hello {
        sdk: "test".to_owned(),
        sdk_version: "1".to_owned(),
        proto_min: 1,
        proto_max: 1,
        suites: vec!["P".to_owned()],
        codecs: Vec::new(),
        nonce: 9,
    })
}

fn login(rooms: &[&str]) -> Uplink {
    Uplink::Login(Login {
        credential: Credential::Token("token".to_owned()),
        binder: None,
        device: None,
        joins: rooms.iter().map(|it| join(it)).collect(),
    })
}

fn comment(cid: u64, name: &str) -> Uplink {
    Uplink::Comment(Comment {
        cid: Cid(cid),
        room: room(name),
        text: "hi".to_owned(),
        style: Style::default(),
        media_ms: None,
    })
}

fn join(name: &str) -> Join {
    Join { room: room(name), path: Path::Push, resume: None }
}

fn entered(name: &str) -> Joined {
    let outcome = JoinOutcome::In {
        heat: Heat::Cold,
        path: Path::Push,
        resumed: Resumed::Fresh,
        latest: None,
        online: 1,
    };
    Joined { room: room(name), outcome }
}

fn room(name: &str) -> RoomId {
    RoomId::parse(name).unwrap()
}
