//! The master keys, fetched from the auth service again and again, with a copy on disk.
//!
//! There is no last attempt: without masters nobody enters, and what is held stays good for as
//! long as epochs come.

mod copy;

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use auth_core::secret::Secret;
use channel::ClientTls;
use kit::clock::Clock;
use kit::meter::{Meter, list};
use prometheus::IntCounter;
use proto::enter::Retry;
use proto::id::NodeId;
use proto::keys::Masters;
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use reqwest::redirect::Policy;
use tokio_util::sync::CancellationToken;

use crate::known::Known;

pub(crate) use copy::Copy;

/// Time between two fetches while nothing is missing.
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

/// Keeps the masters new: by the clock, and at once when an epoch names one that is not held.
#[derive(Debug)]
pub(crate) struct Keeper {
    fetcher: Fetcher,
    copy: Copy,
    /// What the copy holds.
    saved: Option<Masters>,
    known: Arc<Known>,
    clock: Clock,
    ok: IntCounter,
    failed: IntCounter,
    unsaved: IntCounter,
}

impl Keeper {
    /// Begins with the copy, if there is one: the auth service may be away. Blocks for file access.
    ///
    /// # Errors
    /// When others could use the copy.
    pub(crate) fn new(
        fetcher: Fetcher,
        copy: Copy,
        known: Arc<Known>,
        clock: Clock,
        meter: &Meter,
    ) -> anyhow::Result<Self> {
        let saved = copy.load()?;
        if let Some(masters) = &saved {
            known.keys.replace_masters(masters).context("the copy of the masters is damaged")?;
        }
        let count = |outcome| meter.counter(list::GSLB_MASTERS_FETCHES_TOTAL, &[outcome]);
        let (ok, failed, unsaved) = (count("ok"), count("failed"), count("unsaved"));
        Ok(Self { fetcher, copy, saved, known, clock, ok, failed, unsaved })
    }

    /// Fetches until `shutdown`.
    pub(crate) async fn keep(
        mut self,
        seed: u64,
        shutdown: CancellationToken,
    ) -> anyhow::Result<()> {
        let mut rng = SmallRng::seed_from_u64(seed);
        let mut tries = 0;
        loop {
            let has_all = tokio::select! {
                has_all = self.fetch() => has_all,
                () = shutdown.cancelled() => return Ok(()),
            };
            tries = if has_all { 0 } else { tries + 1 };
            let pause = if has_all { REFRESH } else { back_off(tries, &mut rng) };
            tokio::select! {
                () = self.clock.sleep(pause) => {}
                () = self.known.keys.wanted() => {}
                () = shutdown.cancelled() => return Ok(()),
            }
        }
    }

    /// Fetches once; whether every master is held then that an epoch names.
    async fn fetch(&mut self) -> bool {
        let fetched = self.fetcher.fetch().await.and_then(|masters| {
            self.known.keys.replace_masters(&masters)?;
            Ok(masters)
        });
        match fetched {
            Ok(masters) => {
                self.ok.inc();
                self.save(masters).await;
                !self.known.keys.wants(self.clock.wall())
            }
            Err(error) => {
                self.failed.inc();
                let error = format!("{error:#}");
                tracing::warn!(error, "the master keys could not be fetched");
                false
            }
        }
    }

    /// Writes the copy if it would change.
    async fn save(&mut self, masters: Masters) {
        if self.saved.as_ref() == Some(&masters) {
            return;
        }
        let (copy, saving) = (self.copy.clone(), masters.clone());
        let saved = tokio::task::spawn_blocking(move || copy.save(&saving)).await;
        match saved.map_err(anyhow::Error::from).flatten() {
            Ok(()) => self.saved = Some(masters),
            Err(error) => {
                self.unsaved.inc();
                let error = format!("{error:#}");
                tracing::warn!(error, "the copy of the master keys was not written");
            }
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
