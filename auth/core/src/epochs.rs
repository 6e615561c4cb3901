//! Which epochs the auth service must draw, as a machine.
//!
//! It draws nothing before everything published earlier was read, and never replaces a published
//! epoch: tokens and links live on what was published. A draft is put out again until it comes
//! back from the bus.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use proto::control::EpochFact;
use proto::keys::Masters;
use proto::time::{Mono, Wall};

use crate::derive::to_hex;
use crate::keyring::{AHEAD_MAX, epoch_of};
use crate::mac::Alg;
use crate::token::TTL_S_MAX;

/// A draft that did not come back is put out again after this.
const RESEND: Duration = Duration::from_secs(1);
/// Published epochs remembered: 113 days of 600 s, so that a clock that jumps and comes back finds
/// them.
const PUBLISHED_MAX: usize = 16_384;
/// Drafts that may wait to come back; beyond, none is added.
const DRAFTS_MAX: usize = 256;
/// The wall clock is looked at this often: it can be stepped, unlike the monotonic one.
const LOOK: Duration = Duration::from_millis(200);

/// What the epochs should be like.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Plan {
    interval_s: u32,
    ahead: u32,
    algs: Vec<Alg>,
    kids: Vec<u8>,
}

/// Why a plan cannot be kept.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum PlanError {
    /// A token could outlive the epoch after its own, whose keys are gone then.
    #[error("an epoch of {interval_s} s is shorter than twice a token's life of {ttl_s} s")]
    Interval {
        /// Seconds given.
        interval_s: u32,
        /// Seconds of the longest life configured.
        ttl_s: u16,
    },
    /// Links refuse such tokens.
    #[error("a token's life of {ttl_s} s is not 1 to {TTL_S_MAX} s")]
    Ttl {
        /// Seconds given.
        ttl_s: u16,
    },
    /// Nobody keeps so many.
    #[error("{ahead} epochs ahead are not 1 to {AHEAD_MAX}")]
    Ahead {
        /// Epochs given.
        ahead: u32,
    },
    /// Nothing to choose from.
    #[error("no token algorithm is configured")]
    NoAlg,
    /// An algorithm this code does not know.
    #[error("token algorithm {alg} is unknown")]
    Alg {
        /// Number given.
        alg: u8,
    },
}

impl Plan {
    /// Epochs of the masters' interval, known `ahead` of time, each with one of `algs`, for tokens
    /// that live up to `ttl_s`.
    pub fn new(masters: &Masters, algs: &[u8], ahead: u32, ttl_s: u16) -> Result<Self, PlanError> {
        let interval_s = masters.interval_s;
        if !(1..=TTL_S_MAX).contains(&ttl_s) {
            return Err(PlanError::Ttl { ttl_s });
        }
        if interval_s < 2 * u32::from(ttl_s) {
            return Err(PlanError::Interval { interval_s, ttl_s });
        }
        if !(1..=AHEAD_MAX).contains(&ahead) {
            return Err(PlanError::Ahead { ahead });
        }
        if algs.is_empty() {
            return Err(PlanError::NoAlg);
        }
        let algs = algs
            .iter()
            .map(|&alg| Alg::from_code(alg).ok_or(PlanError::Alg { alg }))
            .collect::<Result<_, _>>()?;
        let kids = masters.masters.iter().map(|it| it.kid).collect();
        Ok(Self { interval_s, ahead, algs, kids })
    }

    /// Time that all epochs ahead cover at least.
    #[must_use]
    pub const fn horizon(&self) -> Duration {
        Duration::from_secs(self.ahead as u64 * self.interval_s as u64)
    }
}

/// What the machine is told.
#[derive(Clone, Debug)]
pub enum Input<'a> {
    /// An epoch that is published.
    Fact(&'a EpochFact),
    /// Everything published before the start was read.
    CaughtUp,
}

/// Watches over the epochs from the previous one to the last one ahead.
#[derive(Clone, Debug)]
pub struct Epochs {
    plan: Plan,
    is_caught_up: bool,
    /// Epoch and algorithm. Those outside the window stay: it moves with the wall clock, which can
    /// be stepped, and what was forgotten would be drawn again.
    published: BTreeMap<u32, u8>,
    /// Published epochs before this one may have been forgotten, so none of them is drawn.
    floor: u32,
    drafts: BTreeMap<u32, Draft>,
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
    /// A machine that has read nothing yet.
    #[must_use]
    pub const fn new(plan: Plan) -> Self {
        Self {
            plan,
            is_caught_up: false,
            published: BTreeMap::new(),
            floor: 0,
            drafts: BTreeMap::new(),
            outputs: VecDeque::new(),
            look: Mono(0),
        }
    }

    /// Takes in what the bus said.
    pub fn handle(&mut self, input: &Input<'_>) {
        match input {
            Input::CaughtUp => self.is_caught_up = true,
            // Numbers of another interval mean other times.
            Input::Fact(fact) if fact.interval_s != self.plan.interval_s => {}
            Input::Fact(fact) => {
                self.published.insert(fact.epoch, fact.alg);
                self.drafts.remove(&fact.epoch);
                if self.published.len() > PUBLISHED_MAX
                    && let Some((forgotten, _)) = self.published.pop_first()
                {
                    self.floor = forgotten.saturating_add(1);
                }
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
        if !self.is_caught_up {
            return Ok(());
        }
        let window = self.window(now.wall);
        for epoch in window.clone() {
            let is_known = self.published.contains_key(&epoch) || self.drafts.contains_key(&epoch);
            if !is_known && self.drafts.len() < DRAFTS_MAX {
                let fact = self.draft(epoch, &draw()?);
                self.drafts.insert(epoch, Draft { fact, resend: now.mono });
            }
        }
        for (epoch, draft) in &mut self.drafts {
            if window.contains(epoch) && draft.resend <= now.mono {
                draft.resend = now.mono + RESEND;
                self.outputs.push_back(draft.fact.clone());
            }
        }
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
        self.published.get(&epoch_of(now, self.plan.interval_s)).copied()
    }

    fn draft(&self, epoch: u32, random: &[u8; 32]) -> EpochFact {
        // R_e is public, so its first byte may choose too.
        let alg = self.plan.algs[usize::from(random[0]) % self.plan.algs.len()];
        EpochFact {
            epoch,
            interval_s: self.plan.interval_s,
            alg: alg.code(),
            random: to_hex(random),
            kids: self.plan.kids.clone(),
        }
    }

    fn window(&self, now: Wall) -> std::ops::RangeInclusive<u32> {
        let current = epoch_of(now, self.plan.interval_s);
        let last = current.saturating_add(self.plan.ahead);
        current.saturating_sub(1).max(self.floor)..=last
    }
}
