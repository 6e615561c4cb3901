//! Whether this process can send viewers anywhere: keys, a new snapshot, nodes in it.

use std::sync::Arc;
use std::time::Duration;

use kit::clock::Clock;
use kit::health::{Health, Part};
use kit::meter::{Meter, list};
use prometheus::IntGauge;
use tokio_util::sync::CancellationToken;

use crate::known::Known;

/// Between two looks.
const LOOK_MS: u32 = 250;
/// Older than this, a snapshot says nothing about the fleet any more.
const SNAPSHOT_AGE_MAX: Duration = Duration::from_secs(1);

/// Looks at what answers depend on, and tells `/readyz`.
#[derive(Debug)]
pub(crate) struct Watch {
    known: Arc<Known>,
    clock: Clock,
    keys: Part,
    snapshot: Part,
    fleet: Part,
    /// Below it `/readyz` warns.
    horizon_min: Duration,
    horizon: IntGauge,
    control_age: IntGauge,
}

impl Watch {
    pub(crate) fn new(
        known: &Arc<Known>,
        horizon_s_min: u32,
        clock: Clock,
        health: &Health,
        meter: &Meter,
    ) -> Self {
        Self {
            known: Arc::clone(known),
            clock,
            keys: health.part("gslb.keys"),
            snapshot: health.part("gslb.snapshot"),
            fleet: health.part("gslb.fleet"),
            horizon_min: Duration::from_secs(horizon_s_min.into()),
            horizon: meter.gauge(list::GSLB_KEYS_HORIZON_SECONDS, &[]),
            control_age: meter.gauge(list::GSLB_CONTROL_AGE_SECONDS, &[]),
        }
    }

    /// Looks until `shutdown`.
    pub(crate) async fn keep(self, shutdown: CancellationToken) -> anyhow::Result<()> {
        let mut timer = crate::every(LOOK_MS);
        loop {
            tokio::select! {
                _ = timer.tick() => self.look(),
                () = shutdown.cancelled() => return Ok(()),
            }
        }
    }

    fn look(&self) {
        let now = self.clock.wall();
        self.known.revocations.write().tick(now);
        if let Some(age) = self.known.control.age(self.clock.mono()) {
            self.control_age.set(seconds(age));
        }
        let keys = self.known.keys.current();
        let horizon = keys.as_ref().map_or(Duration::ZERO, |it| it.keyring().horizon(now));
        self.horizon.set(seconds(horizon));
        if keys.is_none() {
            self.keys.fail("no master keys");
        } else if horizon.is_zero() {
            self.keys.fail("no key for the running epoch");
        } else if horizon < self.horizon_min {
            self.keys.warn(format!("epochs are known for {} s only", horizon.as_secs()));
        } else {
            self.keys.ok();
        }

        let sight = self.known.sight();
        let snapshot = &sight.snapshot;
        if self.clock.mono().since(snapshot.planned_at()) > SNAPSHOT_AGE_MAX {
            self.snapshot.fail("the snapshot is older than a second");
        } else {
            self.snapshot.ok();
        }
        if snapshot.taking() == 0 {
            self.fleet.fail("no link node takes viewers");
        } else {
            self.fleet.ok();
        }
    }
}

fn seconds(duration: Duration) -> i64 {
    i64::try_from(duration.as_secs()).unwrap_or(i64::MAX)
}
