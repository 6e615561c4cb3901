//! Three chatservers and one room, in virtual time: together they keep to what it shows, whatever
//! each of them is asked for, and whoever is refused is told so.
#![expect(
    clippy::unwrap_used,
    clippy::wildcard_enum_match_arm,
    reason = "a test may stop at what it did not expect"
)]

use chatserver_core::flow::{BURST, Seen, TURN};
use chatserver_core::judge::Now;
use chatserver_core::sender::SenderSecret;
use chatserver_core::shard::{Input, Limits, Output, Shard};
use futures_util::FutureExt;
use kit::quota::{MemoryQuota, Quota, Use};
use proptest::prelude::*;
use proto::control::{Excess, Fact, RoomFact, RoomSettings};
use proto::envelope::{Act, Reply, UplinkEntry};
use proto::frame::Outcome;
use proto::id::{AppId, Cid, NodeId, RoomId, SessionId, ViewerId};
use proto::item::{Role, Style};
use proto::time::{Mono, Wall, millis};
use proto::verdict::{Reason, Verdict};

/// Comments a second that the room shows.
const LIMIT: u32 = 200;
/// Viewers who speak at each chatserver: each is far below its own limit.
const VIEWERS: u64 = 20_000;
const APP: AppId = AppId(1);

proptest! {
    #![proptest_config(ProptestConfig { cases: 4, ..ProptestConfig::default() })]

    #[test]
    fn twenty_times_the_limit_passes_within_ten_percent(
        weights in prop::collection::vec(1..10_u32, 3),
        phases in prop::collection::vec(0..100_u64, 3),
    ) {
        let mut world = World::new(&weights, &phases);
        let first: u32 = world.run(20 * LIMIT, 2, Role::Viewer).iter().sum();
        let seconds = world.run(20 * LIMIT, 20, Role::Viewer);

        // The burst passes at first; then ten seconds at a time count, whichever they are.
        prop_assert!(first <= 2 * LIMIT * 11 / 10 + burst(), "{first} in two seconds");
        for ten in seconds.windows(10) {
            let percent = ten.iter().sum::<u32>() * 100 / (10 * LIMIT);
            prop_assert!((90..=110).contains(&percent), "{percent} %: {seconds:?}");
        }
        prop_assert_eq!(world.admitted + world.told, world.said);
        prop_assert!(seconds.iter().all(|it| *it <= LIMIT * 3 / 2), "{:?}", seconds);
    }

    #[test]
    fn bursts_take_no_more_than_quiet_has_left(
        phases in prop::collection::vec(0..100_u64, 3),
        times in 2..20_u32,
        quiet_s in 0..4_u32,
    ) {
        let mut world = World::new(&[1, 1, 1], &phases);
        let mut seconds = Vec::new();
        while seconds.len() < 20 {
            seconds.extend(world.run(times * LIMIT, 1, Role::Viewer));
            seconds.extend(world.run(0, quiet_s, Role::Viewer));
        }

        let admitted: u32 = seconds.iter().sum();
        let most = u32::try_from(seconds.len()).unwrap() * LIMIT * 11 / 10 + burst();
        prop_assert!(admitted <= most, "{} of {}: {:?}", admitted, most, seconds);
    }

    #[test]
    fn what_the_room_shows_passes(
        weights in prop::collection::vec(1..10_u32, 3),
        phases in prop::collection::vec(0..100_u64, 3),
    ) {
        let mut world = World::new(&weights, &phases);

        world.run(LIMIT * 9 / 10, 10, Role::Viewer);

        prop_assert!(world.told * 100 <= world.said * 2, "{} of {}", world.told, world.said);
    }

    #[test]
    fn without_the_centre_each_keeps_to_its_part(
        weights in prop::collection::vec(1..10_u32, 3),
        phases in prop::collection::vec(0..100_u64, 3),
    ) {
        let mut world = World::new(&weights, &phases);
        world.run(20 * LIMIT, 2, Role::Viewer);

        world.is_away = true;
        let seconds = world.run(20 * LIMIT, 6, Role::Viewer);

        for second in &seconds[2..] {
            prop_assert!((LIMIT * 9 / 10..=LIMIT * 11 / 10).contains(second), "{seconds:?}");
        }
    }
}

