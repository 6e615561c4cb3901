//! `[chatserver.outward]`: how business servers are called.

use std::path::PathBuf;

use anyhow::ensure;
use chatserver_core::reach::{NETWORKS_MAX, Reach};
use serde::{Deserialize, Serialize};

/// How business servers are called, for reviews and events.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields, rename_all = "snake_case")]
pub struct OutwardConfig {
    /// Networks, such as `10.1.0.0/16`, that may be called besides the public internet: where the
    /// business servers are, and nothing else. Loopback is called only if it stands here.
    pub networks: Reach,
    /// File with the authorities (PEM) that business servers' certificates are believed by. Read at
    /// start, and only if somebody is to be called.
    pub ca: PathBuf,
}

impl Default for OutwardConfig {
    fn default() -> Self {
        Self { networks: Reach::default(), ca: PathBuf::from("/etc/ssl/certs/ca-certificates.crt") }
    }
}

impl OutwardConfig {
    /// Checks what the types do not.
    ///
    /// # Errors
    /// Says which value, and why.
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        ensure!(
            self.networks.len() <= NETWORKS_MAX,
            "outward.networks takes at most {NETWORKS_MAX} networks"
        );
        Ok(())
    }
}
