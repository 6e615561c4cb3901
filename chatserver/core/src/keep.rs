//! Which share of a room's comments links pass on, when they are offered far more than it shows.
//!
//! Links say once a second what they were offered, sampled comments included; before that is
//! known, what the chatservers together are asked for tells of a sudden flood. What links pass on
//! is still somewhat more than the room shows, since not everything that is passed on is admitted.
//! The share falls at once, rises again within seconds, and changes at most once a second. It rises
//! only when all links had time to say what they are offered. While it is not all, it is told again
//! and again: a link that has just started may not have heard it, or not known the room then.

use std::time::Duration;

use proto::id::NodeId;
use proto::time::Mono;

/// Everything, in thousandths.
pub const ALL: u16 = 1000;
/// How often the share may change.
pub const EVERY: Duration = Duration::from_secs(1);
/// How often a share is told again that does not change.
pub const AGAIN: Duration = Duration::from_secs(10);
/// All chatservers have said what they are asked for within this time.
const SAID: Duration = Duration::from_millis(200);
/// How long a link's word counts; it comes every second.
const LIFE: Duration = Duration::from_secs(3);
/// Links that are counted in one room; those beyond it are as if they were offered nothing.
const LINKS_MAX: usize = 4096;
/// Links pass on so many halves of what the room shows.
const HALVES_KEPT: u64 = 3;
/// A share that differs by less than one such part is not worth telling.
const PARTS: u16 = 8;

/// What one room is offered, and the share that everyone was told.
#[derive(Clone, Debug)]
pub struct Valve {
    /// In the order of links.
    offers: Vec<(NodeId, u32, Mono)>,
    /// Since when chatservers are asked for too many, and for how many.
    flood: Option<(Mono, u32)>,
    /// The most that was offered a second, falling by a quarter each second.
    peak_per_s: u64,
    fallen: Mono,
    /// Thousandths, as heard on `control`.
    kept: u16,
    /// Since when that is less than all, as heard here.
    shut: Option<Mono>,
    told: Option<Mono>,
}

impl Default for Valve {
    fn default() -> Self {
        let (offers, fallen) = (Vec::new(), Mono(0));
        Self { offers, flood: None, peak_per_s: 0, fallen, kept: ALL, shut: None, told: None }
    }
}

impl Valve {
    /// A link was offered so many comments in the last second.
    pub fn offered(&mut self, link: NodeId, per_s: u32, now: Mono) {
        match self.offers.binary_search_by_key(&link, |it| it.0) {
            Ok(place) => self.offers[place] = (link, per_s, now),
            Err(place) if self.offers.len() < LINKS_MAX => {
                self.offers.insert(place, (link, per_s, now));
            }
            Err(_) => {}
        }
    }

    /// The chatservers together are asked for so many. While links pass on a share only, that says
    /// nothing about what they are offered.
    pub fn wanted(&mut self, per_s: u32, now: Mono) {
        if self.kept == ALL {
            let flood = self.flood.get_or_insert((now, 0));
            flood.1 = flood.1.max(per_s);
        }
    }

    /// Everyone was told this share, in thousandths.
    pub fn heard(&mut self, kept: u16, now: Mono) {
        self.kept = kept.min(ALL);
        self.shut = if self.kept == ALL { None } else { self.shut.or(Some(now)) };
    }

    /// The share that everyone is to be told, instead of the one they know or once more, if it is
    /// time for that.
    pub fn decide(&mut self, limit_per_s: u32, now: Mono) -> Option<u16> {
        self.offers.retain(|it| now.since(it.2) < LIFE);
        if now.since(self.fallen) >= EVERY {
            (self.peak_per_s, self.fallen) = (self.peak_per_s * 3 / 4, now);
        }
        let offered_per_s = self.offers.iter().map(|it| u64::from(it.1)).sum();
        self.peak_per_s = self.peak_per_s.max(offered_per_s);
        if let Some((_, per_s)) = self.flood.take_if(|it| now.since(it.0) >= SAID) {
            self.peak_per_s = self.peak_per_s.max(per_s.into());
        }
        if self.told.is_some_and(|it| now.since(it) < EVERY) {
            return None;
        }
        let share = share(limit_per_s, self.peak_per_s);
        // Whoever comes to decide in the middle of a flood has not heard of it from all links.
        let may_rise = self.shut.is_some_and(|since| now.since(since) >= LIFE);
        let is_much = share == ALL || share.abs_diff(self.kept) >= self.kept / PARTS;
        let is_other = is_much && (share < self.kept || (share > self.kept && may_rise));
        let is_due = self.is_partly_shut() && self.told.is_none_or(|it| now.since(it) >= AGAIN);
        if !is_other && !is_due {
            return None;
        }
        self.told = Some(now);
        Some(if is_other { share } else { self.kept })
    }

    /// Whether nothing is offered, and all of it would be passed on.
    #[must_use]
    pub const fn is_idle(&self) -> bool {
        let is_asked = self.peak_per_s > 0 || self.flood.is_some();
        self.offers.is_empty() && self.kept == ALL && !is_asked
    }

