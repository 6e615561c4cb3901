//! What an operator can set.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use anyhow::{Context, ensure};
use auth_core::app::App;
use auth_core::epochs::Plan;
use auth_core::policy;
use auth_core::sealed;
use auth_core::secret::Secret;
use kit::http::Limits;
use serde::{Deserialize, Serialize};

/// Bytes of the shortest operator key that is not worth guessing.
const OPERATOR_KEY_BYTES_MIN: usize = 32;

/// `[auth]`.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields, rename_all = "snake_case")]
pub struct Config {
    /// Where nodes fetch their keys, and operators call. Anything but loopback needs TLS.
    pub listen: SocketAddr,
    /// Folder of the sealed masters and of what operators said, mode 700. Two services share it,
    /// or each has a copy of `masters.sealed` that is renewed after a rotation.
    pub data: PathBuf,
    /// Secret that seals the masters on disk, at least 32 bytes, the same in all auth services.
    /// Without it the service does not start. Whoever has both, file and secret, can mint tokens
    /// for every link. Changing it makes the file unreadable.
    pub seal: Secret,
    /// Keys that open the operators' calls, at least 32 bytes each; several, so that one can be
    /// changed. Without any, nobody can call.
    pub operator_keys: Vec<Secret>,
    /// Length of an epoch, in seconds: one for the whole system, the same in all processes, since it
    /// is part of how tokens are keyed; no policy has one of its own. At least twice the
    /// `token_ttl_s` of every policy, of apps and of rooms, which is checked at start and when a
    /// policy is set: a policy of longer tokens needs longer epochs. Shorter epochs limit what a
    /// stolen link key is good for and cost one record and one key fetch each. Changing it voids
    /// all tokens.
    pub interval_s: u32,
    /// Token algorithms, of which each epoch takes one by chance: 1 HMAC-SHA-256, 2 HMAC-SM3,
    /// 3 HMAC-SHA-512/256. Verifying with 2 costs about five times as much as with 1.
    pub algs: Vec<u8>,
    /// Epochs known ahead, 1 to 16: logins survive that long without this service. A longer
    /// horizon makes a stolen link's keys good for longer.
    pub ahead: u32,
    /// Longest wait for an answer of the bus, in milliseconds; then it counts as away and is asked again.
    pub bus_ms_max: u32,
    /// The HTTP server's bounds.
    pub http: Limits,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 8003)),
            data: PathBuf::from("data/auth"),
            seal: Secret::default(),
            operator_keys: Vec::new(),
            interval_s: 600,
            algs: vec![1],
            ahead: 6,
            bus_ms_max: 5_000,
            http: Limits::default(),
        }
    }
}

impl Config {
    /// Refuses values that cannot work, for these apps. An empty `seal` passes: `up` draws one.
    ///
    /// # Errors
    /// Says which value, and why.
    pub fn check(&self, apps: &[App]) -> anyhow::Result<()> {
        self.plan()?;
        for app in apps {
            policy::check(&app.policy, self.interval_s)
                .with_context(|| format!("the policy of app {}", app.id))?;
        }
        let seal = self.seal.expose().len();
        ensure!(
            self.seal.is_empty() || seal >= sealed::SECRET_BYTES_MIN,
            "seal has {seal} bytes, fewer than {}",
            sealed::SECRET_BYTES_MIN,
        );
        for key in &self.operator_keys {
            let bytes = key.expose().len();
            ensure!(
                bytes >= OPERATOR_KEY_BYTES_MIN,
                "one of operator_keys has {bytes} bytes, fewer than {OPERATOR_KEY_BYTES_MIN}",
            );
        }
        ensure!(self.bus_ms_max > 0, "bus_ms_max is 0");
        Ok(())
    }

    /// How epochs are drawn. Policies, which say how long tokens live, are checked one by one.
    pub(crate) fn plan(&self) -> anyhow::Result<Plan> {
        const TTL_S_MIN: u16 = 1;
        Ok(Plan::new(self.interval_s, &self.algs, self.ahead, TTL_S_MIN)?)
    }
}
