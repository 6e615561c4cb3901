//! How long a room's slots are: longer while very many fetch them.
//!
//! Whoever reads segments asks once a slot, so a slot of twice the length halves the requests at the
//! CDN. It buys nothing else: the bytes an item takes hardly change, and everything is seen later.
//! So what is looked at is the requests a second, sessions over the length of a slot, and a room
//! whose sessions are pushed to has none. Readers without a session are not known here.
//!
//! Two thresholds and patience keep it from going back and forth: it grows longer on the least that
//! was seen for a while, shorter on the most that was seen for a longer one, and only when the
//! shorter slots then leave a fifth of what they may cost.

use std::time::Duration;

use proto::time::Mono;

/// The lengths, as multiples of the room's own.
const STEPS: [u32; 3] = [1, 2, 5];
/// Slots become shorter when that leaves so much of the requests unused, in percent.
const SHORTER_PERCENT_MAX: u64 = 80;

/// What the length of a room's slots keeps to.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Limits {
    /// The room's own length, which is the shortest.
    pub interval_ms: u32,
    /// No slot is longer, unless the room's own length is.
    pub interval_ms_max: u32,
    /// Requests a second from which slots become longer.
    pub polls_per_s_max: u32,
    /// How long there must be more before slots become longer.
    pub longer_hold: Duration,
    /// How long there must be fewer before slots become shorter.
    pub shorter_hold: Duration,
}

impl Limits {
    /// The lengths that slots may have, shortest first; there is always the first.
    fn lengths(&self) -> impl DoubleEndedIterator<Item = u32> {
        let longest = self.interval_ms_max.max(self.interval_ms);
        let length = |step: u32| self.interval_ms.saturating_mul(step);
        STEPS.map(length).into_iter().filter(move |it| *it <= longest)
    }

    /// The shortest length at which `sessions` ask no more often than `percent` of what they may.
    fn length_for(&self, sessions: u32, percent: u64) -> u32 {
        let polls_max = u64::from(self.polls_per_s_max) * percent / 100;
        let fits = |it: &u32| u64::from(sessions) * 1000 <= polls_max * u64::from(*it);
        let longest = self.lengths().next_back().unwrap_or(self.interval_ms);
        self.lengths().find(fits).unwrap_or(longest)
    }
}

/// The length of a room's slots, and its wish to change it.
#[derive(Debug)]
pub struct Tempo {
    interval_ms: u32,
    wish: Option<Wish>,
}

/// What has been wished for since then.
#[derive(Clone, Copy, Debug)]
struct Wish {
    is_longer: bool,
    since: Mono,
    /// The sessions of the moment that asked least for it.
    sessions: u32,
}

impl Tempo {
    /// Starts with the room's own length.
    #[must_use]
    pub const fn new(limits: &Limits) -> Self {
        Self { interval_ms: limits.interval_ms, wish: None }
    }

    /// The length of slots, in milliseconds.
    #[must_use]
    pub const fn interval_ms(&self) -> u32 {
        self.interval_ms
    }

    /// Other limits count: the length stays as many times the room's own as it was, if that is
    /// still allowed.
    pub fn set(&mut self, old: &Limits, new: &Limits) {
        let step = self.interval_ms / old.interval_ms.max(1);
        let length = new.interval_ms.saturating_mul(step);
        let nearest = new.lengths().rfind(|it| *it <= length);
        self.interval_ms = nearest.unwrap_or(new.interval_ms);
        self.wish = None;
    }

    /// Goes on with the length that another broadcaster chose, if it is one of the room's.
    pub fn adopt(&mut self, interval_ms: u32, limits: &Limits) {
        if limits.lengths().any(|it| it == interval_ms) {
            self.interval_ms = interval_ms;
            self.wish = None;
        }
    }

