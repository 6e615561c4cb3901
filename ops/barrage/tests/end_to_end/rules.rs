//! What operators say at the auth service takes effect at the links while everything runs.

use std::time::Duration;

use proto::close::CloseCode;
use proto::frame::Path;
use proto::verdict::{Reason, Verdict};
use reqwest::Method;
use sdk::{End, Event};
use serde_json::json;

use crate::sessions::{connected, until, verdict};
use crate::site::Site;

/// Between two looks at something that changes by itself.
const LOOK: Duration = Duration::from_millis(50);

#[tokio::test(flavor = "multi_thread")]
async fn a_policy_takes_the_word_from_sessions_and_gives_it_back() {
    let site = Site::start(10_000).await;
    let (client, mut events) = site.viewer("ann", Path::Push);
    connected(&mut events).await;
    assert!(matches!(verdict(&site, &client, &mut events).await, Verdict::Admit(_)));
    let policy = "/v1/policies/1/demo";

    site.operate(Method::PUT, policy, &json!({ "unverified": "read" })).await;
    let read_only = Verdict::Drop { reason: Reason::ReadOnly, retry_after_ms: 0 };
    while verdict(&site, &client, &mut events).await != read_only {
        site.clock.sleep(LOOK).await;
    }
    site.operate(Method::DELETE, policy, &json!(null)).await;
    while !matches!(verdict(&site, &client, &mut events).await, Verdict::Admit(_)) {
        site.clock.sleep(LOOK).await;
    }

    site.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_sdk_that_is_not_served_any_more_is_told_once_and_stays_away() {
    let site = Site::start(10_000).await;
    let (running, mut running_events) = site.viewer("ann", Path::Push);
    connected(&mut running_events).await;

    let rules = json!([{ "below": "1000.0.0", "act": "refuse" }]);
    site.operate(Method::PUT, "/v1/sdk", &rules).await;
    let end = loop {
        let (_client, mut events) = site.viewer("late", Path::Push);
        let came = until(&mut events, |event| match event {
            Event::Connected { .. } => Some(None),
            Event::Ended(end) => Some(Some(end)),
            _ => None,
        });
        if let Some(end) = came.await {
            break end;
        }
    };
    assert_eq!(end, End::Code(CloseCode::UpgradeRequired));
    assert!(matches!(verdict(&site, &running, &mut running_events).await, Verdict::Admit(_)));

    site.operate(Method::PUT, "/v1/sdk", &json!([])).await;
    site.stop().await;
}
