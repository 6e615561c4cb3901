//! Which rooms are known by their facts.

use bus::topic;
use proto::id::RoomId;

use super::{Driver, ROOMS_MAX};

impl Driver {
    /// Whether there is place for one more room: one that is closed, and that nothing is done for
    /// any more, is forgotten for it.
    pub(super) fn make_place(&mut self) -> bool {
        if self.facts.len() < ROOMS_MAX {
            return true;
        }
        let is_driven = |room: &&RoomId| {
            let partition = topic::accepted().partition_of_room(room);
            self.partitions.get(&partition).is_some_and(|it| it.drives(room))
        };
        let over = self.closed.iter().find(|it| !is_driven(it)).cloned();
        if let Some(room) = &over {
            self.closed.remove(room);
            self.facts.remove(room);
        }
        over.is_some()
    }
}
