//! What a link passes on of a room's comments.
//!
//! Two things hold a flood back here, before it costs the bus anything: the share that all links
//! are told to pass on, and a cap of this link alone, for the time in which nobody knows of the
//! flood yet. The cap is one and three quarters of what the room shows, more than the share comes to,
//! and after quiet what it shows in two and a half seconds: as much as chatservers take in a burst.
//! Each link has it, so that several together pass on more until they are told a share, within about
//! a second.
//!
//! Which comments are passed on is fixed by their sender and number, whatever the session, so that
//! one that is sent again on this link meets the share that it met before. A secret is in it, too: a
//! sender, who chooses the numbers, cannot choose those that are always passed on. The cap passes a
//! share too: the emptier its bucket, the smaller.

use std::hash::{DefaultHasher, Hasher};
use std::time::Duration;

use proto::id::{Cid, ViewerId};
use proto::time::{Mono, millis};

/// Everything, in thousandths.
const ALL: u16 = 1000;
/// The cap is so many quarters of what the room shows: twice as much in ten seconds, burst included.
const QUARTERS: u64 = 7;
/// What the room shows in so long may come at once.
const BURST: Duration = Duration::from_millis(2500);
/// While less than what the room shows in so long is left, the cap passes on a share.
const THIN: Duration = Duration::from_millis(500);
/// One comment in the unit of levels: thousandths a second are so many a millisecond.
const COMMENT: u64 = 1_000_000;

/// What becomes of a comment.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Offered {
    /// It is passed on.
    Kept,
    /// It is not of the share that all links pass on.
    Sampled,
    /// It is more than this link passes on, whatever the share.
    Capped,
}

/// What a room is offered here.
#[derive(Debug)]
pub(super) struct Offers {
    /// Thousandths that all links pass on.
    keep_permille: u16,
    items_per_s: u32,
    /// Comments that the cap has left, in millionths.
    level: u64,
    filled: Mono,
    /// Since they were last counted.
    comments: u32,
}

impl Offers {
    /// Nothing was offered yet.
    pub(super) const NONE: Self =
        Self { keep_permille: ALL, items_per_s: 0, level: u64::MAX, filled: Mono(0), comments: 0 };

    /// Sets what the room shows a second.
    pub(super) const fn show(&mut self, items_per_s: u32) {
        self.items_per_s = items_per_s;
    }

    /// Sets the share that all links pass on.
    pub(super) fn keep(&mut self, permille: u16) {
        self.keep_permille = permille.min(ALL);
    }

    /// Counts a comment of this fate.
    pub(super) fn offer(&mut self, fate: u16, now: Mono) -> Offered {
        self.comments = self.comments.saturating_add(1);
        if fate >= self.keep_permille {
            return Offered::Sampled;
        }
        if fate >= self.cap_permille(now) {
            return Offered::Capped;
        }
        self.level -= COMMENT;
        Offered::Kept
    }

    /// Comments that were offered since they were last counted.
    pub(super) const fn comments(&self) -> u32 {
        self.comments
    }

    /// Starts a new count.
    pub(super) fn count(&mut self) -> u32 {
        std::mem::take(&mut self.comments)
    }

    /// The share that the cap passes on now; nothing while less than one comment is left.
    fn cap_permille(&mut self, now: Mono) -> u16 {
        let shown_milli = u64::from(self.items_per_s) * 1000;
        let gained = (shown_milli * QUARTERS / 4).saturating_mul(millis(now.since(self.filled)));
        let full = (shown_milli * millis(BURST)).max(COMMENT);
        self.level = self.level.saturating_add(gained).min(full);
        self.filled = now;
        if self.level < COMMENT {
            return 0;
        }
        let share = (self.level * u64::from(ALL)).checked_div(shown_milli * millis(THIN));
        share.and_then(|it| u16::try_from(it).ok()).unwrap_or(ALL).min(ALL)
    }
}

