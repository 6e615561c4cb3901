//! Fetching this node's keys from the auth service, for as long as it takes, and watching how long
//! they reach.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, ensure};
use kit::health::Part;
use proto::keys::{LinkKeys, LinkKeysRequest};

use crate::config::ms;
use crate::door::Horizon;
use crate::kept::{Answer, Kept};
use crate::node::Node;

/// Time for one fetch.
const FETCH_MAX: Duration = Duration::from_secs(5);
/// Bytes of an answer: 65,536 keys of 200 bytes.
const ANSWER_BYTES_MAX: usize = 16 * 1024 * 1024;
/// First and last pause after a failure.
const RETRY_MS: (u32, u32) = (100, 10_000);
/// Pause after a success, before anything can ask for another fetch.
const REST: Duration = Duration::from_millis(500);
/// A fetch at least so often, whatever the epochs: a new app's keys arrive by it.
const FETCH_EVERY_MS: u32 = 60_000;

/// How often it is looked how long the keys still reach.
const LOOK: Duration = Duration::from_millis(250);

/// Where keys come from, and where the last ones are kept.
pub(crate) struct Source {
    pub(crate) client: reqwest::Client,
    pub(crate) addresses: Vec<String>,
    pub(crate) kept: Arc<Kept>,
}

/// Fetches for ever.
pub(crate) async fn run(node: Arc<Node>, source: Source) -> anyhow::Result<()> {
    let mut retry_ms = RETRY_MS.0;
    loop {
        let fetched = fetch(&node, &source).await;
        node.counts.key_fetch(if fetched.is_ok() { "ok" } else { "failed" });
        let rest_ms = match fetched {
            Ok(()) => {
                retry_ms = RETRY_MS.0;
                node.clock.sleep(REST).await;
                node.draw_ms(FETCH_EVERY_MS / 2, FETCH_EVERY_MS)
            }
            Err(error) => {
                tracing::warn!(error = format!("{error:#}"), "no keys were fetched");
                // Full jitter, so that a fleet does not knock in step.
                let rest_ms = node.draw_ms(RETRY_MS.0 / 2, retry_ms);
                retry_ms = retry_ms.saturating_mul(2).min(RETRY_MS.1);
                rest_ms
            }
        };
        tokio::select! {
            () = node.door.refetch.notified() => {}
            () = node.clock.sleep(ms(rest_ms)) => {}
        }
    }
}

/// Tells how long the keys still reach: the part warns in the last quarter of what they reached
/// at most, and fails when nobody can be let in.
pub(crate) async fn watch(node: Arc<Node>, part: Part) -> anyhow::Result<()> {
    let mut had_some = false;
    loop {
        let Horizon { left, most } = node.door.horizon(node.clock.wall());
        let left_s = left.as_secs();
        node.counts.horizon_s.set(i64::try_from(left_s).unwrap_or(i64::MAX));
        if left.is_zero() {
            part.fail("no keys for the running epoch: nobody is let in");
            if std::mem::take(&mut had_some) {
                tracing::error!("the keys have run out: nobody is let in");
            }
        } else {
            had_some = true;
            if left < most / 4 {
                part.warn(format!("keys reach {left_s} s only: is the auth service away?"));
            } else {
                part.ok();
            }
        }
        node.clock.sleep(LOOK).await;
    }
}

async fn fetch(node: &Node, source: &Source) -> anyhow::Result<()> {
    let config = &node.config;
    let request = LinkKeysRequest {
        node: config.node,
        unit: config.unit,
        addresses: source.addresses.clone(),
    };
    let sent = source
        .client
        .post(format!("{}/v1/keys/link", config.auth_url.trim_end_matches('/')))
        .bearer_auth(config.secret.expose())
        .header("x-barrage-node", config.node.to_string())
        .json(&request)
        .timeout(FETCH_MAX)
        .send();
    let mut response = sent.await.context("the auth service did not answer")?;
    ensure!(response.status().is_success(), "the auth service says {}", response.status());
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.context("the answer broke off")? {
        ensure!(body.len() + chunk.len() <= ANSWER_BYTES_MAX, "the answer is too long");
        body.extend_from_slice(&chunk);
    }
    let keys: LinkKeys = serde_json::from_slice(&body).context("the answer is not understood")?;
    let tokens = keys.tokens.len();
    let answer = Answer { fetched: node.clock.wall(), keys };
    node.door.take_keys(&answer).context("the keys are not usable")?;
    tracing::debug!(tokens, "fetched keys");
    keep(&source.kept, answer).await;
    Ok(())
}

/// A node that cannot keep its keys goes on with them: they are for its next start.
async fn keep(kept: &Arc<Kept>, answer: Answer) {
    let kept = Arc::clone(kept);
    let written = tokio::task::spawn_blocking(move || kept.write(&answer)).await;
    if let Err(error) = written.unwrap_or_else(|error| Err(error.into())) {
        tracing::warn!(error = format!("{error:#}"), "the keys were not kept");
    }
}
