//! When those ask again for whom there was no place.

use anyhow::ensure;
use serde::{Deserialize, Serialize};

/// When viewers ask again for whom the fleet has no place, and clients when this process has more
/// questions than it takes. `[gslb.full]`.
///
/// Each is told another moment, so that a million who came together do not come back together.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields, rename_all = "snake_case")]
pub struct Full {
    /// So many a second are told to come back. Give what the fleet can log in a second, divided by
    /// the number of gslb processes: fewer keep viewers waiting for places that are free.
    pub returns_per_s: u32,
    /// Milliseconds that everybody waits at least.
    pub wait_ms_min: u32,
    /// Milliseconds that nobody waits longer than. When so many wait that the last would, later
    /// ones are spread over the whole time, and more than `returns_per_s` come back.
    pub wait_ms_max: u32,
}

impl Full {
    pub(super) fn check(&self) -> anyhow::Result<()> {
        let Self { returns_per_s, wait_ms_min, wait_ms_max } = *self;
        ensure!(
            (1..=1_000_000).contains(&returns_per_s),
            "returns_per_s: {returns_per_s} is not 1 to a million"
        );
        ensure!(
            wait_ms_min > 0 && wait_ms_min < wait_ms_max,
            "wait_ms_min: {wait_ms_min} is not 1 to wait_ms_max, {wait_ms_max}"
        );
        Ok(())
    }
}

impl Default for Full {
    fn default() -> Self {
        Self { returns_per_s: 2_000, wait_ms_min: 1_000, wait_ms_max: 120_000 }
    }
}
