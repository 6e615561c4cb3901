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
/// Pages of those, and of acts, that are looked at in one purge: 10,000 rows, so a million within
/// 35 minutes.
const PAGES: usize = 20;
const DAY: Duration = Duration::from_hours(24);

/// Where the next purge goes on.
#[derive(Debug, Default)]
struct Marks {
    devices: Option<String>,
    acts: Option<String>,
    records: Option<String>,
}

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
        let mut marks = Marks::default();
        loop {
            self.desk.gauge();
            self.online.expire(site.clock.mono());
            site.global.probe(topic::control()).await;
            site.local.probe(topic::uplink(site.config.unit)).await;
            sweeps += 1;
            if sweeps >= SWEEPS_PER_PURGE {
                sweeps = 0;
                let purged = self.purge(site.clock.wall(), &mut marks).await;
                if let Err(error) = purged {
                    tracing::warn!(%error, "the room store cannot be swept");
                }
            }
            site.clock.sleep(SWEEP).await;
        }
    }

    async fn purge(&self, now: Wall, marks: &mut Marks) -> Result<(), StoreError> {
        let Site { rows, config, .. } = &*self.site;
        rows.write_floor(config.shard, self.desk.floor().max(now) + PROMISE).await?;
        rows.purge_keys(now).await?;
        let life = Duration::from_secs(config.session_life_s_max.into()) + DEVICE_SLACK;
        for _ in 0..PAGES {
            marks.devices = rows.purge_devices(now, life, marks.devices.take()).await?;
            if marks.devices.is_none() {
                break;
            }
        }
        for _ in 0..PAGES {
            marks.acts = rows.purge_acts(now, marks.acts.take()).await?;
            if marks.acts.is_none() {
                break;
            }
        }
        rows.purge_rooms(now, DAY * config.closed_room_days).await?;
        let life = DAY * config.audit_days;
        marks.records = rows.purge_records(now, life, marks.records.take()).await?;
        Ok(())
    }
}
