//! Rotation from end to end, in virtual time: whoever mints, whoever verifies, and who retires.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::VecDeque;
use std::convert::Infallible;

use auth_core::epochs::{Epochs, Input, Now, Plan};
use auth_core::keyring::{Keyring, LinkKeyring};
use auth_core::link_id;
use auth_core::policy::Policies;
use auth_core::replay::Replays;
use auth_core::revocation::Revocations;
use auth_core::token::{Claims, Scope, verify};
use proptest::prelude::*;
use proto::control::{EpochFact, Fact};
use proto::id::{AppId, RoomId, UnitId, ViewerId};
use proto::keys::{Master, Masters};
use proto::time::{Mono, Wall};

const T: u64 = 600;
const START: u64 = 2_975_000 * T + 17;
/// One turn of the world.
const STEP: u64 = 30;
const ADDRESS: &str = "link-07.example:443";
const APP: AppId = AppId(1);

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// A gslb's masters and its view of the facts may each be up to an epoch old, and a link takes
    /// up to half an epoch to fetch: what the one mints, the other verifies, at every moment.
    #[test]
    fn no_login_fails_through_rotations(
        rotations in proptest::collection::vec(STEP..8 * T, 1..6),
        facts_late in 0..=T,
        masters_late in 0..=T,
        fetch_late in 0..T / 2 - 2 * STEP,
    ) {
        let mut world = World::new();
        let (mut facts, mut masters) = (Late::new(facts_late), Late::new(masters_late));
        let mut links = Late::new(fetch_late);
        let end = START + rotations.iter().sum::<u64>() + 12 * T;
        let mut next = START;
        let mut rotations = rotations.into_iter();
        let mut rotate_at = next + rotations.next().unwrap();

        let mut kids = Vec::new();
        let (mut gslb, mut link) = (None::<Keyring>, None::<LinkKeyring>);
        while next < end {
            world.now_s = next;
            if rotate_at <= next && world.rotate() {
                rotate_at = rotations.next().map_or(u64::MAX, |it| next + it);
            }
            let news = world.turn();
            if kids != world.kids() {
                kids = world.kids();
                masters.push(next, world.masters());
            }
            if !news.is_empty() {
                links.push(next, world.link());
            }
            news.into_iter().for_each(|it| facts.push(next, it));

            // Everybody starts well informed.
            let is_start = next == START;
            for masters in masters.take(next, is_start) {
                match &mut gslb {
                    Some(gslb) => gslb.replace_masters(&masters).unwrap(),
                    None => gslb = Some(Keyring::new(&masters).unwrap()),
                }
            }
            let gslb = gslb.as_mut().unwrap();
            for fact in facts.take(next, is_start) {
                gslb.handle(&fact, world.wall()).unwrap();
            }
            if let Some(fetched) = links.take(next, is_start).pop() {
                link = Some(fetched);
            }
            let claims = claims(next);
            let text = gslb.mint(&claims).unwrap();
            // At once, and at the end of its life.
            for late in [0, 60] {
                prop_assert_eq!(check(link.as_ref().unwrap(), &text, next + late), Ok(()));
            }
            next += STEP;
        }
        prop_assert_eq!(world.masters.len(), 1, "the older ones retire");
    }
}

/// The answer to a stolen master: rotate, then revoke.
#[test]
fn after_a_theft_logins_go_on_in_the_running_epoch() {
    let mut world = World::new();
    world.turn();
    let stolen = world.keyring.clone();
    assert!(world.rotate());
    world.turn();
    let epoch = u32::try_from(START / T).unwrap();
    let void = Fact::Revoked { kid: 0, from_epoch: 0, to_epoch: u32::MAX };

    world.keyring.revoke(0, 0, u32::MAX);

    let mut revocations = Revocations::new(1);
    revocations.handle(&void, world.wall());
    let link = world.link();
    let policies = Policies::default();
    let scope = Scope {
        keys: &link,
        links: &[link_id(ADDRESS)],
        policies: &policies,
        revocations: &revocations,
    };
    let claims = claims(START);
    assert_eq!(world.keyring.minting_key(APP, &claims.link, epoch).unwrap().kid, 1);
    let honest = world.keyring.mint(&claims).unwrap();
    let forged = stolen.mint(&claims).unwrap();
    assert!(verify(&honest, &scope, &mut Replays::new(1), world.wall()).is_ok());
    assert!(verify(&forged, &scope, &mut Replays::new(1), world.wall()).is_err());
}

