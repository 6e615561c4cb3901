//! What has to be done now and then: forgetting, health, keeping ids ahead of a restart.

use std::sync::Arc;
use std::time::Duration;

use bus::topic;
use proto::time::Wall;
use tokio_util::sync::CancellationToken;

use crate::announce::AnnounceError;
use crate::desk::Desk;
use crate::online::Online;
use crate::site::Site;
use crate::store::StoreError;
use crate::store::rows::Over;
use crate::sweep::Memory;

/// How often memory is swept and the buses are looked at.
const SWEEP: Duration = Duration::from_secs(1);
/// How often the bus is asked again to take what it refused, in sweeps.
const SWEEPS_PER_TRY: u32 = 5;
/// How often the store is swept, in sweeps.
const SWEEPS_PER_PURGE: u32 = 20;
/// How far ahead of the clock ids are promised to be drawn before the next promise.
pub(crate) const PROMISE: Duration = Duration::from_secs(60);

/// Who is in a single-device room is remembered so much longer than a session lives: clocks differ,
/// and a refresh may be late.
const DEVICE_SLACK: Duration = Duration::from_mins(10);
/// Pages of those, of acts and of records, that are looked at in one purge: 10,000 rows, so a million within
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
    pub(crate) memory: Arc<Memory>,
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
        let mut is_refused = false;
        loop {
            self.desk.gauge();
            self.memory.gauge(site);
            self.online.expire(site.clock.mono());
            site.global.probe(topic::control()).await;
            site.local.probe(topic::uplink(site.config.unit)).await;
            // What the bus refuses may be much, and have no place for long.
            if !is_refused || sweeps % SWEEPS_PER_TRY == 0 {
                is_refused = self.tell_waiting().await;
            }
            sweeps += 1;
            if sweeps >= SWEEPS_PER_PURGE {
                sweeps = 0;
                self.purge(site.clock.wall(), &mut marks).await;
            }
            site.clock.sleep(SWEEP).await;
        }
    }

    /// Whether the bus refuses something.
    async fn tell_waiting(&self) -> bool {
        let told = self.site.tell_waiting().await;
        match &told {
            Ok(()) => self.site.told.ok(),
            Err(error) => {
                self.site.told.fail(format!("not everyone knows what is written: {error}"));
            }
        }
        told.is_err_and(|it| it.is_refusal())
    }

    /// Each on its own: what cannot be read of one does not stop the others.
    async fn purge(&self, now: Wall, marks: &mut Marks) {
        let Site { rows, config, .. } = &*self.site;
        let floor = self.desk.floor().max(now) + PROMISE;
        let life = Duration::from_secs(config.session_life_s_max.into()) + DEVICE_SLACK;
        let audit_life = DAY * config.audit_days;
        let purges = [
            rows.write_floor(config.shard, floor).await,
            rows.purge_keys(now).await,
            through(&mut marks.devices, |after| rows.purge_devices(now, life, after)).await,
            through(&mut marks.acts, |after| rows.purge_acts(now, after)).await,
            through(&mut marks.records, |after| rows.purge_records(now, audit_life, after)).await,
        ];
        for error in purges.into_iter().filter_map(Result::err) {
            tracing::warn!(%error, "the room store cannot be swept");
        }
        match rows.over(now, DAY * config.closed_room_days).await {
            Ok(rooms) => {
                for over in rooms {
                    if let Err(error) = self.forget(over, now).await {
                        tracing::warn!(%error, "a closed room cannot be forgotten");
                    }
                }
            }
            Err(error) => tracing::warn!(%error, "closed rooms cannot be found"),
        }
    }

    /// Forgets a room. Everyone is told first that what was said in it has ended: whoever knows it
    /// would hold it against a later room of the name. Should this end in between, it goes on from
    /// the room's mark.
    async fn forget(&self, over: Over, now: Wall) -> Result<(), AnnounceError> {
        let Site { rows, .. } = &*self.site;
        while let Some(past) = rows.past(&over).await? {
            self.site.tell_ends(&past.ends).await?;
            if !rows.remove_past(past).await? {
                // Somebody writes there; the next purge goes on.
                return Ok(());
            }
        }
        rows.forget(over, now).await?;
        Ok(())
    }
}

/// Some pages of a purge, from `mark` on.
async fn through<F>(
    mark: &mut Option<String>,
    purge: impl Fn(Option<String>) -> F,
) -> Result<(), StoreError>
where
    F: Future<Output = Result<Option<String>, StoreError>>,
{
    for _ in 0..PAGES {
        *mark = purge(mark.clone()).await?;
        if mark.is_none() {
            break;
        }
    }
    Ok(())
}
