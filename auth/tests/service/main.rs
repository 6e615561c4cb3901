//! The service with a bus in memory and real HTTPS.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod away;
mod operate;
mod recording;
mod rooms;
mod two;
mod world;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use auth::{Config, Parts, Service};
use auth_core::keyring::{Keyring, LinkKeyring};
use auth_core::link_id;
use auth_core::node::{NodeRole, NodeSecret};
use auth_core::secret::Secret;
use auth_core::token::Claims;
use bus::{Fault, FaultyBus};
use proto::control::{EpochFact, Fact};
use proto::id::{NodeId, UnitId};
use proto::keys::{LinkKeys, LinkKeysRequest, Masters};
use proto::time::Wall;
use reqwest::StatusCode;

use world::{
    ADDRESS, DEADLINE, GSLB, LINK, OTHER_LINK, T, World, check, early_in_an_epoch, epoch_of,
    memory_bus, publish, secret, verify_on,
};

#[tokio::test]
async fn eight_epochs_are_published_and_the_service_becomes_ready() {
    let world = World::start().await;

    let facts = world.epochs_until(world.epoch() + 6).await;

    let epochs: Vec<u32> = facts.iter().map(|it| it.epoch).collect();
    assert_eq!(epochs, (world.epoch() - 1..=world.epoch() + 6).collect::<Vec<_>>());
    assert!(facts.iter().all(|it| it.interval_s == T && it.alg == 1 && it.kids == [0]));
    let randoms: BTreeSet<&str> = facts.iter().map(|it| it.random.as_str()).collect();
    assert_eq!(randoms.len(), 8);
    world.ready().await;
    assert!(world.meter.render().contains("auth_epochs_published_total 8"));
}

#[tokio::test]
async fn a_token_that_gslb_mints_is_verified_with_the_link_s_keys() {
    let world = World::start().await;
    let facts = world.epochs_until(world.epoch() + 6).await;
    world.ready().await;

    let masters: Masters = world.masters(GSLB).await.json().await.unwrap();
    let keys: LinkKeys = world.link_keys(LINK, LINK).await.json().await.unwrap();

    let mut gslb = Keyring::new(&masters).unwrap();
    for fact in &facts {
        gslb.handle(fact, world.clock.wall()).unwrap();
    }
    let link = LinkKeyring::new(&keys).unwrap();
    for ahead in 0..=6 {
        let claims = world.claims(ahead);
        let now = Wall(u64::from(claims.iat_s) * 1000);
        let text = gslb.mint(&claims).unwrap();
        assert_eq!(verify_on(&link, ADDRESS, &text, now), Ok(claims), "{ahead} epochs ahead");
    }
    assert!(link.sealing_key(world.clock.wall()).is_some());
    assert!(link.horizon(world.clock.wall()) > Duration::from_secs(6 * u64::from(T)));
}

#[tokio::test]
async fn a_link_s_keys_do_not_mint_for_another_address() {
    let world = World::start().await;
    world.ready().await;
    let keys: LinkKeys = world.link_keys(LINK, LINK).await.json().await.unwrap();
    let stolen = LinkKeyring::new(&keys).unwrap();

    let elsewhere = Claims { link: link_id("link-08.example:443"), ..world.claims(0) };

    assert!(stolen.mint(&world.claims(0)).is_ok());
    assert!(stolen.mint(&elsewhere).is_err());
}

#[tokio::test]
async fn a_link_gets_no_keys_of_other_hosts_and_units() {
    let world = World::start().await;
    world.ready().await;
    let ask = |unit, address: &str| {
        let addresses = vec![ADDRESS.to_owned(), address.to_owned()];
        let request = world.client.post(world.url("/v1/keys/link"));
        let request = request.json(&LinkKeysRequest { node: LINK, unit: UnitId(unit), addresses });
        request.header("x-barrage-node", LINK.0).bearer_auth(secret(LINK)).send()
    };

    check(ask(1, "link-08.example:443").await.unwrap(), 403, "other_address").await;
    check(ask(2, "link-07.example:8443").await.unwrap(), 403, "other_unit").await;
    assert_eq!(ask(1, "link-07.example:8443").await.unwrap().status(), StatusCode::OK);
}

