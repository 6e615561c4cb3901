//! From Hello to LoginOk, or to a refusal.

use std::sync::Arc;

use auth_core::policy::SdkPolicy;
use link_core::session::{Denial, Input, Limits, Output, Session};
use proto::close::CloseCode;
use proto::control::Fact;
use proto::envelope::{Act, UplinkEntry};
use proto::frame::{Codec, Downlink, Hello, JoinOutcome, PROTO_VERSION, Refused, Uplink};
use proto::policy::{SdkAct, SdkFact, SdkRule};
use proto::suite::Suite;
use proto::time::{Mono, Wall};

use crate::world::{at, drain, entered, frame, grant, hello, join, limits, login, session};

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

    let mut late = Session::new(limits(), Suite::Plain, Mono(0), Mono(4900));
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
    assert_eq!((welcome.suite.as_str(), welcome.codec.as_str()), ("G", Codec::Identity.name()));
}

#[test]
fn frames_are_packed_as_the_client_likes_best_unless_the_node_packs_none() {
    let agreed = |codecs: &[&str], limits: Arc<Limits>| {
        let Uplink::Hello(mut offer) = hello() else { unreachable!() };
        offer.codecs = codecs.iter().copied().map(str::to_owned).collect();
        let mut session = Session::new(limits, Suite::Plain, Mono(0), Mono(0));
        session.handle(frame(&Uplink::Hello(offer)), at(1));
        let Some(Output::Send(Downlink::Welcome(welcome))) = session.poll() else { panic!() };
        assert_eq!(welcome.codec, session.codec().name());
        session.codec()
    };
    let never = Arc::new(Limits { compress: false, ..Limits::clone(&limits()) });

    assert_eq!(agreed(&["deflate", "identity"], limits()), Codec::Deflate);
    assert_eq!(agreed(&["identity", "deflate"], limits()), Codec::Identity);
    assert_eq!(agreed(&[], limits()), Codec::Identity);
    assert_eq!(agreed(&["deflate", "identity"], never), Codec::Identity);
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

fn refusal(session: &mut Session) -> CloseCode {
    let last = std::iter::from_fn(|| session.poll()).find_map(|it| match it {
        Output::Send(Downlink::Refused(Refused { code, .. })) => Some(code),
        _ => None,
    });
    last.expect("no Refused")
}

fn national() -> Session {
    Session::new(limits(), Suite::National, Mono(0), Mono(0))
}