/// The auth service: its masters, its machine, its keyring, and the log.
struct World {
    now_s: u64,
    epochs: Epochs,
    masters: Vec<Master>,
    keyring: Keyring,
    draws: u8,
}

impl World {
    fn new() -> Self {
        let masters = vec![master(0)];
        let kept = Masters { interval_s: 600, masters: masters.clone() };
        let mut epochs = Epochs::new(Plan::new(600, &[1, 3], 6, 60).unwrap());
        epochs.handle(&Input::Masters(&[0]));
        epochs.handle(&Input::Lead);
        let keyring = Keyring::new(&kept).unwrap();
        Self { now_s: START, epochs, masters, keyring, draws: 0 }
    }

    fn wall(&self) -> Wall {
        Wall(self.now_s * 1000)
    }

    fn masters(&self) -> Masters {
        Masters { interval_s: 600, masters: self.masters.clone() }
    }

    /// False while too many are in use.
    fn rotate(&mut self) -> bool {
        if self.masters.len() == 8 {
            return false;
        }
        let kid = self.masters[0].kid + 1;
        self.masters.insert(0, master(kid));
        self.changed();
        true
    }

    fn changed(&mut self) {
        let masters = self.masters();
        self.keyring.replace_masters(&masters).unwrap();
        self.epochs.handle(&Input::Masters(&self.kids()));
    }

    fn kids(&self) -> Vec<u8> {
        self.masters.iter().map(|it| it.kid).collect()
    }

    /// Publishes what is due, and lets masters retire.
    fn turn(&mut self) -> Vec<EpochFact> {
        let now = Now { mono: Mono(self.now_s * 1000), wall: self.wall() };
        let draws = &mut self.draws;
        let draw = || {
            *draws = draws.wrapping_add(1);
            Ok::<_, Infallible>([*draws; 32])
        };
        self.epochs.tick(now, draw).unwrap();
        let facts: Vec<EpochFact> = std::iter::from_fn(|| self.epochs.poll()).collect();
        for fact in &facts {
            self.epochs.handle(&Input::Fact(fact));
            self.keyring.handle(fact, self.wall()).unwrap();
        }
        let retired = self.epochs.retire(now.mono);
        if !retired.is_empty() {
            self.masters.retain(|it| !retired.contains(&it.kid));
            self.changed();
        }
        facts
    }

    /// What a link gets that fetches now.
    fn link(&self) -> LinkKeyring {
        let needed = self.keyring.needed_at(self.wall());
        let keys = needed.link_keys(UnitId(1), &[ADDRESS.to_owned()], &[APP]);
        LinkKeyring::new(&keys).unwrap()
    }
}

/// Things that arrive some seconds later, in order.
struct Late<T> {
    by_s: u64,
    things: VecDeque<(u64, T)>,
}

impl<T> Late<T> {
    fn new(by_s: u64) -> Self {
        Self { by_s, things: VecDeque::new() }
    }

    fn push(&mut self, now_s: u64, thing: T) {
        self.things.push_back((now_s, thing));
    }

    fn take(&mut self, now_s: u64, is_start: bool) -> Vec<T> {
        let mut taken = Vec::new();
        while let Some((_, thing)) =
            self.things.pop_front_if(|it| is_start || it.0 + self.by_s <= now_s)
        {
            taken.push(thing);
        }
        taken
    }
}

fn master(kid: u8) -> Master {
    Master { kid, key: format!("{kid:02x}").repeat(32) }
}

fn claims(now_s: u64) -> Claims {
    Claims {
        app: APP,
        link: link_id(ADDRESS),
        iat_s: u32::try_from(now_s).unwrap(),
        ttl_s: 60,
        flags: 0,
        caps: 0,
        jti: [1; 16],
        account: ViewerId::parse("user-42").unwrap(),
        device: None,
        rooms: RoomId::parse("room-1").unwrap().into(),
    }
}

fn check(link: &LinkKeyring, text: &str, now_s: u64) -> Result<(), String> {
    let (policies, revocations) = (Policies::default(), Revocations::new(1));
    let links = [link_id(ADDRESS)];
    let scope = Scope { keys: link, links: &links, policies: &policies, revocations: &revocations };
    let verified = verify(text, &scope, &mut Replays::new(1), Wall(now_s * 1000));
    verified.map(|_| ()).map_err(|it| it.to_string())
}
