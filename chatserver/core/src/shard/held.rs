//! Comments that rooms hold back before they go to the bus.

use proto::envelope::Accepted;
use proto::id::{AppId, ItemId, RoomId};
use proto::item::Body;
use proto::time::Mono;
use proto::verdict::Reason;

use super::{BUSY_RETRY_MS, Output, Shard};
use crate::hold::Waiting;
use crate::judge::{Now, Refusal, keeps_order, later, never};
use crate::review::{Found, Ruling};
use crate::room::Room;
use crate::text::{self, Shown};
use crate::words::Words;

/// When the sender may try again whose comment its room had no place to hold.
const FULL_RETRY_MS: u64 = 1000;

impl Shard {
    /// Up to `rows_max` comments that are held back in a room and may still be shown, the oldest
    /// first, each with its number, from behind the number `after` on; and how long the room holds
    /// them.
    #[must_use]
    pub fn held(
        &self,
        (app, room): (AppId, &RoomId),
        after: u64,
        rows_max: usize,
        now: Now,
    ) -> (Vec<(u64, Waiting)>, u32) {
        let held = self.hold.of(app, room, after).filter(|it| self.may_go_on(it.1, now).is_ok());
        let held = held.take(rows_max).map(|(no, waiting)| (no, waiting.clone()));
        (held.collect(), self.hold_ms(app, room).max(self.hold.hold_ms(app, room)))
    }

    /// How many are held back.
    #[must_use]
    pub const fn held_count(&self) -> usize {
        self.hold.len()
    }

    /// Publishes a comment, or holds it back first.
    pub(super) fn show(&mut self, accepted: Accepted, now: Mono) {
        let Accepted { app, room, item } = &accepted;
        // Most chatservers have no such room, and nothing is looked up for them.
        let is_held = (!self.holding.is_empty() && self.hold_ms(*app, room) > 0)
            || self.hold.holds(*app, room);
        if !is_held || keeps_order(item.role) {
            self.outputs.push_back(Output::Publish(accepted));
            return;
        }
        // Of whom nobody knows any more that they wait, nobody can be told.
        let Some(asked) = self.askers.find(item.id) else { return };
        if asked.was_held {
            self.outputs.push_back(Output::Publish(accepted));
            return;
        }
        let waiting = Waiting { at: now, viewer: asked.viewer.clone(), accepted };
        let unheld = if self.holds_more { self.hold.push(waiting) } else { Some(waiting) };
        if let Some(waiting) = unheld {
            let refusal = later(Reason::RoomBusy, FULL_RETRY_MS);
            self.refuse(waiting.accepted.item.id, refusal, now);
        }
    }

    /// Lets go on whose time is over, unless something was done to room or sender meanwhile, or
    /// nobody may say it any more. What came to be masked, shadowed or reviewed meanwhile is.
    pub(super) fn release(&mut self, now: Now) {
        if self.hold.is_empty() {
            return;
        }
        let rooms = &self.rooms;
        let hold_ms = |app: AppId, room: &RoomId| {
            rooms.get(&(app, room.clone())).map_or(0, |it| it.hold_ms())
        };
        for waiting in self.hold.release(hold_ms, now.mono) {
            match self.may_go_on(&waiting, now).and_then(|()| self.read_again(&waiting)) {
                Ok(shown) => self.go_on(waiting, shown, now.mono),
                Err(refusal) => self.refuse(waiting.accepted.item.id, refusal, now.mono),
            }
        }
    }

    /// Shows what waited, as what it says is judged now.
    fn go_on(&mut self, waiting: Waiting, shown: Shown, now: Mono) {
        let Waiting { viewer, mut accepted, .. } = waiting;
        let id = accepted.item.id;
        match shown {
            Shown::Plain => {}
            Shown::Masked(masked) => put(&mut accepted, masked),
            Shown::Shadowed => return self.rule(Ruling::Shadow(id), now),
            Shown::Held(masked) => {
                // Of whom nobody knows any more that they wait, nobody can be told.
                let Some(asked) = self.askers.find(id) else { return };
                asked.was_held = true;
                // What was marked when it was sent, its hook has seen.
                if std::mem::replace(&mut asked.found, Found::Marked) == Found::Nothing {
                    let key = (accepted.app, accepted.room.clone());
                    let review = self.rooms.get(&key).and_then(Room::review);
                    return self.submit(viewer, accepted, Shown::Held(masked), review, now);
                }
                if let Some(masked) = masked {
                    put(&mut accepted, masked);
                }
            }
        }
        self.outputs.push_back(Output::Publish(accepted));
    }

    /// Gives everything back to its senders, and holds nothing more: this process ends.
    pub(super) fn give_back(&mut self, now: Mono) {
        self.holds_more = false;
        for waiting in std::mem::take(&mut self.hold).release(|_, _| 0, Mono(u64::MAX)) {
            let refusal = Refusal { reason: Reason::Busy, retry_after_ms: BUSY_RETRY_MS };
            self.refuse(waiting.accepted.item.id, refusal, now);
        }
    }

    /// A recall takes out what its room holds back, also when nobody knows any more who waits.
    pub(super) fn recall(&mut self, app: AppId, room: &RoomId, id: ItemId, now: Mono) {
        if self.hold.take(app, room, id).is_some() {
            self.refuse(id, never(Reason::Recalled), now);
        }
    }

    fn may_go_on(&self, waiting: &Waiting, now: Now) -> Result<(), Refusal> {
        let Waiting { viewer, accepted: Accepted { app, room, item }, .. } = waiting;
        let room = self.rooms.get(&(*app, room.clone())).ok_or(never(Reason::NoRoom))?;
        room.hear_again(viewer, item.role, now.wall)
    }

    /// How it is shown by the lists and settings of now: they may have changed while it waited.
    fn read_again(&mut self, waiting: &Waiting) -> Result<Shown, Refusal> {
        let Waiting { viewer, accepted: Accepted { app, room, item }, .. } = waiting;
        let room = self.rooms.get(&(*app, room.clone()));
        let (room, settings) =
            room.and_then(|it| Some((it, it.settings()?))).ok_or(never(Reason::NoRoom))?;
        let lists = self.words.get(app).into_iter().chain(room.words());
        let lists: Vec<&Words> = lists.map(|it| &**it).collect();
        let role = room.people.role(viewer, item.role);
        let text = item.body.text().unwrap_or_default();
        text::judge_again(&mut self.scanner, text, role, settings, &lists)
    }

    fn hold_ms(&self, app: AppId, room: &RoomId) -> u32 {
        self.rooms.get(&(app, room.clone())).map_or(0, |it| it.hold_ms())
    }
}

fn put(accepted: &mut Accepted, masked: String) {
    if let Body::Comment { text, .. } = &mut accepted.item.body {
        *text = masked.into();
    }
}
