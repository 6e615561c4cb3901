//! Whether a node is attacked, from how its connections end.
//!
//! A rush of viewers logs in, however slowly; an attack comes to nothing. So what counts is how
//! many connections came to nothing beside those that logged in, or how many hold places without
//! logging in; one address counts for no more than its share of either ([`crate::signs`],
//! [`crate::places`]). One sign alone may be chance: it must last, and must have been gone for long
//! before the node counts as well again, since attackers come back.

use std::collections::VecDeque;
use std::time::Duration;

use proto::time::Mono;

use crate::signs::Tally;

/// What is looked at of the past. One burst is a sign for so long.
pub const WINDOW: Duration = Duration::from_secs(1);
/// Samples kept: those of a window, at a pause of a few hundredths of a second.
const SAMPLES_MAX: usize = 64;

/// When a node counts as attacked.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// Connections a second that come to nothing, at least.
    pub failures_per_s_min: u32,
    /// As many come to nothing for each one that logs in, at least.
    pub failures_per_login_min: u32,
    /// The signs must last so long.
    pub onset: Duration,
    /// The signs must be gone for so long.
    pub calm: Duration,
}

/// What happened so far, and what is under way.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sample {
    /// Connections that came to nothing since the start.
    pub signs: Tally,
    /// Logins since the start.
    pub logins: u64,
    /// Connections before login that hold places.
    pub handshakes: u32,
    /// Places for them.
    pub handshakes_max: u32,
}

/// What has changed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Output {
    /// The node is attacked.
    Besieged,
    /// It is not any more.
    Relieved,
}

/// The judgement.
#[derive(Debug)]
pub struct Siege {
    rules: Rules,
    samples: VecDeque<(Mono, Sample)>,
    state: State,
    output: Option<Output>,
}

#[derive(Clone, Copy, Debug)]
enum State {
    Calm,
    /// There are signs, since then.
    Alarmed(Mono),
    /// The last sign was then.
    Besieged(Mono),
}

impl Siege {
    /// All is well.
    #[must_use]
    pub const fn new(rules: Rules) -> Self {
        Self { rules, samples: VecDeque::new(), state: State::Calm, output: None }
    }

    /// Looks at how things are now.
    pub fn handle(&mut self, sample: Sample, now: Mono) {
        while self.samples.len() >= SAMPLES_MAX
            || self.samples.front().is_some_and(|it| now.since(it.0) > WINDOW)
        {
            self.samples.pop_front();
        }
        let is_sign = self.is_sign(&sample);
        self.samples.push_back((now, sample));
        self.state = match (self.state, is_sign) {
            (State::Calm, true) => State::Alarmed(now),
            (State::Calm | State::Alarmed(_), false) => State::Calm,
            (State::Alarmed(since), true) if now.since(since) >= self.rules.onset => {
                self.output = Some(Output::Besieged);
                State::Besieged(now)
            }
            (State::Alarmed(since), true) => State::Alarmed(since),
            (State::Besieged(_), true) => State::Besieged(now),
            (State::Besieged(last), false) if now.since(last) >= self.rules.calm => {
                self.output = Some(Output::Relieved);
                State::Calm
            }
            (State::Besieged(last), false) => State::Besieged(last),
        };
    }

    /// What has changed since the last call.
    pub const fn poll(&mut self) -> Option<Output> {
        self.output.take()
    }

    /// Whether the node is attacked.
    #[must_use]
    pub const fn is_besieged(&self) -> bool {
        matches!(self.state, State::Besieged(_))
    }

