//! Which share of the viewers each segment base gets, by how well it serves them.
//!
//! [`Bases`] hears `gauges`: what viewers report of bases, one vote a report, and how broadcasters'
//! stores take slots. Once a second it judges. A base that is bad for many viewers, and for many
//! more than the best other one, falls to [`PERCENT_MIN`] of its weight at once; the few viewers
//! that it keeps tell when it is well again, and it returns by steps of [`STEP_PERCENT`]. What is
//! bad everywhere drains nothing: then it is not the base.
//!
//! Votes may be lies, and whoever lies needs no base for it; `judge` says how many liars it takes to
//! drain one that is well, and to keep it drained.
//!
//! One of several gslbs leads and judges; the others take over what is published, and so go on
//! where it ended.

mod judge;
mod rotation;
mod votes;
mod words;

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use proto::head::Base;
use proto::id::NodeId;
use proto::limits::BASES_MAX;
use proto::quality::{BaseGauge, StoreGauge};
use proto::time::Mono;

pub use rotation::{Listed, Place, Rotation};
pub use words::{Heard, Input, Moved, Output, Role, Why};

use votes::Votes;

/// What a drained base keeps: a hundredth of its viewers risk a late segment, so that somebody
/// notices when it is well again.
pub const PERCENT_MIN: u8 = 1;
/// One step back.
pub const STEP_PERCENT: u8 = 10;
/// Between two judgements, and so between two publications.
const EVERY: Duration = Duration::from_secs(1);
/// A base that no broadcaster announces for so many seconds is gone, if it is not configured. They
/// do it once a second. Seconds in which nobody at all is heard do not count: then it is the bus.
const SILENT_S_MAX: u32 = 5;
/// Strikes after which a broadcaster's stores count as failing: a second in which they take fewer
/// slots than they miss is one …
const STRIKES_MAX: u32 = 2;
/// … and two if they miss so many.
const UNSTORED_MANY: u32 = 3;
/// Broadcasters remembered for one base.
const ORIGINS_MAX: usize = 1_000;

/// How slowly a base returns.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// Between two steps, and before the first one; that wait doubles each time the base falls
    /// again soon after.
    pub step: Duration,
    /// A drained base that nobody reports of gets its next step after this.
    pub quiet: Duration,
}

/// All bases and their shares.
#[derive(Debug)]
pub struct Bases {
    pace: Pace,
    role: Role,
    /// The configured ones are all there are; otherwise those that are announced.
    is_configured: bool,
    entries: BTreeMap<String, Entry>,
    /// What `control` says.
    told: Vec<Base>,
    /// Whether anything of `gauges` came since the last judgement.
    is_hearing: bool,
    /// When it is judged next.
    due: Mono,
    outputs: VecDeque<Output>,
}

/// One base.
#[derive(Debug)]
struct Entry {
    /// Weight when it is well; 0: only for retries.
    weight: u32,
    percent: u8,
    votes: Votes,
    origins: BTreeMap<NodeId, Origin>,
    changed: Mono,
    /// Wait before the first step back.
    hold: Duration,
    /// Until then reports do not drain it.
    trial_until: Mono,
}

/// What a broadcaster says of its stores.
#[derive(Debug, Default)]
struct Origin {
    weight: u32,
    /// Judgements since it was heard.
    silent_s: u32,
    /// See [`STRIKES_MAX`].
    strikes: u32,
}

impl Bases {
    /// All well. Without `configured` ones, those that broadcasters announce.
    #[must_use]
    pub fn new(configured: &[Base], pace: Pace) -> Self {
        let entry = |it: &Base| (it.base.clone(), Entry::new(it.weight, 100, pace, Mono(0)));
        Self {
            pace,
            role: Role::Follows,
            is_configured: !configured.is_empty(),
            entries: configured.iter().take(BASES_MAX).map(entry).collect(),
            told: Vec::new(),
            is_hearing: false,
            due: Mono(0),
            outputs: VecDeque::new(),
        }
    }

    /// Takes in what happened at `now`.
    pub fn handle(&mut self, input: Input, now: Mono) -> Heard {
        match input {
            Input::Gauges(gauges) => {
                self.is_hearing = true;
                let announced = gauges.store.map(|it| self.announce(gauges.node, it, now));
                let mut heard = announced.unwrap_or_default();
                for gauge in &gauges.bases {
                    self.vote(gauge, now, &mut heard);
                }
                return heard;
            }
            Input::Told(bases) => self.tell(bases, now),
            Input::Role(role) => {
                self.role = role;
                self.due = now;
            }
        }
        Heard::default()
    }

    /// Judges, if a second is over since the last time.
    pub fn tick(&mut self, now: Mono) {
        if now < self.due {
            return;
        }
        self.due = now + EVERY;
        if std::mem::take(&mut self.is_hearing) {
            self.expire();
        }
        if self.role == Role::Leads {
            self.judge(now);
            let bases = self.list();
            if bases != self.told && !bases.is_empty() {
                self.told.clone_from(&bases);
                self.outputs.push_back(Output::Publish(bases));
            }
        }
        self.entries.values_mut().for_each(|it| it.votes.turn());
    }

