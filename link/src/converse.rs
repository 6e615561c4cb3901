//! One session's turns: it does what the session machine wants, in the order of the numbered
//! steps, and tells it what happened.

mod act;
mod login;
mod presence;

use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use link_core::framing::Framing;
use link_core::outbox::Outbox;
use link_core::ring::Slow;
use link_core::session::{Input, Session};
use proto::close::CloseCode;
use proto::frame::{Close, Control};
use proto::time::Mono;

use crate::accept::Listener;
use crate::config::ms;
use crate::io::Io;
use crate::line::{Cause, Inbox, Mail};
use crate::node::Node;
use crate::pump::Scratch;
use crate::rooms::Room;
use crate::socket::Protection;
use crate::wire::{Found, close_frame, pong_frame};

pub(crate) use presence::{Place, Presence};

/// Time for the last frames and the goodbye.
pub(crate) const FAREWELL_MAX: Duration = Duration::from_secs(2);
/// Reads of one turn; whoever sends more waits for another one, as others do.
const READS_MAX: usize = 4;
/// Bytes that may wait while pings are still answered.
const PONG_BYTES_MAX: usize = 4 * 1024;

/// A conversation on its way.
pub(crate) struct Conversation {
    listener: Arc<Listener>,
    io: Io,
    session: Session,
    outbox: Outbox<Arc<Room>>,
    presence: Presence,
    stage: Stage,
    /// To be said right after the answer to a join. Most of the time there is none.
    news: Option<Box<News>>,
}

/// What the connection has to do by when.
#[derive(Clone, Copy, Debug)]
enum Stage {
    /// Nothing waits for it.
    Free,
    /// It must take some bytes until then.
    Writing { by: Mono },
    /// The session is over; its last bytes may be written until then.
    Telling { by: Mono },
    /// All is said; the client has until then to hang up.
    Told { by: Mono },
}

impl Stage {
    const fn by(self) -> Option<Mono> {
        match self {
            Self::Free => None,
            Self::Writing { by } | Self::Telling { by } | Self::Told { by } => Some(by),
        }
    }

    const fn is_over(self) -> bool {
        matches!(self, Self::Telling { .. } | Self::Told { .. })
    }
}

/// What joined rooms have to say.
#[derive(Default)]
struct News(Vec<Control>);

/// How a turn ended.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Turn {
    /// The session has nothing to do until somebody rings, or then.
    Waits { until: Mono },
    /// The session is over, and so is its connection.
    Over,
}

/// The connection is over.
struct Gone;

impl Conversation {
    /// One that begins with the bytes that came behind the handshake.
    pub(crate) fn new(
        listener: Arc<Listener>,
        io: Io,
        protection: Protection,
        mut presence: Presence,
        behind: &[u8],
    ) -> Self {
        let limits = Arc::clone(&listener.limits);
        let node = &presence.node;
        let now = node.clock.mono();
        let Protection { suite, exporter } = protection;
        let started = presence.since().unwrap_or(now);
        let session = Session::new(limits, suite, started, now);
        let session = session.held_to(node.door.sdks());
        let outbox = Outbox::new(listener.framing, node.config.outbox_bytes_max);
        presence.keep_exporter(exporter);
        let mut conversation =
            Self { session, outbox, presence, listener, io, stage: Stage::Free, news: None };
        let mut found = Vec::new();
        conversation.io.decoder.feed(behind, &mut found);
        conversation.hear(found.into_iter());
        conversation
    }

    fn node(&self) -> &Node {
        &self.presence.node
    }

    pub(crate) fn has_logged_in(&self) -> bool {
        self.presence.since().is_none()
    }

    /// Does what there is to do. Whoever polls with the same waker later goes on where this ended.
    pub(crate) fn turn(
        &mut self,
        cause: Cause,
        cx: &mut Context<'_>,
        scratch: &mut Scratch,
    ) -> Turn {
        match self.try_turn(cause, cx, scratch) {
            Ok(()) => Turn::Waits { until: self.deadline() },
            Err(Gone) => Turn::Over,
        }
    }

