//! What a room does with comments beyond what it shows.

use std::hash::BuildHasher;

use foldhash::fast::FixedState;
use proto::control::Excess;
use proto::id::ViewerId;
use proto::item::Role;
use proto::time::{Mono, millis};
use proto::verdict::Reason;

use super::Room;
use crate::flow::{Held, LOT, LOTS, Limit};
use crate::judge::{self, Refusal};
use crate::text::Shown;

impl Room {
    /// Lets what everyone would see pass if the room takes it now. Hosts and moderators are always
    /// heard, and so are those on the allow-list.
    pub(super) fn flow<T>(
        &mut self,
        judged: (Shown, T),
        viewer: &ViewerId,
        role: Role,
        nodes: u32,
        now: Mono,
    ) -> Result<(Shown, T), Refusal> {
        let limit = Limit { per_s: self.items_per_s().unwrap_or_default(), nodes };
        if judged.0 != Shown::Shadowed {
            let lot = self.samples().then(|| lot(viewer, now));
            if let Err(held) = self.stream.ask(limit, lot, now)
                && !judge::keeps_order(role)
                && !self.people.standing(viewer).listed
            {
                return Err(refusal(held, now));
            }
            self.stream.take(limit, now);
        }
        Ok(judged)
    }

    fn samples(&self) -> bool {
        self.settings().is_some_and(|it| it.excess == Excess::Sample)
    }
}

fn refusal(held: Held, now: Mono) -> Refusal {
    match held {
        Held::Turn(wait) => judge::later(Reason::RateLimited, millis(wait)),
        Held::Lot => judge::later(Reason::RoomBusy, millis(LOT) - now.0 % millis(LOT)),
    }
}

/// A viewer's lot: another one each time, and nobody can tell which.
fn lot(viewer: &ViewerId, now: Mono) -> u16 {
    let hash = FixedState::default().hash_one((viewer.as_str(), now.0 / millis(LOT)));
    u16::try_from(hash % u64::from(LOTS)).unwrap_or_default()
}
