//! What has to be done now and then: forgetting, health, keeping ids ahead of a restart.

use std::sync::Arc;
use std::time::Duration;

use bus::topic;
use proto::time::Wall;
use tokio_util::sync::CancellationToken;

use crate::desk::Desk;
use crate::online::Online;
use crate::site::Site;
use crate::store::StoreError;

/// How often memory is swept and the buses are looked at.
const SWEEP: Duration = Duration::from_secs(1);
/// How often the store is swept, in sweeps.
const SWEEPS_PER_PURGE: u32 = 20;
/// How far ahead of the clock ids are promised to be drawn before the next promise.
pub(crate) const PROMISE: Duration = Duration::from_secs(60);

/// Who is in a single-device room is remembered so much longer than a session lives: clocks differ,
/// and a refresh may be late.
const DEVICE_SLACK: Duration = Duration::from_mins(10);
/// Pages of those that are looked at in one purge: 10,000 rows, so a million within 35 minutes.
const DEVICE_PAGES: usize = 20;

/// Who sweeps.
#[derive(Debug)]
pub(crate) struct Upkeep {
    pub(crate) site: Arc<Site>,
    pub(crate) desk: Arc<Desk>,
    pub(crate) online: Arc<Online>,
}

impl Upkeep {
    /// Sweeps until `shutdown`.
    pub(crate) async fn run(self, shutdown: CancellationToken) -> anyhow::Result<()> {
        tokio::select! {
            () = shutdown.cancelled() => Ok(()),
            () = self.sweep() => Ok(()),
        }
    }

    async fn sweep(&self) {
        let site = &self.site;
        let mut sweeps = 0;
        let mut devices_after = None;
        loop {
            self.desk.tick();
            self.online.expire(site.clock.mono());
            site.global.probe(topic::control()).await;
            site.local.probe(topic::uplink(site.config.unit)).await;
            sweeps += 1;
            if sweeps >= SWEEPS_PER_PURGE {
                sweeps = 0;
                let purged = self.purge(site.clock.wall(), &mut devices_after).await;
                if let Err(error) = purged {
                    tracing::warn!(%error, "the room store cannot be swept");
                }
            }
            site.clock.sleep(SWEEP).await;
        }
    }

    async fn purge(&self, now: Wall, after: &mut Option<String>) -> Result<(), StoreError> {
        let Site { rows, config, .. } = &*self.site;
        rows.write_floor(config.shard, self.desk.floor().max(now) + PROMISE).await?;
        rows.purge_acts(now).await?;
        rows.purge_keys(now).await?;
        let life = Duration::from_secs(config.session_life_s_max.into()) + DEVICE_SLACK;
        for _ in 0..DEVICE_PAGES {
            *after = rows.purge_devices(now, life, after.take()).await?;
            if after.is_none() {
                break;
            }
        }
        Ok(())
    }
}
