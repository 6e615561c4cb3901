//! Which epochs the auth service must draw, as a machine.
//!
//! **One random per epoch.** Several auth services may run; each has this machine and reads the
//! same log of facts, and only one leads. It draws nothing before it was told to [`Input::Lead`],
//! which its driver says when two things hold: everything that was published before is read, and
//! the bus refuses what a former leader may still have on its way. So a leader knows every epoch
//! on the log, and draws the missing ones only. A draft is put out again, unchanged, until it
//! comes back from the log.
//!
//! **Nothing published changes.** The first fact of an epoch that is read counts; another random,
//! another algorithm or fewer masters do not, here as in every [`Keyring`](crate::keyring::Keyring).
//! Should a bus carry such a fact in spite of its fence, the log would end with it, and compaction
//! would hide the first from those who start later: the leader puts the first out again.
//!
//! **Masters come and go without a gap.** A new master is added to what is published: in front,
//! so that it mints, where the epoch begins at least half an epoch from now, which is the time
//! that links have to fetch its keys; behind, as a reserve for the case that the others are
//! declared void, where it begins earlier or runs already. Epochs drawn from then on name the
//! newest master only. An older master is retired when no epoch that can still be verified names
//! it, and that has held for a whole epoch of monotonic time: a wall clock that jumps and comes
//! back retires nobody.

mod plan;

use std::collections::{BTreeMap, VecDeque};
use std::ops::RangeInclusive;
use std::time::Duration;

use proto::control::EpochFact;
use proto::time::{Mono, Wall};

use crate::derive::to_hex;
use crate::keyring::{MASTERS_MAX, epoch_of, needed};

pub use plan::{Plan, PlanError};

/// A draft that did not come back is put out again after this.
const RESEND: Duration = Duration::from_secs(1);
/// Published epochs remembered: 113 days of 600 s, so that a clock that jumps and comes back finds
/// them. About 250 bytes each.
const PUBLISHED_MAX: usize = 16_384;
/// Drafts that may wait to come back; beyond, none is added.
const DRAFTS_MAX: usize = 256;
/// The wall clock is looked at this often: it can be stepped, unlike the monotonic one.
const LOOK: Duration = Duration::from_millis(200);

