//! When a room asks for a gen.

use super::*;

impl Room {
    pub(super) fn want_gen(&mut self, now: Now) {
        if self.has_asked || self.life == Life::Ended || self.rest.is_resting() {
            return;
        }
        let interval_ms = self.tempo.interval_ms();
        let epoch_ms = Wall(now.wall.0 - now.wall.0 % u64::from(interval_ms));
        self.ask_for_gen(epoch_ms, interval_ms);
    }

    fn ask_for_gen(&mut self, epoch_ms: Wall, interval_ms: u32) {
        self.has_asked = true;
        let (after, layout) = (self.newest_gen, self.settings.layout);
        self.outputs.push_back(Output::WantGen { after, epoch_ms, interval_ms, layout });
    }

    /// Asks for a gen with another interval or layout, to follow the running one.
    pub(super) fn want_change(&mut self) {
        let Some((timeline, _)) = &self.timeline else {
            return;
        };
        let interval_ms = self.tempo.interval_ms();
        let info = timeline.info();
        let is_same = (info.interval_ms, info.layout) == (interval_ms, self.settings.layout);
        if is_same || self.has_asked || timeline.end().is_some() || self.life != Life::Open {
            return;
        }
        let ahead_ms = CHANGE_SLOTS * u64::from(info.interval_ms);
        let epoch_ms = Wall(timeline.slot_end().0 + ahead_ms);
        self.ask_for_gen(epoch_ms, interval_ms);
    }
}
