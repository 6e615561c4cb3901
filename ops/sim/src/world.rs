//! The world's clock and its order of events.

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
use crate::turn::{Now, Turn};
use crate::viewer::{Habit, Viewer};

/// Time moves in steps of this.
pub(crate) const STEP_MS: u32 = 5;
/// The wall clock at the world's beginning.
const BEGINNING: Wall = Wall(1_800_000_000_123);
/// Viewers come within this time.
const ARRIVALS_MS: u64 = 500;
/// From then on things happen: every viewer is in the room.
const QUIET: Duration = Duration::from_secs(3);
/// After the last thing happened, so much time is left to deliver everything.
const DRAIN: Duration = Duration::from_secs(40);
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
    /// Every so often the room fills or empties.
    pub tide: Duration,
    /// How long the room is full, and how long empty, before it turns hot or cold.
    pub holds: [Duration; 2],
}

impl Default for Plan {
    fn default() -> Self {
        Self {
            viewers: 12,
            length: Duration::from_secs(40),
            comments_per_s: 60,
            tide: Duration::from_secs(12),
            holds: [Duration::from_secs(2), Duration::from_secs(10)],
        }
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
    /// Gifts that were acknowledged.
    pub gifts: usize,
    /// Connections that broke.
    pub breaks: usize,
    /// Broadcasters that died.
    pub deaths: usize,
    /// Steps of the wall clock.
    pub steps: usize,
    /// Times the room turned hot or cold.
    pub switches: usize,
}

pub(crate) struct World {
    pub(crate) mono: Mono,
    /// What the wall clock showed at `Mono(0)`, by what it shows now.
    pub(crate) origin: Wall,
    pub(crate) network: Network,
    pub(crate) business: Business,
    pub(crate) chatserver: Chatserver,
    pub(crate) broadcaster: Broadcaster,
    pub(crate) link: Link,
    pub(crate) viewers: Vec<Viewer>,
    pub(crate) check: Check,
    pub(crate) breaks: usize,
    pub(crate) deaths: usize,
    pub(crate) steps: usize,
}

/// Runs a world from a seed.
#[must_use]
pub fn run(seed: u64, plan: Plan) -> Outcome {
    let mut world = World::new(seed, plan);
    let begin = Mono(ARRIVALS_MS) + QUIET;
    let end = begin + plan.length;
    while world.mono < end + DRAIN {
        world.mono.0 += u64::from(STEP_MS);
        world.deliver();
        world.tick();
        if world.mono > begin && world.mono < end {
            world.live(plan);
        }
    }
    world.close()
}

impl World {
    fn new(seed: u64, plan: Plan) -> Self {
        let fact = fact();
        let mut network = Network::new(seed);
        let viewers = (0..plan.viewers).map(|number| {
            let connect_at = Mono(network.draw(0..ARRIVALS_MS));
            Viewer::new(number, fact.room.clone(), Habit::of(number), connect_at, &mut network)
        });
        let viewers = viewers.collect();
        Self {
            mono: Mono(0),
            origin: BEGINNING,
            business: Business::default(),
            chatserver: Chatserver::new(&fact, Now { mono: Mono(0), wall: BEGINNING }),
            broadcaster: Broadcaster::new(&fact, plan.holds),
            link: Link::new(&fact),
            network,
            viewers,
            check: Check::new(ITEMS_PER_S),
            breaks: 0,
            deaths: 0,
            steps: 0,
        }
    }

    pub(crate) fn now(&self) -> Now {
        Now { mono: self.mono, wall: self.origin + self.mono.since(Mono(0)) }
    }

    fn deliver(&mut self) {
        let now = self.now();
        let Self { network, check, viewers, link, chatserver, broadcaster, business, .. } = self;
        let mut turn = Turn { now, network, check };
        let turn = &mut turn;
        while let Some(message) = turn.network.arrived(now.mono) {
            match message {
                Message::Up(viewer, conn, frame) => link.frame((viewer, conn), frame, turn),
                Message::Hangup(viewer, conn) => link.hangup(viewer, conn),
                Message::Down(viewer, conn, bytes) => viewers[viewer].bytes(conn, &bytes, turn),
                Message::Dropped(viewer, conn) => {
                    viewers[viewer].dropped(conn, Duration::from_secs(1), turn);
                }
                Message::Uplink(entry) => {
                    // At least once: the bus may hand on a record again.
                    if turn.network.chance(10) {
                        chatserver.uplink(entry.clone(), turn);
                    }
                    chatserver.uplink(entry, turn);
                }
                Message::Reply(reply) => link.reply(&reply, turn),
                Message::Gift(key) => chatserver.gift(key, turn),
                Message::Receipt(key, id) => business.receipt(key, id, turn),
                Message::Accepted(accepted) => broadcaster.accept(accepted.item, turn),
                Message::Sealed(event) => chatserver.event(*event, turn),
                Message::Downlink(event) => link.event(*event, turn),
                Message::Open(_, info) => broadcaster.store.open(info),
                Message::Store(life, sealed) => broadcaster.store(life, *sealed, turn),
                Message::Ask(viewer, question) => {
                    let answer = Box::new(broadcaster.store.answer(question));
                    turn.network.send(Message::Answer(viewer, question, answer));
                }
                Message::Answer(viewer, question, answer) => {
                    viewers[viewer].answered(question, *answer, turn);
                }
            }
        }
    }

    fn tick(&mut self) {
        let now = self.now();
        let Self { network, check, viewers, chatserver, broadcaster, business, .. } = self;
        let mut turn = Turn { now, network, check };
        business.tick(&mut turn);
        chatserver.tick(&mut turn);
        broadcaster.tick(&mut turn);
        for viewer in viewers {
            viewer.tick(&mut turn);
        }
    }

    fn close(self) -> Outcome {
        let Self { mut check, breaks, deaths, steps, .. } = self;
        let idle = [
            (self.business.is_idle(), "the business server"),
            (self.chatserver.is_idle(), "the journal"),
            (self.broadcaster.is_idle(), "the broadcaster"),
        ];
        for (_, what) in idle.into_iter().filter(|(is_idle, _)| !is_idle) {
            check.unfinished(what);
        }
        let (sealed, shed, gifts) = (check.sealed(), check.shed(), check.gifts());
        let switches = check.switches();
        let tiers: Vec<Tier> = (0..self.viewers.len()).map(|it| Habit::of(it).tier).collect();
        let (broken, hash) = check.close(&tiers, &self.broadcaster.store);
        Outcome { broken, hash, sealed, shed, gifts, breaks, deaths, steps, switches }
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
    fn the_promises_hold_while_the_heat_flaps() {
        let tide = Duration::from_secs(2);
        let holds = [Duration::from_millis(500); 2];
        for seed in 0..16 {
            let outcome = run(seed, Plan { tide, holds, ..Plan::default() });

            assert_eq!(outcome.broken, [], "seed {seed}");
            assert!(outcome.switches >= 12, "{outcome:?}");
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_run() {
        let plan = Plan { length: Duration::from_secs(10), ..Plan::default() };

        assert_eq!(run(7, plan).hash, run(7, plan).hash);
        assert_ne!(run(7, plan).hash, run(8, plan).hash);
    }
}
