//! What rooms showed last, as `sealed` tells it, without those whom `control` banned.

use chatserver_core::judge::Now;
use chatserver_core::lately::Lately;
use chatserver_core::sender::SenderSecret;
use parking_lot::Mutex;
use proto::control::{Fact, RoomFact};
use proto::envelope::{RoomEntry, RoomEvent};
use proto::id::{AppId, RoomId};
use proto::item::Repeat;
use proto::time::{Mono, Wall};

/// The last items of rooms.
#[derive(Debug)]
pub(crate) struct Recent {
    secret: SenderSecret,
    lately: Mutex<Lately>,
}

impl Recent {
    pub(crate) fn new(secret: SenderSecret, items_max: usize) -> Self {
        Self { secret, lately: Mutex::new(Lately::new(items_max)) }
    }

    /// What a room showed last, the oldest first.
    pub(crate) fn of(&self, app: AppId, room: &RoomId) -> Vec<Repeat> {
        self.lately.lock().of(app, room)
    }

    /// Takes what was shown.
    pub(crate) fn see(&self, entries: &[RoomEntry], now: Mono) {
        let mut lately = self.lately.lock();
        for RoomEntry { app, room, event } in entries {
            if let RoomEvent::Flush { gen_no, items, .. } = event {
                lately.show(*app, room, *gen_no, items, now);
            }
        }
    }

    /// Takes out what nobody may see any more.
    pub(crate) fn learn(&self, fact: &Fact, now: Now) {
        if let Fact::Ban { app, room, viewer, until } = fact {
            let sender = self.secret.room(*app, room).sender(viewer);
            let until = if *until > now.wall { *until } else { Wall(0) };
            self.lately.lock().ban(*app, room, sender, until, now.mono);
        }
        if let Fact::Room(RoomFact { app, room, open: false, .. }) = fact {
            self.lately.lock().forget(*app, room);
        }
    }
}
