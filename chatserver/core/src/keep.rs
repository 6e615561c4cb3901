//! Which share of a room's comments links pass on, when they are offered far more than it shows.
//!
//! Links say once a second what they were offered, sampled comments included; before that is
//! known, what the chatservers together are asked for tells of a sudden flood. What links pass on
//! is still somewhat more than the room shows, since not everything that is passed on is admitted.
//! The share falls at once, rises again within seconds, and changes at most once a second.

use std::time::Duration;

use proto::id::NodeId;
use proto::time::Mono;

/// Everything, in thousandths.
pub const ALL: u16 = 1000;
/// How often the share may change.
pub const EVERY: Duration = Duration::from_secs(1);
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
    /// The most that was offered a second, falling by a quarter each second.
    peak_per_s: u64,
    fallen: Mono,
    /// Thousandths, as heard on `control`.
    kept: u16,
    told: Option<Mono>,
}

impl Default for Valve {
    fn default() -> Self {
        Self { offers: Vec::new(), peak_per_s: 0, fallen: Mono(0), kept: ALL, told: None }
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
    pub fn wanted(&mut self, per_s: u32) {
        if self.kept == ALL {
            self.peak_per_s = self.peak_per_s.max(per_s.into());
        }
    }

    /// Everyone was told this share, in thousandths.
    pub fn heard(&mut self, kept: u16) {
        self.kept = kept.min(ALL);
    }

    /// The share that everyone is to be told instead of the one they know, if it is time for that.
    pub fn decide(&mut self, limit_per_s: u32, now: Mono) -> Option<u16> {
        self.offers.retain(|it| now.since(it.2) < LIFE);
        if now.since(self.fallen) >= EVERY {
            (self.peak_per_s, self.fallen) = (self.peak_per_s * 3 / 4, now);
        }
        let offered_per_s = self.offers.iter().map(|it| u64::from(it.1)).sum();
        self.peak_per_s = self.peak_per_s.max(offered_per_s);
        if self.told.is_some_and(|it| now.since(it) < EVERY) {
            return None;
        }
        let share = share(limit_per_s, self.peak_per_s);
        let is_other =
            share != self.kept && (share == ALL || share.abs_diff(self.kept) >= self.kept / PARTS);
        if is_other {
            self.told = Some(now);
        }
        is_other.then_some(share)
    }

    /// Whether nothing is offered, and all of it would be passed on.
    #[must_use]
    pub const fn is_idle(&self) -> bool {
        self.offers.is_empty() && self.kept == ALL && self.peak_per_s == 0
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
            valve.heard(kept);
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

        valve.wanted(1_000);
        assert_eq!(turn(&mut valve, 0), Some(75));
        valve.wanted(1_000_000);
        assert_eq!(turn(&mut valve, 900), None);
        valve.offered(NodeId(1), 1_000, Mono(1_000));
        assert_eq!(turn(&mut valve, 1_000), None, "what passed before is no flood of its own");
    }

    #[test]
    fn a_share_that_another_told_lapses_too() {
        let mut valve = Valve::default();
        valve.heard(10);

        assert_eq!(turn(&mut valve, 5_000), Some(ALL));
    }

    #[test]
    fn a_share_is_never_nothing() {
        let mut valve = Valve::default();

        valve.offered(NodeId(1), u32::MAX, Mono(0));

        assert_eq!(turn(&mut valve, 0), Some(1));
    }
}
