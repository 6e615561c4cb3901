//! One device at a time: which of a viewer's sessions in a room stays.
//!
//! A [`Place`] is what is remembered of one viewer in one room; whoever changes it replaces the
//! remembered one by compare-and-set. Joins and leaves come at least once, those of two units in
//! any order, and old ones may come again: what counts is when the sessions came in and went out.

use proto::id::{NodeId, SessionId};
use proto::time::Wall;
use serde::{Deserialize, Serialize};

/// Sessions that are over and remembered, so that their joins, when they come again, close nobody.
/// More than a viewer makes within the seconds in which records come again.
pub const OVER_MAX: usize = 8;

/// A session in the whole system.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
pub struct Session {
    /// Where it is.
    pub node: NodeId,
    /// Its number there.
    pub session: SessionId,
}

/// A session's stay in a room. The later one by its time wins; by its session, of two at a time.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
pub struct Stay {
    /// Since when, or until when, by the time of the bus.
    pub at: Wall,
    /// Whose.
    pub session: Session,
}

/// What is remembered of one viewer in one room.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct Place {
    /// Who is there.
    holder: Option<Stay>,
    /// Stays that are over, and until when; the oldest first.
    over: Vec<Stay>,
}

impl Place {
    /// A session came in at that time, or says again that it did. Gives the session that has to go,
    /// which may be this one.
    pub fn join(&mut self, join: Stay) -> Option<Session> {
        if self.over.iter().any(|it| it.session == join.session && join.at <= it.at) {
            return None;
        }
        let Some(holder) = self.holder else {
            self.holder = Some(join);
            return None;
        };
        if holder.session == join.session {
            return None;
        }
        let (stays, goes) = if join > holder { (join, holder) } else { (holder, join) };
        self.holder = Some(stays);
        // A session that has to go never comes back.
        self.end(Stay { at: Wall(u64::MAX), ..goes });
        Some(goes.session)
    }

    /// A session went out; only its own stay ends.
    pub fn leave(&mut self, leave: Stay) {
        if self.holder.is_some_and(|it| it.session == leave.session && it.at <= leave.at) {
            self.holder = None;
            self.end(leave);
        }
    }

    /// Whether nobody is there.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.holder.is_none()
    }

    fn end(&mut self, stay: Stay) {
        self.over.retain(|it| it.session != stay.session);
        if self.over.len() >= OVER_MAX {
            self.over.remove(0);
        }
        self.over.push(stay);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn stay(session: u64, at: u64) -> Stay {
        let session = Session { node: NodeId(1), session: SessionId(session) };
        Stay { at: Wall(at), session }
    }

    #[test]
    fn the_newer_session_stays_whichever_is_heard_of_first() {
        let mut in_order = Place::default();
        assert_eq!(in_order.join(stay(1, 10)), None);
        assert_eq!(in_order.join(stay(2, 20)), Some(stay(1, 0).session));

        let mut reversed = Place::default();
        assert_eq!(reversed.join(stay(2, 20)), None);
        assert_eq!(reversed.join(stay(1, 10)), Some(stay(1, 0).session));

        assert_eq!(in_order, reversed);
    }

    #[test]
    fn a_join_that_comes_again_closes_nobody() {
        let mut place = Place::default();
        place.join(stay(1, 10));
        place.leave(stay(1, 15));
        place.join(stay(2, 20));

        assert_eq!(place.join(stay(2, 20)), None);
        assert_eq!(place.join(stay(2, 19)), None, "it says so again, and the bus was quicker");
        assert_eq!(place.join(stay(1, 10)), None, "it had left before");
        place.leave(stay(1, 15));
        assert!(!place.is_empty());
    }

    #[test]
    fn a_session_that_comes_back_takes_the_place_again() {
        let mut place = Place::default();
        place.join(stay(1, 10));
        place.leave(stay(1, 15));
        place.join(stay(1, 20));
        place.leave(stay(1, 15));

        assert_eq!(place.join(stay(2, 30)), Some(stay(1, 0).session));
    }

    #[test]
    fn a_session_that_had_to_go_takes_nothing_back() {
        let mut place = Place::default();
        place.join(stay(1, 10));
        place.join(stay(2, 20));

        assert_eq!(place.join(stay(1, 10)), None, "it says again that it came in");
        assert_eq!(place.join(stay(1, 30)), None, "it comes in again, and is being closed");
        place.leave(stay(1, 31));
        assert_eq!(place.join(stay(3, 40)), Some(stay(2, 0).session));
    }

    proptest! {
        /// In whatever order and however often the joins of some sessions come, all but the newest
        /// are closed.
        #[test]
        fn one_session_is_left(
            order in proptest::collection::vec(0_u64..5, 0..40),
            last in Just((0_u64..5).collect::<Vec<_>>()).prop_shuffle(),
        ) {
            let mut place = Place::default();

            let closed: BTreeSet<_> = order
                .into_iter()
                .chain(last)
                .filter_map(|it| place.join(stay(it, it * 10)))
                .collect();

            let others: BTreeSet<_> = (0..4).map(|it| stay(it, 0).session).collect();
            prop_assert_eq!(closed, others);
        }
    }
}
