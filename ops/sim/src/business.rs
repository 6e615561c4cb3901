//! The business server in the world: sends gifts until they are acknowledged.

use std::collections::BTreeMap;
use std::time::Duration;

use proto::id::ItemId;
use proto::time::Mono;

use crate::check::Check;
use crate::network::{Message, Network};

/// A request without an answer is repeated with the same key after this.
const PATIENCE: Duration = Duration::from_secs(1);

#[derive(Default)]
pub(crate) struct Business {
    gifts: u32,
    /// Keys without an acknowledgement, and when they are sent again.
    open: BTreeMap<u32, Mono>,
}

impl Business {
    /// Somebody pays for a gift.
    pub(crate) fn sell(&mut self, now: Mono) {
        self.open.insert(self.gifts, now);
        self.gifts += 1;
    }

    pub(crate) fn tick(&mut self, now: Mono, network: &mut Network) {
        for (&key, at) in self.open.iter_mut().filter(|(_, at)| **at <= now) {
            *at = now + PATIENCE;
            // A request in ten does not arrive, and as many answers.
            if !network.chance(100) {
                network.send(Message::Gift(key));
            }
        }
    }

    pub(crate) fn receipt(
        &mut self,
        key: u32,
        id: ItemId,
        network: &mut Network,
        check: &mut Check,
    ) {
        if !network.chance(100) {
            self.open.remove(&key);
            check.acknowledged(id);
        }
    }

    /// Whether every gift was acknowledged.
    pub(crate) fn is_idle(&self) -> bool {
        self.open.is_empty()
    }
}
