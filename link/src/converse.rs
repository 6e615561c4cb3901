//! The loop of one session: it does what the session machine wants, in the order of the numbered
//! steps, and tells it what happened.

mod act;
mod login;
mod presence;

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use link_core::framing::Framing;
use link_core::outbox::Outbox;
use link_core::session::{Input, Session};
use proto::close::CloseCode;
use proto::frame::{Close, Control};
use proto::time::Mono;
use tokio::time::Sleep;

use crate::accept::Listener;
use crate::config::ms;
use crate::io::{Io, Moved};
use crate::mailbox::Mail;
use crate::node::Node;
use crate::socket::Protection;
use crate::wire::{Found, close_frame, pong_frame};

pub(crate) use presence::{Place, Presence};

/// Time for the last frames and the goodbye.
pub(crate) const FAREWELL_MAX: Duration = Duration::from_secs(2);
/// Bytes that may wait while pings are still answered.
const PONG_BYTES_MAX: usize = 4 * 1024;

/// A conversation on its way.
pub(crate) struct Conversation {
    node: Arc<Node>,
    listener: Arc<Listener>,
    io: Io,
    session: Session,
    outbox: Outbox,
    presence: Presence,
    /// The secret of the TLS connection, until the login.
    exporter: Option<[u8; 32]>,
    /// When some bytes must have been written; none while nothing waits.
    write_by: Option<Mono>,
    /// Set when the session is over: until when its last bytes may be written.
    closing: Option<Mono>,
    /// To be said right after the answer to a join.
    news: Vec<Control>,
}

impl Conversation {
    pub(crate) fn new(
        node: Arc<Node>,
        listener: Arc<Listener>,
        io: Io,
        protection: Protection,
        presence: Presence,
    ) -> Self {
        let limits = Arc::clone(&listener.limits);
        let now = node.clock.mono();
        let Protection { suite, exporter } = protection;
        let session = Session::new(presence.session, limits, suite, presence.since, now);
        let session = session.held_to(node.door.sdks());
        let outbox = Outbox::new(listener.framing, node.config.outbox_bytes_max);
        Self {
            session,
            outbox,
            presence,
            node,
            listener,
            io,
            exporter,
            write_by: None,
            closing: None,
            news: Vec::new(),
        }
    }

    /// Talks until one of both ends it.
    pub(crate) async fn run(&mut self) {
        let mut timer = Box::pin(tokio::time::sleep(Duration::ZERO));
        let mut armed = Mono(0);
        loop {
            self.hear(); // 1. what was read
            self.open_mail(); // 2. what others said
            self.act(); // 3. what the machine wants
            self.collect(); // 4. what rooms have for it
            let now = self.node.clock.mono();
            if self.closing.is_some_and(|it| self.io.is_sent() || now >= it) {
                break;
            }
            let deadline = self.deadline();
            if deadline < armed || armed <= now {
                armed = deadline;
                timer.set(tokio::time::sleep(deadline.since(now)));
            }
            if self.wait(timer.as_mut()).await == Moved::Gone {
                return; // 5. whichever comes first: bytes, the bell, the timer
            }
            self.check_deadlines(); // 6. what came due
        }
        // Boxed, so that a long conversation does not carry the farewell's memory.
        let finished = Box::pin(self.io.finish());
        if tokio::time::timeout(FAREWELL_MAX, finished).await.is_err() {
            tracing::trace!("the client did not hang up");
        }
    }

    /// Waits for bytes, the bell or the timer. Cancelling it loses nothing.
    async fn wait(&mut self, timer: Pin<&mut Sleep>) -> Moved {
        let Self { io, presence, .. } = self;
        tokio::select! {
            biased;
            moved = poll_fn(|cx| io.poll(cx)) => moved,
            () = presence.mailbox.rung() => Moved::On,
            () = timer => Moved::On,
        }
    }

