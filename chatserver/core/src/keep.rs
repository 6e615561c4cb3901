//! Which share of a room's comments links pass on, when they are offered far more than it shows.
//!
//! Links say once a second what they were offered, sampled comments included; before that is
//! known, what the chatservers together are asked for tells of a sudden flood. A burst is none: a
//! share is told only when more was offered than chatservers and broadcaster can take in. What
//! links pass on is still somewhat more than the room shows, since not everything that is passed on
//! is admitted. The share falls at once, rises again within seconds, and changes at most once a
//! second. It rises only when all links had time to say what they are offered. While it is not all,
//! it is told again and again: a link that has just started may not have heard it, or not known the
//! room then.

use std::time::Duration;

use proto::id::NodeId;
use proto::time::{Mono, millis};

use crate::flow::BURST;

/// Everything, in thousandths.
pub const ALL: u16 = 1000;
/// How often the share may change.
pub const EVERY: Duration = Duration::from_secs(1);
/// How often a share is told again that does not change.
pub const AGAIN: Duration = Duration::from_secs(10);
/// All chatservers have said what they are asked for within this time.
const SAID: Duration = Duration::from_millis(200);
/// How long the word of chatservers counts; it comes in each turn, while somebody speaks.
const WANTED_LIFE: Duration = Duration::from_millis(500);
/// How long a link's word counts; it comes every second.
const LIFE: Duration = Duration::from_secs(3);
/// Links that are counted in one room; those beyond it are as if they were offered nothing.
const LINKS_MAX: usize = 4096;
/// Links pass on so many halves of what the room shows.
const HALVES_KEPT: u64 = 3;
/// So many bursts beyond what a room shows are a flood. One passes; the second is shed before links
/// would have heard of it, and whoever comes after it is not to pay for it.
const FLOOD_BURSTS: u32 = 2;
/// A share that differs by less than one such part is not worth telling.
const PARTS: u16 = 8;

/// What one room is offered, and the share that everyone was told.
#[derive(Clone, Debug)]
pub struct Valve {
    /// In the order of links.
    offers: Vec<(NodeId, u32, Mono)>,
    offered: Surplus,
    /// What chatservers are asked for a second, and when they said so.
    wanted: Option<(u32, Mono)>,
    asked: Surplus,
    /// Since when they are asked for a flood, and for how many.
    flood: Option<(Mono, u32)>,
    /// When it was last decided.
    looked: Option<Mono>,
    /// The most that was offered a second in a flood, falling by a quarter each second.
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
        Self {
            offers: Vec::new(),
            offered: Surplus::default(),
            wanted: None,
            asked: Surplus::default(),
            flood: None,
            looked: None,
            peak_per_s: 0,
            fallen: Mono(0),
            kept: ALL,
            shut: None,
            told: None,
        }
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
            self.wanted = Some((per_s, now));
        }
    }

    /// Everyone was told this share, in thousandths.
    pub fn heard(&mut self, kept: u16, now: Mono) {
        if self.kept == ALL && kept < ALL {
            // Whoever told it has seen the flood.
            self.offered = Surplus(u64::MAX);
        }
        self.kept = kept.min(ALL);
        self.shut = if self.kept == ALL { None } else { self.shut.or(Some(now)) };
    }

    /// The share that everyone is to be told, instead of the one they know or once more, if it is
    /// time for that.
    pub fn decide(&mut self, limit_per_s: u32, now: Mono) -> Option<u16> {
        self.watch(limit_per_s, now);
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
        let is_past = self.peak_per_s == 0 && self.offered.0 == 0 && self.asked.0 == 0;
        self.offers.is_empty() && self.wanted.is_none() && self.kept == ALL && is_past
    }

    /// Whether links pass on a share only.
    #[must_use]
    pub const fn is_partly_shut(&self) -> bool {
        self.kept < ALL
    }

    /// Looks whether there is a flood, and how much is offered in it.
    fn watch(&mut self, limit_per_s: u32, now: Mono) {
        if now.since(self.fallen) >= EVERY {
            (self.peak_per_s, self.fallen) = (self.peak_per_s * 3 / 4, now);
        }
        let time = self.looked.replace(now).map_or(Duration::ZERO, |it| now.since(it));
        self.watch_links(limit_per_s, time, now);
        self.watch_chatservers(limit_per_s, time, now);
        if self.is_idle() {
            self.looked = None;
        }
    }

    fn watch_links(&mut self, limit_per_s: u32, time: Duration, now: Mono) {
        self.offers.retain(|it| now.since(it.2) < LIFE);
        let per_s = self.offers.iter().map(|it| u64::from(it.1)).sum();
        if self.offered.is_flood(per_s, limit_per_s, time) {
            self.peak_per_s = self.peak_per_s.max(per_s);
        }
    }

    fn watch_chatservers(&mut self, limit_per_s: u32, time: Duration, now: Mono) {
        self.wanted = self.wanted.filter(|it| now.since(it.1) < WANTED_LIFE && self.kept == ALL);
        let per_s = self.wanted.map_or(0, |it| it.0);
        if !self.asked.is_flood(per_s.into(), limit_per_s, time) {
            self.flood = None;
            return;
        }
        let (since, most_per_s) = self.flood.map_or((now, per_s), |it| (it.0, it.1.max(per_s)));
        self.flood = Some((since, most_per_s));
        if now.since(since) >= SAID {
            self.peak_per_s = self.peak_per_s.max(most_per_s.into());
        }
    }
}

/// How much more was asked for than a room shows, in thousandths of a comment: what quiet does not
/// make up for.
#[derive(Clone, Copy, Debug, Default)]
struct Surplus(u64);

impl Surplus {
    /// Takes in what was asked for, and says whether it is a flood by now.
    fn is_flood(&mut self, per_s: u64, limit_per_s: u32, time: Duration) -> bool {
        let limit_per_s = u64::from(limit_per_s);
        let most = limit_per_s * millis(BURST * FLOOD_BURSTS);
        let more = self.0.saturating_add(per_s.saturating_mul(millis(time)));
        self.0 = more.saturating_sub(limit_per_s * millis(time)).min(most);
        self.0 == most && per_s > limit_per_s
    }
}

/// Thousandths of what is offered that come to what is passed on: at least one.
fn share(limit_per_s: u32, offered_per_s: u64) -> u16 {
    let passed_per_s = u64::from(limit_per_s) * HALVES_KEPT / 2;
    let share = (passed_per_s * u64::from(ALL)).checked_div(offered_per_s);
    share.and_then(|it| u16::try_from(it).ok()).unwrap_or(ALL).clamp(1, ALL)
}

#[cfg(test)]
mod tests;
