//! What questions are answered from: kept up to date by tasks, only read by answers.

use std::collections::BTreeMap;
use std::sync::Arc;

use arc_swap::{ArcSwap, ArcSwapOption};
use auth_core::keyring::{KeyError, Keyring};
use auth_core::revocation::Revocations;
use gslb_core::snapshot::Snapshot;
use parking_lot::{Mutex, RwLock};
use proto::control::EpochFact;
use proto::head::Base;
use proto::keys::Masters;
use proto::time::Wall;

/// Epoch facts kept for masters that come later: those a keyring keeps, and a few more.
const EPOCHS_MAX: usize = 64;

/// Everything an answer looks at.
#[derive(Debug)]
pub(crate) struct Known {
    pub(crate) snapshot: ArcSwap<Snapshot>,
    pub(crate) keys: Keys,
    pub(crate) revocations: RwLock<Revocations>,
    pub(crate) bases: ArcSwap<Vec<Base>>,
}

/// Masters from the auth service and epochs from `control`, in whichever order they come.
#[derive(Debug, Default)]
pub(crate) struct Keys {
    /// What it takes to mint; nothing before the masters are there.
    current: ArcSwapOption<Keyring>,
    /// The newest fact of each epoch.
    epochs: Mutex<BTreeMap<u32, EpochFact>>,
}

impl Known {
    pub(crate) fn new(bases: Vec<Base>, revocations_max: u32) -> Self {
        Self {
            snapshot: ArcSwap::default(),
            keys: Keys::default(),
            revocations: RwLock::new(Revocations::new(revocations_max as usize)),
            bases: ArcSwap::from_pointee(bases),
        }
    }
}

impl Keys {
    /// What mints, if the masters are there.
    pub(crate) fn current(&self) -> Option<Arc<Keyring>> {
        self.current.load_full()
    }

    /// Takes the masters, and with them the epochs known so far.
    pub(crate) fn replace_masters(&self, masters: &Masters, now: Wall) -> Result<(), KeyError> {
        let mut keyring = Keyring::new(masters)?;
        let epochs = self.epochs.lock();
        for fact in epochs.values() {
            if let Err(error) = keyring.handle(fact, now) {
                tracing::debug!(epoch = fact.epoch, %error, "an epoch was passed over");
            }
        }
        self.current.store(Some(Arc::new(keyring)));
        Ok(())
    }

    /// Takes an epoch.
    pub(crate) fn handle(&self, fact: EpochFact, now: Wall) -> Result<(), KeyError> {
        let mut epochs = self.epochs.lock();
        if let Some(current) = self.current() {
            let mut keyring = Keyring::clone(&current);
            keyring.handle(&fact, now)?;
            self.current.store(Some(Arc::new(keyring)));
        }
        epochs.insert(fact.epoch, fact);
        if epochs.len() > EPOCHS_MAX {
            epochs.pop_first();
        }
        Ok(())
    }
}
