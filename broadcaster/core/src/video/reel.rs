//! The live playlist of a room's fragments (RFC 8216).
//!
//! A slot's place in the playlist is a number that rises by one through all gens; a new gen is a
//! discontinuity, since its timeline begins anew. Both go on where the last owner of the room was.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::time::{Duration, UNIX_EPOCH};

use proto::head::{GenInfo, Place};
use proto::id::{Gen, SlotNo};
use proto::time::Wall;

/// Slots in a playlist. Players begin three before the end, and one that lost its network for a
/// moment finds the next one it needs.
const SLOTS_MAX: usize = 8;
/// No date after this can be written.
const YEAR_9999_MS: u64 = 253_402_300_799_999;

/// The newest slots of a room.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Reel {
    cuts: VecDeque<Cut>,
    /// Place of the first of them.
    first: Place,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Cut {
    gen_no: Gen,
    slot: SlotNo,
    start: Wall,
    interval_ms: u32,
    /// Its timeline is not the one of the slot before.
    is_new: bool,
}

impl Cut {
    fn of(info: &GenInfo, slot: SlotNo, is_new: bool) -> Self {
        let passed_ms = slot.0.saturating_mul(info.interval_ms.into());
        let start = Wall(info.epoch_ms.0.saturating_add(passed_ms));
        Self { gen_no: info.gen_no, slot, start, interval_ms: info.interval_ms, is_new }
    }
}

impl Reel {
    /// The reel of a room whose newest slot, `newest` of `info`, has this place; slots before
    /// `oldest` are not there any more.
    #[must_use]
    pub fn found(info: &GenInfo, oldest: SlotNo, newest: SlotNo, place: Place) -> Self {
        let reach = (SLOTS_MAX as u64 - 1).min(newest.0.saturating_sub(oldest.0)).min(place.number);
        let cuts = (newest.0 - reach..=newest.0).map(|slot| Cut::of(info, SlotNo(slot), false));
        Self { cuts: cuts.collect(), first: Place { number: place.number - reach, ..place } }
    }

    /// Puts a sealed slot behind the others; one that came before is there already.
    pub fn put(&mut self, info: &GenInfo, slot: SlotNo) {
        let last = self.cuts.back();
        if last.is_some_and(|it| (it.gen_no, it.slot) >= (info.gen_no, slot)) {
            return;
        }
        if let Some(place) = self.place()
            && let Some(last) = last.filter(|it| it.gen_no == info.gen_no)
        {
            // Slots in between were not written, or by somebody else: they keep their numbers.
            let missed = slot.0 - last.slot.0 - 1;
            if missed > 0 {
                self.cuts.clear();
                self.first = Place { number: place.number + missed + 1, ..place };
            }
        }
        let is_new = self.cuts.back().is_some_and(|it| it.gen_no != info.gen_no);
        self.cuts.push_back(Cut::of(info, slot, is_new));
        while self.cuts.len() > SLOTS_MAX {
            self.cuts.pop_front();
            self.first.number += 1;
            self.first.turns += u64::from(self.cuts.front().is_some_and(|it| it.is_new));
        }
    }

    /// Place of the newest slot. None: there is no slot.
    #[must_use]
    pub fn place(&self) -> Option<Place> {
        let behind = self.cuts.len().checked_sub(1)?;
        let turns = self.cuts.iter().skip(1).filter(|it| it.is_new).count();
        let Place { number, turns: before } = self.first;
        Some(Place { number: number + behind as u64, turns: before + turns as u64 })
    }