    fn try_turn(
        &mut self,
        cause: Cause,
        cx: &mut Context<'_>,
        scratch: &mut Scratch,
    ) -> Result<(), Gone> {
        self.io.socket.note(cause);
        let mut is_due = cause.has(Cause::DUE);
        for _ in 0..READS_MAX {
            self.open_inbox(); // 1. what others said
            self.act(); // 2. what the machine wants
            self.write(cx, scratch)?; // 3. what waits, and what rooms have for it
            match self.read(cx, scratch)? {
                Poll::Ready(()) => self.hear(scratch.found.drain(..)), // 4. what was read
                // 5. what came due, unless bytes came in time
                Poll::Pending if std::mem::take(&mut is_due) => self.check_deadlines()?,
                Poll::Pending => return Ok(()),
            }
        }
        if is_due {
            self.check_deadlines()?;
        }
        self.presence.line.ring();
        Ok(())
    }

    /// Writes until the socket takes no more, or nothing is left.
    fn write(&mut self, cx: &mut Context<'_>, scratch: &mut Scratch) -> Result<(), Gone> {
        let unsent_bytes = self.io.unsent_bytes();
        match self.io.poll_unsent(cx, &self.presence.node) {
            Poll::Ready(Ok(())) if self.stage.is_over() => return self.hang_up(cx),
            Poll::Ready(Ok(())) => self.stage = Stage::Free,
            Poll::Ready(Err(_)) => return Err(Gone),
            Poll::Pending => {
                self.wait_for_room(self.io.unsent_bytes() < unsent_bytes);
                return Ok(());
            }
        }
        loop {
            scratch.blocks.clear();
            let Ok(more) = self.collect(&mut scratch.blocks) else {
                self.slow();
                self.act();
                // What is left to say.
                return self.write(cx, scratch);
            };
            if scratch.blocks.is_empty() {
                return Ok(());
            }
            match self.io.poll_blocks(cx, &self.presence.node, &mut scratch.blocks) {
                Poll::Ready(Ok(())) if more => {}
                Poll::Ready(Ok(())) => return Ok(()),
                Poll::Ready(Err(_)) => return Err(Gone),
                Poll::Pending => {
                    self.wait_for_room(true);
                    return Ok(());
                }
            }
        }
    }

    /// From now on, or from when it last took some, the socket must take some within a time.
    fn wait_for_room(&mut self, has_moved: bool) {
        if matches!(self.stage, Stage::Free) || has_moved && !self.stage.is_over() {
            let by = self.node().clock.mono() + ms(self.node().config.write_ms_max);
            self.stage = Stage::Writing { by };
        }
    }

    /// All is said.
    fn hang_up(&mut self, cx: &mut Context<'_>) -> Result<(), Gone> {
        if let Stage::Telling { .. } = self.stage {
            match self.io.poll_shutdown(cx) {
                Poll::Ready(Ok(())) => {
                    self.stage = Stage::Told { by: self.node().clock.mono() + FAREWELL_MAX };
                }
                Poll::Ready(Err(_)) => return Err(Gone),
                Poll::Pending => {}
            }
        }
        Ok(())
    }

    /// Reads and decodes what has come; after the end of the session, lets it fall.
    fn read(&mut self, cx: &mut Context<'_>, scratch: &mut Scratch) -> Result<Poll<()>, Gone> {
        scratch.found.clear();
        let read = match self.stage {
            // Closing at once would tear the last frames from the client's hands.
            Stage::Told { .. } => self.io.poll_rest(cx, scratch),
            Stage::Free | Stage::Writing { .. } | Stage::Telling { .. } => {
                self.io.poll_read(cx, scratch)
            }
        };
        match read {
            Poll::Ready(Ok(0)) => Err(Gone),
            Poll::Ready(Err(error)) => {
                self.node().counts.unreadable(&error);
                Err(Gone)
            }
            Poll::Ready(Ok(_)) => Ok(Poll::Ready(())),
            Poll::Pending => Ok(Poll::Pending),
        }
    }

    /// Hands what was read to the machine, and does what follows from each frame before the next.
    fn hear(&mut self, found: impl Iterator<Item = Found>) {
        for found in found {
            let input = match found {
                Found::Frame(frame) => {
                    self.node().counts.frames.inc();
                    Input::Frame(frame)
                }
                Found::Ping(content) => Input::Ping(content),
                Found::Pong => Input::Heard,
                Found::Bye => Input::End(goodbye(CloseCode::Bye)),
                Found::TooLarge => Input::TooLarge,
                Found::Garbage => Input::Garbage,
            };
            self.session.handle(input, self.node().now());
            self.act();
        }
    }

