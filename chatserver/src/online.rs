//! Who is in a room, as the links count.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bus::{At, Tail, Tailed, topic};
use chatserver_core::shard::Input;
use parking_lot::Mutex;
use proto::envelope::{LinkGauges, RoomGauge};
use proto::id::{AppId, NodeId, RoomId};
use proto::time::Mono;
use serde::Serialize;
use tokio_util::sync::CancellationToken;

use crate::desk::Desk;
use crate::site::Site;

/// How long a link's count holds; it comes every second.
const LIFE: Duration = Duration::from_secs(5);
/// Counts kept, one for each room on each link, about 200 bytes each; more are passed over.
const GAUGES_MAX: usize = 500_000;
/// Records of one turn.
const RECORDS_MAX: usize = 100;
/// Pause after the bus was away.
const PAUSE: Duration = Duration::from_millis(200);

/// What is in a room.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize)]
pub(crate) struct Count {
    /// Viewers; one with sessions on two links counts twice.
    pub(crate) people: u64,
    /// Sessions.
    pub(crate) sessions: u64,
}

/// A room on a link.
type Source = (AppId, RoomId, NodeId);

/// The newest counts of all links.
#[derive(Debug, Default)]
pub(crate) struct Online {
    gauges: Mutex<BTreeMap<Source, (Count, Mono)>>,
}

impl Online {
    /// Follows `gauges` until `shutdown`.
    pub(crate) async fn run(
        self: Arc<Self>,
        site: Arc<Site>,
        desk: Arc<Desk>,
        shutdown: CancellationToken,
    ) -> anyhow::Result<()> {
        tokio::select! {
            () = shutdown.cancelled() => Ok(()),
            () = self.follow(&site, &desk) => Ok(()),
        }
    }

    /// What is in a room now.
    pub(crate) fn count(&self, app: AppId, room: &RoomId, now: Mono) -> Count {
        let from = (app, room.clone(), NodeId(0))..=(app, room.clone(), NodeId(u32::MAX));
        let gauges = self.gauges.lock();
        let fresh = gauges.range(from).filter(|it| now.since(it.1.1) <= LIFE);
        fresh.fold(Count::default(), |sum, (_, (it, _))| Count {
            people: sum.people + it.people,
            sessions: sum.sessions + it.sessions,
        })
    }

    /// Forgets counts that nobody renews.
    pub(crate) fn expire(&self, now: Mono) {
        self.gauges.lock().retain(|_, it| now.since(it.1) <= LIFE);
    }

    async fn follow(&self, site: &Site, desk: &Desk) {
        let gauges = topic::gauges();
        let mut tail = loop {
            let all = Tail::all(&gauges);
            match Tail::open(site.global.bus(), gauges.clone(), all, At::End).await {
                Ok(tail) => break tail,
                Err(error) => tracing::warn!(%error, "gauges cannot be read"),
            }
            site.clock.sleep(PAUSE).await;
        };
        loop {
            match tail.next(RECORDS_MAX).await {
                Ok(Tailed::Records(records)) => {
                    for record in &records {
                        match LinkGauges::decode(&record.value) {
                            Ok(it) => {
                                desk.learn(offered(&it));
                                self.renew(it, site.clock.mono());
                            }
                            Err(_) => site.counts.damaged.inc(),
                        }
                    }
                }
                Ok(Tailed::Skipped { records, .. }) => site.counts.skipped.inc_by(records),
                // The tail pauses by itself; upkeep tells the health.
                Err(_) => {}
            }
        }
    }

    fn renew(&self, link: LinkGauges, now: Mono) {
        let mut gauges = self.gauges.lock();
        for RoomGauge { app, room, people, sessions, .. } in link.rooms {
            let key = (app, room, link.node);
            if gauges.len() < GAUGES_MAX || gauges.contains_key(&key) {
                let count = Count { people: people.into(), sessions: sessions.into() };
                gauges.insert(key, (count, now));
            }
        }
    }
}

/// What a link says that rooms were offered.
fn offered(link: &LinkGauges) -> impl Iterator<Item = Input> {
    link.rooms.iter().filter(|it| it.offered > 0).map(|it| Input::Offered {
        link: link.node,
        app: it.app,
        room: it.room.clone(),
        per_s: it.offered,
    })
}

#[cfg(test)]
mod tests {
    use proto::id::UnitId;
    use proto::time::Wall;

    use super::*;

    #[test]
    fn a_room_is_the_sum_of_its_links_newest_counts() {
        let online = Online::default();
        online.renew(gauges(1, 9), Mono(0));
        online.renew(gauges(1, 3), Mono(1000));
        online.renew(gauges(2, 4), Mono(2000));

        assert_eq!(count(&online, 2000), Count { people: 7, sessions: 14 });
        assert_eq!(count(&online, 6001), Count { people: 4, sessions: 8 });
        online.expire(Mono(7001));
        assert_eq!(online.gauges.lock().len(), 0);
    }

    fn gauges(node: u32, people: u32) -> LinkGauges {
        let room = RoomId::parse("r").unwrap();
        let gauge = RoomGauge { app: AppId(1), room, people, sessions: people * 2, offered: 0 };
        LinkGauges { node: NodeId(node), unit: UnitId(1), at: Wall(0), rooms: vec![gauge] }
    }

    fn count(online: &Online, now: u64) -> Count {
        online.count(AppId(1), &RoomId::parse("r").unwrap(), Mono(now))
    }
}
