//! How old a node's knowledge of `control` is.
//!
//! Nobody is let in on old knowledge: the viewer may have been kicked meanwhile. A quiet bus and
//! one that is cut off look alike to a reader, so the node asks again and again where the end is;
//! when it has read up to an end, it knows everything that was told before it asked.

use std::time::Duration;

use proto::time::Mono;

/// What is known of the one partition of `control`, by its offsets.
#[derive(Clone, Copy, Debug, Default)]
pub struct Knowledge {
    /// Everything before this was learned.
    next: u64,
    /// An end that is not reached, and when it was asked for.
    ahead: Option<(u64, Mono)>,
    /// Everything that was told before this is known.
    as_of: Option<Mono>,
}

impl Knowledge {
    /// Everything before `next` was learned.
    pub fn learned(&mut self, next: u64) {
        self.next = self.next.max(next);
        self.reach();
    }

    /// The bus was asked at `asked` where the end is, and said `end`.
    ///
    /// An end that is not reached stays until it is: on a busy topic, a later one would never be.
    pub fn located(&mut self, end: u64, asked: Mono) {
        self.ahead.get_or_insert((end, asked));
        self.reach();
    }

    /// Whether an end that the bus told lies before what was learned: the bus has lost what it
    /// held, and what it was told since is not known here.
    #[must_use]
    pub const fn is_lost(&self, end: u64) -> bool {
        end < self.next
    }

    /// The bus has lost what it held: everything is learned again, from its beginning on.
    pub fn start_over(&mut self) {
        *self = Self::default();
    }

    /// The end that is not reached.
    #[must_use]
    pub fn ahead(&self) -> Option<u64> {
        self.ahead.map(|(end, _)| end)
    }

    /// How old the knowledge is; nothing while the first end is not reached.
    #[must_use]
    pub fn age(&self, now: Mono) -> Option<Duration> {
        self.as_of.map(|it| now.since(it))
    }

    fn reach(&mut self) {
        if let Some((end, asked)) = self.ahead
            && self.next >= end
        {
            self.ahead = None;
            self.as_of = Some(asked);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn age_ms(knowledge: &Knowledge, now: u64) -> Option<u128> {
        knowledge.age(Mono(now)).map(|it| it.as_millis())
    }

    #[test]
    fn nothing_is_known_before_the_first_end_is_reached() {
        let mut knowledge = Knowledge::default();
        knowledge.learned(5);
        assert_eq!(age_ms(&knowledge, 10), None);

        knowledge.located(7, Mono(10));
        knowledge.learned(6);
        assert_eq!((age_ms(&knowledge, 20), knowledge.ahead()), (None, Some(7)));

        knowledge.learned(7);
        assert_eq!((age_ms(&knowledge, 30), knowledge.ahead()), (Some(20), None));
    }

    #[test]
    fn an_empty_topic_is_known_at_once() {
        let mut knowledge = Knowledge::default();

        knowledge.located(0, Mono(10));

        assert_eq!(age_ms(&knowledge, 10), Some(0));
    }

    #[test]
    fn what_was_told_after_the_question_does_not_count_as_known() {
        let mut knowledge = Knowledge::default();
        knowledge.located(0, Mono(10));

        knowledge.located(3, Mono(500));

        assert_eq!(age_ms(&knowledge, 1000), Some(990));
    }

    #[test]
    fn a_bus_whose_end_lies_before_what_was_learned_is_learned_anew() {
        let mut knowledge = Knowledge::default();
        knowledge.located(7, Mono(10));
        knowledge.learned(7);
        assert!(!knowledge.is_lost(7));
        assert!(knowledge.is_lost(6));

        knowledge.start_over();
        knowledge.located(2, Mono(20));
        assert_eq!(age_ms(&knowledge, 20), None);

        knowledge.learned(2);
        assert_eq!(age_ms(&knowledge, 25), Some(5));
    }

    #[test]
    fn a_reader_that_is_always_a_little_behind_is_current_all_the_same() {
        let mut knowledge = Knowledge::default();

        for second in 1..100 {
            knowledge.located(second * 10, Mono(second * 1000));
            knowledge.learned(second * 10 - 3);
        }

        assert_eq!(age_ms(&knowledge, 100_000), Some(3000));
    }
}
