//! Which segment bases viewers get, and with what weights.
//!
//! Every gslb hears `gauges` and `control`, so that any of them can go on; the one that leads judges
//! and publishes. Answers take whatever was published last, and until something was, what is
//! configured or announced.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bus::{At, Bus, PartitionNo, Publish, ReadError, Record, Tail, Tailed, Topic, topic};
use gslb_core::bases::{Bases, Heard, Input, Moved, Output, Place, Role, Rotation};
use kit::clock::Clock;
use kit::meter::{Meter, list};
use proto::control::Fact;
use proto::head::Base;
use proto::quality::BaseGauges;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::config::{Config, Segments};
use crate::known::Known;
use crate::sync::Found;

/// Records taken at a time.
const RECORDS_MAX: usize = 256;
/// Wait before a topic is opened again.
const REOPEN: Duration = Duration::from_millis(500);
/// How far back `gauges` are read: broadcasters that announced a base just before count.
const BACK: Duration = Duration::from_secs(2);
/// Time for an append to `control`.
const PUBLISH_MAX: Duration = Duration::from_millis(500);

/// Keeps the bases of [`Known`] right.
#[derive(Debug)]
pub(crate) struct Scheduler {
    machine: Bases,
    /// Of the configured bases.
    places: BTreeMap<String, Place>,
    /// What `control` says.
    told: Vec<Base>,
    /// What answers have.
    shown: Vec<Base>,
    first_turn: usize,
    leads: watch::Receiver<bool>,
    bus: Arc<dyn Bus>,
    known: Arc<Known>,
    clock: Clock,
    meter: Meter,
}

impl Scheduler {
    /// Answers have the configured bases from here on. Nothing is judged, see [`Scheduler::led`].
    pub(crate) fn new(
        config: &Config,
        first_turn: u32,
        bus: &Arc<dyn Bus>,
        found: &Found<'_>,
    ) -> Self {
        let configured: Vec<Base> = config.segments.iter().map(Segments::base).collect();
        let place = |it: &Segments| {
            let place = Place { region: it.region.clone(), weight: it.weight };
            (it.base.clone(), place)
        };
        let mut scheduler = Self {
            machine: Bases::new(&configured, config.bases.pace()),
            places: config.segments.iter().map(place).collect(),
            told: Vec::new(),
            shown: Vec::new(),
            first_turn: first_turn as usize,
            leads: watch::Sender::new(false).subscribe(),
            bus: Arc::clone(bus),
            known: Arc::clone(&found.known),
            clock: found.clock.clone(),
            meter: found.meter.clone(),
        };
        scheduler.show();
        scheduler
    }

    /// Judges while `leads` says so; never where this process cannot lead.
    pub(crate) fn led(self, leads: Option<watch::Receiver<bool>>) -> Self {
        Self { leads: leads.unwrap_or(self.leads), ..self }
    }

    /// Keeps them until `shutdown`.
    pub(crate) async fn keep(self, shutdown: CancellationToken) -> anyhow::Result<()> {
        tokio::select! {
            () = self.follow() => Ok(()),
            () = shutdown.cancelled() => Ok(()),
        }
    }

    async fn follow(mut self) {
        let mut control = self.open(topic::control(), At::Oldest).await;
        let mut gauges = self.open(topic::gauges(), At::Time(self.clock.wall() - BACK)).await;
        let mut leads = self.leads.clone();
        leads.mark_changed();
        loop {
            let now = self.clock.mono();
            let due = self.machine.deadline().unwrap_or(now);
            tokio::select! {
                // What was published comes first: a new leader goes on from there.
                biased;
                tailed = control.next(RECORDS_MAX) => self.hear(tailed, Self::fact),
                Ok(()) = leads.changed() => {
                    let role = if *leads.borrow_and_update() { Role::Leads } else { Role::Follows };
                    self.machine.handle(Input::Role(role), now);
                }
                tailed = gauges.next(RECORDS_MAX) => self.hear(tailed, Self::gauge),
                () = self.clock.sleep_until(due) => {}
            }
            self.machine.tick(self.clock.mono());
            self.act().await;
            self.show();
        }
    }

