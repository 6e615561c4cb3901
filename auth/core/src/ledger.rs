//! What operators said while the system ran: policies, SDK rules, void epochs.
//!
//! The auth services keep it on disk, each its own, and compare it with `control`: the newest word
//! on each thing counts, whoever took it from an operator. What `control` does not hold, because
//! its bus lost it or was away, is said again.

use std::collections::BTreeMap;

use proto::control::Fact;
use proto::id::{AppId, RoomId};
use proto::policy::{Policy, PolicyFact, SdkFact, SdkRule};

use crate::revocation::VOIDS_MAX;

/// Facts kept, with policies of rooms about 250 bytes each: 2.5 MB on disk, written whole with
/// each change.
pub const FACTS_MAX: usize = 10_000;

/// The newest fact of each thing that operators decide.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    /// By [`Fact::key`].
    entries: BTreeMap<String, Entry>,
}

#[derive(Clone, Debug)]
struct Entry {
    fact: Fact,
    /// `control` ends with it.
    is_heard: bool,
}

/// Why something more cannot be kept.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum LedgerError {
    /// Rooms go by their app's policy; remove some that are not needed.
    #[error("{FACTS_MAX} policies are kept already")]
    Policies,
    /// Everybody remembers so many only.
    #[error("{VOIDS_MAX} void ranges of epochs are kept already")]
    Voids,
}

impl Ledger {
    /// What was kept earlier; facts that no operator decides are left out.
    #[must_use]
    pub fn new(facts: Vec<Fact>) -> Self {
        let mut policies = 0;
        let facts = facts.into_iter().filter(|it| {
            policies += usize::from(matches!(it, Fact::Policy(_)));
            rank(it).is_some() && (policies <= FACTS_MAX || !matches!(it, Fact::Policy(_)))
        });
        let entry = |fact: Fact| (fact.key(), Entry { fact, is_heard: false });
        Self { entries: facts.map(entry).collect() }
    }

    /// Notes the policy of an app or of one of its rooms; `None`: it has none of its own any more.
    pub fn set_policy(
        &mut self,
        app: AppId,
        room: Option<RoomId>,
        policy: Option<Policy>,
    ) -> Result<Fact, LedgerError> {
        let fact = Fact::Policy(PolicyFact { app, room, version: self.next_version(), policy });
        let is_full = self.entries.len() >= FACTS_MAX && !self.entries.contains_key(&fact.key());
        if is_full && !self.forget_removed() {
            return Err(LedgerError::Policies);
        }
        Ok(self.say(fact))
    }

    /// Notes which SDK versions are served.
    pub fn set_sdk(&mut self, rules: Vec<SdkRule>) -> Fact {
        self.say(Fact::Sdk(SdkFact { version: self.next_version(), rules }))
    }

    /// Notes that epochs of a master are void; ranges that end before `oldest_epoch`, the oldest
    /// that can still be verified, are forgotten.
    pub fn revoke(
        &mut self,
        kid: u8,
        from_epoch: u32,
        to_epoch: u32,
        oldest_epoch: u32,
    ) -> Result<Fact, LedgerError> {
        self.entries.retain(|_, it| !is_over(&it.fact, oldest_epoch));
        let fact = Fact::Revoked { kid, from_epoch, to_epoch };
        let key = fact.key();
        let voids = self.facts().filter(|it| matches!(it, Fact::Revoked { .. })).count();
        match self.entries.get(&key) {
            // What is void stays void.
            Some(known) if rank(&known.fact) >= rank(&fact) => Ok(known.fact.clone()),
            None if voids >= VOIDS_MAX => Err(LedgerError::Voids),
            Some(_) | None => Ok(self.say(fact)),
        }
    }

    /// Takes note of what `control` says; tells whether that is news.
    pub fn hear(&mut self, fact: &Fact) -> bool {
        if rank(fact).is_none() {
            return false;
        }
        let key = fact.key();
        let is_full = self.entries.len() >= FACTS_MAX;
        match self.entries.get_mut(&key) {
            Some(known) if rank(&known.fact) > rank(fact) => {
                known.is_heard = false;
                false
            }
            Some(known) => {
                let is_news = known.fact != *fact;
                *known = Entry { fact: fact.clone(), is_heard: true };
                is_news
            }
            None if is_full => false,
            None => {
                self.entries.insert(key, Entry { fact: fact.clone(), is_heard: true });
                true
            }
        }
    }

    /// Everything that is kept.
    pub fn facts(&self) -> impl Iterator<Item = &Fact> {
        self.entries.values().map(|it| &it.fact)
    }

    /// What `control` does not hold, as far as it was read.
    pub fn unheard(&self) -> impl Iterator<Item = &Fact> {
        self.entries.values().filter(|it| !it.is_heard).map(|it| &it.fact)
    }

    /// Versions rise over everything, so that one number orders all changes.
    fn next_version(&self) -> u64 {
        let versioned = self.facts().filter(|it| !matches!(it, Fact::Revoked { .. }));
        versioned.filter_map(rank).max().unwrap_or(0).saturating_add(1)
    }

    fn say(&mut self, fact: Fact) -> Fact {
        self.entries.insert(fact.key(), Entry { fact: fact.clone(), is_heard: false });
        fact
    }

