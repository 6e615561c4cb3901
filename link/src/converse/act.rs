//! Doing what the session machine wants.

use std::sync::atomic::Ordering;

use link_core::session::{Claim, Denial, Grant, Input, Output};
use proto::close::CloseCode;
use proto::envelope::{Act, UplinkEntry};
use proto::frame::{Ack, Credential, Downlink, Join, Outcome};
use proto::id::{Cid, RoomId};
use proto::limits::UPLINK_FRAME_BYTES_MAX;
use proto::policy::Access;
use proto::verdict::{Reason, Verdict};
use subtle::ConstantTimeEq;

use super::Conversation;
use crate::config::{Binder, ms};
use crate::door::{Pass, Shut};
use crate::node::Seat;
use crate::uplink::{BUSY_RETRY_MS, drop_frame};

/// When a sender whose room takes only a share of its comments may try again.
const ROOM_BUSY_RETRY_MS: u32 = 1000;

impl Conversation {
    /// Does everything that the machine wants now.
    pub(super) fn act(&mut self) {
        while let Some(output) = self.session.poll() {
            match output {
                Output::Send(downlink) => self.send(&downlink),
                Output::Verify(claim) => self.verify(&claim),
                Output::Join(join) => self.join(&join),
                Output::Leave(room) => self.leave(&room),
                Output::Publish(entry) => self.publish(entry),
                Output::Report(report) => {
                    let failed = report.failures.min(report.fetches);
                    self.node.counts.fetches("fetched", report.fetches - failed);
                    self.node.counts.fetches("failed", failed);
                    self.node.counts.fetches("missed", report.missed);
                }
                Output::Close(code) => self.close(code),
            }
        }
        if self.session.is_open() && self.presence.open() {
            self.io.decoder.allow(UPLINK_FRAME_BYTES_MAX);
            self.exporter = None;
        }
        if self.session.is_open() {
            for news in std::mem::take(&mut self.news) {
                self.send(&Downlink::Control(news));
            }
        }
    }

    fn send(&mut self, downlink: &Downlink) {
        if let Downlink::Ack(Ack {
            outcome: Outcome::Verdict(Verdict::Drop { reason, .. }), ..
        }) = downlink
        {
            self.node.counts.dropped(*reason);
        }
        if self.outbox.push(&downlink.encode()).is_err() {
            self.slow();
        }
    }

    fn verify(&mut self, claim: &Claim) {
        let input = match self.check(claim) {
            Ok(grant) => {
                self.node.counts.login(if claim.refresh { "refreshed" } else { "ok" });
                Input::Granted(Box::new(grant))
            }
            Err(Shut { code, name }) => {
                self.node.counts.login(name);
                Input::Denied(Denial { code, retry_after_ms: self.retry_after_ms(code) })
            }
        };
        self.session.handle(input, self.node.now());
    }

    fn check(&mut self, claim: &Claim) -> Result<Grant, Shut> {
        let node = &self.node;
        let now = node.clock.wall();
        let mut confirm = None;
        if !claim.refresh {
            if node.is_draining() {
                return Err(Shut::of(CloseCode::Draining));
            }
            if node.traffic.sessions.load(Ordering::Relaxed) >= node.config.sessions_max {
                return Err(Shut::of(CloseCode::Full));
            }
            // A refresh goes on: what is learned later still finds the session.
            if !node.door.is_current(node.clock.mono()) {
                return Err(Shut { code: CloseCode::Unavailable, name: "control_behind" });
            }
            confirm = self.check_binder(claim)?;
        }
        let pass = node.door.check(&claim.login, self.listener.link, now)?;
        if node.door.wants_ticket(&pass) {
            return Err(Shut::of(CloseCode::TicketRequired));
        }
        let grant = self.grant(&pass, confirm);
        // From here on a kick finds the session; one that came before is found now.
        self.presence.arrive(pass.clone());
        if self.node.door.is_kicked(&pass) {
            return Err(Shut::of(CloseCode::Kicked));
        }
        Ok(grant)
    }