#[test]
fn a_burst_that_can_be_shown_passes() {
    let mut world = World::new(&[1, 1, 1], &[0, 30, 60]);

    let first = world.run(3 * LIMIT, 1, Role::Viewer);
    let told = world.told;
    world.run(0, 4, Role::Viewer);
    let second = world.run(3 * LIMIT, 1, Role::Viewer);

    assert_eq!((told, first), (0, vec![3 * LIMIT]));
    assert!(second[0] >= 3 * LIMIT * 95 / 100, "{second:?}");
}

#[test]
fn a_room_that_samples_hears_a_part_of_its_viewers() {
    let mut world = World::new(&[3, 2, 1], &[0, 30, 60]);
    world.set(RoomSettings { excess: Excess::Sample, ..settings() });
    world.run(20 * LIMIT, 3, Role::Viewer);
    (world.told, world.not_drawn) = (0, 0);

    let seconds = world.run(20 * LIMIT, 10, Role::Viewer);

    let percent = seconds.iter().sum::<u32>() * 100 / (10 * LIMIT);
    assert!((85..=110).contains(&percent), "{percent} %: {seconds:?}");
    assert!(world.not_drawn * 100 >= world.told * 95, "{} of {}", world.not_drawn, world.told);
}

#[test]
fn moderators_are_heard_however_full_the_room_is() {
    let mut world = World::new(&[1, 1, 1], &[0, 30, 60]);
    world.run(20 * LIMIT, 2, Role::Viewer);
    let told = world.told;

    let seconds = world.run(2 * LIMIT, 2, Role::Moderator);

    assert_eq!((world.told, seconds), (told, vec![2 * LIMIT; 2]));
}

struct World {
    shards: Vec<Shard>,
    weights: Vec<u32>,
    phases: Vec<u64>,
    quota: MemoryQuota,
    is_away: bool,
    now_ms: u64,
    /// Comments due to be said, in thousandths.
    due_milli: u64,
    turn: u32,
    said: u64,
    admitted: u64,
    /// Refused, with a time to come back.
    told: u64,
    /// Of those, for their lots.
    not_drawn: u64,
}

impl World {
    fn new(weights: &[u32], phases: &[u64]) -> Self {
        let shards = (0..3).map(|shard| {
            let (rooms_max, senders_max, asked_max) = (10, 100_000, 100_000);
            let limits = Limits { shard, rooms_max, senders_max, asked_max, nodes_min: 3 };
            Shard::new(limits, SenderSecret::new([1; 32]), Wall(0))
        });
        let mut world = Self {
            shards: shards.collect(),
            weights: weights.to_vec(),
            phases: phases.to_vec(),
            quota: MemoryQuota::new(10),
            is_away: false,
            now_ms: 0,
            due_milli: 0,
            turn: 0,
            said: 0,
            admitted: 0,
            told: 0,
            not_drawn: 0,
        };
        world.set(settings());
        world
    }

    fn set(&mut self, settings: RoomSettings) {
        let fact = RoomFact { app: APP, room: room(), version: 1, open: true, settings };
        for shard in &mut self.shards {
            shard.handle(Input::Fact(Fact::Room(fact.clone())), at(self.now_ms));
        }
    }

    /// Says so much for some seconds; gives what was admitted in each.
    fn run(&mut self, per_s: u32, seconds: u32, role: Role) -> Vec<u32> {
        let mut admitted = Vec::new();
        for _ in 0..seconds {
            let before = self.admitted;
            for _ in 0..1000 {
                self.step(per_s, role);
            }
            admitted.push(u32::try_from(self.admitted - before).unwrap());
        }
        admitted
    }

