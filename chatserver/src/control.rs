//! What everyone must know, from `control` to the shard.

use std::sync::Arc;
use std::time::Duration;

use bus::{At, Bus, Offset, PartitionNo, ReadError, Tail, Tailed, topic};
use chatserver_core::shard::Input;
use proto::control::Fact;
use tokio_util::sync::CancellationToken;

use crate::desk::Desk;
use crate::devices::Devices;
use crate::lately::Recent;
use crate::lists::Lists;
use crate::site::Site;
use crate::store::rows::Scope;

/// Facts of one turn.
const RECORDS_MAX: usize = 500;
/// Pause after the store or the bus was away.
const PAUSE: Duration = Duration::from_millis(200);
/// How long nothing may come before what was there at the start counts as read: its last records
/// may have been compacted away.
const QUIET: Duration = Duration::from_secs(2);

/// The reader of `control`.
#[derive(Debug)]
pub(crate) struct Control {
    pub(crate) site: Arc<Site>,
    pub(crate) desk: Arc<Desk>,
    pub(crate) devices: Arc<Devices>,
    pub(crate) lists: Arc<Lists>,
    pub(crate) recent: Arc<Recent>,
}

impl Control {
    /// Tells what the store knows, then learns what everyone knows, until `shutdown`. Cancels
    /// `ready` when it has caught up: nobody may be judged by rooms and mutes not yet heard of.
    pub(crate) async fn run(
        self,
        ready: CancellationToken,
        shutdown: CancellationToken,
    ) -> anyhow::Result<()> {
        tokio::select! {
            () = shutdown.cancelled() => Ok(()),
            () = self.follow(ready) => Ok(()),
        }
    }

    async fn follow(&self, ready: CancellationToken) {
        while let Err(error) = self.lists.load_all().await {
            tracing::warn!(%error, "the lists of words cannot be read");
            self.site.clock.sleep(PAUSE).await;
        }
        while let Err(error) = self.site.tell_all().await {
            tracing::warn!(%error, "the rooms cannot be announced");
            self.site.clock.sleep(PAUSE).await;
        }
        let (mut tail, end) = loop {
            match open(self.site.global.bus()).await {
                Ok(opened) => break opened,
                Err(error) => tracing::warn!(%error, "control cannot be read"),
            }
            self.site.clock.sleep(PAUSE).await;
        };
        let mut next = Offset(0);
        loop {
            if next >= end {
                ready.cancel();
            }
            let tailed = tokio::select! {
                tailed = tail.next(RECORDS_MAX) => tailed,
                () = self.site.clock.sleep(QUIET), if !ready.is_cancelled() => {
                    ready.cancel();
                    continue;
                }
            };
            match tailed {
                Ok(Tailed::Records(records)) => {
                    next = records.last().map_or(next, |it| Offset(it.offset.0 + 1));
                    self.desk.learn(records.iter().filter_map(|it| self.decode(&it.value)));
                }
                Ok(Tailed::Skipped { records, .. }) => self.site.counts.skipped.inc_by(records),
                // The tail pauses by itself; upkeep tells the health.
                Err(_) => {}
            }
        }
    }

    fn decode(&self, value: &[u8]) -> Option<Input> {
        let fact = Fact::decode(value);
        match &fact {
            Ok(Fact::Words { app, room, version }) => {
                self.lists.hear(Scope { app: *app, room: room.clone() }, *version);
            }
            Ok(fact) => {
                self.devices.learn(fact);
                self.recent.learn(fact, self.site.now());
            }
            Err(_) => self.site.counts.damaged.inc(),
        }
        fact.ok().map(Input::Fact)
    }
}

async fn open(bus: Arc<dyn Bus>) -> Result<(Tail, Offset), ReadError> {
    let control = topic::control();
    let end = bus.locate(control.clone(), PartitionNo(0), At::End).await?;
    let all = Tail::all(&control);
    Ok((Tail::open(bus, control, all, At::Oldest).await?, end))
}