    fn grant(&self, pass: &Pass, confirm: Option<[u8; 32]>) -> Grant {
        let config = &self.node.config;
        Grant {
            app: pass.app,
            viewer: pass.viewer.clone(),
            role: pass.role(),
            may_send: pass.may_send(),
            rooms: pass.rooms.to_vec(),
            life: ms(self.node.draw_ms(config.life_ms_min, config.life_ms_max)),
            confirm,
            resume_ticket: self.node.door.resume_ticket(pass, self.node.clock.wall()),
        }
    }

    /// Whether the login belongs to this TLS connection; returns the proof that we saw the same
    /// offer and answer.
    fn check_binder(&self, claim: &Claim) -> Result<Option<[u8; 32]>, Shut> {
        let bad = Shut::of(CloseCode::BadBinder);
        let credential = match &claim.login.credential {
            Credential::Token(text) | Credential::ResumeTicket(text) => text.as_bytes(),
        };
        match (claim.login.binder, self.exporter, self.listener.binder) {
            (Some(found), Some(exporter), _) => {
                let expected = channel::binder(&exporter, &claim.hello, credential);
                if bool::from(expected.ct_eq(&found)) {
                    Ok(Some(channel::confirm(&exporter, &claim.hello, &claim.welcome)))
                } else {
                    Err(bad)
                }
            }
            (None, _, Binder::Required) | (Some(_), None, _) => Err(bad),
            (None, _, Binder::None) => Ok(None),
        }
    }

    fn retry_after_ms(&self, code: CloseCode) -> u32 {
        let later = [CloseCode::TokenInvalid, CloseCode::TokenEpoch, CloseCode::Unavailable];
        if code == CloseCode::Draining {
            self.node.draw_ms(0, self.node.config.drain_ms)
        } else if code == CloseCode::Full {
            self.node.draw_ms(1_000, 5_000)
        } else if later.contains(&code) {
            self.node.draw_ms(500, 2_000)
        } else {
            0
        }
    }

    fn join(&mut self, join: &Join) {
        let Some(member) = self.session.member() else {
            return;
        };
        let (joined, seat) = self.node.join(&member, &self.presence, join);
        if let Some(Seat { room, cursor, news }) = seat {
            self.outbox.follow(room.id.clone(), cursor);
            self.presence.sit(room);
            self.news.extend(news);
        }
        self.session.handle(Input::Joined(joined), self.node.now());
    }

    fn leave(&mut self, room: &RoomId) {
        self.outbox.unfollow(room);
        self.presence.leave(room);
    }

    fn publish(&mut self, mut entry: UplinkEntry) {
        let cid = match &entry.act {
            Act::Comment { cid, .. } => Some(*cid),
            Act::Join { .. } | Act::Leave | Act::Like { .. } => None,
        };
        entry.may_send &= self.presence.access(&entry.room) == Access::Send;
        if !entry.may_send && matches!(entry.act, Act::Comment { .. } | Act::Like { .. }) {
            return self.drop_comment(cid, Reason::ReadOnly, 0);
        }
        let kept =
            cid.is_none_or(|it| self.node.hub.lock().offer(&entry.room, entry.session, it.0));
        if !kept {
            self.drop_comment(cid, Reason::RoomBusy, ROOM_BUSY_RETRY_MS);
        } else if self.node.uplink.push(entry).is_err() {
            self.node.counts.busy.inc();
            self.drop_comment(cid, Reason::Busy, BUSY_RETRY_MS);
        }
    }

    fn drop_comment(&mut self, cid: Option<Cid>, reason: Reason, retry_after_ms: u32) {
        if let Some(cid) = cid {
            self.node.counts.dropped(reason);
            if self.outbox.push(&drop_frame(cid, reason, retry_after_ms)).is_err() {
                self.slow();
            }
        }
    }
}
