//! A session that is logged in.

use std::sync::Arc;
use std::time::Duration;

use proto::close::CloseCode;
use proto::envelope::{Act, UplinkEntry};
use proto::frame::{
    Ack, Comment, Credential, Downlink, Join, JoinOutcome, Joined, Login, LoginOk, Outcome, Uplink,
};
use proto::id::{Cid, RoomId};
use proto::limits::TEXT_BYTES_MAX;
use proto::time::{Mono, millis};
use proto::verdict::{Reason, Verdict};

use super::login::not_allowed;
use super::{Claim, FLOOD_FRAMES_MAX, FRAME_BYTES, Grant, Limits, Output, Phase, Session};
use crate::Now;
use crate::bucket::Bucket;
use crate::hub::Member;
use crate::quality::REPORT_GAP_MIN;

/// What a logged-in session knows.
#[derive(Debug)]
pub(super) struct Open {
    pub(super) member: Arc<Member>,
    pub(super) expires: Mono,
    /// Where the viewer may be, and since when the session is there.
    rooms: Box<[Place]>,
    frames: Bucket,
    /// Frames over the rate since the last one within it.
    flood: u32,
    /// No report counts before.
    report_from: Mono,
}

#[derive(Debug)]
struct Place {
    room: RoomId,
    since: Option<Mono>,
}

impl Open {
    pub(super) fn new(grant: &Grant, limits: &Limits, now: Now) -> Self {
        let place = |room: &RoomId| Place { room: room.clone(), since: None };
        Self {
            member: Arc::clone(&grant.member),
            expires: now.mono + grant.life,
            rooms: grant.rooms.iter().map(place).collect(),
            frames: Bucket::new(limits.frames),
            flood: 0,
            report_from: now.mono,
        }
    }

    /// Notes that the session is in a room; says whether it was not before.
    pub(super) fn enter(&mut self, room: &RoomId, now: Now) -> bool {
        let place = self.rooms.iter_mut().find(|it| it.room == *room);
        place.is_some_and(|it| it.since.replace(it.since.unwrap_or(now.mono)).is_none())
    }

    /// Counts so many frames; over the rate, gives the time after which they would pass.
    pub(super) fn count(&mut self, frames: u32, now: Now) -> Result<(), Duration> {
        let passed = self.frames.take_many(frames, now.mono);
        self.flood = if passed.is_ok() { 0 } else { self.flood + 1 };
        passed
    }

    /// Whether more came over the rate, one after the other, than a session survives.
    pub(super) const fn is_flooded(&self) -> bool {
        self.flood > FLOOD_FRAMES_MAX
    }

    fn is_in(&self, room: &RoomId) -> bool {
        self.rooms.iter().any(|it| it.room == *room && it.since.is_some())
    }

    /// Takes another grant in the place of the first; gives the rooms that the session is in no
    /// more.
    fn renew(&mut self, grant: &Grant, now: Now) -> Vec<RoomId> {
        let place = |room: &RoomId| {
            let held = self.rooms.iter().find(|it| it.room == *room);
            Place { room: room.clone(), since: held.and_then(|it| it.since) }
        };
        let rooms = grant.rooms.iter().map(place).collect();
        let before = std::mem::replace(&mut self.rooms, rooms).into_iter();
        self.member = Arc::clone(&grant.member);
        self.expires = now.mono + grant.life;
        let gone = before.filter(|it| it.since.is_some() && !grant.rooms.contains(&it.room));
        gone.map(|it| it.room).collect()
    }

    pub(super) fn entry(&self, room: &RoomId, act: Act, now: Now) -> UplinkEntry {
        let Member { session, app, viewer, role, may_send } = &*self.member;
        UplinkEntry {
            session: *session,
            app: *app,
            room: room.clone(),
            viewer: viewer.clone(),
            role: *role,
            may_send: *may_send,
            at: now.wall,
            origin: None,
            act,
        }
    }
}

impl Session {
    pub(super) fn open_frame(&mut self, uplink: Uplink, bytes: usize, now: Now) {
        let Phase::Open(open) = &mut self.phase else {
            return;
        };
        let count = u32::try_from(bytes.div_ceil(FRAME_BYTES)).unwrap_or(u32::MAX);
        if let Err(wait) = open.count(count, now) {
            if open.is_flooded() {
                self.close(CloseCode::RateLimited);
            } else {
                self.too_often(uplink, wait);
            }
            return;
        }
        match uplink {
            Uplink::Comment(comment) => self.comment(comment, now),
            Uplink::Like { room, count } => self.like(&room, count, now),
            Uplink::Join(join) => self.join(join),
            Uplink::Leave { room } => self.leave(room),
            Uplink::Refresh { token } => self.refresh(token),
            Uplink::Report(report) => {
                if now.mono >= open.report_from {
                    open.report_from = now.mono + REPORT_GAP_MIN;
                    self.outputs.push(Output::Report(report));
                }
            }
            Uplink::Ping { nonce } => {
                let pong = Downlink::Pong { nonce, server_ms: now.wall };
                self.outputs.push(Output::Send(pong));
            }
            Uplink::Hello(_) | Uplink::Login(_) => self.close(CloseCode::Unexpected),
        }
    }

