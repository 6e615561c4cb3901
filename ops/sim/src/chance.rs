//! What happens to the world by chance: viewers talk and pay, connections break, the room fills and
//! empties, broadcasters die, clocks are set.

use std::time::Duration;

use proto::time::millis;

use crate::turn::Turn;
use crate::world::{Plan, STEP_MS, World};

/// Gifts sold a second.
const GIFTS_PER_S: u32 = 2;
/// Comments that each viewer sends in a burst.
const BURST: u32 = 25;
/// Gifts that are sold at once now and then: more than the lanes hold.
const SALE: u32 = 60;
/// How often links count their sessions.
const GAUGE_MS: u64 = 500;

impl World {
    /// What happens in one step.
    pub(crate) fn live(&mut self, plan: Plan) {
        if self.network.chance(plan.comments_per_s * STEP_MS) {
            let number = self.someone();
            self.talk(number, 1);
        }
        if self.network.chance(GIFTS_PER_S * STEP_MS) {
            self.business.sell(1, self.mono);
        }
        if self.network.chance(2) {
            self.break_connection();
        }
        if self.mono.0.is_multiple_of(GAUGE_MS) {
            self.turn_tide(plan.tide);
        }
        // Each once or twice in a run of 8,000 steps.
        match self.network.draw(0..6_000) {
            0 => (0..self.viewers.len()).for_each(|it| self.talk(it, BURST)),
            1 => self.business.sell(SALE, self.mono),
            2 | 3 => self.kill_broadcaster(),
            4 => self.set_clock(),
            _ => {}
        }
    }

    fn someone(&mut self) -> usize {
        usize::try_from(self.network.draw(0..self.viewers.len() as u64)).unwrap_or(0)
    }

    fn talk(&mut self, number: usize, comments: u32) {
        let now = self.now();
        let Self { network, check, viewers, .. } = self;
        let mut turn = Turn { now, network, check };
        for _ in 0..comments {
            if viewers[number].is_connected() {
                let text = format!("comment {}", turn.network.draw(0..1000));
                viewers[number].say(text, &mut turn);
            }
        }
    }

    fn break_connection(&mut self) {
        let (now, number) = (self.now(), self.someone());
        let Self { network, check, viewers, breaks, .. } = self;
        let away = Duration::from_millis(network.draw(10..4000));
        if viewers[number].is_connected() {
            viewers[number].hang_up(away, &mut Turn { now, network, check });
            *breaks += 1;
        }
    }

    fn turn_tide(&mut self, tide: Duration) {
        let is_flood = (self.mono.0 / millis(tide)) % 2 == 1;
        let now = self.now();
        let Self { network, check, broadcaster, .. } = self;
        broadcaster.gauge(if is_flood { 5000 } else { 12 }, &mut Turn { now, network, check });
    }

    /// One time in four it takes `sealed` with it.
    fn kill_broadcaster(&mut self) {
        let now = self.now();
        let Self { network, check, broadcaster, deaths, .. } = self;
        if broadcaster.is_up() {
            *deaths += 1;
            if network.chance(250) {
                broadcaster.lose_ledger(&mut Turn { now, network, check });
            } else {
                broadcaster.kill(network);
            }
        }
    }

    /// The servers' wall clock is set: often by little, sometimes beyond what a gen survives.
    fn set_clock(&mut self) {
        let most_ms = if self.network.chance(250) { 90_000 } else { 5_000 };
        let step = Duration::from_millis(self.network.draw(1..most_ms));
        let is_ahead = self.network.chance(500);
        self.origin = if is_ahead { self.origin + step } else { self.origin - step };
        self.steps += 1;
    }
}
