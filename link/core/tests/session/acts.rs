//! What a logged-in session says and where it is.

use std::sync::Arc;

use link_core::hub::Member;
use link_core::session::{FRAME_BYTES, Grant, Input, Output, Session};
use proto::close::CloseCode;
use proto::envelope::{Act, UplinkEntry};
use proto::frame::{Ack, Comment, Downlink, JoinOutcome, Outcome, Uplink};
use proto::id::Cid;
use proto::time::Wall;
use proto::verdict::{Reason, Verdict};

use crate::world::{at, comment, entered, frame, grant, join, member, open, open_with, room};

#[test]
fn a_comment_goes_up_with_the_sessions_own_name() {
    let mut session = open();

    session.handle(frame(&comment(5, "r")), at(100));

    let Some(Output::Publish(entry)) = session.poll() else { panic!() };
    assert_eq!(entry.viewer, member().viewer);
    assert_eq!(entry.at, Wall(1_000_100));
    assert!(matches!(entry.act, Act::Comment { cid: Cid(5), .. }));
}

#[test]
fn a_comment_without_permission_is_answered_with_the_reason() {
    let mut outside = open();
    outside.handle(frame(&comment(1, "other")), at(100));
    assert_eq!(dropped(&mut outside), (Cid(1), Reason::NotJoined, 0));

    let reader = Arc::new(Member { may_send: false, ..member() });
    let mut guest = open_with(Grant { member: reader, ..grant() });
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
fn a_long_frame_counts_as_several() {
    let mut session = open();
    let Uplink::Comment(mut padded) = comment(1, "r") else { panic!() };
    padded.text = "x".repeat(4 * FRAME_BYTES);
    let padded = Uplink::Comment(padded);

    for _ in 0..8 {
        session.handle(frame(&padded), at(1000));
        assert_eq!(dropped(&mut session).1, Reason::TooLong, "five of forty frames");
    }
    session.handle(frame(&padded), at(1000));

    assert_eq!(dropped(&mut session), (Cid(1), Reason::RateLimited, 250));
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

fn dropped(session: &mut Session) -> (Cid, Reason, u32) {
    match session.poll() {
        Some(Output::Send(Downlink::Ack(Ack {
            cid,
            outcome: Outcome::Verdict(Verdict::Drop { reason, retry_after_ms }),
        }))) => (cid, reason, retry_after_ms),
        other => panic!("no drop, but {other:?}"),
    }
}
