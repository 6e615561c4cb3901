//! Which rooms are this process's to push: those that run here and are open to everybody.

use bus::topic;
use proto::id::RoomId;

use super::Driver;

impl Driver {
    /// Looks at one room whose fact or gen may have changed.
    pub(super) fn aim(&self, room: &RoomId) {
        let partition = topic::accepted().partition_of_room(room);
        // A gen stays sealed to its end, whatever the room's fact says by now.
        let is_open = self.partitions.get(&partition).is_some_and(|it| it.shows_openly(room));
        let fact = self.facts.get(room);
        let is_wanted = fact.is_some_and(|it| it.open && !it.settings.sealed);
        self.tools.pushes.aim(room, is_open && is_wanted);
    }

    /// Looks at all rooms that are to be pushed: a gen may have ended.
    pub(super) fn aim_all(&self) {
        self.tools.pushes.rooms().for_each(|it| self.aim(it));
    }
}
