//! The world's clock and its order of events.

use std::time::Duration;

use proto::control::{Fact, RoomFact, RoomSettings, Segments};
use proto::frame::Path;
use proto::id::{AppId, RoomId};
use proto::time::{Mono, Wall};
use rand::RngExt;

use crate::broadcaster::Broadcaster;
use crate::chatserver::Chatserver;
use crate::check::{Broken, Check};
use crate::link::Link;
use crate::network::{Message, Network};
use crate::viewer::Viewer;

/// Time moves in steps of this.
const STEP: Duration = Duration::from_millis(5);
/// The wall clock at the world's beginning.
const BEGINNING: Wall = Wall(1_800_000_000_123);
/// Viewers come within this time; comments begin after it.
const ARRIVALS_MS: u64 = 1000;
/// After the last comment, so much time is left to deliver everything.
const DRAIN: Duration = Duration::from_secs(20);
/// Every so often the room fills or empties, so that its heat changes.
const TIDE: Duration = Duration::from_secs(12);

/// What happens in a run.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Viewers: a third on push, a third on segments, a third as the heat says.
    pub viewers: usize,
    /// How long comments are made.
    pub length: Duration,
    /// Comments a second, over all viewers.
    pub comments_per_s: u32,
}

impl Default for Plan {
    fn default() -> Self {
        Self { viewers: 12, length: Duration::from_secs(40), comments_per_s: 80 }
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
    /// Connections that broke.
    pub breaks: usize,
}

struct World {
    now: Mono,
    network: Network,
    chatserver: Chatserver,
    broadcaster: Broadcaster,
    link: Link,
    viewers: Vec<Viewer>,
    check: Check,
    breaks: usize,
}

/// Runs a world from a seed.
#[must_use]
pub fn run(seed: u64, plan: Plan) -> Outcome {
    let mut world = World::new(seed, plan);
    let end = Mono(ARRIVALS_MS) + plan.length;
    while world.now < end + DRAIN {
        world.now = world.now + STEP;
        world.deliver();
        world.tick();
        if world.now > Mono(ARRIVALS_MS) && world.now < end {
            world.live(plan);
        }
    }
    debug_assert!(world.broadcaster.is_idle(), "20 s are enough for every item to have its fate");
    let (sealed, shed, breaks) = (world.check.sealed(), world.check.shed(), world.breaks);
    let (broken, hash) = world.check.close(plan.viewers);
    Outcome { broken, hash, sealed, shed, breaks }
}

impl World {
    fn new(seed: u64, plan: Plan) -> Self {
        let room = RoomId::parse("sim").expect("letters are a room");
        let settings = RoomSettings {
            segments: Segments::Always,
            hot_sessions: 1000,
            cold_sessions: 500,
            viewer_burst: 20,
            viewer_refill_ms: 100,
            ..RoomSettings::default()
        };
        let fact = RoomFact { app: AppId(1), room: room.clone(), version: 1, open: true, settings };
        let mut network = Network::new(seed);
        let viewers = (0..plan.viewers).map(|number| {
            let path = [Path::Push, Path::Segments, Path::Auto][number % 3];
            let connect_at = Mono(network.rng.random_range(0..ARRIVALS_MS / 2));
            Viewer::new(number, room.clone(), path, connect_at)
        });
        let viewers = viewers.collect();
        let now = Now::at(Mono(0));
        Self {
            now: Mono(0),
            chatserver: Chatserver::new(Fact::Room(fact.clone()), now.chatserver()),
            broadcaster: Broadcaster::new(&fact),
            link: Link::new(&fact),
            network,
            viewers,
            check: Check::default(),
            breaks: 0,
        }
    }

    fn deliver(&mut self) {
        let now = Now::at(self.now);
        while let Some(message) = self.network.arrived(self.now) {
            let network = &mut self.network;
            match message {
                Message::Up(viewer, conn, frame) => {
                    self.link.frame((viewer, conn), frame, now.link(), network);
                }
                Message::Hangup(viewer, conn) => self.link.hangup(viewer, conn),
                Message::Down(viewer, conn, bytes) => {
                    self.viewers[viewer].bytes(conn, &bytes, self.now, &mut self.check);
                }
                Message::Dropped(viewer, conn) => {
                    self.viewers[viewer].dropped(conn, self.now + Duration::from_secs(1));
                }
                Message::Uplink(entry) => {
                    // At least once: the bus may hand on a record again.
                    if network.chance(10) {
                        self.chatserver.uplink(entry.clone(), now.chatserver(), network);
                    }
                    self.chatserver.uplink(entry, now.chatserver(), network);
                }
                Message::Reply(reply) => self.link.reply(&reply, network),
                Message::Accepted(accepted) => {
                    self.check.admitted(accepted.item.id);
                    self.broadcaster.item(accepted.item, now.broadcaster(), network);
                }
                Message::Room(event) => {
                    self.check.event(&event);
                    self.chatserver.event((*event).clone(), now.chatserver(), network);
                    self.link.event(*event, now.link(), network);
                }
                Message::Fetched(viewer, slot, segment) => {
                    self.viewers[viewer].fetched(slot, segment.map(|it| *it), self.now);
                }
            }
        }
    }

    fn tick(&mut self) {
        let now = Now::at(self.now);
        self.chatserver.tick(now.chatserver(), &mut self.network);
        self.broadcaster.tick(now.broadcaster(), &mut self.network);
        for viewer in &mut self.viewers {
            viewer.tick(self.now, &self.broadcaster, &mut self.network, &mut self.check);
        }
    }

    /// Viewers talk, connections break, the room fills and empties.
    fn live(&mut self, plan: Plan) {
        let step_ms = u32::try_from(STEP.as_millis()).unwrap_or(1);
        if self.network.chance(plan.comments_per_s * step_ms) {
            let number = self.network.rng.random_range(0..self.viewers.len());
            let text = format!("comment {}", self.network.rng.random_range(0..1000));
            if self.viewers[number].is_connected() {
                self.viewers[number].say(text, &mut self.network);
            }
        }
        if self.network.chance(2) {
            let number = self.network.rng.random_range(0..self.viewers.len());
            let away = Duration::from_millis(self.network.rng.random_range(10..4000));
            if self.viewers[number].is_connected() {
                self.viewers[number].hang_up(self.now + away, &mut self.network);
                self.breaks += 1;
            }
        }
        let tide_ms = u64::try_from(TIDE.as_millis()).unwrap_or(1);
        if self.now.0.is_multiple_of(500) {
            let is_flood = (self.now.0 / tide_ms) % 2 == 1;
            let now = Now::at(self.now).broadcaster();
            self.broadcaster.gauge(if is_flood { 5000 } else { 12 }, now, &mut self.network);
        }
    }
}

/// One moment, in the words of each core.
#[derive(Clone, Copy)]
struct Now {
    mono: Mono,
    wall: Wall,
}

impl Now {
    fn at(mono: Mono) -> Self {
        Self { mono, wall: BEGINNING + mono.since(Mono(0)) }
    }

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
        for seed in 0..12 {
            let outcome = run(seed, Plan::default());

            assert_eq!(outcome.broken, [], "seed {seed}");
            assert!(outcome.sealed > 500 && outcome.shed > 0 && outcome.breaks > 3, "{outcome:?}");
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_run() {
        let plan = Plan { length: Duration::from_secs(10), ..Plan::default() };

        assert_eq!(run(7, plan).hash, run(7, plan).hash);
        assert_ne!(run(7, plan).hash, run(8, plan).hash);
    }
}