/// What the machine is told.
#[derive(Clone, Debug)]
pub enum Input<'a> {
    /// An epoch that is published.
    Fact(&'a EpochFact),
    /// The masters at hand, newest first.
    Masters(&'a [u8]),
    /// Everything published before was read, and nobody who led before can publish any more.
    Lead,
    /// Another leads, or nobody.
    Follow,
}

/// Watches over the epochs from the previous one to the last one ahead.
#[derive(Clone, Debug)]
pub struct Epochs {
    plan: Plan,
    /// Newest first.
    kids: Vec<u8>,
    is_leading: bool,
    /// Those outside the window stay: it moves with the wall clock, which can be stepped, and what
    /// was forgotten would be drawn again.
    published: BTreeMap<u32, EpochFact>,
    /// Published epochs before this one may have been forgotten, so none of them is drawn.
    floor: u32,
    drafts: BTreeMap<u32, Draft>,
    /// Older masters that no epoch needs, and since when.
    unneeded: BTreeMap<u8, Mono>,
    outputs: VecDeque<EpochFact>,
    look: Mono,
}

#[derive(Clone, Debug)]
struct Draft {
    fact: EpochFact,
    resend: Mono,
}

/// The two clocks at one moment.
#[derive(Clone, Copy, Debug)]
pub struct Now {
    /// For waits.
    pub mono: Mono,
    /// For epochs.
    pub wall: Wall,
}

impl Epochs {
    /// A machine that has read nothing yet and does not lead.
    #[must_use]
    pub const fn new(plan: Plan) -> Self {
        Self {
            plan,
            kids: Vec::new(),
            is_leading: false,
            published: BTreeMap::new(),
            floor: 0,
            drafts: BTreeMap::new(),
            unneeded: BTreeMap::new(),
            outputs: VecDeque::new(),
            look: Mono(0),
        }
    }

    /// Takes note; what follows from it is decided by the next [`Epochs::tick`].
    pub fn handle(&mut self, input: &Input<'_>) {
        match input {
            // Numbers of another interval mean other times.
            Input::Fact(fact) if fact.interval_s != self.plan.interval_s => {}
            Input::Fact(fact) => self.learn(fact),
            Input::Masters(kids) => self.kids = kids.to_vec(),
            Input::Lead => self.is_leading = true,
            Input::Follow => {
                self.is_leading = false;
                self.outputs.clear();
                self.unneeded.clear();
            }
        }
    }

    /// Drafts what is missing, with 32 bytes from `draw` for each, and puts out what must be
    /// published, again where it did not come back.
    pub fn tick<E>(
        &mut self,
        now: Now,
        mut draw: impl FnMut() -> Result<[u8; 32], E>,
    ) -> Result<(), E> {
        self.look = now.mono + LOOK;
        if !self.is_leading || self.kids.is_empty() {
            return Ok(());
        }
        let window = self.window(now.wall);
        for epoch in window.clone() {
            let is_known = self.published.contains_key(&epoch) || self.drafts.contains_key(&epoch);
            if !is_known && self.drafts.len() < DRAFTS_MAX {
                let fact = self.draw(epoch, &draw()?, now.wall);
                self.drafts.insert(epoch, Draft { fact, resend: now.mono });
            }
        }
        self.add_masters(now);
        for (epoch, draft) in &mut self.drafts {
            if window.contains(epoch) && draft.resend <= now.mono {
                draft.resend = now.mono + RESEND;
                self.outputs.push_back(draft.fact.clone());
            }
        }
        self.note_unneeded(now);
        Ok(())
    }

    /// The next fact to publish.
    pub fn poll(&mut self) -> Option<EpochFact> {
        self.outputs.pop_front()
    }

    /// When to tick next.
    #[must_use]
    pub const fn deadline(&self) -> Mono {
        self.look
    }

    /// Algorithm of the running epoch, once published.
    #[must_use]
    pub fn alg(&self, now: Wall) -> Option<u8> {
        self.published.get(&epoch_of(now, self.plan.interval_s)).map(|it| it.alg)
    }

    /// Masters that can be forgotten now. One that is kept all the same comes again after an epoch.
    pub fn retire(&mut self, now: Mono) -> Vec<u8> {
        let interval = Duration::from_secs(self.plan.interval_s.into());
        let retired = self.unneeded.extract_if(.., |_, since| now.since(*since) >= interval);
        retired.map(|(kid, _)| kid).collect()
    }

    fn learn(&mut self, fact: &EpochFact) {
        let epoch = fact.epoch;
        if let Some(known) = self.published.get(&epoch)
            && !becomes(known, fact)
        {
            let draft = Draft { fact: known.clone(), resend: Mono(0) };
            self.drafts.insert(epoch, draft);
            return;
        }
        self.published.insert(epoch, EpochFact::clone(fact));
        self.drafts.remove(&epoch);
        if self.published.len() > PUBLISHED_MAX
            && let Some((forgotten, _)) = self.published.pop_first()
        {
            self.floor = forgotten.saturating_add(1);
        }
    }

    fn draw(&self, epoch: u32, random: &[u8; 32], now: Wall) -> EpochFact {
        // R_e is public, so its first byte may choose too.
        let alg = self.plan.algs[usize::from(random[0]) % self.plan.algs.len()];
        // An epoch that begins soon is also minted for by those who hold the older masters only.
        let kids = if self.is_far(epoch, now) { &self.kids[..1] } else { &self.kids };
        EpochFact {
            epoch,
            interval_s: self.plan.interval_s,
            alg: alg.code(),
            random: to_hex(random),
            kids: kids.to_vec(),
        }
    }

    /// Drafts the published epochs that do not name the newest masters.
    fn add_masters(&mut self, now: Now) {
        let mut drafts = Vec::new();
        for (&epoch, fact) in self.published.range(self.ahead(now.wall)) {
            let is_new = |kid: &&u8| !fact.kids.contains(kid);
            let new: Vec<u8> = self.kids.iter().take_while(is_new).copied().collect();
            let draft = self.drafts.get(&epoch);
            let is_drafted =
                draft.is_some_and(|it| new.iter().all(|kid| it.fact.kids.contains(kid)));
            if new.is_empty() || is_drafted || new.len() + fact.kids.len() > MASTERS_MAX {
                continue;
            }
            let kids = match self.is_far(epoch, now.wall) {
                true => [new.as_slice(), fact.kids.as_slice()].concat(),
                false => [fact.kids.as_slice(), new.as_slice()].concat(),
            };
            drafts.push(EpochFact { kids, ..fact.clone() });
        }
        for fact in drafts {
            self.drafts.insert(fact.epoch, Draft { fact, resend: now.mono });
        }
    }

    /// Whether links have half an epoch to fetch keys before it begins.
    fn is_far(&self, epoch: u32, now: Wall) -> bool {
        let interval_ms = u64::from(self.plan.interval_s) * 1000;
        u64::from(epoch) * interval_ms >= now.0 + interval_ms / 2
    }

    fn note_unneeded(&mut self, now: Now) {
        let Some((newest, older)) = self.kids.split_first() else { return };
        let ahead = self.ahead(now.wall);
        // Before that, an older master may be about to be added.
        let is_settled = self.published.contains_key(ahead.start())
            && self.published.range(ahead).all(|(_, it)| it.kids.contains(newest));
        let needed = needed(now.wall, self.plan.interval_s);
        let is_unneeded = |kid: &u8| {
            let published = self.published.range(needed.clone()).map(|(_, it)| it);
            let drafts = self.drafts.values().map(|it| &it.fact);
            is_settled && published.chain(drafts).all(|it| !it.kids.contains(kid))
        };
        self.unneeded.retain(|kid, _| older.contains(kid) && is_unneeded(kid));
        for &kid in older.iter().filter(|kid| is_unneeded(kid)) {
            self.unneeded.entry(kid).or_insert(now.mono);
        }
    }

    /// The epochs that must be published.
    fn window(&self, now: Wall) -> RangeInclusive<u32> {
        let ahead = self.ahead(now);
        ahead.start().saturating_sub(1).max(self.floor)..=*ahead.end()
    }

    /// The running epoch and those that are known ahead of time.
    fn ahead(&self, now: Wall) -> RangeInclusive<u32> {
        let current = epoch_of(now, self.plan.interval_s);
        current..=current.saturating_add(self.plan.ahead)
    }
}

/// Whether a later fact may replace an earlier one: the same, with more masters at most.
fn becomes(known: &EpochFact, fact: &EpochFact) -> bool {
    let is_same = known.random == fact.random && known.alg == fact.alg;
    is_same && known.kids.iter().all(|it| fact.kids.contains(it))
}
