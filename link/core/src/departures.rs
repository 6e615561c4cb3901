//! Leaves on their way to the others: queued, and told at a bounded pace.
//!
//! A mass disconnect is one cheap push per session here; what reaches the bus is spread over time,
//! so that joins are never behind 100,000 leaves. A leave names its session and removes only that.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use proto::id::{RoomId, SessionId};
use proto::time::Mono;

use crate::bucket::{Bucket, Rate};
use crate::hub::Member;

/// A member that left a room.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Departure {
    /// Who.
    pub member: Arc<Member>,
    /// Which room.
    pub room: RoomId,
}

/// The queue is full; the leave is not told. Counts do not suffer: they are sums of gauges.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("too many leaves are waiting")]
pub struct Overflow;

/// The queue.
#[derive(Debug)]
pub struct Departures {
    queue: VecDeque<(u64, Departure)>,
    /// The ticket of each leave that still counts; a leave in `queue` without one was cancelled.
    live: BTreeMap<(SessionId, RoomId), u64>,
    next_ticket: u64,
    pace: Bucket,
    leaves_max: usize,
}

impl Departures {
    /// An empty queue of at most `leaves_max`.
    #[must_use]
    pub const fn new(leaves_max: usize, pace: Rate) -> Self {
        Self {
            queue: VecDeque::new(),
            live: BTreeMap::new(),
            next_ticket: 0,
            pace: Bucket::new(pace),
            leaves_max,
        }
    }

    /// Queues a leave.
    pub fn push(&mut self, departure: Departure) -> Result<(), Overflow> {
        if self.queue.len() >= self.leaves_max {
            return Err(Overflow);
        }
        let ticket = self.next_ticket;
        self.next_ticket += 1;
        self.live.insert((departure.member.session, departure.room.clone()), ticket);
        self.queue.push_back((ticket, departure));
        Ok(())
    }

    /// The session came back into the room: says whether its leave was still waiting, in which
    /// case nobody needs to hear of either.
    pub fn cancel(&mut self, session: SessionId, room: &RoomId) -> bool {
        self.live.remove(&(session, room.clone())).is_some()
    }

    /// The next leave to tell, if the pace allows one now.
    pub fn poll(&mut self, now: Mono) -> Option<Departure> {
        loop {
            let (ticket, departure) = self.queue.front()?;
            let key = (departure.member.session, departure.room.clone());
            let counts = self.live.get(&key) == Some(ticket);
            if counts {
                self.pace.take(now).ok()?;
                self.live.remove(&key);
            }
            let (_, departure) = self.queue.pop_front()?;
            if counts {
                return Some(departure);
            }
        }
    }

    /// Leaves that wait, cancelled ones included.
    #[must_use]
    pub fn len(&self) -> usize {
        self.queue.len()
    }

    /// Whether none waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use proto::id::{AppId, ViewerId};
    use proto::item::Role;

    use super::*;

    const PACE: Rate = Rate { burst: 2, per_s: 100 };

    #[test]
    fn leaves_are_told_in_order_at_the_pace() {
        let mut departures = Departures::new(10, PACE);
        for session in 1..=3 {
            departures.push(leave(session)).unwrap();
        }

        let told: Vec<_> = std::iter::from_fn(|| departures.poll(Mono(0))).collect();

        assert_eq!(told, [leave(1), leave(2)]);
        assert_eq!(departures.poll(Mono(9)), None);
        assert_eq!(departures.poll(Mono(10)), Some(leave(3)));
        assert!(departures.is_empty());
    }

    #[test]
    fn a_leave_and_a_return_cancel_each_other() {
        let mut departures = Departures::new(10, PACE);
        departures.push(leave(1)).unwrap();

        assert!(departures.cancel(SessionId(1), &room()));
        assert!(!departures.cancel(SessionId(1), &room()));

        departures.push(leave(1)).unwrap();
        assert_eq!(departures.poll(Mono(0)), Some(leave(1)), "the second leave counts");
        assert_eq!(departures.poll(Mono(0)), None, "and only that one");
    }

    #[test]
    fn a_full_queue_says_so() {
        let mut departures = Departures::new(1, PACE);
        departures.push(leave(1)).unwrap();

        assert_eq!(departures.push(leave(2)), Err(Overflow));
    }

    fn leave(session: u64) -> Departure {
        let viewer = ViewerId::parse("v").unwrap();
        Departure {
            member: Arc::new(Member {
                session: SessionId(session),
                app: AppId(1),
                viewer,
                role: Role::Viewer,
                may_send: true,
            }),
            room: room(),
        }
    }

    fn room() -> RoomId {
        RoomId::parse("r").unwrap()
    }
}
