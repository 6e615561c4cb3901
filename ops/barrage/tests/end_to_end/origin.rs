//! The origin's answers as caches and browsers see them, header by header.

use kit::clock::Clock;
use serde_json::Value;

use crate::get::{Got, ask, get};
use crate::process::{Up, until};

const SEALED: &str = "public, max-age=30, s-maxage=600, immutable";
const HEAD: &str = "public, max-age=1, s-maxage=1, stale-while-revalidate=4, stale-if-error=60";
const NOT_YET: &str = "public, max-age=1, s-maxage=1";
const GONE: &str = "public, max-age=60";

/// The origin of a running `up`.
struct Origin {
    base: String,
}

impl Origin {
    async fn head(&self) -> Value {
        until("a head", async || {
            let got = get(&self.base, "/dm/1/demo/head.json").await;
            (got.status == 200).then(|| got.json())
        })
        .await
    }

    /// The newest sealed slot.
    async fn newest(&self) -> u64 {
        self.head().await["slot"].as_u64().unwrap()
    }

    async fn slot(&self, slot: u64, ext: &str) -> Got {
        get(&self.base, &path(slot, ext)).await
    }
}

fn path(slot: u64, ext: &str) -> String {
    format!("/dm/1/demo/1/full/{slot}.{ext}")
}

/// What every answer has.
fn check(got: &Got, status: u16, lifetime: &str) {
    assert_eq!((got.status, got.header("cache-control")), (status, lifetime), "{got:?}");
    assert_eq!(got.header("access-control-allow-origin"), "*");
    assert_eq!(got.header("access-control-expose-headers"), "Date, Age");
    assert_eq!(got.header("timing-allow-origin"), "*");
    assert!(!got.header("date").is_empty());
    for name in ["set-cookie", "vary", "pragma", "expires"] {
        assert_eq!(got.header(name), "", "{name}");
    }
}

#[tokio::test]
async fn every_answer_has_the_headers_that_caches_need() {
    let data = tempfile::tempdir().unwrap();
    let up = Up::start(data.path(), &["--crowd", "0", "--retention", "4"]).await;
    let origin = Origin { base: up.url("origin").to_owned() };

    check_head(&origin).await;
    check_sealed(&origin).await;
    check_next(&origin).await;
    check_absent(&origin).await;
    check_grammar(&origin).await;
    check_expired(&origin).await;

    up.kill().await;
}

async fn check_head(origin: &Origin) {
    origin.head().await;
    let got = get(&origin.base, "/dm/1/demo/head.json").await;

    check(&got, 200, HEAD);
    assert_eq!(got.header("content-type"), "application/json");
    let head = got.json();
    assert_eq!(
        (&head["v"], &head["gen"], &head["interval_ms"]),
        (&1.into(), &1.into(), &1000.into())
    );
    let newest = head["slot"].as_u64().unwrap();
    let end_ms = head["epoch_ms"].as_u64().unwrap() + (newest + 1) * 1000;
    assert!(head["now_ms"].as_u64().unwrap() >= end_ms, "{head}");
}

async fn check_sealed(origin: &Origin) {
    let newest = origin.newest().await;
    for (ext, kind) in [("bin", "application/octet-stream"), ("json", "application/json")] {
        let got = origin.slot(newest, ext).await;
        check(&got, 200, SEALED);
        assert_eq!(got.header("content-type"), kind);
        assert_eq!(got.header("content-encoding"), "gzip");
        let etag = got.header("etag");
        assert!(etag.starts_with('"') && etag.ends_with('"'), "{etag}");

        let known = format!("if-none-match: {etag}\r\n");
        let again = ask(&origin.base, "GET", &path(newest, ext), &known, "").await;
        check(&again, 304, SEALED);
        assert_eq!((again.header("etag"), again.body.len()), (etag, 0));

        let other = "if-none-match: \"0\"\r\n";
        let other = ask(&origin.base, "GET", &path(newest, ext), other, "").await;
        assert_eq!(other.body, got.body);

        let only_head = ask(&origin.base, "HEAD", &path(newest, ext), "", "").await;
        check(&only_head, 200, SEALED);
        assert_eq!(only_head.header("content-length"), got.body.len().to_string());
        assert_eq!(only_head.body.len(), 0);
    }
    let page = origin.slot(newest, "json").await.json();
    assert_eq!((&page["gen"], &page["slot"]), (&1.into(), &newest.into()));
    assert!(page["items"].is_array() && page["repeats"].is_array(), "{page}");
}

/// The next slot is held until it is sealed.
async fn check_next(origin: &Origin) {
    let head = origin.head().await;
    let next = head["slot"].as_u64().unwrap() + 1;

    let got = origin.slot(next, "json").await;

    let answered = Clock::system().wall().0;
    check(&got, 200, SEALED);
    let end_ms = head["epoch_ms"].as_u64().unwrap() + (next + 1) * 1000;
    assert!(answered >= end_ms, "answered {} ms before the slot's end", end_ms - answered);
}

/// What may come later is not there for a second.
async fn check_absent(origin: &Origin) {
    let far = path(origin.newest().await + 1000, "bin");
    for path in [&*far, "/dm/1/demo/2/full/0.bin", "/dm/1/elsewhere/head.json"] {
        check(&get(&origin.base, path).await, 404, NOT_YET);
    }
    check(&get(&origin.base, "/dm/1/elsewhere/1/full/0.bin").await, 404, NOT_YET);
}

/// Paths have one spelling, and there are two methods.
async fn check_grammar(origin: &Origin) {
    for path in [
        "/",
        "/dm/1/demo",
        "/dm/1/../demo/head.json",
        "/dm/1/%2e%2e/head.json",
        "/dm/1/demo/1/full/../../../../../identity.json",
        "/dm/1/demo%2fhead.json",
        "/dm/1/de%00mo/head.json",
        "/dm/1/demo/head.json%00",
        "/dm/1/demo/head.json?now=1",
        "/dm/1/demo/1/gen.json",
        "/dm/1/demo/1/full/01.bin",
        "/dm/1/demo/1/full/-1.bin",
        "/dm/1/demo/1/full/99999999999999999999.bin",
        "//dm/1/demo/head.json",
    ] {
        check(&get(&origin.base, path).await, 400, GONE);
    }
    // A raw NUL is no HTTP: the server's own 400.
    assert_eq!(get(&origin.base, "/dm/1/de\0mo/head.json").await.status, 400);
    for method in ["POST", "PUT", "DELETE", "OPTIONS"] {
        let got = ask(&origin.base, method, "/dm/1/demo/head.json", "", "").await;
        check(&got, 405, GONE);
        assert_eq!(got.header("allow"), "GET, HEAD");
    }
}

/// What is older than the retention is gone.
async fn check_expired(origin: &Origin) {
    let head = until("an expired slot", async || {
        let head = origin.head().await;
        (head["oldest"].as_u64().unwrap() > 0).then_some(head)
    })
    .await;

    check(&origin.slot(0, "bin").await, 410, GONE);
    check(&origin.slot(0, "json").await, 410, GONE);
    let span = head["slot"].as_u64().unwrap() - head["oldest"].as_u64().unwrap();
    assert!((3..=5).contains(&span), "4 s are kept: {head}");
}
