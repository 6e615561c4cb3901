//! Push or segments: a room turns hot and cold by its sessions, with two thresholds and patience.

use std::time::Duration;

use proto::heat::Heat;
use proto::time::Mono;

/// When a room changes its heat.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Limits {
    /// Hot from this many sessions on.
    pub hot_sessions: u32,
    /// Cold below this many.
    pub cold_sessions: u32,
    /// How long it must hold before a room turns hot.
    pub hot_hold: Duration,
    /// How long it must hold before a room turns cold.
    pub cold_hold: Duration,
}

/// A room's heat and its wish to change it.
#[derive(Debug)]
pub struct Thermostat {
    heat: Heat,
    wished_since: Option<Mono>,
}

impl Thermostat {
    /// Starts with a known heat.
    #[must_use]
    pub const fn new(heat: Heat) -> Self {
        Self { heat, wished_since: None }
    }

    /// The heat.
    #[must_use]
    pub const fn heat(&self) -> Heat {
        self.heat
    }

    /// Looks at the count of sessions; the new heat, if it changes now.
    pub fn observe(&mut self, sessions: u32, limits: &Limits, now: Mono) -> Option<Heat> {
        // A cold threshold above the hot one would flap, whatever the patience.
        let cold_sessions = limits.cold_sessions.min(limits.hot_sessions);
        let (wished, hold) = match self.heat {
            Heat::Cold => (sessions >= limits.hot_sessions, limits.hot_hold),
            Heat::Hot => (sessions < cold_sessions, limits.cold_hold),
        };
        if !wished {
            self.wished_since = None;
            return None;
        }
        let since = *self.wished_since.get_or_insert(now);
        if now.since(since) < hold {
            return None;
        }
        self.wished_since = None;
        self.heat = match self.heat {
            Heat::Cold => Heat::Hot,
            Heat::Hot => Heat::Cold,
        };
        Some(self.heat)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits {
        hot_sessions: 100,
        cold_sessions: 80,
        hot_hold: Duration::from_secs(2),
        cold_hold: Duration::from_secs(10),
    };

    #[test]
    fn a_room_turns_hot_only_when_it_stays_full() {
        let mut thermostat = Thermostat::new(Heat::Cold);

        assert_eq!(thermostat.observe(100, &LIMITS, Mono(0)), None);
        assert_eq!(thermostat.observe(99, &LIMITS, Mono(1000)), None);
        assert_eq!(thermostat.observe(100, &LIMITS, Mono(2000)), None);
        assert_eq!(thermostat.observe(100, &LIMITS, Mono(3999)), None);
        assert_eq!(thermostat.observe(100, &LIMITS, Mono(4000)), Some(Heat::Hot));
        assert_eq!(thermostat.observe(100, &LIMITS, Mono(4001)), None);
    }

    #[test]
    fn between_the_thresholds_a_room_stays_as_it_is() {
        let mut thermostat = Thermostat::new(Heat::Hot);

        for second in 0..60 {
            assert_eq!(thermostat.observe(80, &LIMITS, Mono(second * 1000)), None);
        }
        assert_eq!(thermostat.observe(79, &LIMITS, Mono(60_000)), None);
        assert_eq!(thermostat.observe(79, &LIMITS, Mono(70_000)), Some(Heat::Cold));
    }

    #[test]
    fn thresholds_in_the_wrong_order_do_not_flap() {
        let limits = Limits { cold_sessions: 500, ..LIMITS };
        let mut thermostat = Thermostat::new(Heat::Hot);

        for second in 0..60 {
            assert_eq!(thermostat.observe(100, &limits, Mono(second * 1000)), None);
        }
    }
}