    fn pong(&mut self, content: &[u8]) {
        if self.io.unsent_bytes() < PONG_BYTES_MAX {
            self.io.send(pong_frame(content), &self.presence.node);
        }
    }

    fn open_inbox(&mut self) {
        let Some(inbox) = self.presence.line.take_inbox() else {
            return;
        };
        let Inbox { mails, overflowed, review } = *inbox;
        if overflowed {
            return self.slow();
        }
        let rooms = || self.outbox.rooms().map(|it| &it.id);
        if review && let Err(code) = self.presence.review(rooms()) {
            self.session.handle(Input::End(goodbye(code)), self.node().now());
        }
        for mail in mails {
            self.open(mail);
        }
    }

    fn open(&mut self, mail: Mail) {
        let end = match mail {
            Mail::Frame(frame) => {
                if self.session.is_open() && self.outbox.push(&frame).is_err() {
                    self.slow();
                }
                return;
            }
            Mail::End(close) => close,
            // Whoever attacks is not logged in, and must not learn where to follow.
            Mail::Away(refuges) if !self.session.is_open() => goodbye(refuges.code()),
            Mail::Away(refuges) => refuges.close(&self.listener.address),
            Mail::Kicked => match self.presence.check_kicks() {
                Ok(()) => return,
                Err(shut) => {
                    Close { retry_after_ms: self.retry_after_ms(&shut), ..goodbye(shut.code) }
                }
            },
            Mail::Banned { room } => {
                if !self.presence.is_allowed_in(&room) {
                    return;
                }
                goodbye(CloseCode::Banned)
            }
        };
        self.session.handle(Input::End(end), self.node().now());
    }

    /// Moves what waits for the client to `blocks`; says whether there is more.
    fn collect(&mut self, blocks: &mut Vec<Bytes>) -> Result<bool, Slow> {
        let mut more = false;
        self.outbox.take_own(blocks);
        let counts = &self.presence.node.counts;
        for (room, seat) in self.outbox.seats() {
            let taken = room.read(|ring| seat.take(ring, blocks))?;
            more |= taken.more;
            if taken.saved_bytes > 0 {
                counts.saved_bytes.inc_by(taken.saved_bytes as u64);
            }
            if taken.skipped > 0 {
                counts.skipped.inc_by(u64::from(taken.skipped));
            }
        }
        Ok(more)
    }

    fn deadline(&self) -> Mono {
        let deadlines = [self.session.deadline(), self.stage.by()];
        deadlines.into_iter().flatten().min().unwrap_or_default()
    }

    fn check_deadlines(&mut self) -> Result<(), Gone> {
        let now = self.node().now();
        if self.stage.by().is_some_and(|it| now.mono >= it) {
            if self.stage.is_over() {
                tracing::trace!("the client did not hang up");
                return Err(Gone);
            }
            self.slow();
        }
        self.session.tick(now);
        Ok(())
    }

    /// The client takes too little: what waits is given up, so that the reason can be told.
    fn slow(&mut self) {
        if !self.stage.is_over() {
            self.stage = Stage::Free;
            self.io.give_up(&self.presence.node);
            self.outbox = Outbox::new(self.listener.framing, self.node().config.outbox_bytes_max);
            self.session.handle(Input::End(goodbye(CloseCode::Slow)), self.node().now());
        }
    }

    /// The session is over: its last frames go out, and it is in no room any more.
    fn close(&mut self, code: CloseCode) {
        self.node().counts.close(code);
        self.presence.end(code);
        self.io.socket.end(code);
        self.stage = Stage::Telling { by: self.node().clock.mono() + FAREWELL_MAX };
        let mut blocks = Vec::new();
        self.outbox.take_own(&mut blocks);
        if self.listener.framing == Framing::WebSocket {
            blocks.push(Bytes::copy_from_slice(&close_frame(code)));
        }
        for block in blocks {
            self.io.send(block, &self.presence.node);
        }
        self.outbox.unfollow_all();
        self.presence.depart();
    }
}

impl Drop for Conversation {
    fn drop(&mut self) {
        self.io.give_up_all(&self.presence.node);
    }
}

fn goodbye(code: CloseCode) -> Close {
    Close { code, reason: code.name().to_owned(), retry_after_ms: 0, addresses: Vec::new() }
}
