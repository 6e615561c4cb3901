//! Doing what the session machine wants.

use link_core::hub::Offered;
use link_core::session::{Input, Output};
use proto::envelope::{Act, UplinkEntry};
use proto::frame::{Ack, Control, Downlink, Join, Outcome};
use proto::id::{Cid, RoomId};
use proto::item::Role;
use proto::policy::Access;
use proto::verdict::{Reason, Verdict};

use super::{Conversation, Presence};
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
                Output::Pong(content) => self.pong(&content),
                Output::Verify(claim) => self.verify(&claim),
                Output::Join(join) => self.join(&join),
                Output::Leave(room) => self.leave(&room),
                Output::Publish(entry) => self.publish(entry),
                Output::Report(report) => {
                    let failed = report.failures.min(report.fetches);
                    self.node().counts.fetches("fetched", report.fetches - failed);
                    self.node().counts.fetches("failed", failed);
                    self.node().counts.fetches("missed", report.missed);
                    let counted = self.node().quality.lock().take(&report);
                    self.node().counts.votes(counted);
                }
                Output::Close(code) => self.close(code),
            }
        }
        if self.session.is_open() && self.presence.open() {
            self.io.decoder.allow(self.listener.limits.frame_bytes_max);
            self.outbox.pack(self.session.codec());
            let Presence { node, line, .. } = &self.presence;
            if let Err(error) = self.io.socket.settle(&node.poller, line.session) {
                tracing::warn!(%error, "a session was lost when its login was over");
            }
        }
        if self.session.is_open() {
            for news in self.news.take().into_iter().flat_map(|it| it.0) {
                self.send(&Downlink::Control(news));
            }
        }
    }

    fn send(&mut self, downlink: &Downlink) {
        if let Downlink::Ack(Ack {
            outcome: Outcome::Verdict(Verdict::Drop { reason, .. }), ..
        }) = downlink
        {
            self.node().counts.dropped(*reason);
        }
        let frame = downlink.encode();
        if self.outbox.push(&frame).is_ok() {
            return;
        }
        self.slow();
        // Why a session is over is told in the place of what waited; only an `outbox_bytes_max`
        // below one frame has no room for it.
        if matches!(downlink, Downlink::Close(_)) {
            self.outbox.push(&frame).ok();
        }
    }

    fn join(&mut self, join: &Join) {
        let Some(member) = self.session.member() else {
            return;
        };
        let (joined, seat) = self.node().join(member, &self.presence, join);
        if let Some(Seat { room, cursor, news }) = seat {
            // Who joins again, and asks for nothing that it missed, gets what waits for it.
            let reads_on =
                join.resume.is_none() && self.outbox.reading(&room.id) == Some(cursor.reading());
            if !reads_on {
                self.outbox.follow(room, cursor);
            }
            let attributes = self.presence.node.boards.lock().attributes(member.app, &join.room);
            let room = join.room.clone();
            let board =
                (!attributes.is_empty()).then_some(Control::Attributes { room, attributes });
            let keys = self.presence.node.vault.of(member.app, &join.room);
            if news.is_some() || board.is_some() || keys.is_some() {
                let news = news.into_iter().chain(board).chain(keys);
                self.news.get_or_insert_default().0.extend(news);
            }
        }
        self.session.handle(Input::Joined(joined), self.node().now());
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
        if cid.is_some() && self.node().comments.lock().take(self.node().clock.mono()).is_err() {
            return self.drop_comment(cid, Reason::Busy, BUSY_RETRY_MS);
        }
        if cid.is_some() {
            entry.origin = self.presence.origin();
        }
        if !cid.is_none_or(|it| self.is_kept(&entry, it)) {
            self.drop_comment(cid, Reason::RoomBusy, ROOM_BUSY_RETRY_MS);
        } else if self.node().uplink.push(entry).is_err() {
            self.node().counts.busy.inc();
            self.drop_comment(cid, Reason::Busy, BUSY_RETRY_MS);
        }
    }

    /// Counts a comment as offered, and says whether it is of the share that is passed on. Hosts and
    /// moderators are always heard.
    fn is_kept(&self, entry: &UplinkEntry, cid: Cid) -> bool {
        let Presence { node, .. } = &self.presence;
        let offered = node.hub.lock().offer(&entry.room, &entry.viewer, cid, node.clock.mono());
        if offered == Offered::Kept || self.is_always_kept(entry) {
            return true;
        }
        if offered == Offered::Capped {
            node.counts.capped.inc();
        }
        false
    }

    /// By token or by the room's word: a host, a moderator, or somebody on the allow-list.
    fn is_always_kept(&self, entry: &UplinkEntry) -> bool {
        let UplinkEntry { app, room, viewer, role: by_token, .. } = entry;
        let standing = self.presence.node.boards.lock().standing(*app, room, viewer);
        standing.listed || standing.role.unwrap_or_default().max(*by_token) >= Role::Moderator
    }

    fn drop_comment(&mut self, cid: Option<Cid>, reason: Reason, retry_after_ms: u32) {
        if let Some(cid) = cid {
            self.node().counts.dropped(reason);
            if self.outbox.push(&drop_frame(cid, reason, retry_after_ms)).is_err() {
                self.slow();
            }
        }
    }
}