    fn is_sign(&self, now: &Sample) -> bool {
        let Some((_, before)) = self.samples.front() else {
            return false;
        };
        let failures = now.signs.failures.saturating_sub(before.signs.failures);
        let shared = now.signs.shared.saturating_sub(before.signs.shared);
        let logins = now.logins.saturating_sub(before.logins);
        let for_logins = logins.saturating_mul(self.rules.failures_per_login_min.into());
        let is_futile = shared >= self.rules.failures_per_s_min.into() && failures >= for_logins;
        let held = u64::from(now.handshakes);
        let is_held = now.handshakes >= now.handshakes_max && held >= for_logins;
        is_futile || is_held
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULES: Rules = Rules {
        failures_per_s_min: 500,
        failures_per_login_min: 10,
        onset: Duration::from_millis(1_500),
        calm: Duration::from_secs(30),
    };
    const STEP_MS: u64 = 100;

    #[test]
    fn a_flood_that_comes_to_nothing_is_an_attack_once_it_lasts() {
        let mut node = Node::new();

        node.play(1_900, 1_000, 20, 100);
        assert!(!node.siege.is_besieged());
        node.play(600, 1_000, 20, 100);

        assert!(node.siege.is_besieged());
        assert_eq!(node.siege.poll(), Some(Output::Besieged));
        assert_eq!(node.siege.poll(), None);
    }

    #[test]
    fn a_rush_of_viewers_is_none_however_many_fail() {
        let mut node = Node::new();

        // A node logs in what it can, and turns nine times as many away.
        node.play(60_000, 9_000, 1_000, 2_000);

        assert!(!node.siege.is_besieged());
    }

    #[test]
    fn few_failures_are_no_attack_even_if_nobody_logs_in() {
        let mut node = Node::new();

        node.play(60_000, 490, 0, 1_999);

        assert!(!node.siege.is_besieged());
    }

    #[test]
    fn connections_that_hold_every_place_and_say_nothing_are_an_attack() {
        let mut node = Node::new();

        node.play(2_000, 0, 0, 2_000);

        assert!(node.siege.is_besieged());
    }

    #[test]
    fn what_few_addresses_do_is_no_attack_however_much() {
        let mut node = Node { shared_per_s_max: 490, ..Node::new() };

        node.play(60_000, 20_000, 0, 1_999);

        assert!(!node.siege.is_besieged());
    }

    #[test]
    fn one_burst_is_no_attack() {
        let mut node = Node::new();
        node.play(1_000, 0, 0, 0);

        node.sample.signs.failures += 2_000;
        node.sample.signs.shared += 2_000;
        node.play(10_000, 0, 0, 0);

        assert!(!node.siege.is_besieged());
        assert_eq!(node.siege.poll(), None);
    }

    #[test]
    fn it_ends_only_after_a_long_calm() {
        let mut node = Node::new();
        node.play(3_000, 2_000, 0, 0);
        assert_eq!(node.siege.poll(), Some(Output::Besieged));

        node.play(20_000, 0, 10, 5);
        node.play(1_000, 2_000, 0, 0);
        node.play(30_000, 0, 10, 5);
        assert!(node.siege.is_besieged());
        node.play(1_500, 0, 10, 5);

        assert!(!node.siege.is_besieged());
        assert_eq!(node.siege.poll(), Some(Output::Relieved));
    }

    #[test]
    fn however_often_it_is_asked_the_samples_are_bounded() {
        let mut siege = Siege::new(RULES);

        for micro in 0..10_000 {
            siege.handle(Sample::default(), Mono(micro / 100));
        }

        assert!(siege.samples.len() <= SAMPLES_MAX);
    }

    struct Node {
        siege: Siege,
        sample: Sample,
        shared_per_s_max: u64,
        now: Mono,
    }

    impl Node {
        fn new() -> Self {
            let sample = Sample { handshakes_max: 2_000, ..Sample::default() };
            let siege = Siege::new(RULES);
            Self { siege, sample, shared_per_s_max: u64::MAX, now: Mono(5_000) }
        }

        fn shared_per_s(&self, failures_per_s: u64) -> u64 {
            failures_per_s.min(self.shared_per_s_max)
        }

        /// So many failures and logins a second for a while, with so many connections under way.
        fn play(&mut self, ms: u64, failures_per_s: u64, logins_per_s: u64, handshakes: u32) {
            self.sample.handshakes = handshakes;
            for _ in 0..ms / STEP_MS {
                self.now = self.now + Duration::from_millis(STEP_MS);
                self.sample.signs.failures += failures_per_s * STEP_MS / 1000;
                self.sample.signs.shared += self.shared_per_s(failures_per_s) * STEP_MS / 1000;
                self.sample.logins += logins_per_s * STEP_MS / 1000;
                self.siege.handle(self.sample, self.now);
            }
        }
    }
}
