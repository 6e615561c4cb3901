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
