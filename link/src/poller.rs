//! Readiness of settled sockets, without a word of memory for any of them: the system knows which
//! session a socket belongs to, and says so when something happens.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use proto::id::SessionId;
use rustix::event::{Timespec, epoll};
use rustix::io::Errno;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::line::Cause;
use crate::node::Node;

/// Events of one look.
const EVENTS_MAX: usize = 256;
const AT_ONCE: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };

/// Watches sockets (`epoll(7)`, edge-triggered).
#[derive(Debug)]
pub(crate) struct Poller(AsyncFd<OwnedFd>);

impl Poller {
    /// Watches nothing yet.
    ///
    /// # Errors
    /// When the system has no descriptor left.
    #[expect(deprecated, reason = "unsound for descriptors that are not owned; this one is")]
    pub(crate) fn new() -> io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        Ok(Self(AsyncFd::with_interest(epoll, Interest::READABLE)?))
    }

    /// Rings for the session whenever something happens to its socket, until that is closed.
    ///
    /// # Errors
    /// When the system watches no more.
    pub(crate) fn watch(&self, socket: impl AsFd, session: SessionId) -> io::Result<()> {
        let flags = epoll::EventFlags::IN
            | epoll::EventFlags::OUT
            | epoll::EventFlags::RDHUP
            | epoll::EventFlags::ET;
        let data = epoll::EventData::new_u64(session.0);
        Ok(epoll::add(self.0.get_ref(), socket, data, flags)?)
    }
}

/// Rings for ever.
pub(crate) async fn run(node: Arc<Node>) -> anyhow::Result<()> {
    loop {
        let mut ready = node.poller.0.readable().await?;
        if look(&node, ready.get_inner())? == 0 {
            // Only after an empty look is it sure that the next event wakes this task.
            ready.clear_ready();
        } else {
            // Whoever is rung runs next on this thread, and no other thread may take it from here.
            tokio::task::yield_now().await;
        }
    }
}

/// Rings for sessions whose sockets have changed; says how many events that were.
fn look(node: &Node, epoll: &OwnedFd) -> io::Result<usize> {
    let mut events = [MaybeUninit::uninit(); EVENTS_MAX];
    let (events, _) = match epoll::wait(epoll, &mut events, Some(&AT_ONCE)) {
        Err(Errno::INTR) => return Ok(1), // To look again.
        events => events?,
    };
    for event in &*events {
        if let Some(line) = node.lines.find(SessionId(event.data.u64())) {
            line.ring_for(cause(event.flags));
        }
    }
    Ok(events.len())
}

const fn cause(flags: epoll::EventFlags) -> Cause {
    use epoll::EventFlags;
    let gone = EventFlags::HUP.union(EventFlags::ERR);
    let mut cause = 0;
    if flags.intersects(EventFlags::IN) {
        cause |= Cause::READABLE;
    }
    if flags.intersects(EventFlags::OUT) {
        cause |= Cause::WRITABLE;
    }
    if flags.intersects(EventFlags::RDHUP) {
        cause |= Cause::READABLE | Cause::HUNG_UP;
    }
    if flags.intersects(gone) {
        cause |= Cause::READABLE | Cause::WRITABLE | Cause::HUNG_UP;
    }
    Cause(cause)
}