    /// Looks at how many sessions fetch segments, and changes the length if it has to.
    pub fn observe(&mut self, sessions: u32, limits: &Limits, now: Mono) {
        let is_longer = limits.length_for(sessions, 100) > self.interval_ms;
        let is_shorter = limits.length_for(sessions, SHORTER_PERCENT_MAX) < self.interval_ms;
        if !is_longer && !is_shorter {
            self.wish = None;
            return;
        }
        let fresh = Wish { is_longer, since: now, sessions };
        let mut wish = self.wish.filter(|it| it.is_longer == is_longer).unwrap_or(fresh);
        let (hold, percent) = if is_longer {
            wish.sessions = wish.sessions.min(sessions);
            (limits.longer_hold, 100)
        } else {
            wish.sessions = wish.sessions.max(sessions);
            (limits.shorter_hold, SHORTER_PERCENT_MAX)
        };
        self.wish = Some(wish);
        if now.since(wish.since) >= hold {
            self.wish = None;
            self.interval_ms = limits.length_for(wish.sessions, percent);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LIMITS: Limits = Limits {
        interval_ms: 1000,
        interval_ms_max: 5000,
        polls_per_s_max: 100,
        longer_hold: Duration::from_secs(10),
        shorter_hold: Duration::from_secs(60),
    };

    /// Seconds from the first one until the length changes, and to what.
    fn change(tempo: &mut Tempo, sessions: u32, from: u64) -> Option<(u64, u32)> {
        let before = tempo.interval_ms();
        let change = (0..300).find(|it| {
            tempo.observe(sessions, &LIMITS, Mono((from + it) * 1000));
            tempo.interval_ms() != before
        });
        change.map(|it| (it, tempo.interval_ms()))
    }

    #[test]
    fn slots_grow_with_who_fetches_them_and_shrink_again() {
        let mut tempo = Tempo::new(&LIMITS);

        assert_eq!(change(&mut tempo, 100, 0), None);
        assert_eq!(change(&mut tempo, 101, 1000), Some((10, 2000)));
        assert_eq!(change(&mut tempo, 200, 2000), None);
        assert_eq!(change(&mut tempo, 201, 3000), Some((10, 5000)));
        assert_eq!(change(&mut tempo, 100_000, 4000), None);
        assert_eq!(change(&mut tempo, 161, 5000), None);
        assert_eq!(change(&mut tempo, 160, 6000), Some((60, 2000)));
        assert_eq!(change(&mut tempo, 81, 7000), None);
        assert_eq!(change(&mut tempo, 80, 8000), Some((60, 1000)));
    }

    #[test]
    fn a_room_that_fills_at_once_skips_a_step_and_so_does_one_that_empties() {
        let mut tempo = Tempo::new(&LIMITS);

        assert_eq!(change(&mut tempo, 1_000_000, 0), Some((10, 5000)));
        assert_eq!(change(&mut tempo, 0, 1000), Some((60, 1000)));
    }

    #[test]
    fn a_peak_does_not_make_slots_longer_and_a_dip_not_shorter() {
        let mut tempo = Tempo::new(&LIMITS);

        for second in 0..200_u64 {
            let sessions = if second % 10 == 9 { 90 } else { 1000 };
            tempo.observe(sessions, &LIMITS, Mono(second * 1000));
            assert_eq!(tempo.interval_ms(), 1000);
        }
        assert_eq!(change(&mut tempo, 1000, 1000), Some((10, 5000)));
        for second in 2000..2200_u64 {
            let sessions = if second % 60 == 59 { 1000 } else { 0 };
            tempo.observe(sessions, &LIMITS, Mono(second * 1000));
            assert_eq!(tempo.interval_ms(), 5000);
        }
    }

    #[test]
    fn no_slot_is_longer_than_the_room_allows() {
        let limits = Limits { interval_ms_max: 2000, ..LIMITS };
        let instant = Limits { interval_ms_max: 1000, ..LIMITS };
        let (mut tempo, mut never) = (Tempo::new(&limits), Tempo::new(&instant));

        for second in 0..300 {
            tempo.observe(u32::MAX, &limits, Mono(second * 1000));
            never.observe(u32::MAX, &instant, Mono(second * 1000));
        }

        assert_eq!((tempo.interval_ms(), never.interval_ms()), (2000, 1000));
    }

    #[test]
    fn another_length_of_the_room_keeps_the_multiple() {
        let mut tempo = Tempo::new(&LIMITS);
        tempo.adopt(2000, &LIMITS);
        let half = Limits { interval_ms: 500, ..LIMITS };
        let short = Limits { interval_ms_max: 600, ..half };

        tempo.set(&LIMITS, &half);
        assert_eq!(tempo.interval_ms(), 1000);
        tempo.set(&half, &short);
        assert_eq!(tempo.interval_ms(), 500);
        tempo.adopt(700, &short);
        assert_eq!(tempo.interval_ms(), 500);
    }

    proptest! {
        #[test]
        fn a_load_that_keeps_within_a_fifth_changes_the_length_twice_at_most(
            sessions in 0..2000_u32, noise in prop::collection::vec(0..20_u32, 600),
        ) {
            let mut tempo = Tempo::new(&LIMITS);

            let mut changes = 0;
            for (second, percent) in (0..).zip(noise) {
                let sessions = sessions * (100 - percent) / 100;
                let before = tempo.interval_ms();
                tempo.observe(sessions, &LIMITS, Mono(second * 1000));
                changes += usize::from(tempo.interval_ms() != before);
            }

            prop_assert!(changes <= 2, "{changes} changes");
        }

        #[test]
        fn changes_are_at_least_as_far_apart_as_patience(
            loads in prop::collection::vec((0..1000_u32, 1..100_u64), 1..30),
        ) {
            let mut tempo = Tempo::new(&LIMITS);

            let (mut second, mut last) = (0, None);
            for (sessions, seconds) in loads {
                for _ in 0..seconds {
                    second += 1;
                    let before = tempo.interval_ms();
                    tempo.observe(sessions, &LIMITS, Mono(second * 1000));
                    if tempo.interval_ms() != before {
                        let hold = if tempo.interval_ms() > before { 10 } else { 60 };
                        prop_assert!(last.is_none_or(|it| second - it >= hold));
                        last = Some(second);
                    }
                }
            }
        }
    }
}
