//! A room's own time: follows the wall clock, never backwards.
//!
//! When the wall clock is ahead, time jumps to it. When it was set back, time goes on by the
//! monotonic clock, a little slower, until both agree again. A clock set back by more than a
//! bound is not followed at all: the caller opens a new gen.

use proto::time::{Mono, Wall, millis};

use crate::Now;

/// One part in this many is held back while the wall clock is behind.
const SLEW: u64 = 16;

/// The wall clock went back further than can be waited for.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("the wall clock is {behind_ms} ms behind the room's time")]
pub struct SteppedBack {
    /// How far.
    pub behind_ms: u64,
}

/// Keeps a room's time.
#[derive(Debug)]
pub struct Pace {
    time: Wall,
    mono: Mono,
    back_ms_max: u64,
}

impl Pace {
    /// Time starts at the wall clock, or at `floor` if that is later.
    #[must_use]
    pub fn new(floor: Wall, now: Now, back_ms_max: u64) -> Self {
        Self { time: floor.max(now.wall), mono: now.mono, back_ms_max }
    }

    /// The room's time at `now`.
    pub fn steer(&mut self, now: Now) -> Result<Wall, SteppedBack> {
        let passed_ms = millis(now.mono.since(self.mono));
        let behind_ms = (self.time.0 + passed_ms).saturating_sub(now.wall.0);
        if behind_ms > self.back_ms_max {
            return Err(SteppedBack { behind_ms });
        }
        let slewed = self.time.0 + passed_ms - passed_ms / SLEW;
        self.time = Wall(slewed.max(now.wall.0));
        self.mono = self.mono.max(now.mono);
        Ok(self.time)
    }

    /// The room's time when it was last steered.
    #[must_use]
    pub const fn time(&self) -> Wall {
        self.time
    }

    /// When the room's time will be `at`, if the clocks go on as they do.
    #[must_use]
    pub fn mono_of(&self, at: Wall) -> Mono {
        self.mono + at.since(self.time)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(mono: u64, wall: u64) -> Now {
        Now { mono: Mono(mono), wall: Wall(wall) }
    }

    #[test]
    fn a_clock_set_back_a_little_is_met_again_without_going_back() {
        let mut pace = Pace::new(Wall(0), at(0, 100_000), 10_000);

        let mut last = Wall(100_000);
        for passed in (200..=40_000).step_by(200) {
            let time = pace.steer(at(passed, 98_000 + passed)).unwrap();
            assert!(time > last, "{time}");
            last = time;
        }

        assert_eq!(last, Wall(138_000));
    }

    #[test]
    fn a_clock_set_back_far_is_refused() {
        let mut pace = Pace::new(Wall(0), at(0, 100_000), 10_000);

        assert_eq!(pace.steer(at(0, 90_000)), Ok(Wall(100_000)));
        assert_eq!(pace.steer(at(0, 89_999)), Err(SteppedBack { behind_ms: 10_001 }));
    }

    #[test]
    fn a_clock_set_forward_is_followed() {
        let mut pace = Pace::new(Wall(0), at(0, 100_000), 10_000);

        assert_eq!(pace.steer(at(200, 105_200)), Ok(Wall(105_200)));
        assert_eq!(pace.mono_of(Wall(106_000)), Mono(1000));
    }
}
