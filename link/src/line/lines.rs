//! Every connection's line, in shards; and the sweep, which looks for those that are due.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use proto::id::SessionId;
use tokio::sync::Notify;

use super::{Cause, Line, Mail};
use crate::node::Node;
use crate::pump::Pump;

/// One sweep visits one shard.
const SHARDS: usize = 256;
/// Shards that one step of the sweep visits.
const SHARDS_PER_STEP: usize = 4;
/// All shards are visited once in 64 steps, a second: so late may a deadline be kept.
const STEP: Duration = Duration::from_millis(16);

/// Every connection's line.
#[derive(Debug)]
pub(crate) struct Lines {
    /// Each in the order of sessions, which are numbered upwards: a new one goes to the end.
    shards: Box<[Mutex<Vec<Arc<Line>>>]>,
    open: AtomicUsize,
    /// Whether no session begins any more.
    is_cut_off: AtomicBool,
    /// Rung when the last one is closed.
    deserted: Notify,
}

impl Lines {
    pub(crate) fn new() -> Self {
        let shards = (0..SHARDS).map(|_| Mutex::default()).collect();
        Self {
            shards,
            open: AtomicUsize::new(0),
            is_cut_off: AtomicBool::new(false),
            deserted: Notify::new(),
        }
    }

    fn shard(&self, session: SessionId) -> &Mutex<Vec<Arc<Line>>> {
        let shard = session.0 % SHARDS as u64;
        &self.shards[usize::try_from(shard).unwrap_or_default()]
    }

    pub(crate) fn open(&self, session: SessionId, pump: &Arc<Pump>) -> Arc<Line> {
        let line = Arc::new(Line::new(session, pump));
        let mut shard = self.shard(session).lock();
        // Under the lock: whoever cuts off either finds the line there or was here first.
        if self.is_cut_off.load(Ordering::Acquire) {
            line.cut_off();
        }
        let position = shard.partition_point(|it| it.session < session);
        shard.insert(position, Arc::clone(&line));
        self.open.fetch_add(1, Ordering::Relaxed);
        line
    }

    pub(crate) fn close(&self, session: SessionId) {
        let closed = {
            let mut shard = self.shard(session).lock();
            let position = shard.binary_search_by_key(&session, |it| it.session);
            position.ok().map(|it| shard.remove(it))
        };
        if closed.is_some() && self.open.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.deserted.notify_waiters();
        }
    }

    /// The line of a session, if it is still here.
    pub(crate) fn find(&self, session: SessionId) -> Option<Arc<Line>> {
        let shard = self.shard(session).lock();
        let position = shard.binary_search_by_key(&session, |it| it.session).ok()?;
        Some(Arc::clone(&shard[position]))
    }

    /// Leaves a mail for a session, if it is still here.
    pub(crate) fn put(&self, session: SessionId, mail: Mail) {
        if let Some(line) = self.find(session) {
            line.put(mail);
        }
    }

    /// Lets every session look whether it may still be where it is.
    pub(crate) fn review(&self) {
        for line in self.all() {
            line.review();
        }
    }

    /// All of them, oldest first.
    pub(crate) fn all(&self) -> Vec<Arc<Line>> {
        let shards = self.shards.iter();
        let mut all: Vec<_> = shards.flat_map(|it| it.lock().clone()).collect();
        all.sort_unstable_by_key(|it| it.session);
        all
    }

    /// Waits until there is none. Cancelling it loses nothing.
    pub(crate) async fn deserted(&self) {
        loop {
            // Before the look, so that no end goes unnoticed.
            let deserted = self.deserted.notified();
            if self.open.load(Ordering::Acquire) == 0 {
                return;
            }
            deserted.await;
        }
    }

    /// Ends all without a word, for good: none begins any more. Says how many that were.
    pub(crate) fn cut_off(&self) -> usize {
        self.is_cut_off.store(true, Ordering::Release);
        let all = self.all();
        for line in &all {
            line.cut_off();
        }
        all.len()
    }
}

/// Rings for ever for sessions that have something due: no session has a timer of its own.
pub(crate) async fn sweep(node: Arc<Node>) -> anyhow::Result<()> {
    let mut next = node.clock.mono();
    let mut shards = node.lines.shards.iter().cycle();
    loop {
        let now = node.clock.mono();
        for shard in shards.by_ref().take(SHARDS_PER_STEP) {
            for line in shard.lock().iter().filter(|it| it.is_due(now)) {
                line.ring_for(Cause(Cause::DUE));
            }
        }
        next = (next + STEP).max(now);
        node.clock.sleep_until(next).await;
    }
}

#[cfg(test)]
mod tests {
    use super::super::Talk;
    use super::*;

    #[test]
    fn lines_are_found_in_any_order_of_coming_and_going() {
        let (lines, pump) = (Lines::new(), Arc::default());
        for session in [1, 513, 257, 2] {
            lines.open(SessionId(session), &pump);
        }

        lines.close(SessionId(257));
        lines.close(SessionId(257));

        let sessions: Vec<_> = lines.all().iter().map(|it| it.session.0).collect();
        assert_eq!(sessions, [1, 2, 513]);
        assert!(lines.find(SessionId(513)).is_some());
        assert!(lines.find(SessionId(257)).is_none());
        assert_eq!(lines.open.load(Ordering::Relaxed), 3);
    }

    #[test]
    fn after_a_cut_off_no_session_begins() {
        let (lines, pump) = (Lines::new(), Arc::default());
        let shaking = lines.open(SessionId(1), &pump);

        lines.cut_off();

        let late = lines.open(SessionId(2), &pump);
        for line in [shaking, late] {
            assert!(matches!(*line.talk.lock(), Talk::Over));
        }
    }
}
