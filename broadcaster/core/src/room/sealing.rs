//! A room's sealed slots: headers, tiers, and whether files are written.

use proto::control::Segments;
use proto::head::{GenInfo, Tier};
use proto::heat::Heat;
use proto::segment::Header;
use proto::time::{Mono, Wall};

use super::{COOLING, Output, Room, Sealed};
use crate::Now;
use crate::pack::{crc, lite, pack};
use crate::settings::Settings;
use crate::timeline::Slot;

impl Room {
    /// Says that a slot is complete.
    pub(super) fn emit(&mut self, info: GenInfo, slot: Slot, time: Wall, now: Now) {
        let header = Header {
            room: self.settings.room.clone(),
            gen_no: info.gen_no,
            slot: slot.slot,
            tier: Tier::Full,
            epoch_ms: info.epoch_ms,
            interval_ms: info.interval_ms,
            now_ms: time,
            spread_ms: self.spread_ms(info.interval_ms),
            next_tier: None,
            online: self.online,
            heat: self.thermostat.heat(),
            bases: Vec::new(),
            next: slot.next,
            end: slot.end,
        };
        let again = self.repeats.take(time);
        let comments_max = self.lite_comments();
        let lite = lite(header.clone(), &slot.flushes, again.clone(), comments_max);
        let full = pack(header, slot.flushes, again);
        self.repeats.push(info.gen_no, &full.items, time);
        self.outputs.push_back(Output::Seal(Box::new(Sealed {
            crc: crc(full.items.iter().map(|it| &it.item)),
            full,
            lite,
            is_written: self.is_written(now.mono),
            is_archived: self.settings.is_archived,
            layout: info.layout,
            recalled: self.repeats.recalled(),
        })));
    }

    /// Polls are spread over the same part of a longer slot, so their peak falls as their number does.
    fn spread_ms(&self, interval_ms: u32) -> u32 {
        let Settings { tempo, house, .. } = &self.settings;
        let spread_ms = u64::from(house.spread_ms) * u64::from(interval_ms);
        let spread_ms = u32::try_from(spread_ms / u64::from(tempo.interval_ms.max(1)));
        spread_ms.unwrap_or(interval_ms).min(interval_ms)
    }

    fn lite_comments(&self) -> usize {
        let Settings { lite_comments_per_s, house, .. } = &self.settings;
        let comments = u64::from(*lite_comments_per_s) * u64::from(house.flush_ms) / 1000;
        let least = usize::from(*lite_comments_per_s > 0);
        usize::try_from(comments).unwrap_or(usize::MAX).max(least)
    }

    pub(super) fn is_written(&self, now: Mono) -> bool {
        match self.settings.segments {
            Segments::Always => true,
            Segments::Never => false,
            Segments::Auto => match self.thermostat.heat() {
                Heat::Hot => true,
                Heat::Cold => self.cooled_at.is_some_and(|it| now.since(it) < COOLING),
            },
        }
    }
}
