//! The operators' calls, and what stays of them.

use std::sync::Arc;

use auth::state::{PolicyState, Revoked, Rotated, SdkState, State};
use auth_core::keyring::{Keyring, LinkKeyring};
use auth_core::ledger::FACTS_MAX;
use bus::{Fault, FaultyBus};
use proto::control::Fact;
use proto::id::{AppId, RoomId};
use proto::keys::{LinkKeys, Masters};
use proto::policy::{Entry, Policy, PolicyFact, SdkAct};
use proto::time::Wall;
use reqwest::{Method, StatusCode};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::world::{
    ADDRESS, DEADLINE, GSLB, LINK, OPERATOR_KEY, T, World, check, early_in_an_epoch, memory_bus,
    verify_on,
};

const ROOM: &str = "/v1/policies/1/room-1";

impl World {
    async fn call(&self, method: Method, path: &str, body: Option<Value>) -> reqwest::Response {
        let request = self.client.request(method, self.url(path)).bearer_auth(OPERATOR_KEY);
        match body {
            Some(body) => request.json(&body).send().await.unwrap(),
            None => request.send().await.unwrap(),
        }
    }

    async fn get<A: DeserializeOwned>(&self, path: &str) -> A {
        self.call(Method::GET, path, None).await.json().await.unwrap()
    }

    async fn put(&self, path: &str, body: Value) -> reqwest::Response {
        self.call(Method::PUT, path, Some(body)).await
    }

    async fn revoke(&self, kid: u8, from_epoch: u32, to_epoch: u32) -> reqwest::Response {
        let body = json!({ "kid": kid, "from_epoch": from_epoch, "to_epoch": to_epoch });
        self.call(Method::POST, "/v1/revocations", Some(body)).await
    }

    async fn rotate(&self) -> reqwest::Response {
        self.call(Method::POST, "/v1/masters/rotate", None).await
    }

    /// The kids of the epochs, once `is_it`.
    async fn kids_become(&self, is_it: impl Fn(&[Vec<u8>]) -> bool) {
        let become_it = async {
            loop {
                let state: State = self.get("/v1/epochs").await;
                let kids: Vec<Vec<u8>> = state.epochs.into_iter().map(|it| it.kids).collect();
                if is_it(&kids) {
                    break;
                }
            }
        };
        tokio::time::timeout(DEADLINE, become_it).await.unwrap();
    }
}

