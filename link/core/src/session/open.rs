//! A session that is logged in.

use std::time::Duration;

use proto::close::CloseCode;
use proto::envelope::{Act, UplinkEntry};
use proto::frame::{
    Ack, Comment, Credential, Downlink, Join, JoinOutcome, Joined, Login, LoginOk, Outcome, Uplink,
};
use proto::id::{Cid, RoomId, SessionId};
use proto::limits::TEXT_BYTES_MAX;
use proto::time::{Mono, Wall, millis};
use proto::verdict::{Reason, Verdict};

use super::login::not_allowed;
use super::{Claim, FLOOD_FRAMES_MAX, Grant, Limits, Output, Phase, Session};
use crate::Now;
use crate::bucket::Bucket;
use crate::quality::REPORT_GAP_MIN;

/// What a logged-in session knows.
#[derive(Debug)]
pub(super) struct Open {
    pub(super) grant: Grant,
    pub(super) expires: Mono,
    pub(super) expires_at: Wall,
    /// Where it is, and since when.
    rooms: Vec<(RoomId, Mono)>,
    frames: Bucket,
    /// Frames over the rate since the last one within it.
    flood: u32,
    /// No report counts before.
    report_from: Mono,
}

impl Open {
    pub(super) fn new(grant: Grant, limits: &Limits, now: Now) -> Self {
        Self {
            expires: now.mono + grant.life,
            expires_at: now.wall + grant.life,
            frames: Bucket::new(limits.frames),
            rooms: Vec::new(),
            flood: 0,
            report_from: now.mono,
            grant,
        }
    }

    /// Notes that the session is in a room; says whether it was not before.
    pub(super) fn enter(&mut self, room: &RoomId, now: Now) -> bool {
        let new = !self.is_in(room);
        if new {
            self.rooms.push((room.clone(), now.mono));
        }
        new
    }

    fn is_in(&self, room: &RoomId) -> bool {
        self.rooms.iter().any(|it| it.0 == *room)
    }

    pub(super) fn entry(
        &self,
        session: SessionId,
        room: &RoomId,
        act: Act,
        now: Now,
    ) -> UplinkEntry {
        UplinkEntry {
            session,
            app: self.grant.app,
            room: room.clone(),
            viewer: self.grant.viewer.clone(),
            role: self.grant.role,
            may_send: self.grant.may_send,
            at: now.wall,
            act,
        }
    }
}

impl Session {
    pub(super) fn open_frame(&mut self, uplink: Uplink, now: Now) {
        let Phase::Open(open) = &mut self.phase else {
            return;
        };
        if let Err(wait) = open.frames.take(now.mono) {
            open.flood += 1;
            if open.flood > FLOOD_FRAMES_MAX {
                self.close(CloseCode::RateLimited);
            } else {
                self.too_often(uplink, wait);
            }
            return;
        }
        open.flood = 0;
        match uplink {
            Uplink::Comment(comment) => self.comment(comment, now),
            Uplink::Like { room, count } => self.like(&room, count, now),
            Uplink::Join(join) => self.join(join),
            Uplink::Leave { room } => self.leave(room),
            Uplink::Refresh { token } => self.refresh(token),
            Uplink::Report(report) => {
                if now.mono >= open.report_from {
                    open.report_from = now.mono + REPORT_GAP_MIN;
                    self.outputs.push_back(Output::Report(report));
                }
            }
            Uplink::Ping { nonce } => {
                let pong = Downlink::Pong { nonce, server_ms: now.wall };
                self.outputs.push_back(Output::Send(pong));
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
                self.outputs.push_back(Output::Send(Downlink::Joined(joined)));
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
        if !open.grant.may_send {
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
        let entry = open.entry(self.id, &room, Act::Comment { cid, text, style, media_ms }, now);
        self.outputs.push_back(Output::Publish(entry));
    }

    fn like(&mut self, room: &RoomId, count: u32, now: Now) {
        let Phase::Open(open) = &self.phase else {
            return;
        };
        if open.grant.may_send && open.is_in(room) && count > 0 {
            let entry = open.entry(self.id, room, Act::Like { count }, now);
            self.outputs.push_back(Output::Publish(entry));
        }
    }

    fn join(&mut self, join: Join) {
        let Phase::Open(open) = &self.phase else {
            return;
        };
        let output = if open.grant.rooms.contains(&join.room) {
            Output::Join(join)
        } else {
            Output::Send(Downlink::Joined(not_allowed(join)))
        };
        self.outputs.push_back(output);
    }

    /// The answer to a join after the login.
    pub(super) fn joined_later(&mut self, joined: Joined, now: Now) {
        let Phase::Open(open) = &mut self.phase else {
            return;
        };
        if matches!(joined.outcome, JoinOutcome::In { .. }) && open.enter(&joined.room, now) {
            let entry = open.entry(self.id, &joined.room, Act::Join { age_ms: 0 }, now);
            self.outputs.push_back(Output::Publish(entry));
        }
        self.outputs.push_back(Output::Send(Downlink::Joined(joined)));
    }

    fn leave(&mut self, room: RoomId) {
        let Phase::Open(open) = &mut self.phase else {
            return;
        };
        if let Some(index) = open.rooms.iter().position(|it| it.0 == room) {
            open.rooms.remove(index);
            self.outputs.push_back(Output::Leave(room));
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
        let claim = Claim { hello, welcome, login, refresh: true };
        self.outputs.push_back(Output::Verify(Box::new(claim)));
    }

    /// A new token was good: the session lives on with what it says, and a new LoginOk tells so.
    /// So do joins, with their age: who remembers for the life of a session where it is, may go on
    /// doing so.
    pub(super) fn refreshed(&mut self, mut grant: Grant, now: Now) {
        let Phase::Open(open) = &mut self.phase else {
            return;
        };
        if (grant.app, &grant.viewer) != (open.grant.app, &open.grant.viewer) {
            self.close(CloseCode::TokenInvalid);
            return;
        }
        let resume_ticket = std::mem::take(&mut grant.resume_ticket);
        let gone = open.rooms.extract_if(.., |it| !grant.rooms.contains(&it.0));
        self.outputs.extend(gone.map(|it| Output::Leave(it.0)));
        open.expires = now.mono + grant.life;
        open.expires_at = now.wall + grant.life;
        open.grant = grant;
        let login_ok = LoginOk {
            session: self.id,
            role: open.grant.role,
            confirm: None,
            rooms: Vec::new(),
            expires: open.expires_at,
            resume_ticket,
        };
        self.outputs.push_back(Output::Send(Downlink::LoginOk(login_ok)));
        for (room, since) in &open.rooms {
            let age_ms = u32::try_from(millis(now.mono.since(*since))).unwrap_or(u32::MAX);
            let entry = open.entry(self.id, room, Act::Join { age_ms }, now);
            self.outputs.push_back(Output::Publish(entry));
        }
    }

    fn drop_comment(&mut self, cid: Cid, reason: Reason, retry_after_ms: u32) {
        let outcome = Outcome::Verdict(Verdict::Drop { reason, retry_after_ms });
        self.outputs.push_back(Output::Send(Downlink::Ack(Ack { cid, outcome })));
    }
}
