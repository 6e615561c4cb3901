//! The load table read, the next snapshot planned and put in place, every few milliseconds.
//!
//! The table speaks when a value is new: one that nobody can reach and one that no collector
//! writes to any more are silent alike. While it is silent no lease ends, since a node that is not
//! heard of may be well; the plan trusts the last loads less and less. When it speaks again, nodes
//! have the rest of their leases to be heard of.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use gslb_core::fleet::{Fleet, Refusal};
use gslb_core::policy::Policy;
use gslb_core::snapshot::plan;
use kit::clock::Clock;
use kit::health::{Health, Part};
use kit::meter::{Meter, list};
use prometheus::{Histogram, IntCounter, IntGauge};
use proto::load::{KnownRegion, RegionView};
use proto::time::{Mono, millis};
use tokio_util::sync::CancellationToken;

use crate::config::Config;
use crate::known::Known;
use crate::moves::Mover;
use crate::nodes::{Asked, View};
use crate::place::Carriers;
use crate::table::{LoadTable, Value};

/// Time for one read of the table. When it is over, the snapshot is planned without.
const GET_MAX: Duration = Duration::from_millis(50);

/// Reads, plans, replaces.
#[derive(Debug)]
pub(crate) struct Sync {
    table: Arc<dyn LoadTable>,
    known: Arc<Known>,
    clock: Clock,
    /// Their names, for operators.
    carriers: Carriers,
    policy: Policy,
    /// The own region.
    home: String,
    fleet: Fleet,
    /// The values as last read.
    values: BTreeMap<Arc<str>, KnownRegion>,
    voice: Voice,
    mover: Option<Mover>,
    counts: Counts,
}

/// When the table last spoke.
#[derive(Debug)]
struct Voice {
    /// Nothing before the first time.
    spoke: Option<Mono>,
    /// A collector that is well does not pause for longer.
    pause_max: Duration,
    part: Part,
    silence: IntGauge,
}

