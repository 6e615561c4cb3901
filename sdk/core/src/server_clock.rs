//! What time it is at the server, from what servers say; the device's own wall clock is never read.
//!
//! Every answer that carries the server's time is at least as old as its way here, so each sample
//! understates the server's clock and the largest recent one is the best.

use std::collections::VecDeque;
use std::time::Duration;

use proto::time::{Mono, Wall, millis};

/// How long a sample counts.
pub const RECENT: Duration = Duration::from_secs(120);
/// Samples kept; one every two seconds fills [`RECENT`].
pub const SAMPLES_MAX: usize = 64;
/// The offset falls by at most one millisecond in this many, twice what a bad crystal drifts.
///
/// A client that only polls learns the time from slots it asked for after their end. Without this
/// brake each window of such samples would put the next polls a little later, for ever.
const FALL_MS: u64 = 5_000;
/// A fall larger than this is a step of the server's clock, and is followed at once.
const STEP_MS: i64 = 5_000;

/// Server's wall clock minus local monotonic clock, in milliseconds.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Offset(pub i64);

impl Offset {
    /// The server's time at the local instant `at`.
    #[must_use]
    pub const fn wall(self, at: Mono) -> Wall {
        Wall(at.0.saturating_add_signed(self.0))
    }

    /// The local instant at which the server's clock shows `at`; the start of the local clock if
    /// that was earlier.
    #[must_use]
    pub const fn mono(self, at: Wall) -> Mono {
        Mono(at.0.saturating_add_signed(self.0.saturating_neg()))
    }
}

/// Estimates the server's clock.
#[derive(Clone, Debug, Default)]
pub struct ServerClock {
    samples: VecDeque<(Mono, i64)>,
    estimate: Option<(Mono, i64)>,
}

impl ServerClock {
    /// Takes in that a server said `said` in an answer received at `received`.
    pub fn sample(&mut self, said: Wall, received: Mono) {
        let offset = signed(said.0).saturating_sub(signed(received.0));
        self.samples.push_back((received, offset));
        while self.samples.len() > SAMPLES_MAX
            || self.samples.front().is_some_and(|&(at, _)| received.since(at) > RECENT)
        {
            self.samples.pop_front();
        }
        let largest = self.samples.iter().map(|&(_, it)| it).max().unwrap_or(offset);
        let next = self.estimate.map_or(largest, |(at, last)| {
            let lowest = last.saturating_sub(signed(millis(received.since(at)) / FALL_MS));
            if lowest.saturating_sub(largest) > STEP_MS { largest } else { largest.max(lowest) }
        });
        // The time of an unchanged estimate stays, or many samples would round its fall to nothing.
        if self.estimate.is_none_or(|(_, last)| last != next) {
            self.estimate = Some((received, next));
        }
    }

    /// The best estimate; `None` before the first sample.
    #[must_use]
    pub fn offset(&self) -> Option<Offset> {
        self.estimate.map(|(_, offset)| Offset(offset))
    }
}

fn signed(ms: u64) -> i64 {
    i64::try_from(ms).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SERVER_MS: u64 = 1_800_000_000_000;

    #[test]
    fn the_fastest_answer_sets_the_offset() {
        let mut clock = ServerClock::default();

        clock.sample(Wall(SERVER_MS + 1_000), Mono(1_400));
        clock.sample(Wall(SERVER_MS + 2_000), Mono(2_020));
        clock.sample(Wall(SERVER_MS + 3_000), Mono(3_900));

        let offset = clock.offset().unwrap();
        assert_eq!(offset.wall(Mono(5_000)), Wall(SERVER_MS + 4_980));
        assert_eq!(offset.mono(Wall(SERVER_MS + 4_980)), Mono(5_000));
    }

    #[test]
    fn late_samples_alone_do_not_push_the_clock_back() {
        let mut clock = ServerClock::default();
        clock.sample(Wall(SERVER_MS), Mono(0));

        for second in 1..=600 {
            clock.sample(Wall(SERVER_MS + second * 1_000), Mono(second * 1_000 + 800));
        }

        let behind = Wall(SERVER_MS + 600_000).since(clock.offset().unwrap().wall(Mono(600_000)));
        assert!(behind <= Duration::from_millis(121), "{behind:?}");
    }

    #[test]
    fn a_step_of_the_server_s_clock_is_followed() {
        let mut clock = ServerClock::default();
        clock.sample(Wall(SERVER_MS + 60_000), Mono(0));

        for second in 1..=150 {
            clock.sample(Wall(SERVER_MS + second * 1_000), Mono(second * 1_000));
        }

        assert_eq!(clock.offset().unwrap().wall(Mono(150_000)), Wall(SERVER_MS + 150_000));
    }
}
