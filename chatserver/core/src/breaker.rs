//! A circuit breaker: whom nobody answers is not called for a while.
//!
//! Closed, it looks at the last [`CALLS`] calls; when at least [`CALLS_MIN`] ended and half of them
//! failed it opens. Open, it lets nothing through for a pause. Then it lets one call through at a
//! time: [`TRIALS`] good ones in a row close it, a failed one opens it again, for twice as long.

use std::time::Duration;

use proto::time::Mono;

/// Calls that are looked at.
pub const CALLS: u32 = 32;
/// Calls that have to end before it may open: one slow answer says nothing.
pub const CALLS_MIN: u32 = 8;
/// Good calls in a row that close it.
pub const TRIALS: u32 = 3;
/// How long it stays open the first time.
pub const PAUSE_MIN: Duration = Duration::from_secs(1);
/// The same at most, while calls go on failing.
pub const PAUSE_MAX: Duration = Duration::from_secs(30);

/// The machine.
#[derive(Clone, Debug)]
pub struct Breaker {
    state: State,
    /// How long it stays open the next time.
    pause: Duration,
}

#[derive(Clone, Copy, Debug)]
enum State {
    /// The newest call is the lowest bit of `failed`; of `ended` at most [`CALLS`] are there.
    Closed {
        failed: u32,
        ended: u32,
    },
    Open {
        until: Mono,
    },
    /// `busy`: a trial is under way, since then.
    HalfOpen {
        good: u32,
        busy: Option<Mono>,
    },
}

/// How a call ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Ended {
    /// With an answer.
    Well,
    /// Without one that can be used.
    Badly,
}

impl Default for Breaker {
    fn default() -> Self {
        Self { state: State::Closed { failed: 0, ended: 0 }, pause: PAUSE_MIN }
    }
}

impl Breaker {
    /// Whether a call may begin; if it may, [`Breaker::end`] has to tell how it ended.
    pub fn begin(&mut self, now: Mono) -> bool {
        match &mut self.state {
            State::Closed { .. } => true,
            State::Open { until } if now >= *until => {
                self.state = State::HalfOpen { good: 0, busy: Some(now) };
                true
            }
            State::Open { .. } => false,
            State::HalfOpen { busy, .. } => {
                let is_free = busy.is_none();
                busy.get_or_insert(now);
                is_free
            }
        }
    }

    /// Takes note of how a call that was begun at `begun` ended.
    pub fn end(&mut self, begun: Mono, ended: Ended, now: Mono) {
        match (&mut self.state, ended) {
            (State::Closed { failed, ended: count }, _) => {
                *failed = *failed << 1 | u32::from(ended == Ended::Badly);
                *count = (*count + 1).min(CALLS);
                if *count >= CALLS_MIN && failed.count_ones() * 2 >= *count {
                    self.open(now);
                }
            }
            // Calls that began before it opened say nothing new.
            (State::Open { .. }, _) => {}
            (State::HalfOpen { busy, .. }, _) if *busy != Some(begun) => {}
            (State::HalfOpen { good, busy }, Ended::Well) => {
                *good += 1;
                *busy = None;
                if *good >= TRIALS {
                    *self = Self::default();
                }
            }
            (State::HalfOpen { .. }, Ended::Badly) => self.open(now),
        }
    }

    /// Whether calls are kept back.
    #[must_use]
    pub const fn is_open(&self) -> bool {
        !matches!(self.state, State::Closed { .. })
    }

    fn open(&mut self, now: Mono) {
        self.state = State::Open { until: now + self.pause };
        self.pause = (self.pause * 2).min(PAUSE_MAX);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// As many calls as it lets through of `count`, one a millisecond from `at` on.
    fn call(breaker: &mut Breaker, at: u64, count: u64, ended: Ended) -> u64 {
        let let_through = |now: Mono| {
            let begun = breaker.begin(now);
            if begun {
                breaker.end(now, ended, now);
            }
            u64::from(begun)
        };
        (at..at + count).map(Mono).map(let_through).sum()
    }

    #[test]
    fn it_opens_when_half_of_enough_calls_failed() {
        let mut breaker = Breaker::default();

        assert_eq!(call(&mut breaker, 0, 4, Ended::Well), 4);
        assert_eq!(call(&mut breaker, 4, 3, Ended::Badly), 3);
        assert!(!breaker.is_open());
        assert_eq!(call(&mut breaker, 7, 100, Ended::Badly), 1);

        assert!(breaker.is_open());
    }

    #[test]
    fn it_forgets_failures_that_are_long_past() {
        let mut breaker = Breaker::default();

        let lasting = (0..20).map(|round| {
            call(&mut breaker, round * 100, 32, Ended::Well)
                + call(&mut breaker, round * 100 + 50, 15, Ended::Badly)
        });

        assert_eq!(lasting.sum::<u64>(), 20 * 47);
        assert!(!breaker.is_open());
    }

    #[test]
    fn after_its_pause_it_tries_one_call_at_a_time_and_closes() {
        let mut breaker = Breaker::default();
        call(&mut breaker, 0, 8, Ended::Badly);
        let until = 7 + 1000;

        assert!(!breaker.begin(Mono(until - 1)));
        assert!(breaker.begin(Mono(until)));
        assert!(!breaker.begin(Mono(until + 1)));
        breaker.end(Mono(until), Ended::Well, Mono(until + 2));
        assert_eq!(call(&mut breaker, until + 3, 2, Ended::Well), 2);

        assert!(!breaker.is_open());
        assert_eq!(call(&mut breaker, until + 5, 50, Ended::Well), 50);
    }

    #[test]
    fn it_waits_twice_as_long_after_each_failed_trial_up_to_a_bound() {
        let mut breaker = Breaker::default();
        call(&mut breaker, 0, 8, Ended::Badly);

        let mut at = 7;
        for pause in [1000, 2000, 4000, 8000, 16_000, 30_000, 30_000] {
            assert!(!breaker.begin(Mono(at + pause - 1)), "{pause}");
            at += pause;
            assert!(breaker.begin(Mono(at)), "{pause}");
            breaker.end(Mono(at), Ended::Badly, Mono(at));
        }
    }

    #[test]
    fn calls_from_before_it_opened_close_nothing() {
        let mut breaker = Breaker::default();
        assert!((0..20).all(|now| breaker.begin(Mono(now))));
        (0..8).for_each(|now| breaker.end(Mono(now), Ended::Badly, Mono(200)));
        assert!(breaker.begin(Mono(2000)));

        (8..20).for_each(|now| breaker.end(Mono(now), Ended::Well, Mono(2001)));

        assert!(breaker.is_open() && !breaker.begin(Mono(2002)));
    }

    proptest! {
        #[test]
        fn a_dead_server_is_called_less_and_less(gap_ms in 1_u64..500) {
            let mut breaker = Breaker::default();
            let hour = 3_600_000;

            let calls = (0..hour / gap_ms).map(|it| call(&mut breaker, it * gap_ms, 1, Ended::Badly));

            prop_assert!(calls.sum::<u64>() <= 8 + 5 + hour / 30_000);
        }
    }
}
