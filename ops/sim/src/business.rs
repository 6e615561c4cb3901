//! The business server in the world: sends gifts until they are acknowledged.

use std::collections::BTreeMap;
use std::time::Duration;

use proto::id::ItemId;
use proto::time::Mono;

use crate::network::Message;
use crate::turn::Turn;

/// A request without an answer is repeated with the same key after this.
const PATIENCE: Duration = Duration::from_secs(1);

#[derive(Default)]
pub(crate) struct Business {
    gifts: u32,
    /// Keys without an acknowledgement, and when they are sent again.
    open: BTreeMap<u32, Mono>,
}

impl Business {
    /// Somebody pays for gifts.
    pub(crate) fn sell(&mut self, gifts: u32, now: Mono) {
        self.open.extend((self.gifts..self.gifts + gifts).map(|key| (key, now)));
        self.gifts += gifts;
    }

    pub(crate) fn tick(&mut self, turn: &mut Turn<'_>) {
        for (&key, at) in self.open.iter_mut().filter(|(_, at)| **at <= turn.now.mono) {
            *at = turn.now.mono + PATIENCE;
            // A request in ten does not arrive, and as many answers.
            if !turn.network.chance(100) {
                turn.network.send(Message::Gift(key));
            }
        }
    }

    pub(crate) fn receipt(&mut self, key: u32, id: ItemId, turn: &mut Turn<'_>) {
        if !turn.network.chance(100) {
            self.open.remove(&key);
            turn.check.acknowledged(id);
        }
    }

    /// Whether every gift was acknowledged.
    pub(crate) fn is_idle(&self) -> bool {
        self.open.is_empty()
    }
}
