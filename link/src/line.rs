//! A session as the rest of the node reaches it: an inbox, and a conversation that takes a turn
//! whenever somebody rings.
//!
//! No task belongs to a session. Whoever has something for it, a room, a reader of the bus, the
//! poller, the sweep, or the waker of its socket, rings; the pump gives it a turn.

mod lines;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::task::{Context, Wake, Waker};

use bytes::Bytes;
use parking_lot::Mutex;
use proto::close::CloseCode;
use proto::frame::Close;
use proto::id::{RoomId, SessionId};
use proto::time::Mono;

use crate::converse::{Conversation, Turn};
use crate::drain::Refuges;
use crate::pump::{Pump, Scratch};

pub(crate) use lines::{Lines, sweep};

/// Mails that may wait for one session; a session that lets more pile up is slow.
const MAILS_MAX: usize = 256;

/// Something for one session.
#[derive(Clone, Debug)]
pub(crate) enum Mail {
    /// A frame to send, if it is logged in.
    Frame(Bytes),
    /// It is over.
    End(Close),
    /// It is over here, and goes on elsewhere.
    Away(Arc<Refuges>),
    /// The viewer was kicked from a room.
    Kicked,
    /// The viewer may not be in the room.
    Banned { room: RoomId },
}

/// What waits for a session besides what rooms have.
#[derive(Debug, Default)]
pub(crate) struct Inbox {
    pub(crate) mails: Vec<Mail>,
    /// Mails were lost.
    pub(crate) overflowed: bool,
    /// What rooms ask of viewers has changed: however often before the session looks, it looks
    /// once.
    pub(crate) review: bool,
}

/// Why the poller or the sweep rings: bits, which add up until the session looks.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Cause(pub(crate) u8);

impl Cause {
    /// Bytes, or their end, can be read.
    pub(crate) const READABLE: u8 = 1;
    /// Bytes can be written.
    pub(crate) const WRITABLE: u8 = 2;
    /// The other end is gone, or has said its last.
    pub(crate) const HUNG_UP: u8 = 4;
    /// A deadline has come.
    pub(crate) const DUE: u8 = 8;

    pub(crate) const fn has(self, bit: u8) -> bool {
        self.0 & bit != 0
    }
}

/// One session.
pub(crate) struct Line {
    pub(crate) session: SessionId,
    pump: Arc<Pump>,
    /// When the conversation wants a turn at the latest, in milliseconds of the node's clock.
    due: AtomicU64,
    /// Most sessions have no mail most of the time.
    inbox: Mutex<Option<Box<Inbox>>>,
    /// Whether a turn is on its way.
    rung: AtomicBool,
    causes: AtomicU8,
    talk: Mutex<Talk>,
}

/// How far a session is.
enum Talk {
    /// The handshake is not over.
    Shaking,
    On(Conversation),
    /// It has ended, or must not begin.
    Over,
}

impl Line {
    fn new(session: SessionId, pump: &Arc<Pump>) -> Self {
        Self {
            session,
            pump: Arc::clone(pump),
            due: AtomicU64::new(u64::MAX),
            inbox: Mutex::new(None),
            rung: AtomicBool::new(false),
            causes: AtomicU8::new(0),
            talk: Mutex::new(Talk::Shaking),
        }
    }

    /// The handshake is over. A session that was cut off meanwhile does not begin.
    pub(crate) fn begin(self: &Arc<Self>, conversation: Conversation) {
        {
            let mut talk = self.talk.lock();
            if matches!(*talk, Talk::Over) {
                return;
            }
            *talk = Talk::On(conversation);
        }
        self.ring();
    }

    /// Whether its login is done, until the connection is over.
    pub(crate) fn has_logged_in(&self) -> bool {
        matches!(&*self.talk.lock(), Talk::On(conversation) if conversation.has_logged_in())
    }

    /// Leaves a mail and rings.
    pub(crate) fn put(self: &Arc<Self>, mail: Mail) {
        {
            let mut inbox = self.inbox.lock();
            let inbox = inbox.get_or_insert_default();
            if inbox.mails.len() < MAILS_MAX {
                inbox.mails.push(mail);
            } else {
                inbox.overflowed = true;
            }
        }
        self.ring();
    }

    /// Lets the session look whether it may still be where it is.
    pub(crate) fn review(self: &Arc<Self>) {
        self.inbox.lock().get_or_insert_default().review = true;
        self.ring();
    }

    /// All that others said.
    pub(crate) fn take_inbox(&self) -> Option<Box<Inbox>> {
        self.inbox.lock().take()
    }

    /// Something is new for the session: it gets a turn soon.
    pub(crate) fn ring(self: &Arc<Self>) {
        if self.is_first_ring() {
            self.pump.push(Arc::clone(self));
        }
    }

    /// Rings for a cause.
    pub(crate) fn ring_for(self: &Arc<Self>, cause: Cause) {
        self.causes.fetch_or(cause.0, Ordering::AcqRel);
        self.ring();
    }

    /// Whether no turn is on its way yet; from now on one is.
    pub(crate) fn is_first_ring(&self) -> bool {
        !self.rung.swap(true, Ordering::AcqRel)
    }

    fn is_due(&self, now: Mono) -> bool {
        self.due.load(Ordering::Relaxed) <= now.0
    }

    /// Does what there is to do. A conversation that panics is over, and no other is.
    pub(crate) fn turn(self: &Arc<Self>, scratch: &mut Scratch) {
        // First, so that what comes from now on rings again.
        self.rung.swap(false, Ordering::AcqRel);
        let waker = Waker::from(Arc::clone(self));
        let mut talk = self.talk.lock();
        let Talk::On(conversation) = &mut *talk else {
            return;
        };
        let cause = Cause(self.causes.swap(0, Ordering::AcqRel));
        let mut context = Context::from_waker(&waker);
        let turn =
            catch_unwind(AssertUnwindSafe(|| conversation.turn(cause, &mut context, scratch)));
        match turn {
            Ok(Turn::Waits { until }) => return self.due.store(until.0, Ordering::Relaxed),
            Ok(Turn::Over) => {}
            Err(_) => tracing::error!(session = %self.session, "a session failed"),
        }
        // Before anybody else gives it another turn.
        let over = std::mem::replace(&mut *talk, Talk::Over);
        drop(talk);
        drop(over);
    }

    /// Ends the session without a word, or keeps it from beginning.
    fn cut_off(&self) {
        let over = std::mem::replace(&mut *self.talk.lock(), Talk::Over);
        drop(over);
    }
}

impl std::fmt::Debug for Line {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Line").field(&self.session).finish()
    }
}

impl Wake for Line {
    fn wake(self: Arc<Self>) {
        self.ring();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.ring();
    }
}

/// The end of a session, told by the node.
pub(crate) fn end(code: CloseCode, retry_after_ms: u32) -> Mail {
    Mail::End(Close { code, reason: code.name().to_owned(), retry_after_ms, addresses: Vec::new() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_takes_little() {
        let bytes = size_of::<Line>();

        // Beside it there are the two counts of its `Arc`.
        assert!(bytes <= 240, "{bytes}");
    }
}
