//! Which base falls, and which returns.

use std::time::Duration;

use proto::time::Mono;

use super::{Bases, Entry, PERCENT_MIN, STEP_PERCENT, Why};

/// A base drains when so many thousandths of its votes are bad …
const DRAIN_PERMILLE: u32 = 300;
/// … and so many more than of the best other base: what is wrong everywhere is not the base.
///
/// Together they are what liars must overcome: less than three tenths of the votes on a base cannot
/// drain it. A vote is a session's, whether or not it fetches there, so that it takes three lying
/// sessions for seven that use the base. Of a drained base that is tried again, a tenth of these vote:
/// liars who are less than a twenty-fifth of its viewers do not keep it drained. More do, but for its
/// trials. Votes of one link, region or carrier are not capped: liars come in by all of them, like
/// anybody, and a base that is bad in one region only would then drain nowhere.
const MARGIN_PERMILLE: u32 = 200;
/// A base returns while fewer thousandths of its votes are bad.
const WELL_PERMILLE: u32 = 150;
/// Fewer votes than this drain nothing. With few viewers each leaves a bad base by itself.
const VOTES_MIN: u32 = 8;
/// Longest wait before a base that fell again and again gets its first step, and before one that is
/// said to be bad is tried all the same.
const HOLD_MAX: Duration = Duration::from_secs(300);
/// What such a trial takes: its new viewers hear of it, fetch, and report every 5 to 10 s. Without it
/// the few who are there already, and perhaps lie, would end it at once.
const TRIAL: Duration = Duration::from_secs(15);
/// A base that was well for so long starts over with the shortest wait.
const CALM: Duration = Duration::from_secs(60);
/// Between two changes of which bad base is least bad.
const SWAP: Duration = Duration::from_secs(10);

impl Bases {
    /// Drains what is bad, then lets what is well return.
    pub(super) fn judge(&mut self, now: Mono) {
        let names: Vec<String> = self.entries.keys().cloned().collect();
        for base in &names {
            if let Some(why) = self.fault(base, now) {
                self.drain(base, why, now);
            }
        }
        for base in &names {
            if let Some(entry) = self.entries.get_mut(base)
                && let Some(why) = entry.may_return(self.pace.step, self.pace.quiet, now)
            {
                let from = entry.percent;
                entry.percent = (from - from % STEP_PERCENT + STEP_PERCENT).min(100);
                entry.changed = now;
                if why == Why::Trial {
                    entry.trial_until = now + TRIAL;
                }
                self.note(base, from, why);
            }
        }
    }

    /// Why a base should lose its viewers, if there is another one to take them.
    fn fault(&self, base: &str, now: Mono) -> Option<Why> {
        let entry = self.entries.get(base)?;
        if entry.weight == 0 || entry.percent == PERCENT_MIN {
            return None;
        };
        let others = || self.others(base).map(|(_, it)| it);
        if !entry.is_storing() && others().any(Entry::is_storing) {
            return Some(Why::Store);
        }
        if now < entry.trial_until {
            return None;
        }
        let bad = entry.votes.bad_permille(VOTES_MIN)?;
        // What nobody says anything of counts as well.
        let best = others().map(|it| it.votes.bad_permille(1).unwrap_or(0)).min()?;
        (bad >= DRAIN_PERMILLE && bad >= best + MARGIN_PERMILLE).then_some(Why::Reports)
    }

    /// The other bases that can take viewers.
    fn others(&self, base: &str) -> impl Iterator<Item = (&String, &Entry)> {
        self.entries.iter().filter(move |(name, it)| *name != base && it.weight > 0)
    }

    fn drain(&mut self, base: &str, why: Why, now: Mono) {
        // Somebody must take the viewers: if all others are drained, the least bad one does.
        if self.others(base).all(|(_, it)| it.percent == PERCENT_MIN) {
            let rested = self.others(base).filter(|(_, it)| now.since(it.changed) >= SWAP);
            let least = rested.min_by_key(|(_, it)| (!it.is_storing(), it.votes.bad_permille(1)));
            let Some(least) = least.map(|(name, _)| name.clone()) else {
                return;
            };
            self.set(&least, 100, Why::LeastBad, now);
        }
        let step = self.pace.step;
        if let Some(entry) = self.entries.get_mut(base) {
            let was_calm = entry.percent == 100 && now.since(entry.changed) >= CALM;
            entry.hold = if was_calm { step } else { (entry.hold * 2).min(HOLD_MAX) };
        }
        self.set(base, PERCENT_MIN, why, now);
    }

    fn set(&mut self, base: &str, percent: u8, why: Why, now: Mono) {
        if let Some(entry) = self.entries.get_mut(base) {
            let from = std::mem::replace(&mut entry.percent, percent);
            entry.changed = now;
            self.note(base, from, why);
        }
    }
}

impl Entry {
    /// Why a drained base may get one step more now.
    fn may_return(&self, step: Duration, quiet: Duration, now: Mono) -> Option<Why> {
        let hold = if self.percent == PERCENT_MIN { self.hold } else { step };
        if self.percent == 100 || now.since(self.changed) < hold || !self.is_storing() {
            return None;
        }
        match self.votes.bad_permille(1) {
            Some(bad) if bad < WELL_PERMILLE => Some(Why::Well),
            Some(_) => (now.since(self.changed) >= HOLD_MAX).then_some(Why::Trial),
            None => {
                let is_quiet = now.since(self.votes.heard().max(self.changed)) >= quiet;
                is_quiet.then_some(Why::Quiet)
            }
        }
    }
}