    /// A frame over the rate: senders learn it where there is a way to tell, the rest is let fall.
    fn too_often(&mut self, uplink: Uplink, wait: Duration) {
        let retry_after_ms = u32::try_from(millis(wait)).unwrap_or(u32::MAX);
        match uplink {
            Uplink::Comment(comment) => {
                self.drop_comment(comment.cid, Reason::RateLimited, retry_after_ms);
            }
            Uplink::Join(join) => {
                let outcome = JoinOutcome::Refused { code: CloseCode::RateLimited, retry_after_ms };
                let joined = Joined { room: join.room, outcome };
                self.outputs.push(Output::Send(Downlink::Joined(joined)));
            }
            Uplink::Leave { room } => self.leave(room),
            Uplink::Like { .. }
            | Uplink::Refresh { .. }
            | Uplink::Report(_)
            | Uplink::Ping { .. }
            | Uplink::Hello(_)
            | Uplink::Login(_) => {}
        }
    }

    fn comment(&mut self, comment: Comment, now: Now) {
        let Phase::Open(open) = &self.phase else {
            return;
        };
        if !open.member.may_send {
            self.drop_comment(comment.cid, Reason::ReadOnly, 0);
            return;
        }
        if !open.is_in(&comment.room) {
            self.drop_comment(comment.cid, Reason::NotJoined, 0);
            return;
        }
        if comment.text.len() > TEXT_BYTES_MAX {
            self.drop_comment(comment.cid, Reason::TooLong, 0);
            return;
        }
        let Comment { cid, room, text, style, media_ms } = comment;
        let entry = open.entry(&room, Act::Comment { cid, text, style, media_ms }, now);
        self.outputs.push(Output::Publish(entry));
    }

    fn like(&mut self, room: &RoomId, count: u32, now: Now) {
        let Phase::Open(open) = &self.phase else {
            return;
        };
        if open.member.may_send && open.is_in(room) && count > 0 {
            let entry = open.entry(room, Act::Like { count }, now);
            self.outputs.push(Output::Publish(entry));
        }
    }

    fn join(&mut self, join: Join) {
        let Phase::Open(open) = &self.phase else {
            return;
        };
        let output = if open.rooms.iter().any(|it| it.room == join.room) {
            Output::Join(join)
        } else {
            Output::Send(Downlink::Joined(not_allowed(join)))
        };
        self.outputs.push(output);
    }

    /// The answer to a join after the login.
    pub(super) fn joined_later(&mut self, joined: Joined, now: Now) {
        let Phase::Open(open) = &mut self.phase else {
            return;
        };
        if matches!(joined.outcome, JoinOutcome::In { .. }) && open.enter(&joined.room, now) {
            let entry = open.entry(&joined.room, Act::Join { age_ms: 0 }, now);
            self.outputs.push(Output::Publish(entry));
        }
        self.outputs.push(Output::Send(Downlink::Joined(joined)));
    }

    fn leave(&mut self, room: RoomId) {
        let Phase::Open(open) = &mut self.phase else {
            return;
        };
        let place = open.rooms.iter_mut().find(|it| it.room == room && it.since.is_some());
        if let Some(place) = place {
            place.since = None;
            self.outputs.push(Output::Leave(room));
        }
    }

    fn refresh(&mut self, token: String) {
        let login = Login {
            credential: Credential::Token(token),
            binder: None,
            device: None,
            joins: Vec::new(),
        };
        let (hello, welcome) = Default::default();
        let claim = Claim { hello, welcome, login, rooms: Vec::new(), refresh: true };
        self.outputs.push(Output::Verify(Box::new(claim)));
    }

    /// A new token was good: the session lives on with what it says, and a new LoginOk tells so.
    /// So do joins, with their age: who remembers for the life of a session where it is, may go on
    /// doing so.
    pub(super) fn refreshed(&mut self, grant: Grant, now: Now) {
        let Phase::Open(open) = &mut self.phase else {
            return;
        };
        if !grant.member.is_of(open.member.app, &open.member.viewer) {
            self.close(CloseCode::TokenInvalid);
            return;
        }
        for room in open.renew(&grant, now) {
            self.outputs.push(Output::Leave(room));
        }
        let login_ok = LoginOk {
            session: grant.member.session,
            role: grant.member.role,
            confirm: None,
            rooms: Vec::new(),
            expires: now.wall + grant.life,
            resume_ticket: grant.resume_ticket,
        };
        self.outputs.push(Output::Send(Downlink::LoginOk(login_ok)));
        for Place { room, since } in &open.rooms {
            let Some(since) = *since else { continue };
            let age_ms = u32::try_from(millis(now.mono.since(since))).unwrap_or(u32::MAX);
            let entry = open.entry(room, Act::Join { age_ms }, now);
            self.outputs.push(Output::Publish(entry));
        }
    }

    fn drop_comment(&mut self, cid: Cid, reason: Reason, retry_after_ms: u32) {
        let outcome = Outcome::Verdict(Verdict::Drop { reason, retry_after_ms });
        self.outputs.push(Output::Send(Downlink::Ack(Ack { cid, outcome })));
    }
}
