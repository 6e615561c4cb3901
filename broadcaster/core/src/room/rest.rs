//! Rooms in which nobody is and nothing happens: they end their gen and do nothing more, until
//! somebody comes or something is to be shown. That begins the next gen.
//!
//! A room that writes segments does not rest: missing never means silent. Each rest leaves a gen's
//! file in the store, about 100 bytes: a number that was used is never used again.

use proto::id::{Gen, SlotNo};
use proto::time::Mono;

use super::{Life, Room};

/// Whether a room rests.
#[derive(Clone, Copy, Debug, Default)]
pub(super) enum Rest {
    /// Something is going on, or might be.
    #[default]
    Awake,
    /// Nothing has been since then.
    Quiet {
        /// When that began.
        since: Mono,
    },
    /// It does nothing.
    Resting,
}

impl Rest {
    pub(super) const fn is_resting(self) -> bool {
        matches!(self, Self::Resting)
    }

    pub(super) const fn wake(&mut self) {
        *self = Self::Awake;
    }
}

impl Room {
    /// The slot that items are flushed into now.
    #[must_use]
    pub fn open_slot(&self) -> Option<(Gen, SlotNo)> {
        let (timeline, _) = self.timeline.as_ref()?;
        Some((timeline.info().gen_no, timeline.slot()))
    }

    /// Whether what it shows now is for those alone who may enter.
    #[must_use]
    pub fn is_sealed(&self) -> bool {
        self.timeline.as_ref().is_some_and(|(it, _)| it.info().is_sealed())
    }

    /// Whether nothing waits and the open slot is still empty: stopping now loses no item.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        let is_slot_empty = self.timeline.as_ref().is_none_or(|(it, _)| it.items() == 0);
        self.scheduler.is_empty() && is_slot_empty
    }

    /// Whether it was closed, and has said all that it had to say.
    #[must_use]
    pub fn is_ended(&self) -> bool {
        self.life == Life::Ended && self.outputs.is_empty()
    }

    /// Looks once a second whether the room may rest, or has to wake.
    pub(super) fn watch_rest(&mut self, sessions: u32, now: Mono) {
        let is_quiet = sessions == 0
            && self.life == Life::Open
            && self.scheduler.is_empty()
            && !self.is_written(now);
        match self.rest {
            Rest::Quiet { .. } | Rest::Resting if !is_quiet => self.rest.wake(),
            Rest::Awake if is_quiet => self.rest = Rest::Quiet { since: now },
            Rest::Quiet { since } if now.since(since) >= self.settings.house.rest => {
                if let Some((timeline, _)) = &mut self.timeline
                    && timeline.end().is_none()
                    && !self.has_asked
                {
                    timeline.end_with(timeline.slot(), None);
                    self.rest = Rest::Resting;
                }
            }
            Rest::Awake | Rest::Quiet { .. } | Rest::Resting => {}
        }
    }
}