    /// The next thing to do.
    pub fn poll(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// When [`Bases::tick`] has something to do.
    #[must_use]
    pub const fn deadline(&self) -> Option<Mono> {
        Some(self.due)
    }

    /// Every base with its weight: a hundred times what is configured or announced, when it is
    /// well.
    #[must_use]
    pub fn list(&self) -> Vec<Base> {
        let base = |(base, entry): (&String, &Entry)| Base {
            base: base.clone(),
            weight: entry.weight.saturating_mul(u32::from(entry.percent)),
        };
        self.entries.iter().map(base).collect()
    }

    /// The share of its weight that each base gets.
    pub fn percents(&self) -> impl Iterator<Item = (&str, u8)> {
        self.entries.iter().map(|(base, entry)| (base.as_str(), entry.percent))
    }

    fn tell(&mut self, bases: Vec<Base>, now: Mono) {
        if self.role == Role::Follows {
            for Base { base, weight } in &bases {
                if let Some(entry) = self.entries.get_mut(base) {
                    let percent = percent(*weight, entry.weight);
                    if entry.percent != percent {
                        (entry.percent, entry.changed) = (percent, now);
                    }
                }
            }
        }
        self.told = bases;
    }

    fn announce(&mut self, node: NodeId, store: StoreGauge, now: Mono) -> Heard {
        let StoreGauge { base, weight, stored, unstored, .. } = store;
        if !self.entries.contains_key(&base) {
            if self.is_configured || self.entries.len() >= BASES_MAX {
                return Heard { unknown: u64::from(!self.is_configured), ..Heard::default() };
            }
            let told = self.told.iter().find(|it| it.base == base);
            let percent = told.map_or(100, |it| percent(it.weight, weight));
            self.entries.insert(base.clone(), Entry::new(weight, percent, self.pace, now));
            self.note(&base, 0, Why::Announced);
            // Whoever waits for the first base waits no longer than it must.
            if self.entries.len() == 1 {
                self.due = now;
            }
        }
        let is_configured = self.is_configured;
        if let Some(entry) = self.entries.get_mut(&base) {
            let is_known = entry.origins.contains_key(&node);
            if is_known || entry.origins.len() < ORIGINS_MAX {
                let origin = entry.origins.entry(node).or_default();
                (origin.weight, origin.silent_s) = (weight, 0);
                origin.strike(stored, unstored);
            }
            if !is_configured {
                entry.weight = entry.origins.values().map(|it| it.weight).max().unwrap_or(weight);
            }
        }
        Heard::default()
    }

    fn vote(&mut self, gauge: &BaseGauge, now: Mono, heard: &mut Heard) {
        match self.entries.get_mut(&gauge.base) {
            Some(entry) => {
                let bad = entry.votes.take(gauge, now);
                heard.bad += u64::from(bad);
                heard.good += u64::from(gauge.reports - bad);
            }
            None => heard.unknown += u64::from(gauge.reports),
        }
    }

    /// Forgets broadcasters that fell silent, and bases that only they announced; one always stays.
    fn expire(&mut self) {
        let mut silent = Vec::new();
        for (base, entry) in &mut self.entries {
            entry.origins.values_mut().for_each(|it| it.silent_s += 1);
            entry.origins.retain(|_, it| it.silent_s < SILENT_S_MAX);
            if !self.is_configured && entry.origins.is_empty() {
                silent.push(base.clone());
            }
        }
        for base in silent {
            if self.entries.len() > 1
                && let Some(entry) = self.entries.remove(&base)
            {
                self.outputs.push_back(entry.moved(base, entry.percent, 0, Why::Silent));
            }
        }
    }

    /// Tells that a base has another share than `from`.
    fn note(&mut self, base: &str, from: u8, why: Why) {
        if let Some(entry) = self.entries.get(base) {
            let moved = entry.moved(base.to_owned(), from, entry.percent, why);
            self.outputs.push_back(moved);
        }
    }
}

impl Entry {
    fn new(weight: u32, percent: u8, pace: Pace, now: Mono) -> Self {
        Self {
            weight,
            percent,
            votes: Votes::default(),
            origins: BTreeMap::new(),
            changed: now,
            hold: pace.step,
            trial_until: Mono(0),
        }
    }

    /// Whether most of its broadcasters have stores that take slots, or none says anything.
    fn is_storing(&self) -> bool {
        let failing = self.origins.values().filter(|it| it.strikes >= STRIKES_MAX).count();
        2 * failing <= self.origins.len()
    }

    fn moved(&self, base: String, from: u8, to: u8, why: Why) -> Output {
        let (reports, bad) = self.votes.sum();
        let fetch_ms = self.votes.fetch_ms();
        Output::Moved(Moved { base, from, to, why, reports, bad, fetch_ms })
    }
}

impl Origin {
    /// Takes what its stores did within a second. One without slots says nothing.
    fn strike(&mut self, stored: u32, unstored: u32) {
        if unstored > stored {
            let strikes = if unstored >= UNSTORED_MANY { STRIKES_MAX } else { 1 };
            self.strikes = self.strikes.saturating_add(strikes);
        } else if stored > 0 {
            self.strikes = 0;
        }
    }
}

/// The share that a published weight is of a full one.
fn percent(weight: u32, full: u32) -> u8 {
    let percent = weight.checked_div(full).unwrap_or(100);
    u8::try_from(percent.clamp(u32::from(PERCENT_MIN), 100)).unwrap_or(100)
}
