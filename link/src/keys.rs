//! Fetching this node's keys from the auth service, for as long as it takes.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, ensure};
use auth_core::keyring::LinkKeyring;
use kit::health::Part;
use proto::keys::{LinkKeys, LinkKeysRequest};
use proto::time::millis;

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

/// Where keys come from.
pub(crate) struct Source {
    pub(crate) client: reqwest::Client,
    pub(crate) addresses: Vec<String>,
}

/// Fetches for ever; the part fails while no login is possible.
pub(crate) async fn run(node: Arc<Node>, source: Source, part: Part) -> anyhow::Result<()> {
    let mut retry_ms = RETRY_MS.0;
    loop {
        let fetched = fetch(&node, &source).await;
        let horizon_s = node.door.horizon_s(node.clock.wall());
        node.counts.horizon_s.set(i64::try_from(horizon_s).unwrap_or(i64::MAX));
        node.counts.key_fetch(if fetched.is_ok() { "ok" } else { "failed" });
        if horizon_s > 0 {
            part.ok();
        } else {
            part.fail("no keys for the running epoch");
        }
        match fetched {
            Ok(()) if horizon_s > 0 => {
                retry_ms = RETRY_MS.0;
                node.clock.sleep(REST).await;
                let rest_ms = node.draw_ms(FETCH_EVERY_MS / 2, FETCH_EVERY_MS);
                let rest = node.clock.sleep(Duration::from_millis(u64::from(rest_ms)));
                tokio::select! {
                    () = node.door.refetch.notified() => {}
                    () = rest => {}
                }
            }
            Ok(()) => wait(&node, &mut retry_ms).await,
            Err(error) => {
                tracing::warn!(error = format!("{error:#}"), horizon_s, "no keys were fetched");
                wait(&node, &mut retry_ms).await;
            }
        }
    }
}

/// Full jitter, so that a fleet does not knock in step.
async fn wait(node: &Node, retry_ms: &mut u32) {
    let pause_ms = node.draw_ms(RETRY_MS.0 / 2, *retry_ms);
    *retry_ms = retry_ms.saturating_mul(2).min(RETRY_MS.1);
    node.clock.sleep(Duration::from_millis(u64::from(pause_ms))).await;
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
    node.door.replace_keys(LinkKeyring::new(&keys).context("the keys are not usable")?);
    tracing::debug!(tokens = keys.tokens.len(), ms = millis(REST), "fetched keys");
    Ok(())
}
