//! One session that is open: its heartbeat, and when it must be renewed.

use std::time::Duration;

use proto::address::Address;
use proto::frame::Uplink;
use proto::time::Mono;

use crate::connect::Established;
use crate::wire::{Wire, WireError};

/// The shortest heartbeat, whatever a server says.
const HEARTBEAT_MIN: Duration = Duration::from_millis(100);
/// How long before its end a session is renewed, and the spread of that.
const RENEW_BEFORE: Duration = Duration::from_secs(60);

/// One session that is open.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) wire: Wire,
    pub(crate) address: Address,
    heartbeat: Duration,
    silence: Duration,
    heard: Mono,
    ping_at: Mono,
    pong_due: Option<Mono>,
    pings: u64,
    pub(crate) renew_at: Option<Mono>,
}

/// What a session's timers ask for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Due {
    /// Nothing.
    Nothing,
    /// Say something.
    Ping {
        /// The number to send.
        nonce: u64,
    },
    /// Get a new token.
    Renew,
    /// The link does not answer.
    Dead,
}

impl Session {
    /// A session that begins at `now`; `draw` is uniform in 0..1.
    pub(crate) fn new(established: Established, now: Mono, draw: f64) -> Self {
        let Established { wire, address, welcome, .. } = established;
        let heartbeat = Duration::from_millis(welcome.heartbeat_ms.into()).max(HEARTBEAT_MIN);
        let silence = Duration::from_millis(welcome.silence_ms.into()).max(2 * heartbeat);
        Self {
            wire,
            address,
            heartbeat,
            silence,
            heard: now,
            ping_at: now + heartbeat.mul_f64(draw.clamp(0.1, 1.0)),
            pong_due: None,
            pings: 0,
            renew_at: None,
        }
    }

    /// Sends a frame.
    pub(crate) async fn send(&mut self, frame: &Uplink, wait: Duration) -> Result<(), WireError> {
        self.wire.send(frame.encode(), wait).await
    }

    /// Something arrived.
    pub(crate) const fn heard(&mut self, now: Mono) {
        self.heard = now;
    }

    /// A Pong arrived.
    pub(crate) const fn ponged(&mut self) {
        self.pong_due = None;
    }

    /// The session ends at `expires`; it is renewed a drawn while before, not before `earliest`.
    pub(crate) fn expires(&mut self, expires: Mono, earliest: Mono, draw: f64) {
        let ahead = RENEW_BEFORE + RENEW_BEFORE.mul_f64(draw.clamp(0.0, 1.0));
        self.renew_at = Some((expires - ahead).max(earliest));
    }

    /// What is due; heartbeats are spread by `draw`, uniform in 0..1.
    pub(crate) fn tick(&mut self, now: Mono, pong_wait: Duration, draw: f64) -> Due {
        let is_silent = now.since(self.heard) > self.silence;
        if is_silent || self.pong_due.is_some_and(|it| now >= it) {
            return Due::Dead;
        }
        if self.renew_at.is_some_and(|it| now >= it) {
            self.renew_at = None;
            return Due::Renew;
        }
        if now >= self.ping_at {
            self.pings += 1;
            self.ping_at = now + self.heartbeat.mul_f64(0.8 + 0.2 * draw.clamp(0.0, 1.0));
            self.pong_due.get_or_insert(now + pong_wait);
            return Due::Ping { nonce: self.pings };
        }
        Due::Nothing
    }

    /// When [`Session::tick`] has something to do.
    pub(crate) fn deadline(&self) -> Mono {
        let mut deadline = self.ping_at.min(self.heard + self.silence + Duration::from_millis(1));
        for at in [self.pong_due, self.renew_at].into_iter().flatten() {
            deadline = deadline.min(at);
        }
        deadline
    }
}
