//! How long a session lives, and what ends it.

use std::sync::Arc;

use bytes::Bytes;
use link_core::hub::Member;
use link_core::session::{Denial, EARLY_SIGNS_MAX, Grant, Input, Output};
use proto::close::CloseCode;
use proto::envelope::{Act, UplinkEntry};
use proto::frame::{Close, Downlink, LoginOk, Uplink};
use proto::id::ViewerId;
use proto::time::{Mono, Wall};

use crate::world::{
    at, close_code, comment, drain, frame, grant, hello, login, member, open, session,
};

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
fn signs_of_life_pass_at_the_rate_of_frames_and_a_flood_of_them_is_closed() {
    let ping = |it: u8| Input::Ping(Bytes::copy_from_slice(&[it]));
    let mut session = open();
    for number in 0..40 {
        session.handle(ping(number), at(1000));
        assert_eq!(session.poll(), Some(Output::Pong(Bytes::copy_from_slice(&[number]))));
    }

    for _ in 0..100 {
        session.handle(ping(0), at(1000));
        session.handle(Input::Heard, at(1000));
    }
    assert_eq!(session.poll(), None, "over the rate");
    assert!(session.is_open());

    session.handle(Input::Heard, at(1000));
    assert_eq!(close_code(&mut session), CloseCode::RateLimited);
}

#[test]
fn before_the_login_few_signs_of_life_are_borne() {
    let mut session = session();
    for _ in 0..EARLY_SIGNS_MAX {
        session.handle(Input::Ping(Bytes::new()), at(1));
        assert_eq!(session.poll(), Some(Output::Pong(Bytes::new())));
    }

    session.handle(Input::Ping(Bytes::new()), at(1));

    assert_eq!(close_code(&mut session), CloseCode::RateLimited);
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
fn a_refused_refresh_ends_the_session_only_for_good() {
    let refused = |code| {
        let mut session = open();
        session.handle(frame(&Uplink::Refresh { token: "t".to_owned() }), at(1_000));
        session.poll();
        session.handle(Input::Denied(Denial { code, retry_after_ms: 500 }), at(1_000));
        session
    };

    for code in [CloseCode::Unavailable, CloseCode::TokenExpired] {
        let mut session = refused(code);
        let Some(Output::Send(Downlink::Refused(refused))) = session.poll() else { panic!() };
        assert_eq!((refused.code, refused.retry_after_ms), (code, 500));
        assert_eq!(refused.server_ms, Wall(1_001_000));
        assert!(session.is_open());
        assert_eq!(session.poll(), None);
    }
    assert_eq!(close_code(&mut refused(CloseCode::Kicked)), CloseCode::Kicked);
}

#[test]
fn a_refresh_for_somebody_else_ends_the_session() {
    let mut session = open();
    session.handle(frame(&Uplink::Refresh { token: "t".to_owned() }), at(40_000));
    drain(&mut session);

    let viewer = ViewerId::parse("another").unwrap();
    let member = Arc::new(Member { viewer, ..member() });
    session.handle(Input::Granted(Box::new(Grant { member, ..grant() })), at(40_000));

    assert_eq!(close_code(&mut session), CloseCode::TokenInvalid);
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
