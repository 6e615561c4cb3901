//! One viewer's conversation with a link node, as a machine.
//!
//! A [`Session`] is fed [`Input`]s and drained of [`Output`]s until it has none. It owns no socket
//! and reads no clock. It decides what a frame means and when it is over; who may come in is
//! verified outside ([`Output::Verify`]), and who is in a room is the hub's to say
//! ([`Output::Join`]); both answers come back as inputs, before anything else.

mod login;
mod open;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use auth_core::policy::SdkPolicy;
use bytes::Bytes;
use proto::close::CloseCode;
use proto::envelope::UplinkEntry;
use proto::frame::{Close, Codec, Downlink, Join, Joined, Login, Report, Uplink};
use proto::id::RoomId;
use proto::suite::Suite;
use proto::time::Mono;

use crate::Now;
use crate::bucket::Rate;
use crate::hub::Member;
use open::Open;

/// Frames over the rate, one after the other, that a session may send before it is closed.
///
/// A client that reads its acks stops long before; one that does not is a flood.
pub const FLOOD_FRAMES_MAX: u32 = 200;

/// Bytes that count as one frame: a longer frame counts as several, so that the rate of frames
/// bounds the bytes too. A comment of the longest text is one.
pub const FRAME_BYTES: usize = 4 * 1024;

/// Signs of life below frames before the login: whoever has something to say says Hello.
pub const EARLY_SIGNS_MAX: u8 = 16;

/// What a session is held to; the same for all sessions of a listener.
#[derive(Clone, Debug)]
pub struct Limits {
    /// From the first byte to the end of the login.
    pub login: Duration,
    /// For each step of it.
    pub phase: Duration,
    /// Silence after which a session is closed.
    pub silence: Duration,
    /// How often the client is asked to speak.
    pub heartbeat: Duration,
    /// Frames a session may send.
    pub frames: Rate,
    /// Bytes of a frame.
    pub frame_bytes_max: u32,
    /// Whether frames of rooms are compressed for those who can expand them.
    pub compress: bool,
}

/// What a verified credential gives.
#[derive(Clone, Debug)]
pub struct Grant {
    /// Who, and what rooms know of the session from now on.
    pub member: Arc<Member>,
    /// Where the viewer may be.
    pub rooms: Vec<RoomId>,
    /// How long the session lives from now on.
    pub life: Duration,
    /// Proof that both ends saw the same Hello and Welcome.
    pub confirm: Option<[u8; 32]>,
    /// For the next login; empty if there is no key for it.
    pub resume_ticket: String,
}

/// Why a credential was not taken.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Denial {
    /// What the client is told.
    pub code: CloseCode,
    /// When to try again; 0 if never.
    pub retry_after_ms: u32,
}

/// What happens to a session.
#[derive(Clone, Debug)]
pub enum Input {
    /// A whole frame arrived: `kind | flags | FlatBuffer`.
    Frame(Bytes),
    /// A frame announced more bytes than are allowed.
    TooLarge,
    /// Bytes that are no frame at all.
    Garbage,
    /// A sign of life below frames that asks for nothing. It counts as a frame.
    Heard,
    /// The same with content, to be sent back: a WebSocket ping.
    Ping(Bytes),
    /// The credential of [`Output::Verify`] is good.
    Granted(Box<Grant>),
    /// The credential of [`Output::Verify`] is not.
    Denied(Denial),
    /// The answer to [`Output::Join`].
    Joined(Joined),
    /// The node ends the session.
    End(Close),
}

/// What a session wants done. The whole list.
#[derive(Clone, Debug, PartialEq)]
pub enum Output {
    /// Send this.
    Send(Downlink),
    /// Answer a ping with its content.
    Pong(Bytes),
    /// Say whether this credential is good.
    Verify(Box<Claim>),
    /// Let the session into a room, or not; the room is one that its grant allows.
    Join(Join),
    /// Take the session out of a room.
    Leave(RoomId),
    /// Tell the chatservers.
    Publish(UplinkEntry),
    /// How well segments reach this viewer.
    Report(Report),
    /// Send what was sent before, then close the connection. The last output.
    Close(CloseCode),
}

