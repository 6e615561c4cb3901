//! Masters from the auth service and epochs from `control`: together they mint.

use std::sync::Arc;

use auth_core::keyring::{KeyError, Keyring};
use auth_core::token::KeySource as _;
use parking_lot::Mutex;
use proto::control::EpochFact;
use proto::keys::Masters;
use proto::time::Wall;
use tokio::sync::{Notify, watch};

use super::Shared;
use super::minter::Minter;

/// What it takes to mint.
#[derive(Debug)]
pub(crate) struct Keys {
    sight: Shared,
    /// Held while the minter is replaced: what one replaces, the other must not undo.
    replacing: Mutex<()>,
    /// Length of an epoch in seconds, when the first masters are there.
    interval_s: watch::Sender<Option<u32>>,
    /// An epoch names a master that is not held.
    wanted: Notify,
}

impl Keys {
    /// None, to be shown in this sight.
    pub(super) fn new(sight: Shared) -> Self {
        Self {
            sight,
            replacing: Mutex::default(),
            interval_s: watch::Sender::default(),
            wanted: Notify::default(),
        }
    }

    /// What mints, if the masters are there.
    pub(crate) fn current(&self) -> Option<Arc<Minter>> {
        self.sight.load().minter.clone()
    }

    fn show(&self, keyring: Keyring) {
        let minter = Arc::new(Minter::new(keyring));
        self.sight.change(|it| it.minter = Some(Arc::clone(&minter)));
    }

    /// Length of an epoch in seconds; `None` before the first masters are there. Whenever it
    /// changes there are no epochs, and `control` is to be read from its beginning.
    pub(crate) fn interval_s(&self) -> watch::Receiver<Option<u32>> {
        self.interval_s.subscribe()
    }

    /// Waits until an epoch comes that names a master which is not held.
    pub(crate) async fn wanted(&self) {
        self.wanted.notified().await;
    }

    /// Whether an epoch that counts at `now` names a master which is not held.
    pub(crate) fn wants(&self, now: Wall) -> bool {
        let current = self.current();
        current.as_ref().is_some_and(|it| !it.keyring().missing_masters(now).is_empty())
    }

    /// Takes the masters. Epochs stay, unless they had another length: their numbers meant other times.
    pub(crate) fn replace_masters(&self, masters: &Masters) -> Result<(), KeyError> {
        let _replacing = self.replacing.lock();
        let keyring = match self.current().as_ref().map(|it| it.keyring()) {
            Some(current) if current.interval_s() == masters.interval_s => {
                let mut keyring = current.clone();
                keyring.replace_masters(masters)?;
                keyring
            }
            Some(_) | None => Keyring::new(masters)?,
        };
        self.show(keyring);
        let interval_s = Some(masters.interval_s);
        self.interval_s.send_if_modified(|it| std::mem::replace(it, interval_s) != interval_s);
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
        let current = self.current().as_ref().map(|it| it.keyring().clone());
        let Some(mut keyring) = current else {
            return Ok(());
        };
        change(&mut keyring)?;
        self.show(keyring);
        Ok(())
    }
}
