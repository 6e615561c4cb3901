//! Which stores take slots: `/readyz` fails, with the reason, when none does.

use kit::clock::Clock;
use kit::health::Part;
use parking_lot::Mutex;
use proto::time::Mono;
use std::time::Duration;

use crate::counts::Counts;
use crate::store::StoreError;

/// A store that goes on refusing is told of again after so long.
const TOLD_AGAIN: Duration = Duration::from_mins(1);

/// What became of the newest write to each store. The part is well while one of them works.
#[derive(Debug)]
pub(super) struct Wellness {
    part: Part,
    pub(super) clock: Clock,
    pub(super) counts: Counts,
    stores: Mutex<Vec<State>>,
}

#[derive(Clone, Debug, Default)]
struct State {
    /// Why the newest write failed.
    refusal: Option<StoreError>,
    /// When the log last said so.
    told: Option<Mono>,
}

impl State {
    /// Takes a refusal; whether the log should say so.
    fn refuse(&mut self, error: StoreError, now: Mono) -> bool {
        self.refusal = Some(error);
        let is_due = self.told.is_none_or(|it| now.since(it) >= TOLD_AGAIN);
        if is_due {
            self.told = Some(now);
        }
        is_due
    }
}

impl Wellness {
    /// All are well until they refuse.
    pub(super) fn new(part: Part, clock: Clock, counts: Counts, stores: usize) -> Self {
        part.ok();
        Self { part, clock, counts, stores: Mutex::new(vec![State::default(); stores]) }
    }

    /// Whether a store works, or there is none.
    pub(super) fn is_well(&self) -> bool {
        let stores = self.stores.lock();
        stores.is_empty() || stores.iter().any(|it| it.refusal.is_none())
    }

    /// A store took what was written.
    pub(super) fn took(&self, number: usize) {
        let mut stores = self.stores.lock();
        if stores[number].refusal.take().is_some() {
            tracing::info!(store = number, "a store takes slots again");
            self.say(&stores);
        }
    }

    /// A store refused what was written.
    pub(super) fn refused(&self, number: usize, error: StoreError) {
        let mut stores = self.stores.lock();
        let hint = error.hint();
        if stores[number].refuse(error.clone(), self.clock.mono()) {
            tracing::warn!(store = number, %error, hint, "a store takes no slots");
        }
        self.say(&stores);
    }

    fn say(&self, stores: &[State]) {
        let refusals: Vec<&StoreError> =
            stores.iter().filter_map(|it| it.refusal.as_ref()).collect();
        self.counts.stores_refusing.set(i64::try_from(refusals.len()).unwrap_or(i64::MAX));
        match refusals[..] {
            [first, ..] if refusals.len() == stores.len() => {
                let hint = first.hint();
                self.part.fail(format!("no store takes slots: {first}; {hint}"));
            }
            _ => self.part.ok(),
        }
    }
}

#[cfg(test)]
mod tests {
    use kit::health::Health;
    use kit::meter::Meter;

    use super::*;

    fn full() -> StoreError {
        StoreError::Full { free_bytes: 1, free_bytes_min: 2 }
    }

    #[test]
    fn readiness_ends_with_the_last_store_and_says_why() {
        let health = Health::default();
        let (clock, counts) = (Clock::system(), Counts::new(&Meter::new()));
        let wellness = Wellness::new(health.part("store"), clock, counts.clone(), 2);

        wellness.refused(0, full());
        assert_eq!((wellness.is_well(), health.failures().len()), (true, 0));
        assert_eq!(counts.stores_refusing.get(), 1);

        wellness.refused(1, full());
        let failures = health.failures();
        assert!(!wellness.is_well());
        assert!(failures[0].1.contains("only 1 bytes"), "{failures:?}");
        assert!(failures[0].1.contains("free_bytes_min"), "{failures:?}");

        wellness.took(0);
        assert_eq!((wellness.is_well(), health.failures().len()), (true, 0));
        assert_eq!(counts.stores_refusing.get(), 1);
    }

    #[test]
    fn the_log_says_it_once_a_minute() {
        let mut state = State::default();

        let mut said = |at| state.refuse(full(), Mono(at));

        assert_eq!(
            [0, 1, 59_999, 60_000, 60_001].map(&mut said),
            [true, false, false, true, false]
        );
    }
}
