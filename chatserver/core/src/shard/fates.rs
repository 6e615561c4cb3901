//! What became of comments, from `sealed` to those who sent them.

use proto::envelope::{RoomEntry, RoomEvent};
use proto::frame::Outcome;
use proto::id::ItemId;
use proto::time::Mono;
use proto::verdict::{Fate, Verdict};

use super::{Shard, Whom};
use crate::asker::Asked;

impl Shard {
    pub(super) fn close(&mut self, RoomEntry { app, room, event }: &RoomEntry, now: Mono) {
        match event {
            RoomEvent::Flush { items, .. } => {
                for placed in items {
                    if let Some(recalled) = placed.item.body.recalls() {
                        self.recall(*app, room, recalled, now);
                    }
                    self.take_asker(placed.item.id);
                }
            }
            RoomEvent::Fates { fates } => {
                for &(id, fate) in fates {
                    self.close_one(id, fate);
                }
            }
            RoomEvent::Opened { .. } | RoomEvent::Seal { .. } | RoomEvent::Heat { .. } => {}
        }
    }

    fn close_one(&mut self, id: ItemId, fate: Fate) {
        let Some(Asked { asker, app, room, viewer, .. }) = self.take_asker(id) else { return };
        let whom = Whom { app, room, viewer };
        match fate {
            Fate::Sealed { .. } => {}
            Fate::Merged { into } => self.reply(asker, whom, Outcome::Merged(into)),
            Fate::Shed { reason } => self.reply(asker, whom, Outcome::Shed(reason)),
        }
    }

    /// Who waits for the fate of `id`, for the last time. A fate may be quicker than the bus's
    /// answer to the publish; it proves that the item was published.
    fn take_asker(&mut self, id: ItemId) -> Option<Asked> {
        self.settle(id, Verdict::Admit(id));
        self.askers.take(id)
    }
}
