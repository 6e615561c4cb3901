//! What others have to say to a session: a small inbox and a bell.

use std::collections::BTreeMap;
use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;
use proto::close::CloseCode;
use proto::frame::Close;
use proto::id::{RoomId, SessionId};
use tokio::sync::Notify;

use crate::drain::Moved;

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
    Moved(Moved),
    /// The viewer was kicked from a room.
    Kicked,
    /// The viewer may not be in the room.
    Banned { room: RoomId },
    /// What rooms ask of viewers has changed.
    Review,
}

/// One session's inbox.
#[derive(Debug, Default)]
pub(crate) struct Mailbox {
    bell: Notify,
    inbox: Mutex<Inbox>,
}

#[derive(Debug, Default)]
struct Inbox {
    mails: VecDeque<Mail>,
    overflowed: bool,
    /// However often policies change before the session looks, it looks once.
    review: bool,
}

impl Mailbox {
    /// Leaves a mail and rings.
    pub(crate) fn put(&self, mail: Mail) {
        {
            let mut inbox = self.inbox.lock();
            if inbox.mails.len() < MAILS_MAX {
                inbox.mails.push_back(mail);
            } else {
                inbox.overflowed = true;
            }
        }
        self.ring();
    }

    /// Something is new in a room.
    pub(crate) fn ring(&self) {
        self.bell.notify_one();
    }

    /// Waits for the bell. Cancelling it loses nothing.
    pub(crate) async fn rung(&self) {
        self.bell.notified().await;
    }

    /// The next mail; or that there were too many.
    pub(crate) fn take(&self) -> Result<Option<Mail>, Overflowed> {
        let mut inbox = self.inbox.lock();
        if inbox.overflowed {
            return Err(Overflowed);
        }
        if std::mem::take(&mut inbox.review) {
            return Ok(Some(Mail::Review));
        }
        let mail = inbox.mails.pop_front();
        if mail.is_none() {
            inbox.mails.shrink_to(0);
        }
        Ok(mail)
    }
}

/// Mails were lost.
#[derive(Debug)]
pub(crate) struct Overflowed;

/// Every connection's mailbox.
#[derive(Debug, Default)]
pub(crate) struct Mailboxes(Mutex<BTreeMap<SessionId, Arc<Mailbox>>>);

impl Mailboxes {
    pub(crate) fn open(&self, session: SessionId) -> Arc<Mailbox> {
        let mailbox = Arc::<Mailbox>::default();
        self.0.lock().insert(session, Arc::clone(&mailbox));
        mailbox
    }

    pub(crate) fn close(&self, session: SessionId) {
        self.0.lock().remove(&session);
    }

    /// Leaves a mail for a session, if it is still here.
    pub(crate) fn put(&self, session: SessionId, mail: Mail) {
        let mailbox = self.0.lock().get(&session).cloned();
        if let Some(mailbox) = mailbox {
            mailbox.put(mail);
        }
    }

    /// Lets every session look whether it may still be where it is.
    pub(crate) fn review(&self) {
        for mailbox in self.all() {
            mailbox.inbox.lock().review = true;
            mailbox.ring();
        }
    }

    /// All of them, oldest first.
    pub(crate) fn all(&self) -> Vec<Arc<Mailbox>> {
        self.0.lock().values().cloned().collect()
    }
}

/// The end of a session, told by the node.
pub(crate) fn end(code: CloseCode, retry_after_ms: u32) -> Mail {
    Mail::End(Close { code, reason: code.name().to_owned(), retry_after_ms, addresses: Vec::new() })
}
