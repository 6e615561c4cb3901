//! The world's clock, its order of events, and what happens to it by chance.

use std::time::Duration;

use proto::control::{RoomFact, RoomSettings, Segments};
use proto::head::Tier;
use proto::id::{AppId, RoomId};
use proto::time::{Mono, Wall};

use crate::broadcaster::Broadcaster;
use crate::business::Business;
use crate::chatserver::Chatserver;
use crate::check::{Broken, Check};
use crate::link::Link;
use crate::network::{Message, Network};
use crate::viewer::{Habit, Viewer};

/// Time moves in steps of this.
const STEP_MS: u64 = 5;
/// The wall clock at the world's beginning.
const BEGINNING: Wall = Wall(1_800_000_000_123);
/// Viewers come within this time.
const ARRIVALS_MS: u64 = 500;
/// From then on things happen: every viewer has reached the room.
const QUIET: Duration = Duration::from_secs(3);
/// After the last comment, so much time is left to deliver everything.
const DRAIN: Duration = Duration::from_secs(40);
/// Every so often the room fills or empties, so that its heat changes.
const TIDE_MS: u64 = 12_000;
/// Comments that each viewer sends in a burst.
const BURST: u32 = 25;
/// Items that the room shows a second.
const ITEMS_PER_S: u32 = 50;

/// What happens in a run.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Viewers: on push, on segments, or as the heat says; some with the lite tier.
    pub viewers: usize,
    /// How long things happen.
    pub length: Duration,
    /// Comments a second, over all viewers.
    pub comments_per_s: u32,
}

impl Default for Plan {
    fn default() -> Self {
        Self { viewers: 12, length: Duration::from_secs(40), comments_per_s: 60 }
    }
}

/// What a run came to.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Promises that did not hold; none in a good run.
    pub broken: Vec<Broken>,
    /// SHA-256 over everything that was placed and shown, in hex.
    pub hash: String,
    /// Items that were shown.
    pub sealed: usize,
    /// Items that were given up.
    pub shed: usize,
    /// Gifts among those that were shown.
    pub gifts: usize,
    /// Connections that broke.
    pub breaks: usize,
    /// Broadcasters that died.
    pub deaths: usize,
    /// Steps of the wall clock.
    pub steps: usize,
}

struct World {
    now: Mono,
    /// The wall clock at `Mono(0)`; it is stepped.
    origin: Wall,
    network: Network,
    business: Business,
    chatserver: Chatserver,
    broadcaster: Broadcaster,
    link: Link,
    viewers: Vec<Viewer>,
    check: Check,
    breaks: usize,
    deaths: usize,
    steps: usize,
}

/// Runs a world from a seed.
#[must_use]
pub fn run(seed: u64, plan: Plan) -> Outcome {
    let mut world = World::new(seed, plan);
    let begin = Mono(ARRIVALS_MS) + QUIET;
    let end = begin + plan.length;
    while world.now < end + DRAIN {
        world.now = world.now + Duration::from_millis(STEP_MS);
        world.deliver();
        world.tick();
        if world.now > begin && world.now < end {
            world.live(plan);
        }
    }
    world.close(plan)
}

impl World {
    fn new(seed: u64, plan: Plan) -> Self {
        let fact = fact();
        let mut network = Network::new(seed);
        let viewers = (0..plan.viewers).map(|number| {
            let habit = Habit::ALL[number % Habit::ALL.len()];
            let connect_at = Mono(network.draw(0..ARRIVALS_MS));
            Viewer::new(number, fact.room.clone(), habit, connect_at, &mut network)
        });
        let viewers = viewers.collect();
        let now = Now { mono: Mono(0), wall: BEGINNING };
        Self {
            now: now.mono,
            origin: BEGINNING,
            business: Business::default(),
            chatserver: Chatserver::new(&fact, now.chatserver()),
            broadcaster: Broadcaster::new(&fact),
            link: Link::new(&fact),
            network,
            viewers,
            check: Check::new(ITEMS_PER_S),
            breaks: 0,
            deaths: 0,
            steps: 0,
        }
    }