    /// Tries until the bus is there.
    async fn open(&self, topic: Topic, at: At) -> Tail {
        loop {
            let (bus, partitions) = (Arc::clone(&self.bus), Tail::all(&topic));
            match Tail::open(bus, topic.clone(), partitions, at.clone()).await {
                Ok(tail) => return tail,
                Err(error) => tracing::debug!(%error, topic = %topic.name, "cannot be read"),
            }
            self.clock.sleep(REOPEN).await;
        }
    }

    fn hear(&mut self, tailed: Result<Tailed, ReadError>, take: fn(&mut Self, &Record)) {
        match tailed {
            Ok(Tailed::Records(records)) => records.iter().for_each(|it| take(self, it)),
            // Votes and announcements come again, and bases are the newest of their key.
            Ok(Tailed::Skipped { .. }) => {}
            Err(error) => tracing::debug!(%error, "a topic cannot be read"),
        }
    }

    fn fact(&mut self, record: &Record) {
        // Most records are others', and need not be decoded.
        let key = Fact::Bases { bases: Vec::new() }.key();
        if record.key.as_deref() == Some(&key)
            && let Ok(Fact::Bases { bases }) = Fact::decode(&record.value)
        {
            self.told.clone_from(&bases);
            self.machine.handle(Input::Told(bases), self.clock.mono());
        }
    }

    fn gauge(&mut self, record: &Record) {
        let Ok(gauges) = BaseGauges::decode(&record.value) else {
            return;
        };
        tracing::debug!(node = %gauges.node, bases = ?gauges.bases, "votes on segment bases");
        let Heard { good, bad, unknown } =
            self.machine.handle(Input::Gauges(gauges), self.clock.mono());
        for (vote, count) in [("good", good), ("bad", bad), ("unknown", unknown)] {
            if count > 0 {
                self.meter.counter(list::GSLB_BASE_VOTES_TOTAL, &[vote]).inc_by(count);
            }
        }
    }

    async fn act(&mut self) {
        while let Some(output) = self.machine.poll() {
            match output {
                Output::Publish(bases) => self.publish(bases).await,
                Output::Moved(moved) => self.note(&moved),
            }
        }
    }

    async fn publish(&mut self, bases: Vec<Base>) {
        let fact = Fact::Bases { bases };
        let record = Publish {
            topic: topic::control(),
            partition: PartitionNo(0),
            term: None,
            key: Some(fact.key().into()),
            value: fact.encode().into(),
        };
        let published = tokio::time::timeout(PUBLISH_MAX, self.bus.publish(vec![record])).await;
        if !published.is_ok_and(|it| it.iter().all(Result::is_ok)) {
            tracing::debug!("control took no bases");
            // What is not known to be there is published again a second later.
            self.machine.handle(Input::Told(Vec::new()), self.clock.mono());
        }
    }

    fn note(&self, moved: &Moved) {
        let Moved { base, from, to, why, reports, bad, fetch_ms } = moved;
        let why = why.name();
        tracing::info!(
            base,
            from,
            to,
            why,
            reports,
            bad,
            fetch_ms,
            "a segment base's share changed"
        );
        self.meter.counter(list::GSLB_BASE_MOVES_TOTAL, &[base, why]).inc();
    }

    /// Gives answers the newest bases.
    fn show(&mut self) {
        let all = self.machine.list();
        // Of another configuration than ours, nothing is taken.
        let is_ours = self.told.iter().all(|it| self.places.contains_key(&it.base));
        let bases = match self.told.is_empty() || !(self.places.is_empty() || is_ours) {
            true => all,
            false => self.told.clone(),
        };
        if bases == self.shown {
            return;
        }
        for Base { base, .. } in self.shown.iter().filter(|it| !is_in(&bases, it)) {
            self.meter.gauge(list::GSLB_BASE_PERCENT, &[base]).set(0);
        }
        for (base, percent) in self.machine.percents() {
            self.meter.gauge(list::GSLB_BASE_PERCENT, &[base]).set(percent.into());
        }
        let rotation = Rotation::new(&bases, &self.places, self.first_turn);
        self.known.replace_bases(rotation);
        self.shown = bases;
    }
}

fn is_in(bases: &[Base], base: &Base) -> bool {
    bases.iter().any(|it| it.base == base.base)
}
