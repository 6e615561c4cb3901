//! Masters from the auth service and epochs from `control`: together they mint.

use std::sync::Arc;

use arc_swap::ArcSwapOption;
use auth_core::keyring::{KeyError, Keyring};
use parking_lot::Mutex;
use proto::control::EpochFact;
use proto::keys::Masters;
use proto::time::Wall;
use tokio::sync::{Notify, watch};

/// What it takes to mint.
#[derive(Debug, Default)]
pub(crate) struct Keys {
    current: ArcSwapOption<Keyring>,
    /// Held while `current` is replaced: what one replaces, the other must not undo.
    replacing: Mutex<()>,
    arrived: watch::Sender<bool>,
    /// An epoch names a master that is not held.
    wanted: Notify,
}

impl Keys {
    /// What mints, if the masters are there.
    pub(crate) fn current(&self) -> Option<Arc<Keyring>> {
        self.current.load_full()
    }

    /// Waits until the first masters are there.
    pub(crate) async fn arrived(&self) {
        let mut arrived = self.arrived.subscribe();
        // The sender is in `self`, so waiting for it cannot fail.
        arrived.wait_for(|it| *it).await.ok();
    }

    /// Waits until an epoch comes that names a master which is not held.
    pub(crate) async fn wanted(&self) {
        self.wanted.notified().await;
    }

    /// Whether an epoch that counts at `now` names a master which is not held.
    pub(crate) fn wants(&self, now: Wall) -> bool {
        self.current().is_some_and(|it| !it.missing_masters(now).is_empty())
    }

    /// Takes the masters; the epochs stay.
    pub(crate) fn replace_masters(&self, masters: &Masters) -> Result<(), KeyError> {
        let _replacing = self.replacing.lock();
        let keyring = match self.current() {
            None => Keyring::new(masters)?,
            Some(current) => {
                let mut keyring = Keyring::clone(&current);
                keyring.replace_masters(masters)?;
                keyring
            }
        };
        self.current.store(Some(Arc::new(keyring)));
        self.arrived.send_replace(true);
        Ok(())
    }

    /// Takes an epoch; before the masters there is nothing to take it into.
    pub(crate) fn handle(&self, fact: &EpochFact, now: Wall) -> Result<(), KeyError> {
        self.change(|keyring| keyring.handle(fact, now))?;
        if self.wants(now) {
            self.wanted.notify_one();
        }
        Ok(())
    }

    /// Never mints with these epochs of a master again.
    pub(crate) fn revoke(&self, kid: u8, from_epoch: u32, to_epoch: u32) {
        let revoked = self.change(|keyring| {
            keyring.revoke(kid, from_epoch, to_epoch);
            Ok(())
        });
        revoked.expect("revoking does not fail");
    }

    fn change(
        &self,
        change: impl FnOnce(&mut Keyring) -> Result<(), KeyError>,
    ) -> Result<(), KeyError> {
        let _replacing = self.replacing.lock();
        let Some(current) = self.current() else {
            return Ok(());
        };
        let mut keyring = Keyring::clone(&current);
        change(&mut keyring)?;
        self.current.store(Some(Arc::new(keyring)));
        Ok(())
    }
}