#[tokio::test]
async fn who_may_not_have_keys_is_told_why() {
    let world = World::start().await;
    world.ready().await;
    let (own, others) = (secret(LINK), secret(OTHER_LINK));

    check(world.post_link(LINK, LINK, "wrong").await, 401, "unknown_node").await;
    check(world.post_link(LINK, LINK, &others).await, 401, "unknown_node").await;
    check(world.post_link(NodeId(99), LINK, &own).await, 401, "unknown_node").await;
    check(world.link_keys(LINK, OTHER_LINK).await, 403, "other_node").await;
    check(world.link_keys(GSLB, GSLB).await, 403, "wrong_role").await;
    check(world.masters(LINK).await, 403, "wrong_role").await;
    let bare = world.client.post(world.url("/v1/keys/masters")).send().await.unwrap();
    check(bare, 401, "unknown_node").await;
    let counted = r#"auth_key_answers_total{keys="link",outcome="unknown_node"} 3"#;
    assert!(world.meter.render().contains(counted), "{}", world.meter.render());
}

#[tokio::test]
async fn a_request_that_is_none_is_refused() {
    let world = World::start().await;
    world.ready().await;
    let post = |body: String| {
        let request = world.client.post(world.url("/v1/keys/link")).body(body);
        let request = request.header("content-type", "application/json");
        request.header("x-barrage-node", LINK.0).bearer_auth(secret(LINK)).send()
    };
    let addresses = |count: usize, address: &str| {
        let addresses = vec![address.to_owned(); count];
        serde_json::to_string(&LinkKeysRequest { node: LINK, unit: UnitId(1), addresses }).unwrap()
    };

    check(post("{".to_owned()).await.unwrap(), 400, "bad_request").await;
    check(post(addresses(65, ADDRESS)).await.unwrap(), 400, "bad_request").await;
    check(post(addresses(1, &"a".repeat(261))).await.unwrap(), 400, "bad_request").await;
    assert_eq!(post(addresses(64, ADDRESS)).await.unwrap().status(), StatusCode::OK);
}

#[tokio::test]
async fn time_brings_the_next_epochs() {
    let world = World::start().await;
    let before = world.epochs_until(world.epoch() + 6).await;

    world.clock.step(i64::from(T) * 1000 * 2);
    let after = world.epochs_until(world.epoch() + 6).await;

    let last = |facts: &[EpochFact]| facts.last().unwrap().epoch;
    assert_eq!(last(&after), last(&before) + 2);
    assert_eq!(after[..before.len()], before[..]);
}

#[tokio::test]
async fn a_published_epoch_is_never_replaced() {
    let clock = early_in_an_epoch();
    let bus = memory_bus(&clock);
    let epoch = epoch_of(&clock);
    let random = "5a".repeat(32);
    for epoch in [epoch - 1, epoch, epoch + 3] {
        let random = random.clone();
        let fact = EpochFact { epoch, interval_s: T, alg: 2, random, kids: vec![0] };
        publish(&*bus, Fact::Epoch(fact)).await;
    }

    let world = World::start_on(clock, bus).await;
    let facts = world.epochs_until(epoch + 6).await;

    let kept: Vec<u32> = facts.iter().filter(|it| it.random == random).map(|it| it.epoch).collect();
    assert_eq!(kept, [epoch - 1, epoch, epoch + 3]);
    assert_eq!(facts.len(), 8);
}

#[tokio::test]
async fn a_second_start_draws_nothing_and_hands_out_the_same_keys() {
    let world = World::start().await;
    world.ready().await;
    let facts = world.epochs_until(world.epoch() + 6).await;
    let first: LinkKeys = world.link_keys(LINK, LINK).await.json().await.unwrap();

    let world = world.restart().await;
    world.ready().await;
    let second: LinkKeys = world.link_keys(LINK, LINK).await.json().await.unwrap();

    assert_eq!(world.epochs_until(world.epoch() + 6).await, facts);
    let keys = |keys: &LinkKeys| keys.tokens.iter().map(|it| it.key.clone()).collect::<Vec<_>>();
    assert_eq!(keys(&first), keys(&second));
}