    /// The playlist. Without any slot it is valid, and empty.
    #[must_use]
    pub fn playlist(&self) -> String {
        let longest_ms = self.cuts.iter().map(|it| it.interval_ms).max().unwrap_or(1000);
        let mut text = format!(
            "#EXTM3U\n#EXT-X-VERSION:7\n#EXT-X-TARGETDURATION:{}\n#EXT-X-MEDIA-SEQUENCE:{}\n\
             #EXT-X-DISCONTINUITY-SEQUENCE:{}\n#EXT-X-INDEPENDENT-SEGMENTS\n\
             #EXT-X-MAP:URI=\"init.mp4\"\n",
            longest_ms.div_ceil(1000),
            self.first.number,
            self.first.turns,
        );
        for (number, cut) in self.cuts.iter().enumerate() {
            if cut.is_new && number > 0 {
                text.push_str("#EXT-X-DISCONTINUITY\n");
            }
            let (seconds, millis) = (cut.interval_ms / 1000, cut.interval_ms % 1000);
            let Cut { gen_no, slot, start, .. } = cut;
            let at = UNIX_EPOCH + Duration::from_millis(start.0.min(YEAR_9999_MS));
            let at = humantime::format_rfc3339_millis(at);
            write!(
                text,
                "#EXT-X-PROGRAM-DATE-TIME:{at}\n#EXTINF:{seconds}.{millis:03},\n\
                 {gen_no}/full/{slot}.m4s\n"
            )
            .expect("writing into a String does not fail");
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gen_info(gen_no: u32, interval_ms: u32) -> GenInfo {
        let epoch_ms = Wall(1_800_000_000_000 + u64::from(gen_no) * 60_000);
        GenInfo { gen_no: Gen(gen_no), epoch_ms, interval_ms, layout: 1 }
    }

    fn put(reel: &mut Reel, info: &GenInfo, slots: std::ops::Range<u64>) {
        for slot in slots {
            reel.put(info, SlotNo(slot));
        }
    }

    #[test]
    fn slots_are_numbered_through_all_gens() {
        let mut reel = Reel::default();

        put(&mut reel, &gen_info(1, 1000), 0..10);
        put(&mut reel, &gen_info(2, 2000), 0..3);

        assert_eq!(reel.place(), Some(Place { number: 12, turns: 1 }));
        let text = reel.playlist();
        assert!(text.contains("#EXT-X-MEDIA-SEQUENCE:5\n"), "{text}");
        assert!(text.contains("#EXT-X-DISCONTINUITY-SEQUENCE:0\n"), "{text}");
        assert!(text.contains("#EXT-X-TARGETDURATION:2\n"), "{text}");
        assert!(text.contains("1/full/9.m4s\n#EXT-X-DISCONTINUITY\n"), "{text}");
        put(&mut reel, &gen_info(2, 2000), 3..8);
        let text = reel.playlist();
        assert!(text.contains("#EXT-X-MEDIA-SEQUENCE:10\n"), "{text}");
        assert!(text.contains("#EXT-X-DISCONTINUITY-SEQUENCE:1\n"), "{text}");
        assert!(!text.contains("#EXT-X-DISCONTINUITY\n"), "{text}");
    }

    #[test]
    fn the_next_owner_goes_on_with_the_numbers() {
        let info = gen_info(3, 1000);
        let mut reel = Reel::default();
        put(&mut reel, &info, 0..20);
        let place = reel.place().unwrap();

        let mut found = Reel::found(&info, SlotNo(0), SlotNo(19), place);

        assert_eq!(found, reel);
        put(&mut found, &info, 19..21);
        put(&mut reel, &info, 20..21);
        assert_eq!(found.playlist(), reel.playlist());
    }

    #[test]
    fn slots_that_are_missed_keep_their_numbers() {
        let info = gen_info(1, 1000);
        let (mut reel, mut whole) = (Reel::default(), Reel::default());
        put(&mut reel, &info, 0..4);
        put(&mut reel, &info, 9..11);
        put(&mut whole, &info, 0..11);

        assert_eq!(reel.place(), whole.place());
        let text = reel.playlist();
        assert!(text.contains("#EXT-X-MEDIA-SEQUENCE:9\n"), "{text}");
        assert_eq!(text.matches(".m4s\n").count(), 2);
    }

    #[test]
    fn a_slot_that_came_before_changes_nothing() {
        let info = gen_info(1, 1000);
        let mut reel = Reel::default();
        put(&mut reel, &info, 0..5);
        let before = reel.clone();

        put(&mut reel, &info, 2..5);
        put(&mut reel, &gen_info(0, 1000), 9..10);

        assert_eq!(reel, before);
    }

    #[test]
    fn slots_say_when_they_began() {
        let mut reel = Reel::default();
        put(&mut reel, &gen_info(0, 1500), 2..3);

        let text = reel.playlist();

        assert!(text.contains("#EXT-X-PROGRAM-DATE-TIME:2027-01-15T08:00:03.000Z\n"), "{text}");
        assert!(text.contains("#EXTINF:1.500,\n0/full/2.m4s\n"), "{text}");
    }
}