/// A credential to be verified, with what its binder is computed over.
#[derive(Clone, Debug, PartialEq)]
pub struct Claim {
    /// The frame of Hello.
    pub hello: Bytes,
    /// The frame of Welcome.
    pub welcome: Bytes,
    /// The login, without its joins.
    pub login: Login,
    /// Where it wants to go; nowhere, if it is a refresh.
    pub rooms: Vec<RoomId>,
    /// Whether a running session asks for more life.
    pub refresh: bool,
}

/// The conversation.
#[derive(Debug)]
pub struct Session {
    limits: Arc<Limits>,
    /// What protects the connection.
    suite: Suite,
    /// What was agreed on for the frames of rooms.
    codec: Codec,
    outputs: Outputs,
    phase: Phase,
    heard: Mono,
    /// Signs of life below frames before the login.
    early_signs: u8,
}

/// Where the conversation is. What each phase knows is apart, so that a session takes no more
/// memory than its own needs.
#[derive(Debug)]
enum Phase {
    /// Nothing was said yet.
    Hello(Box<login::Greeting>),
    /// Welcome was said.
    Login(Box<login::Welcomed>),
    /// A credential is being verified, or rooms are being entered.
    Entering(Box<login::Entering>),
    /// Logged in.
    Open(Box<Open>),
    /// Over.
    Closed,
}

/// What is to be done. It takes no memory while that is nothing.
#[derive(Debug, Default)]
#[expect(clippy::box_collection, reason = "every session has one, and it is nearly always empty")]
struct Outputs(Option<Box<VecDeque<Output>>>);

impl Outputs {
    fn push(&mut self, output: Output) {
        self.0.get_or_insert_default().push_back(output);
    }

    fn pop(&mut self) -> Option<Output> {
        let output = self.0.as_mut()?.pop_front();
        if output.is_none() {
            self.0 = None;
        }
        output
    }
}

impl Session {
    /// A session whose connection was accepted at `started` and is protected by `suite`.
    #[must_use]
    pub fn new(limits: Arc<Limits>, suite: Suite, started: Mono, now: Mono) -> Self {
        Self {
            limits,
            suite,
            codec: Codec::Identity,
            outputs: Outputs::default(),
            phase: Phase::Hello(Box::new(login::Greeting { started, since: now, sdks: None })),
            heard: now,
            early_signs: 0,
        }
    }

    /// Holds the client to what is in force for its SDK's version; without this, every version is
    /// served.
    #[must_use]
    pub fn held_to(mut self, sdks: Arc<SdkPolicy>) -> Self {
        if let Phase::Hello(greeting) = &mut self.phase {
            greeting.sdks = Some(sdks);
        }
        self
    }

    /// Takes in what happened.
    pub fn handle(&mut self, input: Input, now: Now) {
        match input {
            Input::Frame(frame) => self.frame(&frame, now),
            Input::TooLarge => self.close(CloseCode::FrameTooLarge),
            Input::Garbage => self.close(CloseCode::BadFrame),
            Input::Heard => {
                self.sign(now);
            }
            Input::Ping(content) => {
                if self.sign(now) {
                    self.outputs.push(Output::Pong(content));
                }
            }
            Input::Granted(grant) => self.granted(*grant, now),
            Input::Denied(denial) => self.denied(denial, now),
            Input::Joined(joined) => self.joined(joined, now),
            Input::End(close) => self.end(close),
        }
    }

    /// Acts on whatever came due at or before `now`.
    pub fn tick(&mut self, now: Now) {
        if self.deadline().is_none_or(|it| now.mono < it) {
            return;
        }
        match &self.phase {
            Phase::Hello(_) | Phase::Login(_) | Phase::Entering(_) => {
                self.refuse(CloseCode::LoginTimeout, 0, now);
            }
            Phase::Open(open) => {
                let code =
                    if now.mono >= open.expires { CloseCode::Expired } else { CloseCode::Silent };
                self.close(code);
            }
            Phase::Closed => {}
        }
    }

