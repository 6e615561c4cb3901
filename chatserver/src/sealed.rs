//! What became of items, from `sealed` to those who asked and to the journal.

use std::sync::Arc;
use std::time::Duration;

use bus::{At, Record, Tail, Tailed, topic};
use chatserver_core::shard::Input;
use proto::envelope::RoomBatch;
use tokio_util::sync::CancellationToken;

use crate::desk::Desk;
use crate::keeper::Keeper;
use crate::lately::Recent;
use crate::site::Site;
use crate::sweep::Memory;

/// Records of one turn.
const RECORDS_MAX: usize = 100;
/// How far back it begins: what was shown while this process was away closes its journal entries.
const BACK: Duration = Duration::from_secs(60);
/// Pause after the bus was away.
const PAUSE: Duration = Duration::from_millis(200);

/// The reader of `sealed`.
#[derive(Debug)]
pub(crate) struct Sealed {
    pub(crate) site: Arc<Site>,
    pub(crate) desk: Arc<Desk>,
    pub(crate) keeper: Arc<Keeper>,
    pub(crate) recent: Arc<Recent>,
    pub(crate) memory: Arc<Memory>,
}

impl Sealed {
    /// Follows until `shutdown`.
    pub(crate) async fn run(self, shutdown: CancellationToken) -> anyhow::Result<()> {
        tokio::select! {
            () = shutdown.cancelled() => Ok(()),
            () = self.follow() => Ok(()),
        }
    }

    async fn follow(&self) {
        let sealed = topic::sealed();
        let mut tail = loop {
            let at = At::Time(self.site.clock.wall() - BACK);
            let all = Tail::all(&sealed);
            match Tail::open(self.site.global.bus(), sealed.clone(), all, at).await {
                Ok(tail) => break tail,
                Err(error) => tracing::warn!(%error, "sealed cannot be read"),
            }
            self.site.clock.sleep(PAUSE).await;
        };
        loop {
            match tail.next(RECORDS_MAX).await {
                Ok(Tailed::Records(records)) => {
                    for record in &records {
                        self.take(record).await;
                    }
                }
                Ok(Tailed::Skipped { records, .. }) => self.site.counts.skipped.inc_by(records),
                // The tail pauses by itself; upkeep tells the health.
                Err(_) => {}
            }
        }
    }

    async fn take(&self, record: &Record) {
        let Ok(RoomBatch { entries }) = RoomBatch::decode(&record.value) else {
            self.site.counts.damaged.inc();
            return;
        };
        self.keeper.see(record.partition, &entries).await;
        self.desk.see(&entries);
        let now = self.site.clock.mono();
        self.recent.see(&entries, now);
        self.memory.see(&entries, now);
        self.desk.act(entries.into_iter().map(Input::Event).collect()).await;
    }
}
