//! The origin's answers, header by header.

use broadcaster::Config;

use crate::get::{ask, get};
use crate::stage::{Running, World, config, settings};

const NOT_YET: &str = "public, max-age=1, s-maxage=1";

/// A broadcaster whose room has sealed some slots.
async fn running(world: &World, config: Config) -> Running {
    world.set_room(settings(), true).await;
    let broadcaster = world.start(config).await;
    world.sealed().await.seal_of(1, 2).await;
    broadcaster
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sealed_slot_is_immutable_and_known_again() {
    let folder = tempfile::tempdir().unwrap();
    let broadcaster = running(&World::new(folder.path()), config(1)).await;

    let got = broadcaster.segment(1, 1).await;

    assert_eq!(got.status, 200);
    for (name, value) in [
        ("cache-control", "public, max-age=30, s-maxage=600, immutable"),
        ("content-encoding", "gzip"),
        ("content-type", "application/octet-stream"),
        ("accept-ranges", "none"),
        ("access-control-allow-origin", "*"),
        ("access-control-expose-headers", "Date, Age"),
        ("timing-allow-origin", "*"),
    ] {
        assert_eq!(got.header(name), value, "{name}");
    }
    assert!(!got.header("date").is_empty());
    let etag = got.header("etag").to_owned();
    assert!(etag.starts_with('"'), "{etag}");

    let path = "/dm/1/room-1/1/full/1.bin";
    for tags in [etag.clone(), format!("\"x\", W/{etag}"), "*".to_owned()] {
        let headers = format!("if-none-match: {tags}\r\n");
        let again = ask(broadcaster.addr, "GET", path, &headers).await;
        assert_eq!((again.status, again.header("etag")), (304, etag.as_str()));
        assert!(again.body.is_empty());
    }
    let other = ask(broadcaster.addr, "GET", path, "if-none-match: \"x\"\r\n").await;
    assert_eq!(other.status, 200);

    let ranged = ask(broadcaster.addr, "GET", path, "range: bytes=0-3\r\n").await;
    assert_eq!((ranged.status, &ranged.body), (200, &got.body));
    let only_head = ask(broadcaster.addr, "HEAD", path, "").await;
    assert_eq!((only_head.status, only_head.header("etag")), (200, etag.as_str()));
    assert_eq!(only_head.header("content-length"), got.body.len().to_string());
    assert!(only_head.body.is_empty());
    broadcaster.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_head_lives_for_a_second() {
    let folder = tempfile::tempdir().unwrap();
    let broadcaster = running(&World::new(folder.path()), config(1)).await;

    let got = get(broadcaster.addr, "/dm/1/room-1/head.json").await;

    let lifetime = "public, max-age=1, s-maxage=1, stale-while-revalidate=4, stale-if-error=60";
    assert_eq!((got.status, got.header("cache-control")), (200, lifetime));
    assert_eq!(got.header("content-type"), "application/json");
    assert_eq!(got.header("timing-allow-origin"), "*");
    broadcaster.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_next_slot_is_held_until_it_is_sealed() {
    let folder = tempfile::tempdir().unwrap();
    let broadcaster = running(&World::new(folder.path()), config(1)).await;

    let next = broadcaster.head().await.slot.0 + 1;
    let asked = broadcaster.segment(1, next);
    let (got, same) = tokio::join!(asked, broadcaster.segment(1, next));

    assert_eq!((got.status, same.status), (200, 200));
    assert_eq!(got.body, same.body);
    broadcaster.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_farther_or_unknown_is_not_there_for_a_second() {
    let folder = tempfile::tempdir().unwrap();
    let broadcaster = running(&World::new(folder.path()), config(1)).await;

    for path in [
        "/dm/1/room-1/1/full/1000.bin",
        "/dm/1/room-1/2/full/0.bin",
        "/dm/1/room-2/head.json",
        "/dm/1/room-2/1/full/0.json",
    ] {
        let got = get(broadcaster.addr, path).await;
        assert_eq!((got.status, got.header("cache-control")), (404, NOT_YET), "{path}");
        assert_eq!(got.header("access-control-allow-origin"), "*");
    }
    broadcaster.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn more_held_requests_than_allowed_are_answered_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let none = Config { held_max: 0, ..config(1) };
    let broadcaster = running(&World::new(folder.path()), none).await;

    // A slot may be sealed between the two requests, but not each time.
    let mut got = broadcaster.segment(1, 0).await;
    for _ in 0..10 {
        let next = broadcaster.head().await.slot.0 + 1;
        got = broadcaster.segment(1, next).await;
        if got.status == 404 {
            break;
        }
    }

    assert_eq!((got.status, got.header("cache-control")), (404, NOT_YET));
    broadcaster.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn other_spellings_and_methods_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let broadcaster = running(&World::new(folder.path()), config(1)).await;

    for path in [
        "/",
        "/dm/1/room-1",
        "/dm/1/../head.json",
        "/dm/1/%2e%2e/head.json",
        "/dm/1/a%2fb/head.json",
        "/dm/1/room-1/../../etc/passwd",
        "/dm/1/room-1/1/gen.json",
        "/dm/1/room-1/01/full/1.bin",
        "/dm/1/room-1/1/full/1.txt",
        "/dm/1/room-1/head.json?x=1",
        "/dm/1/room-1/head.json?",
        "//dm/1/room-1/head.json",
    ] {
        let got = get(broadcaster.addr, path).await;
        assert_eq!(got.status, 400, "{path}");
        assert_eq!(got.header("cache-control"), "public, max-age=60");
    }
    for method in ["POST", "PUT", "DELETE", "OPTIONS"] {
        let got = ask(broadcaster.addr, method, "/dm/1/room-1/head.json", "").await;
        assert_eq!((got.status, got.header("allow")), (405, "GET, HEAD"), "{method}");
    }
    broadcaster.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn slots_older_than_the_retention_are_gone() {
    let folder = tempfile::tempdir().unwrap();
    let short = Config { retention_s: 1, ..config(1) };
    let world = World::new(folder.path());
    let broadcaster = running(&world, short).await;
    world.sealed().await.seal_of(1, 6).await;

    let head = broadcaster.head().await;
    assert!(head.oldest.0 > 0, "{head:?}");
    let got = broadcaster.segment(1, 0).await;
    assert_eq!((got.status, got.header("cache-control")), (410, "public, max-age=60"));
    let oldest = broadcaster.segment(1, head.oldest.0 + 1).await;
    assert_eq!(oldest.status, 200);

    // Removed files are gone from the disk, once the writer came to it.
    let file = folder.path().join("dm/1/room-1/1/full/0.bin");
    let mut sealed = world.sealed().await;
    for slot in 7.. {
        sealed.seal_of(1, slot).await;
        if !file.exists() {
            break;
        }
    }
    broadcaster.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn segments_that_left_the_memory_come_from_the_store() {
    let folder = tempfile::tempdir().unwrap();
    let forgetful = Config { recent_bytes_max: 0, ..config(1) };
    let broadcaster = running(&World::new(folder.path()), forgetful).await;

    assert_eq!(broadcaster.segment(1, 0).await.status, 200);
    broadcaster.stop().await;
}
