//! When a node counts as attacked.

use anyhow::ensure;
use link_core::siege::{Rules, WINDOW};
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
    /// attack. What the node refuses for reasons of its own, such as being full, does not count.
    pub failures_per_s_min: u32,
    /// So many of them for each login, at least: a rush in which viewers log in is no attack.
    pub failures_per_login_min: u32,
    /// Addresses, or /64 of IPv6, that an attack comes from, at least: one has no more than its
    /// share of `handshakes_max` and of `failures_per_s_min`, so that few send no node's viewers
    /// away. Attacks from twice as many are noticed for certain. More makes NATs wait oftener. No
    /// shares are for loopback, where terminators are, nor if `address_handshakes_per_s` is 0; what
    /// a terminator's own connections do is for it to bound. 1 behind terminators on other machines.
    pub sites_min: u32,
    /// Milliseconds that an attack must last; above 1,000, so that one burst is none.
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
            sites_min: 8,
            onset_ms: 1_500,
            calm_ms: 30_000,
        }
    }
}

impl Siege {
    /// Refuses what would make every node a besieged one.
    pub(super) fn check(&self, handshakes_max: u32) -> anyhow::Result<()> {
        let Self { failures_per_s_min, failures_per_login_min, sites_min, onset_ms, .. } = *self;
        ensure!(failures_per_s_min > 0, "siege: failures_per_s_min is 0");
        ensure!(failures_per_login_min > 0, "siege: failures_per_login_min is 0");
        ensure!(sites_min > 0, "siege: sites_min is 0");
        ensure!(
            !self.enabled || sites_min <= handshakes_max,
            "siege: sites_min is over handshakes_max: one address would hold more than its share"
        );
        ensure!(
            !self.enabled || ms(onset_ms) > WINDOW,
            "siege: onset_ms must be over {}: one burst would be an attack",
            WINDOW.as_millis()
        );
        Ok(())
    }

    /// Connections of one address that count as signs, a second. Half a share: of any second of
    /// time, two counted ones have a part.
    pub(crate) fn site_signs_max(&self) -> u32 {
        (self.failures_per_s_min / self.sites_min / 2).max(1)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Config;

    #[test]
    fn nobody_alone_besieges_a_node_with_what_passes() {
        let config = Config::default();
        let Siege { sites_min, failures_per_s_min, .. } = config.siege;

        assert!(sites_min > 1);
        assert!(config.site_places_max() * sites_min <= config.handshakes_max);
        assert!(config.siege.site_signs_max() * 2 * sites_min <= failures_per_s_min);
        let refused = |siege: Siege| siege.check(100).unwrap_err().to_string();
        assert!(refused(Siege { sites_min: 101, ..Siege::default() }).contains("sites_min"));
        assert!(refused(Siege { onset_ms: 1_000, ..Siege::default() }).contains("onset_ms"));
    }

    #[test]
    fn without_a_limit_on_addresses_one_may_hold_every_place() {
        let config = Config { address_handshakes_per_s: 0, ..Config::default() };

        assert_eq!(config.site_places_max(), config.handshakes_max);
    }
}