    /// The next thing to do.
    pub fn poll(&mut self) -> Option<Output> {
        self.outputs.pop()
    }

    /// When [`Session::tick`] must be called at the latest.
    #[must_use]
    pub fn deadline(&self) -> Option<Mono> {
        let Limits { login, phase, .. } = *self.limits;
        match &self.phase {
            Phase::Hello(it) => Some((it.started + login).min(it.since + phase)),
            Phase::Login(it) => Some((it.started + login).min(it.since + phase)),
            Phase::Entering(it) => Some(it.started + login),
            Phase::Open(open) => Some(open.expires.min(self.heard + self.limits.silence)),
            Phase::Closed => None,
        }
    }

    /// How the frames of rooms are packed for it, from its Welcome on.
    #[must_use]
    pub const fn codec(&self) -> Codec {
        self.codec
    }

    /// Whether the login is done and the session is not over.
    #[must_use]
    pub const fn is_open(&self) -> bool {
        matches!(self.phase, Phase::Open(_))
    }

    /// Whether it is over.
    #[must_use]
    pub const fn is_closed(&self) -> bool {
        matches!(self.phase, Phase::Closed)
    }

    /// What rooms know of it, from the grant on.
    #[must_use]
    pub fn member(&self) -> Option<&Arc<Member>> {
        match &self.phase {
            Phase::Entering(entering) => Some(&entering.grant()?.member),
            Phase::Open(open) => Some(&open.member),
            Phase::Hello(_) | Phase::Login(_) | Phase::Closed => None,
        }
    }

    fn frame(&mut self, frame: &Bytes, now: Now) {
        if self.is_closed() {
            return;
        }
        let Ok(uplink) = Uplink::decode(frame) else {
            self.close(CloseCode::BadFrame);
            return;
        };
        self.heard = now.mono;
        match (&self.phase, uplink) {
            (Phase::Open(_), uplink) => self.open_frame(uplink, frame.len(), now),
            (Phase::Hello(_), Uplink::Hello(hello)) => self.hello(&hello, frame, now),
            (Phase::Login(_), Uplink::Login(login)) => self.login(login),
            _ => self.close(CloseCode::Unexpected),
        }
    }

    /// A sign of life below frames; says whether it is within the rate. One that is not is let
    /// fall, and a flood of them ends the session.
    fn sign(&mut self, now: Now) -> bool {
        self.heard = now.mono;
        let (is_within, is_flood) = match &mut self.phase {
            Phase::Hello(_) | Phase::Login(_) | Phase::Entering(_) => {
                let is_flood = self.early_signs >= EARLY_SIGNS_MAX;
                self.early_signs = self.early_signs.saturating_add(1);
                (!is_flood, is_flood)
            }
            Phase::Open(open) => (open.count(1, now).is_ok(), open.is_flooded()),
            Phase::Closed => (false, false),
        };
        if is_flood {
            self.close(CloseCode::RateLimited);
        }
        is_within
    }

    /// Ends a conversation that had begun.
    fn close(&mut self, code: CloseCode) {
        self.end(Close {
            code,
            reason: code.name().to_owned(),
            retry_after_ms: 0,
            addresses: Vec::new(),
        });
    }

    fn end(&mut self, close: Close) {
        if self.is_closed() {
            return;
        }
        let code = close.code;
        self.outputs.push(Output::Send(Downlink::Close(close)));
        self.outputs.push(Output::Close(code));
        self.phase = Phase::Closed;
    }

    /// Ends a login.
    fn refuse(&mut self, code: CloseCode, retry_after_ms: u32, now: Now) {
        let refused = login::refused(Denial { code, retry_after_ms }, now);
        self.outputs.push(Output::Send(refused));
        self.outputs.push(Output::Close(code));
        self.phase = Phase::Closed;
    }
}
