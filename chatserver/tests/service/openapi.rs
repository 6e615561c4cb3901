//! The API is what its OpenAPI document says: schemathesis asks, within the document and beside it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use reqwest::{Method, StatusCode};
use serde_json::json;
use tokio::process::Command;

use super::world::*;

/// Longest run; it takes a quarter of that on a busy machine of two cores.
const RUN_MAX: Duration = Duration::from_secs(240);
/// What schemathesis checks of each answer.
const CHECKS: &str = "not_a_server_error,status_code_conformance,content_type_conformance,\
                      response_schema_conformance,response_headers_conformance,\
                      negative_data_rejection,missing_required_header,unsupported_method,\
                      ignored_auth";

/// Who asks, and what about: the room that is there, which stays open.
const PLACES: &str = r#"
[auth.openapi.key]
bearer = "key-1"

# Headers and parameters that nobody knows are nobody's concern.
[generation]
allow-extra-parameters = false

[parameters]
"path.room" = "r"

[[operations]]
include-operation-id = "close_room"
parameters = { "path.room" = "other" }
"#;

#[tokio::test]
async fn the_document_needs_no_key_and_names_calls_that_are_there() {
    let world = World::start().await;

    let (status, document) = answer(world.request(Method::GET, "/openapi.json")).await;

    assert_eq!((status, &document["openapi"]), (StatusCode::OK, &json!("3.1.0")));
    let paths = document["paths"].as_object().unwrap();
    assert!(paths.len() > 25, "{}", paths.len());
    for (path, calls) in paths {
        for method in calls.as_object().unwrap().keys() {
            let method: Method = method.to_uppercase().parse().unwrap();
            let (status, _) = answer(world.request(method.clone(), path)).await;
            let expected = if path == "/openapi.json" { 200 } else { 401 };
            assert_eq!(status.as_u16(), expected, "{method} {path}");
        }
    }
}

#[tokio::test]
async fn an_app_that_asks_too_often_is_told_when_to_come_back() {
    let config = chatserver::Config {
        app_requests_per_s: 1,
        app_requests_burst: 2,
        ..chatserver::Config::default()
    };
    let world = World::start_as(config).await;
    let list = || world.call(Method::GET, "/v1/rooms", &[], None);

    let passed = [list().await.0, list().await.0];
    let (status, problem) = list().await;
    let other = world.request(Method::GET, "/v1/rooms").bearer_auth("key-2");
    let (others, _) = answer(other).await;

    assert_eq!(passed, [StatusCode::OK; 2]);
    assert_eq!((status.as_u16(), &problem["code"]), (429, &json!("rate_limited")));
    assert!((1..=1000).contains(&problem["retry_after_ms"].as_u64().unwrap()), "{problem}");
    assert_eq!(others, 200);
    assert_eq!(world.metric("chatserver_requests_limited_total"), Some(1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn schemathesis_finds_nothing_that_the_document_does_not_say() {
    let world = World::start().await;
    world.room(json!({})).await;
    let document = world.url("/openapi.json");
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("schemathesis.toml");
    std::fs::write(&config, PLACES).unwrap();

    let run = Command::new(schemathesis())
        .args(["--config-file", config.to_str().unwrap(), "run", &document])
        .args(["--checks", CHECKS])
        .args(["--phases", "coverage,fuzzing", "--max-examples", "15", "--seed", "1"])
        .args(["--generation-database", "none", "--suppress-health-check", "all"])
        .args(["--request-timeout", "20", "--no-color"])
        .current_dir(folder.path())
        .kill_on_drop(true)
        .output();
    let run = tokio::time::timeout(RUN_MAX, run).await.expect("in time").unwrap();

    let said = String::from_utf8_lossy(&run.stdout);
    assert!(run.status.success(), "{said}{}", String::from_utf8_lossy(&run.stderr));
}

/// The program of `ops/tools/install`.
fn schemathesis() -> PathBuf {
    let tools = std::env::var_os("BARRAGE_TOOLS").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/tools"),
        PathBuf::from,
    );
    let file = tools.join("python/bin/schemathesis");
    assert!(file.exists(), "{} is missing: run ops/tools/install", file.display());
    file
}
