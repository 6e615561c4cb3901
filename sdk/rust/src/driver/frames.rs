//! What the link says.

use std::time::Duration;

use bytes::Bytes;
use proto::address::{Address, Carrier};
use proto::frame::{Ack, Close, Control, Downlink, LoginOk, Outcome, Refused};
use proto::id::RoomId;
use proto::keys::RoomKeys;
use proto::time::{Mono, Wall};
use rand::RngExt;
use sdk_core::room::Input;

use super::{Driver, Link};
use crate::connect::{Learned, Resume};
use crate::event::Event;
use crate::wire::decode;

impl Driver {
    pub(super) fn frame(&mut self, frame: &Bytes) {
        let now = self.now();
        match decode(frame) {
            Ok(Downlink::Batch(batch)) => {
                let room = batch.room.clone();
                self.tell_room(&room, Input::Batch(batch), now);
            }
            Ok(Downlink::Seal(seal)) => {
                let room = seal.room.clone();
                self.tell_room(&room, Input::Seal(seal), now);
            }
            Ok(Downlink::Skipped { room, items }) => {
                self.tell_room(&room, Input::Skipped { items }, now);
                self.outbox.push_back(Event::Skipped { room, items });
            }
            Ok(Downlink::Ack(ack)) => self.acked(ack),
            Ok(Downlink::Control(control)) => self.control(control, now),
            Ok(Downlink::Joined(joined)) => {
                self.tell_room(&joined.room, Input::Joined(joined.outcome.clone()), now);
                self.outbox.push_back(Event::Joined(joined));
            }
            Ok(Downlink::Pong { server_ms, .. }) => {
                if let Link::Open(session) = &mut self.link {
                    session.ponged();
                }
                self.server_clock.sample(server_ms, now);
                self.spread_clock();
            }
            // After a refresh: new times, and nothing else.
            Ok(Downlink::LoginOk(login_ok)) => self.logged_in(login_ok, now),
            Ok(Downlink::Close(close)) => self.closed_by_link(close),
            Ok(Downlink::Refused(refused)) => self.renewal_refused(&refused, now),
            Ok(Downlink::Welcome(_)) => {}
            Err(error) => {
                tracing::warn!(%error, "the link sent a frame that cannot be read");
                self.disconnected(None, Duration::ZERO);
            }
        }
    }

    /// What a login or a refresh gave: rooms, an end, a resume ticket.
    pub(super) fn logged_in(&mut self, login_ok: LoginOk, now: Mono) {
        let draw = self.rng.random();
        let Link::Open(session) = &mut self.link else {
            return;
        };
        if let Some(offset) = self.server_clock.offset() {
            let earliest = now + self.options.waits.renew_min;
            session.expires(offset.mono(login_ok.expires), earliest, draw);
        }
        // The address that let us in comes first, then those of `enter`.
        let mut addresses = vec![session.address.clone()];
        let known = self.resume.take().map(|it| it.addresses);
        addresses.extend(known.into_iter().flatten().filter(|it| *it != session.address));
        let ticket = login_ok.resume_ticket;
        self.resume = Some(Resume { ticket, received: now, addresses, is_told: false });
        for joined in login_ok.rooms {
            self.tell_room(&joined.room, Input::Joined(joined.outcome), now);
        }
    }

    /// The token of a renewal was not taken: the session goes on, and asks again later. The time
    /// that the link tells is not believed: its clock may be why.
    fn renewal_refused(&mut self, refused: &Refused, now: Mono) {
        tracing::debug!(code = refused.code.name(), "a renewal was refused");
        let retry_after = Duration::from_millis(refused.retry_after_ms.into());
        if let Link::Open(session) = &mut self.link {
            session.renew_at = Some(now + retry_after.max(self.options.waits.renew_min));
        }
    }

    pub(super) fn tell_room(&mut self, room: &RoomId, input: Input, now: Mono) {
        if let Some(room) = self.rooms.get_mut(room) {
            room.handle(input, now);
        }
    }

    fn acked(&mut self, ack: Ack) {
        if let Outcome::Verdict(_) = ack.outcome {
            self.unacked.remove(&ack.cid);
        }
        self.outbox.push_back(Event::Ack(ack));
    }

    fn control(&mut self, control: Control, now: Mono) {
        match control {
            Control::Heat { room, heat, gen_no, slot } => {
                self.tell_room(&room, Input::Heat { heat, gen_no, slot }, now);
                self.outbox.push_back(Event::Heat { room, heat, gen_no, slot });
            }
            Control::Bases { ref bases } => {
                // It says no time: what it says is said now.
                let said = self.server_clock.offset().map_or(Wall(0), |it| it.wall(now));
                self.bases.weigh(bases, said, said);
                self.outbox.push_back(Event::Control(control));
            }
            Control::Closed { ref room } => {
                self.tell_room(room, Input::Closed, now);
                self.outbox.push_back(Event::Control(control));
            }
            Control::Muted { .. } | Control::Attributes { .. } => {
                self.outbox.push_back(Event::Control(control));
            }
            Control::Keys(keys) => self.learn_keys(&[keys]),
        }
    }

    /// Takes what attempts to connect brought.
    pub(super) fn learn(&mut self, learned: Learned) {
        for (said, received) in learned.samples {
            self.server_clock.sample(said, received);
        }
        self.spread_clock();
        if let Some(entered) = learned.entered {
            self.backoff.retune(entered.retry);
            self.bases.entered(&entered.segments, entered.server_ms);
            self.learn_keys(&entered.keys);
            let addresses = entered.addresses.into_iter().map(|it| it.address);
            let resume = self.resume.get_or_insert_with(|| Resume {
                ticket: String::new(),
                received: Mono(0),
                addresses: Vec::new(),
                is_told: false,
            });
            resume.is_told = false;
            resume.addresses = addresses.filter(|it| self.options.speaks(it.transport)).collect();
            self.tell_rooms(&Input::Entered);
        }
    }

    /// Takes the keys of its own rooms.
    pub(super) fn learn_keys(&mut self, keys: &[RoomKeys]) {
        for keys in keys.iter().filter(|it| self.rooms.contains_key(&it.room)) {
            self.rings.learn(keys);
        }
    }

    fn closed_by_link(&mut self, close: Close) {
        tracing::debug!(code = close.code.name(), reason = close.reason, "the link said goodbye");
        if let (Link::Open(session), Some(resume)) = (&self.link, &mut self.resume) {
            let transport = session.address.transport;
            let named = |it: &String| Some((it.clone(), it.rsplit_once(':')?.1.parse().ok()?));
            let moved: Vec<_> = close.addresses.iter().filter_map(named).collect();
            let address = |(authority, port): (String, u16)| Address {
                host: host(&authority).to_owned(),
                port,
                transport,
                carrier: Carrier::Bgp,
                machine_room: String::new(),
            };
            if moved.is_empty() {
                // Elsewhere is told by the order: the node that says goodbye goes last.
                let rotated = resume.addresses.len().min(1);
                resume.addresses.rotate_left(rotated);
            } else {
                resume.addresses = moved.into_iter().map(address).collect();
                resume.is_told = true;
            }
        }
        let retry_after = Duration::from_millis(close.retry_after_ms.into());
        self.disconnected(Some(close.code), retry_after);
    }
}

/// The host of `host:port`, without the brackets of an IPv6 address.
fn host(authority: &str) -> &str {
    let host = authority.rsplit_once(':').map_or(authority, |(host, _)| host);
    host.trim_start_matches('[').trim_end_matches(']')
}