/// A number below 1000 that a comment has whenever it comes to who has this secret.
pub(super) fn fate(secret: u128, viewer: &ViewerId, cid: Cid) -> u16 {
    // SipHash, whose state nobody knows who does not know what it took first.
    let mut hasher = DefaultHasher::new();
    hasher.write_u128(secret);
    hasher.write_u64(cid.0);
    hasher.write(viewer.as_str().as_bytes());
    u16::try_from(hasher.finish() % u64::from(ALL)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHOWN: u32 = 50;
    const SECRET: u128 = 7;

    fn offers() -> Offers {
        let mut offers = Offers::NONE;
        offers.show(SHOWN);
        offers
    }

    /// Offers so many comments a millisecond; gives how many were kept, sampled and capped.
    fn flood(offers: &mut Offers, per_ms: u64, ms: std::ops::Range<u64>) -> (u32, u32, u32) {
        let viewer = ViewerId::parse("v").unwrap();
        let mut became = (0, 0, 0);
        for cid in ms.start * per_ms..ms.end * per_ms {
            match offers.offer(fate(SECRET, &viewer, Cid(cid)), Mono(cid / per_ms)) {
                Offered::Kept => became.0 += 1,
                Offered::Sampled => became.1 += 1,
                Offered::Capped => became.2 += 1,
            }
        }
        became
    }

    #[test]
    fn a_share_is_kept_and_all_are_counted() {
        let mut offers = offers();
        offers.show(10_000);
        offers.keep(250);

        let (kept, sampled, capped) = flood(&mut offers, 4, 0..1_000);

        assert!((900..1_100).contains(&kept), "{kept} of 4000");
        assert_eq!((kept + sampled, capped), (4_000, 0));
        assert_eq!((offers.comments(), offers.count(), offers.comments()), (4_000, 4_000, 0));
    }

    #[test]
    fn a_flood_that_nobody_knows_of_is_capped_at_twice_what_is_shown_in_ten_seconds() {
        let mut offers = offers();

        let (first, ..) = flood(&mut offers, 1, 0..1_000);
        let (nine, ..) = flood(&mut offers, 1, 1_000..10_000);
        let (ten, ..) = flood(&mut offers, 1, 10_000..20_000);

        assert!((195..=212).contains(&first), "87 and 125: {first}");
        assert!(first + nine <= 2 * 10 * SHOWN, "{first} and {nine}");
        assert!((840..=880).contains(&ten), "87 a second: {ten}");
    }

    #[test]
    fn who_does_not_know_the_secret_cannot_choose_what_is_passed_on() {
        let viewer = ViewerId::parse("v").unwrap();
        let low = |secret, cid| fate(secret, &viewer, Cid(cid)) < 50;
        let chosen: Vec<u64> = (0..40_000).filter(|cid| low(SECRET, *cid)).collect();

        let passed = chosen.iter().filter(|cid| low(SECRET + 1, **cid)).count();

        assert!((1_800..2_200).contains(&chosen.len()), "{}", chosen.len());
        assert!((60..140).contains(&passed), "{passed} of {}", chosen.len());
    }

    #[test]
    fn a_burst_is_passed_on_whole_after_quiet() {
        let mut offers = offers();
        flood(&mut offers, 1, 0..5_000);

        let (kept, ..) = flood(&mut offers, 1, 10_000..10_100);

        assert_eq!(kept, 100);
    }

    #[test]
    fn what_is_sent_again_meets_the_same_fate_unless_the_share_passes_over_it() {
        let mut offers = offers();
        flood(&mut offers, 1, 0..3_000);
        let mut changed = 0;

        for cid in 0..1_000 {
            let (fate, now) =
                (fate(SECRET, &ViewerId::parse("v").unwrap(), Cid(cid)), Mono(3_000 + cid * 5));
            let became = offers.offer(fate, now);
            changed += u32::from(offers.offer(fate, now) != became);
        }

        assert!(changed <= 50, "{changed} of 1000");
    }

    #[test]
    fn a_room_that_shows_one_a_second_takes_two_at_once() {
        let mut offers = Offers::NONE;
        offers.show(1);

        let (kept, ..) = flood(&mut offers, 1, 0..1);
        let (first, ..) = flood(&mut offers, 1, 1..100);

        assert_eq!((kept, first), (1, 1));
    }
}
