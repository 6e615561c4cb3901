//! Turns for sessions: those that were rung wait in one queue, and some tasks, one a core, give
//! them their turns.
//!
//! A session is in the queue once, however often it is rung, so that the queue is no longer than
//! there are sessions.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::line::Line;
use crate::wire::Found;

/// Turns that a task gives before it lets others run: about half a millisecond's worth of writes.
const TURNS_MAX: usize = 64;
/// Bytes of one read.
const READ_BYTES: usize = 16 * 1024;

/// Sessions that wait for a turn.
#[derive(Debug, Default)]
pub(crate) struct Pump {
    queue: Mutex<VecDeque<Arc<Line>>>,
    /// Rung when there is work for one more task.
    work: Notify,
}

/// What turns need for a moment, and share.
#[derive(Debug)]
pub(crate) struct Scratch {
    /// What was just read lies here until it is decoded.
    pub(crate) read: Vec<u8>,
    /// What it was.
    pub(crate) found: Vec<Found>,
    /// What is about to be written.
    pub(crate) blocks: Vec<Bytes>,
}

impl Pump {
    /// Queues a session that was not queued.
    pub(crate) fn push(&self, line: Arc<Line>) {
        let was_empty = {
            let mut queue = self.queue.lock();
            queue.push_back(line);
            queue.len() == 1
        };
        if was_empty {
            self.work.notify_one();
        }
    }

    /// Rings for many at once.
    pub(crate) fn ring_all<'a>(&self, lines: impl Iterator<Item = &'a Arc<Line>>) {
        let is_empty = {
            let mut queue = self.queue.lock();
            queue.extend(lines.filter(|it| it.is_first_ring()).cloned());
            queue.is_empty()
        };
        if !is_empty {
            self.work.notify_one();
        }
    }

    /// Moves the next ones to `turns`; says whether others are left.
    fn take(&self, turns: &mut Vec<Arc<Line>>) -> bool {
        let mut queue = self.queue.lock();
        let taken = queue.len().min(TURNS_MAX);
        turns.extend(queue.drain(..taken));
        if queue.is_empty() {
            // A room of thousands leaves a long queue behind.
            queue.shrink_to(TURNS_MAX);
        }
        !queue.is_empty()
    }
}

/// Gives turns for ever.
pub(crate) async fn run(pump: Arc<Pump>) -> anyhow::Result<()> {
    // Turns do not wait: with a budget their sockets would, after the first hundred of them.
    tokio::task::unconstrained(async {
        let mut scratch =
            Scratch { read: vec![0; READ_BYTES], found: Vec::new(), blocks: Vec::new() };
        let mut turns = Vec::with_capacity(TURNS_MAX);
        loop {
            if pump.take(&mut turns) {
                pump.work.notify_one();
            }
            if turns.is_empty() {
                pump.work.notified().await;
                continue;
            }
            for line in turns.drain(..) {
                line.turn(&mut scratch);
            }
            tokio::task::yield_now().await;
        }
    })
    .await
}

#[cfg(test)]
mod tests {
    use proto::id::SessionId;

    use super::*;
    use crate::line::Lines;

    #[test]
    fn a_session_waits_once_however_often_it_is_rung() {
        let (lines, pump) = (Lines::new(), Arc::<Pump>::default());
        let all = [1, 2].map(|it| lines.open(SessionId(it), &pump));

        all[1].ring();
        all[1].ring();
        pump.ring_all(all.iter());

        let mut turns = Vec::new();
        assert!(!pump.take(&mut turns));
        let sessions: Vec<_> = turns.iter().map(|it| it.session.0).collect();
        assert_eq!(sessions, [2, 1]);
    }
}