/// What it reads from, and tells.
#[derive(Debug)]
pub(crate) struct Found<'a> {
    pub(crate) table: Arc<dyn LoadTable>,
    pub(crate) known: Arc<Known>,
    pub(crate) clock: Clock,
    pub(crate) carriers: &'a Carriers,
    pub(crate) health: &'a Health,
    pub(crate) meter: &'a Meter,
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
    /// `config` is checked; `policy` is its policy with a first turn.
    pub(crate) fn new(config: &Config, policy: Policy, found: Found<'_>) -> Self {
        let Found { table, known, clock, carriers, health, meter } = found;
        let failures = |operation| meter.counter(list::GSLB_TABLE_FAILURES_TOTAL, &[operation]);
        let nodes = |state| meter.gauge(list::GSLB_NODES, &[state]);
        let counts = Counts {
            get: failures("get"),
            decode: failures("decode"),
            live: nodes("live"),
            taking: nodes("taking"),
            age: meter.histogram(list::GSLB_SNAPSHOT_AGE_SECONDS, &[]),
        };
        let voice = Voice {
            spoke: None,
            // Half as long again, for what a busy machine and the network add.
            pause_max: Duration::from_millis(config.collector.idle_ms.into()) * 3 / 2,
            part: health.part("gslb.table"),
            silence: meter.gauge(list::GSLB_TABLE_SILENCE_MILLISECONDS, &[]),
        };
        Self {
            table,
            known,
            clock,
            carriers: carriers.clone(),
            policy,
            home: config.region.clone(),
            fleet: config.fleet(),
            values: BTreeMap::new(),
            voice,
            mover: None,
            counts,
        }
    }

    /// Lets it have the sessions of besieged nodes moved.
    pub(crate) fn moving(self, mover: Mover) -> Self {
        Self { mover: Some(mover), ..self }
    }

    /// Keeps the snapshot new until `shutdown`.
    pub(crate) async fn keep(
        mut self,
        snapshot_ms: u32,
        mut asked: Asked,
        shutdown: CancellationToken,
    ) -> anyhow::Result<()> {
        let mut timer = crate::every(snapshot_ms);
        loop {
            tokio::select! {
                biased;
                () = shutdown.cancelled() => return Ok(()),
                Some(answer) = asked.recv() => {
                    let (sight, now) = (self.known.sight(), self.clock.mono());
                    // Whoever asked may have left.
                    answer.send(View::of(&self.fleet, &sight.snapshot, &self.carriers, now)).ok();
                    continue;
                }
                _ = timer.tick() => {}
            }
            self.turn(self.clock.mono()).await;
        }
    }

    /// Reads and replaces. `now` is when it begins.
    async fn turn(&mut self, now: Mono) {
        let spoke = match tokio::time::timeout(GET_MAX, self.table.get()).await {
            Ok(Ok(values)) => self.read(values, now),
            Ok(Err(error)) => {
                tracing::debug!(%error, "loads could not be read");
                self.counts.get.inc();
                false
            }
            Err(_) => {
                self.counts.get.inc();
                false
            }
        };
        if spoke {
            self.fleet.tick(now);
            if let Some(mover) = &mut self.mover {
                mover.look(&self.fleet, now);
            }
        }
        self.voice.tell(spoke, &self.policy, now);
        self.replace(now);
    }

    /// Takes values over; says whether one was new.
    fn read(&mut self, values: Vec<Value>, now: Mono) -> bool {
        let mut spoke = false;
        for value in &values {
            let known = self.values.get(&value.region);
            if known.is_none_or(|it| *it.bytes() != value.bytes) {
                spoke |= self.renew(value, now) || self.hear(value, now);
            }
        }
        self.values.retain(|region, _| values.iter().any(|it| it.region == *region));
        spoke
    }

    /// Takes a value over that differs in numbers alone from the one before, as most do; says
    /// whether it does.
    fn renew(&mut self, value: &Value, now: Mono) -> bool {
        let Some(known) = self.values.get_mut(&value.region) else { return false };
        let Some(mut news) = known.compare(&value.bytes) else { return false };
        if self.voice.is_silent(now) {
            self.fleet.resume(now);
        }
        let is_all = news.all(|it| self.fleet.renew_numbers(it, now).is_some());
        drop(news);
        if is_all {
            known.renew(value.bytes.clone());
        }
        is_all
    }

    /// Takes any value over; says whether it can be read.
    fn hear(&mut self, value: &Value, now: Mono) -> bool {
        let region = RegionView::read(&value.bytes);
        match &region {
            Ok(region) => {
                if self.voice.is_silent(now) {
                    self.fleet.resume(now);
                }
                for report in region.nodes() {
                    // Those that did not speak since are refused as repeats.
                    if self.fleet.hear(report, now) == Err(Refusal::Malformed) {
                        self.counts.decode.inc();
                    }
                }
            }
            Err(_) => self.counts.decode.inc(),
        }
        let (is_read, bytes) = (region.is_ok(), value.bytes.clone());
        let known = KnownRegion::new(bytes, region.ok());
        self.values.insert(Arc::clone(&value.region), known);
        is_read
    }

    fn replace(&mut self, now: Mono) {
        // The collector tells operators who came and went.
        while self.fleet.poll().is_some() {}
        let sight = self.known.sight();
        let before = &sight.snapshot;
        self.counts.age.observe(now.since(before.planned_at()).as_secs_f64());
        let snapshot = plan(&self.fleet, &self.policy, before, now);
        self.counts.live.set(gauge(snapshot.nodes()));
        self.counts.taking.set(gauge(snapshot.taking()));
        self.known.replace_snapshot(snapshot, &self.home);
    }
}

impl Voice {
    fn is_silent(&self, now: Mono) -> bool {
        self.spoke.is_some_and(|it| now.since(it) > self.pause_max)
    }

    /// Tells operators how long the table has been silent. Its silence alone takes no process out
    /// of service: it goes on with what it knows, and others that read the table know no more.
    fn tell(&mut self, spoke: bool, policy: &Policy, now: Mono) {
        if spoke {
            self.spoke = Some(now);
            self.part.ok();
        }
        let Some(at) = self.spoke else { return };
        let silence_ms = millis(now.since(at));
        self.silence.set(i64::try_from(silence_ms).unwrap_or(i64::MAX));
        if silence_ms > policy.stale_ms_max.into() {
            self.part.warn("the load table is silent: viewers are spread by capacity alone");
        } else if silence_ms > policy.fresh_ms_max.into() {
            self.part.warn("the load table is silent: the last loads are believed less and less");
        }
    }
}

fn gauge(nodes: usize) -> i64 {
    i64::try_from(nodes).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests;