    /// One millisecond.
    fn step(&mut self, per_s: u32, role: Role) {
        self.now_ms += 1;
        for node in 0..self.shards.len() {
            if self.now_ms % millis(TURN) == self.phases[node] && !self.is_away {
                self.share(node);
            }
        }
        self.due_milli += u64::from(per_s);
        while self.due_milli >= 1000 {
            self.due_milli -= 1000;
            self.say(role);
        }
    }

    fn share(&mut self, node: usize) {
        let shard = &mut self.shards[node];
        let tallies = shard.tell(Mono(self.now_ms));
        let uses = tallies.iter().map(|it| Use {
            key: it.room.as_str().into(),
            wanted_per_s: it.wanted_per_s,
            passed: it.passed,
        });
        let id = NodeId(u32::try_from(node).unwrap());
        let shared = self.quota.share(id, uses.collect(), at(self.now_ms).wall);
        let shared = shared.now_or_never().unwrap().unwrap();
        let seen = tallies.into_iter().zip(shared.seen).map(|(told, it)| {
            let kit::quota::Seen { wanted_per_s, own_per_s, passed } = it;
            (told.app, told.room, Seen { wanted_per_s, own_per_s, passed })
        });
        let flow = Input::Flow { nodes: shared.nodes, seen: seen.collect() };
        shard.handle(flow, at(self.now_ms));
    }

    /// One comment, at the chatserver whose turn it is.
    fn say(&mut self, role: Role) {
        self.turn = (self.turn + 1) % self.weights.iter().sum::<u32>();
        let mut left = self.turn;
        let is_over = |it: &u32| {
            let is_here = left < *it;
            left = left.saturating_sub(*it);
            is_here
        };
        let node = self.weights.iter().position(is_over).unwrap();
        let (viewer, cid) = (self.said % VIEWERS, self.said);
        let now = at(self.now_ms);
        let entry = UplinkEntry {
            session: SessionId(viewer),
            app: APP,
            room: room(),
            viewer: ViewerId::parse(&format!("v{viewer}")).unwrap(),
            role,
            may_send: true,
            at: now.wall,
            origin: None,
            act: Act::Comment {
                cid: Cid(cid),
                text: "x".to_owned(),
                style: Style::default(),
                media_ms: None,
            },
        };
        self.said += 1;
        self.shards[node].handle(Input::Uplink { node: NodeId(9), entry }, now);
        while let Some(output) = self.shards[node].poll() {
            match output {
                Output::Publish(accepted) => {
                    self.shards[node].handle(Input::Published(accepted.item.id), now);
                }
                Output::Reply { reply: Reply::Ack { outcome, .. }, .. } => match outcome {
                    Outcome::Verdict(Verdict::Admit(_)) => self.admitted += 1,
                    Outcome::Verdict(Verdict::Drop {
                        reason: Reason::RateLimited,
                        retry_after_ms: 1..,
                    }) => self.told += 1,
                    Outcome::Verdict(Verdict::Drop {
                        reason: Reason::RoomBusy,
                        retry_after_ms: 1..,
                    }) => {
                        self.told += 1;
                        self.not_drawn += 1;
                    }
                    other => panic!("{other:?}"),
                },
                other => panic!("{other:?}"),
            }
        }
    }
}

fn settings() -> RoomSettings {
    RoomSettings { items_per_s: LIMIT, ..RoomSettings::default() }
}

/// What may come at once.
fn burst() -> u32 {
    u32::try_from(u64::from(LIMIT) * millis(BURST) / 1000).unwrap()
}

fn room() -> RoomId {
    RoomId::parse("r").unwrap()
}

fn at(ms: u64) -> Now {
    Now { mono: Mono(ms), wall: Wall(1_800_000_000_000 + ms) }
}
