//! What questions are answered from: kept up to date by tasks, only read by answers.

mod keys;
mod minter;

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use arc_swap::ArcSwap;
use auth_core::policy::Policies;
use auth_core::revocation::Revocations;
use auth_core::ticket::TicketKeys;
use gslb_core::bases::Rotation;
use gslb_core::snapshot::Snapshot;
use parking_lot::RwLock;
use proto::time::Mono;

use crate::place::Place;

pub(crate) use keys::Keys;
pub(crate) use minter::Minter;

/// Everything an answer looks at.
#[derive(Debug)]
pub(crate) struct Known {
    pub(crate) snapshot: ArcSwap<Snapshot>,
    pub(crate) keys: Keys,
    pub(crate) tickets: ArcSwap<TicketKeys>,
    pub(crate) policies: RwLock<Policies>,
    pub(crate) revocations: RwLock<Revocations>,
    pub(crate) bases: ArcSwap<Rotation>,
    pub(crate) control: UpTo,
    pub(crate) place: ArcSwap<Place>,
}

impl Known {
    pub(crate) fn new(tickets: TicketKeys, policies: Policies, revocations_max: u32) -> Self {
        Self {
            snapshot: ArcSwap::default(),
            keys: Keys::default(),
            tickets: ArcSwap::from_pointee(tickets),
            policies: RwLock::new(policies),
            revocations: RwLock::new(Revocations::new(revocations_max as usize)),
            bases: ArcSwap::default(),
            control: UpTo::default(),
            place: ArcSwap::default(),
        }
    }
}

/// The moment up to which everything on `control` is known.
#[derive(Debug, Default)]
pub(crate) struct UpTo(AtomicU64);

impl UpTo {
    /// Everything that was there at `at` is known.
    pub(crate) fn confirm(&self, at: Mono) {
        // 0 stands for never.
        self.0.fetch_max(at.0.max(1), Ordering::Relaxed);
    }

    /// Nothing is known any more.
    pub(crate) fn forget(&self) {
        self.0.store(0, Ordering::Relaxed);
    }

    /// How long ago that moment is; nothing before the first.
    pub(crate) fn age(&self, now: Mono) -> Option<Duration> {
        match self.0.load(Ordering::Relaxed) {
            0 => None,
            at => Some(now.since(Mono(at))),
        }
    }
}