    /// Forgets one policy that was removed and that everybody has heard of; tells whether there
    /// was one.
    fn forget_removed(&mut self) -> bool {
        let is_removed = |it: &Entry| {
            it.is_heard && matches!(&it.fact, Fact::Policy(PolicyFact { policy: None, .. }))
        };
        let removed =
            self.entries.iter().find(|(_, it)| is_removed(it)).map(|(key, _)| key.clone());
        removed.is_some_and(|key| self.entries.remove(&key).is_some())
    }
}

/// What orders two facts of one key; `None` where operators decide nothing.
fn rank(fact: &Fact) -> Option<u64> {
    match fact {
        Fact::Policy(it) => Some(it.version),
        Fact::Sdk(it) => Some(it.version),
        Fact::Revoked { to_epoch, .. } => Some(u64::from(*to_epoch)),
        Fact::Epoch(_)
        | Fact::Room(_)
        | Fact::Mute { .. }
        | Fact::Ban { .. }
        | Fact::Kick { .. }
        | Fact::Close { .. }
        | Fact::Keep { .. }
        | Fact::Heat { .. }
        | Fact::Bases { .. }
        | Fact::Move { .. }
        | Fact::Lease(_)
        | Fact::Words { .. }
        | Fact::Catalogue(_)
        | Fact::Exclude { .. }
        | Fact::Person { .. }
        | Fact::Attribute { .. }
        | Fact::Sealed { .. } => None,
    }
}

fn is_over(fact: &Fact, oldest_epoch: u32) -> bool {
    matches!(fact, Fact::Revoked { to_epoch, .. } if *to_epoch < oldest_epoch)
}

#[cfg(test)]
mod tests {
    use super::*;

    const APP: AppId = AppId(1);

    fn room(name: &str) -> Option<RoomId> {
        Some(RoomId::parse(name).unwrap())
    }

    fn policy(name: &str, version: u64, policy: Option<Policy>) -> Fact {
        Fact::Policy(PolicyFact { app: APP, room: room(name), version, policy })
    }

    #[test]
    fn each_change_has_a_higher_version_than_everything_before() {
        let mut ledger = Ledger::default();
        ledger.hear(&policy("other", 7, None));

        let first = ledger.set_policy(APP, room("r"), Some(Policy::default())).unwrap();
        let second = ledger.set_sdk(Vec::new());
        ledger.revoke(0, 1, u32::MAX, 0).unwrap();
        let third = ledger.set_policy(APP, room("r"), None).unwrap();

        assert_eq!(first, policy("r", 8, Some(Policy::default())));
        assert_eq!(second, Fact::Sdk(SdkFact { version: 9, rules: Vec::new() }));
        assert_eq!(third, policy("r", 10, None));
    }

    #[test]
    fn what_control_does_not_hold_is_unheard_until_it_is_read() {
        let mut ledger = Ledger::new(vec![policy("r", 3, None)]);

        let unheard = |ledger: &Ledger| ledger.unheard().cloned().collect::<Vec<_>>();
        assert_eq!(unheard(&ledger), [policy("r", 3, None)]);
        assert!(!ledger.hear(&policy("r", 2, Some(Policy::default()))));
        assert_eq!(unheard(&ledger), [policy("r", 3, None)]);
        assert!(!ledger.hear(&policy("r", 3, None)));
        assert_eq!(unheard(&ledger), []);
        assert!(ledger.hear(&policy("r", 4, Some(Policy::default()))));
        assert_eq!(unheard(&ledger), []);

        // Another service's older word comes last: the newest is said again.
        assert!(!ledger.hear(&policy("r", 3, None)));
        assert_eq!(unheard(&ledger), [policy("r", 4, Some(Policy::default()))]);
    }

    #[test]
    fn what_no_operator_decides_is_not_kept() {
        let lease = Fact::Bases { bases: Vec::new() };
        let mut ledger = Ledger::new(vec![lease.clone()]);

        assert!(!ledger.hear(&lease));
        assert_eq!(ledger.facts().count(), 0);
    }

    #[test]
    fn a_full_ledger_forgets_removed_policies_and_then_refuses() {
        let fact = |no: usize| policy(&format!("r{no}"), 1, Some(Policy::default()));
        let mut facts: Vec<Fact> = (1..FACTS_MAX).map(fact).collect();
        facts.push(policy("removed", 1, None));
        let mut ledger = Ledger::new(facts);

        assert_eq!(ledger.set_policy(APP, room("new"), None), Err(LedgerError::Policies));
        ledger.hear(&policy("removed", 1, None));
        assert!(ledger.set_policy(APP, room("new"), Some(Policy::default())).is_ok());
        assert_eq!(ledger.set_policy(APP, None, None), Err(LedgerError::Policies));
        assert!(ledger.set_policy(APP, room("r1"), None).is_ok());
        assert!(!ledger.hear(&policy("one-more", 9, None)));
        assert_eq!(ledger.facts().count(), FACTS_MAX);
    }

    #[test]
    fn void_ranges_only_grow_and_are_forgotten_when_nothing_of_them_can_be_verified() {
        let mut ledger = Ledger::default();
        ledger.revoke(0, 5, 9, 5).unwrap();

        let shorter = ledger.revoke(0, 5, 7, 5).unwrap();
        assert_eq!(shorter, Fact::Revoked { kid: 0, from_epoch: 5, to_epoch: 9 });
        for from in 10..10 + u32::try_from(VOIDS_MAX).unwrap() - 1 {
            ledger.revoke(0, from, from, 5).unwrap();
        }
        assert_eq!(ledger.revoke(1, 1, 100, 5), Err(LedgerError::Voids));
        assert!(ledger.revoke(1, 1, 100, 10).is_ok());
    }
}