    fn now(&self) -> Now {
        Now { mono: self.now, wall: self.origin + self.now.since(Mono(0)) }
    }

    fn deliver(&mut self) {
        let now = self.now();
        while let Some(message) = self.network.arrived(self.now) {
            let Self { network, check, viewers, link, chatserver, broadcaster, .. } = self;
            match message {
                Message::Up(viewer, conn, frame) => {
                    link.frame((viewer, conn), frame, now.link(), network);
                }
                Message::Hangup(viewer, conn) => link.hangup(viewer, conn),
                Message::Down(viewer, conn, bytes) => {
                    viewers[viewer].bytes(conn, &bytes, now.mono, network, check);
                }
                Message::Dropped(viewer, conn) => {
                    viewers[viewer].dropped(conn, now.mono, Duration::from_secs(1), check);
                }
                Message::Uplink(entry) => {
                    // At least once: the bus may hand on a record again.
                    if network.chance(10) {
                        chatserver.uplink(entry.clone(), now.chatserver(), network);
                    }
                    chatserver.uplink(entry, now.chatserver(), network);
                }
                Message::Reply(reply) => link.reply(&reply, network),
                Message::Gift(key) => chatserver.gift(key, now.chatserver(), network),
                Message::Receipt(key, id) => self.business.receipt(key, id, network, check),
                Message::Accepted(accepted) => {
                    check.admitted(accepted.item.id);
                    broadcaster.accept(accepted.item, now.broadcaster(), network, check);
                }
                Message::Sealed(event) => chatserver.event(*event, now.chatserver(), network),
                Message::Downlink(event) => link.event(*event, now.link(), network),
                Message::Open(_, info) => broadcaster.store.open(info),
                Message::Store(life, sealed) => {
                    broadcaster.store(life, *sealed, now.broadcaster(), network, check);
                }
                Message::Ask(viewer, question) => {
                    let answer = Box::new(broadcaster.store.answer(question));
                    network.send(Message::Answer(viewer, question, answer));
                }
                Message::Answer(viewer, question, answer) => {
                    viewers[viewer].answered(question, *answer, now.mono, network, check);
                }
            }
        }
    }

    fn tick(&mut self) {
        let now = self.now();
        self.business.tick(now.mono, &mut self.network);
        self.chatserver.tick(now.chatserver(), &mut self.network);
        self.broadcaster.tick(now.broadcaster(), &mut self.network, &mut self.check);
        for viewer in &mut self.viewers {
            viewer.tick(now.mono, &mut self.network, &mut self.check);
        }
    }

    /// Viewers talk and pay, connections break, the room fills and empties, broadcasters die,
    /// clocks are set.
    fn live(&mut self, plan: Plan) {
        let per_step = |per_s: u32| per_s * u32::try_from(STEP_MS).unwrap_or(1);
        if self.network.chance(per_step(plan.comments_per_s)) {
            let number = self.someone();
            self.talk(number, 1);
        }
        if self.network.chance(per_step(2)) {
            self.business.sell(self.now);
        }
        if self.network.chance(2) {
            self.break_connection();
        }
        if self.now.0.is_multiple_of(500) {
            self.turn_tide();
        }
        // Once or twice in a run of 8,000 steps.
        match self.network.draw(0..6_000) {
            0 => (0..self.viewers.len()).for_each(|it| self.talk(it, BURST)),
            1 => {
                for _ in 0..60 {
                    self.business.sell(self.now);
                }
            }
            2 | 3 => self.kill_broadcaster(),
            4 => self.step_clock(),
            _ => {}
        }
    }

    fn someone(&mut self) -> usize {
        usize::try_from(self.network.draw(0..self.viewers.len() as u64)).unwrap_or(0)
    }

    fn talk(&mut self, number: usize, comments: u32) {
        let viewer = &mut self.viewers[number];
        for _ in 0..comments {
            if viewer.is_connected() {
                let text = format!("comment {}", self.network.draw(0..1000));
                viewer.say(text, &mut self.network, &mut self.check);
            }
        }
    }

