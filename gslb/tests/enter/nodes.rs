//! What operators see of the fleet.

use serde_json::Value;

use crate::world::{OPERATOR_KEY, World, check, ticket};

#[tokio::test]
async fn an_operator_sees_every_node_with_what_it_carries() {
    let world = World::start().await;
    let (taking, draining) = (world.link(2).await, world.link(3).await);
    taking.load.lock().sessions = 10;
    draining.load.lock().draining = true;
    world.ready().await;
    world.until(async || node(&nodes(&world).await, 3)["state"] == "draining").await;
    world.until(async || node(&nodes(&world).await, 2)["load"]["sessions"] == 10).await;

    let seen = nodes(&world).await;

    let (second, third) = (node(&seen, 2), node(&seen, 3));
    assert!(matches!(second["state"].as_str(), Some("taking" | "growing")), "{second}");
    assert_eq!(second["addresses"][0]["host"], "link-2.example");
    assert_eq!(second["load"]["sessions_max"], 1_000);
    assert_eq!(third["unit"], 1);
    assert!(second["lease_age_ms"].as_u64().unwrap() <= 1_000);
    assert!(seen["server_ms"].as_u64().unwrap() > 0);
    let region = &seen["regions"][0];
    assert_eq!(
        (&region["region"], &region["nodes"], &region["taking"]),
        (&"local".into(), &2.into(), &1.into())
    );
    let pool = &seen["pools"][0];
    assert_eq!(
        (&pool["carrier"], &pool["nodes"], &pool["places"]),
        (&"bgp".into(), &1.into(), &990.into())
    );
}

#[tokio::test]
async fn answers_count_until_the_node_reports_anew() {
    let world = World::start().await;
    let link = world.link(2).await;
    world.ready().await;
    let answers = async || node(&nodes(&world).await, 2)["answers"].as_u64().unwrap();
    drop(link);

    // A node that has just fallen silent keeps its lease for a while.
    let mut seen = 0;
    for _ in 0..5 {
        world.enter(&ticket("viewer")).await;
        seen = seen.max(answers().await);
    }

    assert!(seen >= 1, "{seen}");
}

#[tokio::test]
async fn nobody_else_sees_it() {
    let world = World::start().await;
    let url = world.url("/v1/nodes");

    check(world.client.get(&url).send().await.unwrap(), 401, "unauthorized").await;
    let guess = world.client.get(&url).bearer_auth("guess").send().await.unwrap();
    check(guess, 401, "unauthorized").await;
    let post = world.client.post(&url).bearer_auth(OPERATOR_KEY).send().await.unwrap();
    check(post, 405, "method").await;
}

#[tokio::test]
async fn keys_that_are_guessed_count_for_the_rate_of_their_address() {
    let world = World::start_with(|config| {
        (config.rate.per_s, config.rate.burst) = (1, 10);
        config.trusted_hops = 1;
    })
    .await;
    let ask = async |key: &str, from: &str| {
        let get = world.client.get(world.url("/v1/nodes")).bearer_auth(key);
        get.header("x-forwarded-for", from).send().await.unwrap().status().as_u16()
    };

    let mut statuses = Vec::new();
    for _ in 0..50 {
        statuses.push(ask("guess", "203.0.113.1").await);
    }

    assert_eq!(statuses[0], 401);
    assert_eq!(ask(OPERATOR_KEY, "203.0.113.1").await, 429, "{statuses:?}");
    assert_eq!(ask(OPERATOR_KEY, "203.0.113.2").await, 200);
}

#[tokio::test]
async fn an_operator_sees_the_fleet_while_all_together_ask_too_much() {
    let world = World::start_with(|config| config.rate.all_per_s = 1).await;
    let ask = async |key: &str| {
        let get = world.client.get(world.url("/v1/nodes")).bearer_auth(key);
        get.send().await.unwrap().status().as_u16()
    };

    let mut guessed = Vec::new();
    for _ in 0..10 {
        guessed.push(ask("guess").await);
    }

    assert!(guessed.contains(&503), "{guessed:?}");
    assert_eq!(ask(OPERATOR_KEY).await, 200);
}

fn node(seen: &Value, number: u64) -> Value {
    let nodes = seen["nodes"].as_array().unwrap();
    nodes.iter().find(|it| it["node"] == number).cloned().unwrap_or_default()
}

async fn nodes(world: &World) -> Value {
    let get = world.client.get(world.url("/v1/nodes")).bearer_auth(OPERATOR_KEY);
    let response = get.send().await.unwrap();
    assert_eq!(response.headers()["cache-control"], "no-store");
    response.json().await.unwrap()
}