#[tokio::test]
async fn nobody_operates_without_a_key() {
    let world = World::start().await;
    let request = |key: &str| world.client.get(world.url("/v1/epochs")).bearer_auth(key).send();

    check(request("wrong").await.unwrap(), 401, "unauthorized").await;
    check(request("").await.unwrap(), 401, "unauthorized").await;
    let bare = world.client.post(world.url("/v1/masters/rotate")).send().await.unwrap();
    check(bare, 401, "unauthorized").await;
    assert_eq!(request(OPERATOR_KEY).await.unwrap().status(), StatusCode::OK);
    assert!(world.meter.render().contains(r#"auth_operator_calls_total{status="401"} 3"#));
}

#[tokio::test]
async fn the_state_says_what_tokens_live_on_and_nothing_secret() {
    let world = World::start().await;
    world.ready().await;

    let text = world.call(Method::GET, "/v1/epochs", None).await.text().await.unwrap();
    let state: State = serde_json::from_str(&text).unwrap();

    assert_eq!((state.interval_s, state.masters.as_slice()), (T, [0].as_slice()));
    assert!(state.leads && state.missing_masters.is_empty() && state.revoked.is_empty());
    assert_eq!(state.horizon_s_min, 900);
    assert!(state.horizon_s > 6 * u64::from(T));
    let epochs: Vec<u32> = state.epochs.iter().map(|it| it.epoch).collect();
    assert_eq!(epochs, (world.epoch() - 1..=world.epoch() + 6).collect::<Vec<_>>());
    let masters: Masters = world.masters(GSLB).await.json().await.unwrap();
    assert!(!text.contains(&masters.masters[0].key));
}

#[tokio::test]
async fn a_policy_is_set_read_and_unset() {
    let world = World::start().await;
    world.ready().await;

    let before: PolicyState = world.get(ROOM).await;
    assert_eq!((before.version, before.own, before.policy), (0, None, Policy::default()));

    let set: PolicyState = world.put(ROOM, json!({ "entry": "guest" })).await.json().await.unwrap();
    assert_eq!((set.version, set.policy.entry), (1, Entry::Guest));
    world.put("/v1/policies/1", json!({ "entry": "open" })).await;
    let app: PolicyState = world.get("/v1/policies/1").await;
    assert_eq!((app.version, app.policy.entry), (2, Entry::Open));
    assert_eq!(app.rooms, [RoomId::parse("room-1").unwrap()]);
    let other: PolicyState = world.get("/v1/policies/1/room-2").await;
    assert_eq!((other.own, other.policy.entry), (None, Entry::Open));

    let unset: PolicyState = world.call(Method::DELETE, ROOM, None).await.json().await.unwrap();
    assert_eq!((unset.version, unset.own, unset.policy.entry), (3, None, Entry::Open));
    let room = RoomId::parse("room-1").unwrap();
    let fact = PolicyFact { app: AppId(1), room: Some(room), version: 3, policy: None };
    world.on_control(&Fact::Policy(fact)).await;
}

#[tokio::test]
async fn what_cannot_hold_is_refused_with_its_reason() {
    let world = World::start().await;
    world.ready().await;
    let put = async |path: &str, body: Value| world.put(path, body).await;

    check(put("/v1/policies/2", json!({})).await, 404, "unknown_app").await;
    check(put("/v1/policies/one", json!({})).await, 404, "unknown_app").await;
    check(put("/v1/policies/1/a%2Fb", json!({})).await, 400, "bad_room").await;
    check(put(&format!("/v1/policies/1/{}", "r".repeat(65)), json!({})).await, 400, "bad_room")
        .await;
    check(put(ROOM, json!({ "token_ttl_s": 121 })).await, 400, "bad_policy").await;
    check(put(ROOM, json!({ "skew_s": 61 })).await, 400, "bad_policy").await;
    check(put(ROOM, json!({ "entrance": "open" })).await, 400, "bad_request").await;
    check(put("/v1/sdk", json!([{ "below": "x", "act": "warn" }])).await, 400, "bad_rules").await;
    let long = format!("1.0.0-{}", "x".repeat(16_384));
    check(put("/v1/sdk", json!([{ "below": long, "act": "warn" }])).await, 400, "bad_rules").await;
    check(world.revoke(0, 5, 4).await, 400, "bad_request").await;
    let state: State = world.get("/v1/epochs").await;
    assert!(state.revoked.is_empty());
}

#[tokio::test]
async fn the_last_policy_that_fits_is_the_last_that_is_taken() {
    let world = World::start().await;
    world.ready().await;
    let world = {
        let fact = |no: usize| {
            let room = RoomId::parse(&format!("r{no}")).unwrap();
            let policy = Some(Policy::default());
            Fact::Policy(PolicyFact { app: AppId(1), room: Some(room), version: 1, policy })
        };
        let facts: Vec<Fact> = (1..FACTS_MAX).map(fact).collect();
        let path = world.dir.path().join("auth/facts.json");
        kit::private::write(&path, &serde_json::to_vec(&facts).unwrap()).unwrap();
        world.restart().await
    };

    assert_eq!(world.put(ROOM, json!({})).await.status(), StatusCode::OK);
    check(world.put("/v1/policies/1", json!({})).await, 409, "too_many_facts").await;
    assert_eq!(world.put(ROOM, json!({ "entry": "open" })).await.status(), StatusCode::OK);
}

#[tokio::test]
async fn what_operators_said_survives_a_restart_on_an_empty_bus() {
    let world = World::start().await;
    world.ready().await;
    let epoch = world.epoch();
    world.put(ROOM, json!({ "entry": "guest", "token_ttl_s": 30 })).await;
    world.put("/v1/sdk", json!([{ "sdk": "ts", "below": "1.2.0", "act": "refuse" }])).await;
    let revoked: Revoked = world.revoke(3, epoch, epoch + 2).await.json().await.unwrap();

    let bus = memory_bus(&world.clock);
    let world = world.restart_on(bus).await;

    let policy: PolicyState = world.get(ROOM).await;
    assert_eq!((policy.policy.entry, policy.policy.token_ttl_s), (Entry::Guest, 30));
    let sdk: SdkState = world.get("/v1/sdk").await;
    assert_eq!((sdk.version, sdk.rules[0].act), (2, SdkAct::Refuse));
    let state: State = world.get("/v1/epochs").await;
    assert_eq!(state.revoked, [revoked]);
    let void = Fact::Revoked { kid: 3, from_epoch: epoch, to_epoch: epoch + 2 };
    world.on_control(&void).await;
    let rules = sdk.rules.clone();
    world.on_control(&Fact::Sdk(proto::policy::SdkFact { version: 2, rules })).await;
}

#[tokio::test]
async fn policies_that_were_set_under_longer_epochs_are_checked_at_the_start() {
    let world = World::start().await;
    world.ready().await;
    world.put(ROOM, json!({ "token_ttl_s": 120 })).await;

    let config = auth::Config { interval_s: 239, ..world.config() };
    let refused = auth::Service::bind(config, world.parts()).await.unwrap_err();

    let refused = format!("{refused:#}");
    assert!(refused.contains("the policy of room room-1 of app 1"), "{refused}");
    assert!(refused.contains("shorter than twice"), "{refused}");
}

#[tokio::test]
async fn two_services_agree_on_what_either_was_told() {
    let first = World::start().await;
    first.ready().await;
    let second = first.beside(Arc::clone(&first.bus)).await;
    second.ready().await;
    let agree = async |entry| {
        let agreed = async {
            loop {
                let states: [PolicyState; 2] = [first.get(ROOM).await, second.get(ROOM).await];
                if states.iter().all(|it| it.policy.entry == entry) {
                    break states[0].version;
                }
            }
        };
        tokio::time::timeout(DEADLINE, agreed).await.unwrap()
    };

    second.put(ROOM, json!({ "entry": "guest" })).await;
    assert_eq!(agree(Entry::Guest).await, 1);
    first.put(ROOM, json!({ "entry": "open" })).await;
    assert_eq!(agree(Entry::Open).await, 2);
}

#[tokio::test]
async fn what_is_said_while_the_bus_is_away_is_kept_and_said_again() {
    let clock = early_in_an_epoch();
    let bus = FaultyBus::new(memory_bus(&clock));
    let world = World::start_on(clock, Arc::<FaultyBus>::clone(&bus)).await;
    world.ready().await;

    bus.set(Fault::Away);
    check(world.put(ROOM, json!({ "entry": "open" })).await, 503, "bus_away").await;
    bus.set(Fault::None);

    let room = Some(RoomId::parse("room-1").unwrap());
    let policy = Some(Policy { entry: Entry::Open, ..Policy::default() });
    world.on_control(&Fact::Policy(PolicyFact { app: AppId(1), room, version: 1, policy })).await;
}

#[tokio::test]
async fn a_rotated_master_mints_from_the_next_epoch_on_and_no_link_is_without_it() {
    let world = World::start().await;
    let before = world.epochs_until(world.epoch() + 6).await;
    world.ready().await;

    let rotated: Rotated = world.rotate().await.json().await.unwrap();
    assert_eq!((rotated.kid, rotated.masters.as_slice()), (1, [1, 0].as_slice()));
    // The previous epoch, the running one, six ahead.
    let expected = [&[0][..], &[0, 1], &[1, 0], &[1, 0], &[1, 0], &[1, 0], &[1, 0], &[1, 0]];
    world.kids_become(|kids| *kids == expected).await;

    let masters: Masters = world.masters(GSLB).await.json().await.unwrap();
    let keys: LinkKeys = world.link_keys(LINK, LINK).await.json().await.unwrap();
    let facts = world.epochs_until(world.epoch() + 6).await;
    let link = LinkKeyring::new(&keys).unwrap();
    for (informed, known) in [(true, &facts), (false, &before)] {
        let mut gslb = Keyring::new(&masters).unwrap();
        known.iter().for_each(|it| gslb.handle(it, world.clock.wall()).unwrap());
        for ahead in 0..=6 {
            let claims = world.claims(ahead);
            let now = Wall(u64::from(claims.iat_s) * 1000);
            let text = gslb.mint(&claims).unwrap();
            assert!(verify_on(&link, ADDRESS, &text, now).is_ok(), "{informed} {ahead}");
        }
    }
    let same = facts.iter().zip(&before).all(|(a, b)| a.random == b.random && a.alg == b.alg);
    assert!(same);
    assert!(world.meter.render().contains("auth_rotations_total 1"));
}

#[tokio::test]
async fn only_the_leader_rotates_and_the_other_reads_the_file() {
    let first = World::start().await;
    first.leading(true).await;
    let second = first.beside(Arc::clone(&first.bus)).await;
    second.ready().await;

    check(second.rotate().await, 409, "not_leading").await;
    assert_eq!(first.rotate().await.status(), StatusCode::OK);

    second.kids_become(|kids| kids.last() == Some(&vec![1, 0])).await;
    second.ready().await;
    let kids = async |world: &World| {
        let keys: LinkKeys = world.link_keys(LINK, LINK).await.json().await.unwrap();
        keys.tokens.iter().map(|it| (it.epoch, it.kid)).collect::<Vec<_>>()
    };
    assert_eq!(kids(&first).await, kids(&second).await);
}

/// Each has a copy of the file, and only one copy is the new one.
#[tokio::test]
async fn a_service_without_a_master_in_use_hands_out_no_half_of_the_keys() {
    let first = World::start().await;
    first.leading(true).await;
    let second = World::start_with_copy(&first).await;
    second.ready().await;

    first.rotate().await;
    second.failing_with("epochs name masters that are not here: {1}").await;

    check(second.link_keys(LINK, LINK).await, 503, "no_master").await;
    check(second.masters(GSLB).await, 503, "no_master").await;
    second.copy_masters(&first);
    second.ready().await;
    assert_eq!(second.link_keys(LINK, LINK).await.status(), StatusCode::OK);
}

#[tokio::test]
async fn eight_masters_are_the_most() {
    let world = World::start().await;
    world.leading(true).await;

    for _ in 1..8 {
        assert_eq!(world.rotate().await.status(), StatusCode::OK);
    }

    check(world.rotate().await, 409, "too_many_masters").await;
    world.kids_become(|kids| kids.last().is_some_and(|it| it.len() == 8)).await;
    world.ready().await;
}

#[tokio::test]
async fn links_get_no_keys_of_void_epochs() {
    let world = World::start().await;
    world.ready().await;
    let epoch = world.epoch();

    world.revoke(0, epoch + 1, epoch + 2).await;

    let keys: LinkKeys = world.link_keys(LINK, LINK).await.json().await.unwrap();
    let epochs: Vec<u32> = keys.tokens.iter().map(|it| it.epoch).collect();
    assert_eq!(epochs, [epoch - 1, epoch, epoch + 3, epoch + 4, epoch + 5, epoch + 6]);
    // Nothing mints in the epoch after this one: the operator must know.
    let is_low = |why: &str| why.starts_with("epochs are known for 5");
    world.health_becomes(|it| it.iter().any(|(_, why)| is_low(why))).await;
}

#[tokio::test]
async fn a_file_that_is_damaged_while_running_warns_and_keys_go_on() {
    let world = World::start().await;
    world.ready().await;
    let path = world.dir.path().join("auth/masters.sealed");
    let good = std::fs::read(&path).unwrap();

    kit::private::write(&path, b"damaged").unwrap();
    world.warning("it is not sealed").await;
    assert_eq!(world.link_keys(LINK, LINK).await.status(), StatusCode::OK);
    check(world.rotate().await, 503, "disk").await;

    kit::private::write(&path, &good).unwrap();
    while !world.health.warnings().is_empty() {
        tokio::task::yield_now().await;
    }
}
