//! The load table read, the next snapshot planned and put in place, every few milliseconds.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use gslb_core::fleet::Fleet;
use gslb_core::policy::Policy;
use gslb_core::snapshot::plan;
use kit::clock::Clock;
use kit::meter::{Meter, list};
use prometheus::{Histogram, IntCounter, IntGauge};
use proto::load::RegionLoads;
use tokio_util::sync::CancellationToken;

use crate::known::Known;
use crate::table::{LoadTable, Value};

/// Time for one read of the table. When it is over, the snapshot is planned without: leases must
/// expire also while the table is away.
const GET_MAX: Duration = Duration::from_millis(50);

/// Reads, plans, replaces.
#[derive(Debug)]
pub(crate) struct Sync {
    table: Arc<dyn LoadTable>,
    known: Arc<Known>,
    clock: Clock,
    policy: Policy,
    fleet: Fleet,
    /// The values as last read; an unchanged one is not decoded again.
    values: BTreeMap<Arc<str>, Bytes>,
    counts: Counts,
}

#[derive(Debug)]
struct Counts {
    get: IntCounter,
    decode: IntCounter,
    live: IntGauge,
    taking: IntGauge,
    age: Histogram,
}

impl Sync {
    pub(crate) fn new(
        table: Arc<dyn LoadTable>,
        known: Arc<Known>,
        fleet: Fleet,
        policy: Policy,
        clock: Clock,
        meter: &Meter,
    ) -> Self {
        let failures = |operation| meter.counter(list::GSLB_TABLE_FAILURES_TOTAL, &[operation]);
        let nodes = |state| meter.gauge(list::GSLB_NODES, &[state]);
        let counts = Counts {
            get: failures("get"),
            decode: failures("decode"),
            live: nodes("live"),
            taking: nodes("taking"),
            age: meter.histogram(list::GSLB_SNAPSHOT_AGE_SECONDS, &[]),
        };
        Self { table, known, clock, policy, fleet, values: BTreeMap::new(), counts }
    }

    /// Keeps the snapshot new until `shutdown`.
    pub(crate) async fn keep(
        mut self,
        snapshot_ms: u32,
        shutdown: CancellationToken,
    ) -> anyhow::Result<()> {
        let mut timer = crate::every(snapshot_ms);
        loop {
            tokio::select! {
                biased;
                () = shutdown.cancelled() => return Ok(()),
                _ = timer.tick() => {}
            }
            match tokio::time::timeout(GET_MAX, self.table.get()).await {
                Ok(Ok(values)) => self.read(values),
                Ok(Err(error)) => {
                    tracing::debug!(%error, "loads could not be read");
                    self.counts.get.inc();
                }
                Err(_) => self.counts.get.inc(),
            }
            self.replace();
        }
    }

    fn read(&mut self, values: Vec<Value>) {
        let now = self.clock.mono();
        for Value { region, bytes } in &values {
            if self.values.get(region) == Some(bytes) {
                continue;
            }
            let Ok(loads) = RegionLoads::decode(bytes) else {
                self.counts.decode.inc();
                continue;
            };
            for report in loads.nodes {
                // Most are refused as repeats: a value holds the region's every node, and one of
                // them spoke.
                self.fleet.handle(report, now).ok();
            }
        }
        self.values = values.into_iter().map(|it| (it.region, it.bytes)).collect();
    }

    fn replace(&mut self) {
        let now = self.clock.mono();
        self.fleet.tick(now);
        // The collector tells operators who came and went.
        while self.fleet.poll().is_some() {}
        let before = self.known.snapshot.load();
        self.counts.age.observe(now.since(before.planned_at()).as_secs_f64());
        let snapshot = plan(&self.fleet, &self.policy, &before, now);
        self.counts.live.set(gauge(snapshot.nodes()));
        self.counts.taking.set(gauge(snapshot.taking()));
        self.known.snapshot.store(Arc::new(snapshot));
    }
}

fn gauge(nodes: usize) -> i64 {
    i64::try_from(nodes).unwrap_or(i64::MAX)
}