    /// Whether links pass on a share only.
    #[must_use]
    pub const fn is_partly_shut(&self) -> bool {
        self.kept < ALL
    }
}

/// Thousandths of what is offered that come to what is passed on: at least one.
fn share(limit_per_s: u32, offered_per_s: u64) -> u16 {
    let passed_per_s = u64::from(limit_per_s) * HALVES_KEPT / 2;
    let share = (passed_per_s * u64::from(ALL)).checked_div(offered_per_s);
    share.and_then(|it| u16::try_from(it).ok()).unwrap_or(ALL).clamp(1, ALL)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: u32 = 50;

    /// What is told at a moment; all hear it at once.
    fn turn(valve: &mut Valve, ms: u64) -> Option<u16> {
        let told = valve.decide(LIMIT, Mono(ms));
        if let Some(kept) = told {
            valve.heard(kept, Mono(ms));
        }
        told
    }

    #[test]
    fn a_flood_is_told_and_lapses_once_it_is_over() {
        let mut valve = Valve::default();
        valve.offered(NodeId(1), 600, Mono(0));
        valve.offered(NodeId(2), 400, Mono(0));

        assert_eq!(turn(&mut valve, 0), Some(75));
        assert!(valve.is_partly_shut());
        let told: Vec<_> = (1..40).filter_map(|it| turn(&mut valve, it * 1_000)).collect();

        assert!(told.is_sorted() && told.last() == Some(&ALL), "{told:?}");
        assert!((8..=12).contains(&told.len()), "within ten seconds: {told:?}");
        assert!(valve.is_idle());
    }

    #[test]
    fn the_share_changes_at_most_once_a_second_and_only_by_much() {
        let mut valve = Valve::default();
        valve.offered(NodeId(1), 1_000, Mono(0));
        turn(&mut valve, 0);

        valve.offered(NodeId(1), 2_000, Mono(999));
        assert_eq!(turn(&mut valve, 999), None);
        assert_eq!(turn(&mut valve, 1_000), Some(37));
        valve.offered(NodeId(1), 1_900, Mono(2_000));
        assert_eq!(turn(&mut valve, 2_000), None);
    }

    #[test]
    fn what_a_room_shows_and_half_as_much_again_passes_whole() {
        let mut valve = Valve::default();

        valve.offered(NodeId(1), 75, Mono(0));
        assert_eq!(turn(&mut valve, 0), None);
        valve.offered(NodeId(1), 100, Mono(0));
        assert_eq!(turn(&mut valve, 0), Some(750));
    }

    #[test]
    fn what_is_wanted_tells_of_a_flood_before_links_do() {
        let mut valve = Valve::default();

        valve.wanted(300, Mono(0));
        assert_eq!(turn(&mut valve, 100), None, "not all have said what they are asked for");
        valve.wanted(1_000, Mono(100));
        assert_eq!(turn(&mut valve, 200), Some(75));
        valve.wanted(1_000_000, Mono(300));
        assert_eq!(turn(&mut valve, 900), None);
        valve.offered(NodeId(1), 1_000, Mono(1_000));
        assert_eq!(turn(&mut valve, 1_200), None, "what passed before is no flood of its own");
    }

    #[test]
    fn a_share_that_another_told_lapses_too() {
        let mut valve = Valve::default();
        valve.heard(10, Mono(0));

        assert_eq!(turn(&mut valve, 5_000), Some(ALL));
    }

    #[test]
    fn who_comes_in_the_middle_of_a_flood_does_not_open_it() {
        let mut valve = Valve::default();
        valve.heard(10, Mono(5_000));

        let first: Vec<_> = (5_000..6_000).filter_map(|it| turn(&mut valve, it)).collect();
        valve.offered(NodeId(1), 3_500, Mono(6_000));
        let second: Vec<_> = (6_000..7_500).filter_map(|it| turn(&mut valve, it)).collect();
        valve.offered(NodeId(1), 3_500, Mono(7_000));
        valve.offered(NodeId(2), 4_000, Mono(7_500));
        let later: Vec<_> = (7_500..9_000).filter_map(|it| turn(&mut valve, it)).collect();

        assert_eq!((first, second, later), (vec![10], vec![], vec![]));
    }

    #[test]
    fn a_share_that_lasts_is_told_every_ten_seconds() {
        let mut valve = Valve::default();
        let mut told = Vec::new();

        for ms in (0..30_000).step_by(100) {
            valve.offered(NodeId(1), 1_000, Mono(ms));
            told.extend(turn(&mut valve, ms).map(|it| (ms, it)));
        }

        assert_eq!(told, [(0, 75), (10_000, 75), (20_000, 75)]);
    }

    #[test]
    fn a_share_is_never_nothing() {
        let mut valve = Valve::default();

        valve.offered(NodeId(1), u32::MAX, Mono(0));

        assert_eq!(turn(&mut valve, 0), Some(1));
    }
}
