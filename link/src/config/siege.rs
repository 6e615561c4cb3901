//! When a node counts as attacked.

use anyhow::ensure;
use link_core::siege::Rules;
use serde::{Deserialize, Serialize};

use super::ms;

/// When a node counts as attacked. `[link.siege]`.
///
/// It gets no new viewers then, and its sessions are moved to reserve addresses of other nodes.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields, rename_all = "snake_case")]
pub struct Siege {
    /// Whether it ever does.
    pub enabled: bool,
    /// Connections a second that come to nothing before a login, or find no place: fewer are no
    /// attack. More than one address may make, `address_handshakes_per_s`, so that nobody alone
    /// sends a node's viewers away.
    pub failures_per_s_min: u32,
    /// So many of them for each login, at least: a rush in which viewers log in is no attack.
    pub failures_per_login_min: u32,
    /// Milliseconds that an attack must last. Above 1,000, so that the burst that one address may
    /// make passes by.
    pub onset_ms: u32,
    /// Milliseconds without any sign of it until the node is taken for well again. Viewers return
    /// slowly from then on; attackers who come in waves need a longer one.
    pub calm_ms: u32,
}

impl Default for Siege {
    fn default() -> Self {
        Self {
            enabled: true,
            failures_per_s_min: 500,
            failures_per_login_min: 10,
            onset_ms: 1_500,
            calm_ms: 30_000,
        }
    }
}

impl Siege {
    /// Refuses what would make every node a besieged one.
    pub(super) fn check(&self) -> anyhow::Result<()> {
        let Self { failures_per_s_min, failures_per_login_min, .. } = *self;
        ensure!(failures_per_s_min > 0, "siege: failures_per_s_min is 0");
        ensure!(failures_per_login_min > 0, "siege: failures_per_login_min is 0");
        Ok(())
    }

    /// None if it never does.
    pub(crate) fn rules(&self) -> Option<Rules> {
        self.enabled.then(|| Rules {
            failures_per_s_min: self.failures_per_s_min,
            failures_per_login_min: self.failures_per_login_min,
            onset: ms(self.onset_ms),
            calm: ms(self.calm_ms),
        })
    }
}