    fn break_connection(&mut self) {
        let number = self.someone();
        let away = Duration::from_millis(self.network.draw(10..4000));
        let viewer = &mut self.viewers[number];
        if viewer.is_connected() {
            viewer.hang_up(self.now, away, &mut self.network, &mut self.check);
            self.breaks += 1;
        }
    }

    fn turn_tide(&mut self) {
        let is_flood = (self.now.0 / TIDE_MS) % 2 == 1;
        let now = self.now().broadcaster();
        let sessions = if is_flood { 5000 } else { 12 };
        self.broadcaster.gauge(sessions, now, &mut self.network, &mut self.check);
    }

    /// One time in four the broadcaster takes `sealed` with it.
    fn kill_broadcaster(&mut self) {
        if self.broadcaster.is_up() {
            self.deaths += 1;
            if self.network.chance(250) {
                let now = self.now().broadcaster();
                self.broadcaster.lose_ledger(now, &mut self.network, &mut self.check);
            } else {
                self.broadcaster.kill(&mut self.network);
            }
        }
    }

    /// The servers' wall clock is set: often by little, sometimes beyond what a gen survives.
    fn step_clock(&mut self) {
        let most_ms = if self.network.chance(250) { 90_000 } else { 5000 };
        let step = Duration::from_millis(self.network.draw(1..most_ms));
        self.origin =
            if self.network.chance(500) { self.origin + step } else { self.origin - step };
        self.steps += 1;
    }

    fn close(mut self, plan: Plan) -> Outcome {
        let idle = [
            (self.business.is_idle(), "the business server"),
            (self.chatserver.is_idle(), "the journal"),
            (self.broadcaster.is_idle(), "the broadcaster"),
        ];
        for (_, what) in idle.into_iter().filter(|(is_idle, _)| !is_idle) {
            self.check.unfinished(what);
        }
        let Self { check, breaks, deaths, steps, .. } = self;
        let (sealed, shed, gifts) = (check.sealed(), check.shed(), check.gifts());
        let tiers: Vec<Tier> =
            Habit::ALL.iter().map(|it| it.tier).cycle().take(plan.viewers).collect();
        let (broken, hash) = check.close(&tiers, &self.broadcaster.store);
        Outcome { broken, hash, sealed, shed, gifts, breaks, deaths, steps }
    }
}

fn fact() -> RoomFact {
    let settings = RoomSettings {
        segments: Segments::Always,
        hot_sessions: 1000,
        cold_sessions: 500,
        viewer_burst: 100,
        viewer_refill_ms: 100,
        items_per_s: ITEMS_PER_S,
        ..RoomSettings::default()
    };
    let room = RoomId::parse("sim").expect("letters are a room");
    RoomFact { app: AppId(1), room, version: 1, open: true, settings }
}

/// One moment, in the words of each core.
#[derive(Clone, Copy)]
struct Now {
    mono: Mono,
    wall: Wall,
}

impl Now {
    const fn chatserver(self) -> chatserver_core::judge::Now {
        chatserver_core::judge::Now { mono: self.mono, wall: self.wall }
    }

    const fn broadcaster(self) -> broadcaster_core::Now {
        broadcaster_core::Now { mono: self.mono, wall: self.wall }
    }

    const fn link(self) -> link_core::Now {
        link_core::Now { mono: self.mono, wall: self.wall }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_promises_hold_for_some_seeds() {
        for seed in 0..16 {
            let outcome = run(seed, Plan::default());

            assert_eq!(outcome.broken, [], "seed {seed}");
            assert!(
                outcome.sealed > 500 && outcome.gifts > 10 && outcome.breaks > 3,
                "{outcome:?}"
            );
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_run() {
        let plan = Plan { length: Duration::from_secs(10), ..Plan::default() };

        assert_eq!(run(7, plan).hash, run(7, plan).hash);
        assert_ne!(run(7, plan).hash, run(8, plan).hash);
    }
}