    /// Hands what was read to the machine, and does what follows from each frame before the next.
    fn hear(&mut self) {
        for found in std::mem::take(&mut self.io.found) {
            let input = match found {
                Found::Frame(frame) => {
                    self.node.counts.frames.inc();
                    Input::Frame(frame)
                }
                Found::Ping(content) => {
                    if self.closing.is_none() && self.io.unsent_bytes() < PONG_BYTES_MAX {
                        self.hand_over(vec![pong_frame(&content)]);
                    }
                    Input::Heard
                }
                Found::Pong => Input::Heard,
                Found::Bye => Input::End(goodbye(CloseCode::Bye)),
                Found::TooLarge => Input::TooLarge,
                Found::Garbage => Input::Garbage,
            };
            self.session.handle(input, self.node.now());
            self.act();
        }
    }

    fn open_mail(&mut self) {
        loop {
            match self.presence.mailbox.take() {
                Ok(None) => return,
                Ok(Some(mail)) => self.read(mail),
                Err(_) => return self.slow(),
            }
        }
    }

    fn read(&mut self, mail: Mail) {
        let end = match mail {
            Mail::Frame(frame) => {
                if self.session.is_open() && self.outbox.push(&frame).is_err() {
                    self.slow();
                }
                return;
            }
            Mail::End(close) => close,
            // Whoever attacks is not logged in, and must not learn where to follow.
            Mail::Moved(_) if !self.session.is_open() => goodbye(CloseCode::Moved),
            Mail::Moved(moved) => moved.close(self.listener.address.transport),
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
            Mail::Review => match self.presence.review() {
                Ok(()) => return,
                Err(code) => goodbye(code),
            },
        };
        self.session.handle(Input::End(end), self.node.now());
    }

    /// Hands what waits to the socket, once it has taken all it was given before.
    fn collect(&mut self) {
        if self.closing.is_some() || !self.io.is_sent() {
            return;
        }
        let mut blocks = Vec::new();
        self.outbox.take_own(&mut blocks);
        for room in &self.presence.seats {
            match room.read(|ring| self.outbox.take(ring, &mut blocks)) {
                Ok(taken) => self.node.counts.skipped.inc_by(u64::from(taken.skipped)),
                Err(_) => {
                    self.slow();
                    return self.act();
                }
            }
        }
        self.hand_over(blocks);
    }

    /// Gives blocks to the socket; from now on it must take some.
    fn hand_over(&mut self, blocks: Vec<Bytes>) {
        if !blocks.is_empty() {
            let by = self.node.clock.mono() + ms(self.node.config.write_ms_max);
            self.write_by.get_or_insert(by);
            self.io.send(blocks);
        }
    }

    fn deadline(&self) -> Mono {
        let deadlines = [self.session.deadline(), self.write_by, self.closing];
        deadlines.into_iter().flatten().min().unwrap_or_default()
    }

    fn check_deadlines(&mut self) {
        let now = self.node.now();
        let written = self.io.take_written();
        if written > 0 {
            self.node.traffic.bytes_out.fetch_add(written, Ordering::Relaxed);
            let more = ms(self.node.config.write_ms_max);
            self.write_by = Some(now.mono + more).filter(|_| !self.io.is_sent());
        }
        if self.write_by.is_some_and(|it| now.mono >= it) {
            self.slow();
        }
        self.session.tick(now);
    }

    /// The client takes too little: what waits is given up, so that the reason can be told.
    fn slow(&mut self) {
        self.write_by = None;
        if self.closing.is_none() {
            self.io.give_up();
            self.outbox = Outbox::new(self.listener.framing, self.node.config.outbox_bytes_max);
            self.session.handle(Input::End(goodbye(CloseCode::Slow)), self.node.now());
        }
    }

    /// The session is over: its last frames go out, and it is in no room any more.
    fn close(&mut self, code: CloseCode) {
        self.node.counts.close(code);
        self.presence.end(code);
        self.closing = Some(self.node.clock.mono() + FAREWELL_MAX);
        self.write_by = None;
        let mut blocks = Vec::new();
        self.outbox.take_own(&mut blocks);
        if self.listener.framing == Framing::WebSocket {
            blocks.push(Bytes::copy_from_slice(&close_frame(code)));
        }
        self.io.send(blocks);
        self.presence.depart();
    }
}

fn goodbye(code: CloseCode) -> Close {
    Close { code, reason: code.name().to_owned(), retry_after_ms: 0, addresses: Vec::new() }
}