#[tokio::test]
async fn a_bus_that_goes_away_twice_is_found_again_twice() {
    let clock = early_in_an_epoch();
    let bus = FaultyBus::new(memory_bus(&clock));
    let world = World::start_on(clock, Arc::<FaultyBus>::clone(&bus)).await;
    world.ready().await;

    for fault in [Fault::Away, Fault::Silent, Fault::Away, Fault::Silent] {
        bus.set(fault);
        world.failing().await;
        world.clock.step(i64::from(T) * 1000);

        bus.set(Fault::None);
        world.epochs_until(world.epoch() + 6).await;
        world.ready().await;
    }
}

#[tokio::test]
async fn a_quiet_bus_that_is_back_is_believed() {
    let clock = early_in_an_epoch();
    let bus = FaultyBus::new(memory_bus(&clock));
    let world = World::start_on(clock, Arc::<FaultyBus>::clone(&bus)).await;
    world.ready().await;

    for fault in [Fault::Away, Fault::Silent] {
        bus.set(fault);
        world.failing().await;

        bus.set(Fault::None);
        world.ready().await;
    }
}

#[tokio::test]
async fn a_bus_that_comes_late_or_loses_what_it_took_gets_the_epochs_in_the_end() {
    let clock = early_in_an_epoch();
    let bus = FaultyBus::new(memory_bus(&clock));
    bus.set(Fault::Silent);
    let world = World::start_on(clock, Arc::<FaultyBus>::clone(&bus)).await;
    world.failing_with("the bus does not answer").await;
    check(world.link_keys(LINK, LINK).await, 503, "behind").await;

    bus.set(Fault::Lossy);
    world.failing_with("epochs are known for 0 s only").await;
    bus.set(Fault::None);

    assert_eq!(world.epochs_until(world.epoch() + 6).await.len(), 8);
    world.ready().await;
}

#[tokio::test]
async fn what_cannot_be_kept_is_refused_at_the_start() {
    let world = World::start().await;
    let bind = |change: fn(&mut Config, &mut Parts)| {
        let (mut config, mut parts) = (world.config(), world.parts());
        change(&mut config, &mut parts);
        async { format!("{:#}", Service::bind(config, parts).await.unwrap_err()) }
    };

    let short_epochs = bind(|config, _| config.interval_s = 119).await;
    let no_alg = bind(|config, _| config.algs.clear()).await;
    let unknown_alg = bind(|config, _| config.algs = vec![1, 9]).await;
    let far_ahead = bind(|config, _| config.ahead = 17).await;
    let open_port = bind(|config, parts| {
        config.listen = "0.0.0.0:0".parse().unwrap();
        parts.tls = None;
    })
    .await;
    let short_secret = bind(|_, parts| {
        let secret = Secret::new("short".to_owned());
        let (unit, hosts) = (UnitId(1), Vec::new());
        let node = NodeSecret { node: LINK, role: NodeRole::Link, secret, unit, hosts };
        parts.nodes = [node].into();
    })
    .await;

    assert!(short_epochs.contains("119 s is shorter than twice"), "{short_epochs}");
    assert!(no_alg.contains("no token algorithm"), "{no_alg}");
    assert!(unknown_alg.contains("algorithm 9 is unknown"), "{unknown_alg}");
    assert!(far_ahead.contains("17 epochs ahead"), "{far_ahead}");
    assert!(open_port.contains("over TLS or stay on loopback"), "{open_port}");
    assert!(short_secret.contains("fewer than 32"), "{short_secret}");
}

#[tokio::test]
async fn the_service_ends_when_told_to() {
    let mut world = World::start().await;
    world.ready().await;

    world.shutdown.cancel();

    let ended = tokio::time::timeout(DEADLINE, world.tasks.next()).await.unwrap();
    assert!(ended.unwrap().is_ok());
}
