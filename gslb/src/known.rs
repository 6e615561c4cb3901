//! What questions are answered from: kept up to date by tasks, only read by answers.

mod keys;
mod minter;
mod sealed;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use arc_swap::{ArcSwap, Guard};
use auth_core::policy::Policies;
use auth_core::revocation::Revocations;
use auth_core::ticket::TicketKeys;
use gslb_core::bases::Rotation;
use gslb_core::region::Region;
use gslb_core::snapshot::Snapshot;
use parking_lot::RwLock;
use proto::control::Fact;
use proto::time::Mono;

use crate::place::Place;

pub(crate) use keys::Keys;
pub(crate) use minter::Minter;
pub(crate) use sealed::{Keyholder, SealedRooms};

/// Everything an answer looks at.
#[derive(Debug)]
pub(crate) struct Known {
    sight: Shared,
    pub(crate) keys: Keys,
    pub(crate) revocations: RwLock<Revocations>,
    pub(crate) control: UpTo,
}

/// What is replaced, never changed. It is looked at as a whole: an answer that looked at its parts
/// one by one would spend a twentieth of its time on that.
#[derive(Clone, Debug)]
pub(crate) struct Sight {
    pub(crate) snapshot: Arc<Snapshot>,
    /// The own region in it.
    pub(crate) home: Region,
    /// What mints, if the masters are there.
    pub(crate) minter: Option<Arc<Minter>>,
    pub(crate) tickets: Arc<TicketKeys>,
    pub(crate) policies: Arc<Policies>,
    pub(crate) sealed: Arc<SealedRooms>,
    pub(crate) bases: Arc<Rotation>,
    pub(crate) place: Arc<Place>,
}

/// The sight, as all see it.
#[derive(Clone, Debug)]
struct Shared(Arc<ArcSwap<Sight>>);

impl Known {
    pub(crate) fn new(tickets: TicketKeys, policies: Policies, revocations_max: u32) -> Self {
        let sight = Shared(Arc::new(ArcSwap::from_pointee(Sight {
            snapshot: Arc::default(),
            home: Region::UNKNOWN,
            minter: None,
            tickets: Arc::new(tickets),
            policies: Arc::new(policies),
            sealed: Arc::default(),
            bases: Arc::default(),
            place: Arc::default(),
        })));
        Self {
            keys: Keys::new(sight.clone()),
            sight,
            revocations: RwLock::new(Revocations::new(revocations_max as usize)),
            control: UpTo::default(),
        }
    }

    /// What is to be seen now.
    pub(crate) fn sight(&self) -> Guard<Arc<Sight>> {
        self.sight.load()
    }

    /// `home` is the own region.
    pub(crate) fn replace_snapshot(&self, snapshot: Snapshot, home: &str) {
        let home = snapshot.region(home);
        let snapshot = Arc::new(snapshot);
        self.sight.change(|it| {
            it.snapshot = Arc::clone(&snapshot);
            it.home = home;
        });
    }

    pub(crate) fn replace_tickets(&self, tickets: TicketKeys) {
        let tickets = Arc::new(tickets);
        self.sight.change(|it| it.tickets = Arc::clone(&tickets));
    }

    /// Takes note of facts about policies and sealed rooms, all that came together: for each call
    /// what they change is copied.
    pub(crate) fn handle_rules(&self, facts: &[Fact]) {
        if facts.is_empty() {
            return;
        }
        self.sight.change(|it| {
            let (sealed, policies): (Vec<_>, Vec<_>) =
                facts.iter().partition(|it| matches!(it, Fact::Sealed { .. }));
            if !policies.is_empty() {
                let known = Arc::make_mut(&mut it.policies);
                policies.iter().for_each(|fact| known.handle(fact));
            }
            if !sealed.is_empty() {
                let known = Arc::make_mut(&mut it.sealed);
                sealed.iter().for_each(|fact| known.handle(fact));
            }
        });
    }

    pub(crate) fn replace_bases(&self, bases: Rotation) {
        let bases = Arc::new(bases);
        self.sight.change(|it| it.bases = Arc::clone(&bases));
    }

    pub(crate) fn replace_place(&self, place: Place) {
        let place = Arc::new(place);
        self.sight.change(|it| it.place = Arc::clone(&place));
    }
}

impl Shared {
    fn load(&self) -> Guard<Arc<Sight>> {
        self.0.load()
    }

    /// Replaces it by a changed one; `change` is called again if another was faster.
    fn change(&self, mut change: impl FnMut(&mut Sight)) {
        self.0.rcu(|before| {
            let mut sight = Sight::clone(before);
            change(&mut sight);
            sight
        });
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
