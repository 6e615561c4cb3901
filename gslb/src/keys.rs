//! The master keys, fetched from the auth service again and again.
//!
//! There is no last attempt: without masters nobody enters, and what is held stays good for as
//! long as epochs come.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use auth_core::secret::Secret;
use channel::ClientTls;
use kit::clock::Clock;
use kit::meter::{Meter, list};
use proto::enter::Retry;
use proto::id::NodeId;
use proto::keys::Masters;
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use reqwest::redirect::Policy;
use tokio_util::sync::CancellationToken;

use crate::known::Known;

/// Time between two fetches that succeed: a new master is in use everywhere within two of them.
const REFRESH: Duration = Duration::from_secs(60);
/// Time for one fetch, its connection included.
const FETCH_MAX: Duration = Duration::from_secs(5);
/// Bytes of the answer: eight masters have less than one KiB.
const ANSWER_BYTES_MAX: usize = 16 * 1024;
/// After a failure.
const BACK_OFF: Retry = Retry { base_ms: 100, max_ms: 5_000, factor: 2.0, jitter: 0.5 };

/// Who fetches, and where.
#[derive(Debug)]
pub(crate) struct Fetcher {
    client: reqwest::Client,
    url: String,
    node: NodeId,
    secret: Secret,
}

impl Fetcher {
    pub(crate) fn new(
        auth_url: &str,
        node: NodeId,
        secret: Secret,
        tls: &ClientTls,
    ) -> anyhow::Result<Self> {
        let client = reqwest::Client::builder()
            .tls_backend_preconfigured(tls.config())
            .https_only(true)
            .redirect(Policy::none())
            .no_proxy()
            .timeout(FETCH_MAX)
            .build()
            .context("the client for the auth service could not be set up")?;
        let url = format!("{}/v1/keys/masters", auth_url.trim_end_matches('/'));
        Ok(Self { client, url, node, secret })
    }

    async fn fetch(&self) -> anyhow::Result<Masters> {
        let request = self.client.post(&self.url).bearer_auth(self.secret.expose());
        let request = request.header("x-barrage-node", self.node.to_string());
        let mut response = request.send().await?;
        if !response.status().is_success() {
            bail!("the auth service answered {}", response.status());
        }
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await? {
            ensure!(body.len() + chunk.len() <= ANSWER_BYTES_MAX, "the answer is too long");
            body.extend_from_slice(&chunk);
        }
        serde_json::from_slice(&body).context("the answer holds no masters")
    }
}

/// Fetches until `shutdown`.
pub(crate) async fn keep(
    fetcher: Fetcher,
    known: Arc<Known>,
    clock: Clock,
    meter: Meter,
    seed: u64,
    shutdown: CancellationToken,
) -> anyhow::Result<()> {
    let count = |outcome| meter.counter(list::GSLB_MASTERS_FETCHES_TOTAL, &[outcome]);
    let (ok, failed) = (count("ok"), count("failed"));
    let mut rng = SmallRng::seed_from_u64(seed);
    let mut failures = 0;
    loop {
        let fetched = tokio::select! {
            fetched = fetcher.fetch() => fetched,
            () = shutdown.cancelled() => return Ok(()),
        };
        let taken = fetched.and_then(|it| Ok(known.keys.replace_masters(&it, clock.wall())?));
        let pause = match taken {
            Ok(()) => {
                ok.inc();
                failures = 0;
                REFRESH
            }
            Err(error) => {
                failed.inc();
                let error = format!("{error:#}");
                tracing::warn!(failures, error, "the master keys could not be fetched");
                failures += 1;
                back_off(failures, &mut rng)
            }
        };
        tokio::select! {
            () = clock.sleep(pause) => {}
            () = shutdown.cancelled() => return Ok(()),
        }
    }
}

/// The wait after the n-th failure in a row.
fn back_off(failures: i32, rng: &mut SmallRng) -> Duration {
    let Retry { base_ms, max_ms, factor, jitter } = BACK_OFF;
    let full = f64::from(base_ms) * f64::from(factor).powi(failures - 1);
    let full = full.min(f64::from(max_ms));
    Duration::from_secs_f64(full * (1.0 - f64::from(jitter) * rng.random::<f64>()) / 1000.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wait_grows_to_its_bound_and_is_spread() {
        let mut rng = SmallRng::seed_from_u64(1);

        let mut check = |failures, min_ms, max_ms| {
            for _ in 0..100 {
                let wait = back_off(failures, &mut rng);
                assert!((min_ms..=max_ms).contains(&wait.as_millis()), "{failures}: {wait:?}");
            }
        };

        check(1, 50, 100);
        check(4, 400, 800);
        check(1_000_000, 2_500, 5_000);
    }
}
