//! What is asked of those who enter, decided: policies of apps and rooms, and of SDK versions.
//!
//! Both are fed facts as `control` tells them; the newest version of each counts, in whatever
//! order they come.

mod sdk;

use std::collections::BTreeMap;

use proto::control::Fact;
use proto::id::{AppId, RoomId};
use proto::policy::{Access, Entry, Policy, SKEW_S_MAX};

use crate::app::App;
use crate::token::{TTL_S_MAX, cap, flag};

pub use sdk::{SdkPolicy, SdkRuleError};

/// Policies of rooms that are kept; beyond, the room goes by its app's.
pub const ROOM_POLICIES_MAX: usize = 100_000;

/// The policies of all apps, and of the rooms that have one of their own: about 150 bytes each.
#[derive(Clone, Debug, Default)]
pub struct Policies {
    /// What holds where no fact says something else.
    configured: BTreeMap<AppId, Policy>,
    apps: BTreeMap<AppId, Versioned>,
    rooms: BTreeMap<(AppId, RoomId), Versioned>,
}

#[derive(Clone, Copy, Debug)]
struct Versioned {
    version: u64,
    policy: Option<Policy>,
}

/// Why a policy cannot be kept.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum PolicyError {
    /// Links refuse such tokens.
    #[error("token_ttl_s of {ttl_s} s is not 1 to {TTL_S_MAX} s")]
    Ttl {
        /// Seconds given.
        ttl_s: u16,
    },
    /// Used tokens are remembered for so long only.
    #[error("skew_s of {skew_s} s is more than {SKEW_S_MAX} s")]
    Skew {
        /// Seconds given.
        skew_s: u16,
    },
    /// A token could outlive the epoch after its own, whose keys are gone then.
    #[error("an epoch of {interval_s} s is shorter than twice a token's life of {ttl_s} s")]
    Interval {
        /// Seconds of an epoch.
        interval_s: u32,
        /// Seconds of the token's life.
        ttl_s: u16,
    },
}

/// Checks a policy's values for epochs of `interval_s`.
pub fn check(policy: &Policy, interval_s: u32) -> Result<(), PolicyError> {
    let Policy { token_ttl_s: ttl_s, skew_s, .. } = *policy;
    if !(1..=TTL_S_MAX).contains(&ttl_s) {
        return Err(PolicyError::Ttl { ttl_s });
    }
    if skew_s > SKEW_S_MAX {
        return Err(PolicyError::Skew { skew_s });
    }
    if interval_s < 2 * u32::from(ttl_s) {
        return Err(PolicyError::Interval { interval_s, ttl_s });
    }
    Ok(())
}

impl Policies {
    /// The apps' own policies, as configured: they hold until a fact says something else.
    #[must_use]
    pub fn new(apps: &[App]) -> Self {
        let configured = apps.iter().map(|it| (it.id, it.policy)).collect();
        Self { configured, ..Self::default() }
    }

    /// Takes note of a fact; older ones than known, and facts about other things, are passed over.
    pub fn handle(&mut self, fact: &Fact) {
        let Fact::Policy(fact) = fact else {
            return;
        };
        let new = Versioned { version: fact.version, policy: fact.policy };
        match &fact.room {
            None => newest(self.apps.entry(fact.app).or_insert(new), new),
            Some(room) => {
                let key = (fact.app, room.clone());
                if !self.rooms.contains_key(&key) && self.rooms.len() >= ROOM_POLICIES_MAX {
                    self.forget_removed();
                }
                if self.rooms.contains_key(&key) || self.rooms.len() < ROOM_POLICIES_MAX {
                    newest(self.rooms.entry(key).or_insert(new), new);
                }
            }
        }
    }

    /// Makes room by forgetting a policy that was removed: an older word on it, if one still
    /// comes, says what held before.
    fn forget_removed(&mut self) {
        let removed = self.rooms.iter().find(|(_, it)| it.policy.is_none());
        if let Some(key) = removed.map(|(key, _)| key.clone()) {
            self.rooms.remove(&key);
        }
    }

    /// What one room asks: its own policy, otherwise its app's, otherwise the default.
    #[must_use]
    pub fn of_room(&self, app: AppId, room: &RoomId) -> Policy {
        let own = match self.rooms.is_empty() {
            // Usually; a look would cost a copy of the name.
            true => None,
            false => self.rooms.get(&(app, room.clone())).and_then(|it| it.policy),
        };
        own.unwrap_or_else(|| self.of_app(app))
    }

    /// What several rooms ask together: of each rule the strictest.
    #[must_use]
    pub fn of(&self, app: AppId, rooms: &[RoomId]) -> Policy {
        let policies = rooms.iter().map(|room| self.of_room(app, room));
        policies.reduce(strictest).unwrap_or_else(|| self.of_app(app))
    }

    /// Whether any room has a policy of its own.
    #[must_use]
    pub fn has_rooms(&self) -> bool {
        !self.rooms.is_empty()
    }

    /// What an app asks in rooms without a policy of their own.
    #[must_use]
    pub fn of_app(&self, app: AppId) -> Policy {
        let own = self.apps.get(&app).and_then(|it| it.policy);
        own.or_else(|| self.configured.get(&app).copied()).unwrap_or_default()
    }
}

/// What an account with these bits of [`flag`] and [`cap`] may do.
#[must_use]
pub fn access(policy: &Policy, flags: u8, caps: u16) -> Access {
    let verified = if caps & cap::VERIFIED == 0 { policy.unverified } else { Access::Send };
    let minor = if caps & cap::MINOR == 0 { Access::Send } else { policy.minors };
    verified.max(minor).max(entry_access(policy.entry, flags))
}

/// What is left of an entry without a ticket.
fn entry_access(entry: Entry, flags: u8) -> Access {
    match entry {
        Entry::Guest if flags & flag::NO_TICKET != 0 => Access::Read,
        Entry::Token if flags & flag::NO_TICKET != 0 => Access::Refuse,
        Entry::Open | Entry::Guest | Entry::Token => Access::Send,
    }
}

fn newest(known: &mut Versioned, new: Versioned) {
    if new.version >= known.version {
        *known = new;
    }
}

fn strictest(a: Policy, b: Policy) -> Policy {
    Policy {
        entry: Entry::max(a.entry, b.entry),
        single_device: a.single_device || b.single_device,
        token_ttl_s: a.token_ttl_s.min(b.token_ttl_s),
        single_use: a.single_use || b.single_use,
        skew_s: a.skew_s.min(b.skew_s),
        unverified: a.unverified.max(b.unverified),
        minors: a.minors.max(b.minors),
    }
}

#[cfg(test)]
mod tests {
    use proto::policy::PolicyFact;

    use super::*;

    const APP: AppId = AppId(1);

    fn room(name: &str) -> RoomId {
        RoomId::parse(name).unwrap()
    }

    fn fact(name: Option<&str>, version: u64, policy: Option<Policy>) -> Fact {
        Fact::Policy(PolicyFact { app: APP, room: name.map(room), version, policy })
    }

    fn entry(entry: Entry) -> Option<Policy> {
        Some(Policy { entry, ..Policy::default() })
    }

    #[test]
    fn a_room_without_a_policy_of_its_own_goes_by_its_app() {
        let mut policies = Policies::default();
        policies.handle(&fact(None, 1, entry(Entry::Guest)));
        policies.handle(&fact(Some("r"), 2, entry(Entry::Open)));

        assert_eq!(policies.of_room(APP, &room("r")).entry, Entry::Open);
        assert_eq!(policies.of_room(APP, &room("q")).entry, Entry::Guest);
        assert_eq!(policies.of_room(AppId(2), &room("r")).entry, Entry::Token);

        policies.handle(&fact(Some("r"), 3, None));
        assert_eq!(policies.of_room(APP, &room("r")).entry, Entry::Guest);
    }

    #[test]
    fn an_app_whose_policy_was_removed_goes_by_the_configured_one_again() {
        let app = r#"{"id": 1, "policy": {"entry": "open"}}"#;
        let mut policies = Policies::new(&[serde_json::from_str(app).unwrap()]);

        policies.handle(&fact(None, 1, entry(Entry::Guest)));
        assert_eq!(policies.of_app(APP).entry, Entry::Guest);

        policies.handle(&fact(None, 2, None));
        assert_eq!(policies.of_app(APP).entry, Entry::Open);
    }

    #[test]
    fn the_newest_version_counts_in_whatever_order() {
        let mut policies = Policies::default();
        policies.handle(&fact(Some("r"), 5, None));
        policies.handle(&fact(Some("r"), 4, entry(Entry::Open)));

        assert_eq!(policies.of_room(APP, &room("r")).entry, Entry::Token);
    }

    #[test]
    fn several_rooms_ask_the_strictest_of_each_rule() {
        let mut policies = Policies::default();
        let lax = Policy { entry: Entry::Open, token_ttl_s: 120, skew_s: 60, ..Policy::default() };
        let odd = Policy { entry: Entry::Guest, single_device: true, ..Policy::default() };
        policies.handle(&fact(Some("lax"), 1, Some(lax)));
        policies.handle(&fact(Some("odd"), 1, Some(odd)));

        let both = policies.of(APP, &[room("lax"), room("odd")]);

        assert_eq!(both, Policy { entry: Entry::Guest, single_device: true, ..Policy::default() });
    }

    #[test]
    fn claims_open_and_close() {
        let policy =
            Policy { unverified: Access::Read, minors: Access::Refuse, ..Policy::default() };

        assert_eq!(access(&policy, 0, cap::VERIFIED), Access::Send);
        assert_eq!(access(&policy, 0, 0), Access::Read);
        assert_eq!(access(&policy, 0, cap::VERIFIED | cap::MINOR), Access::Refuse);
    }

    #[test]
    fn who_came_without_a_ticket_may_do_what_the_entry_of_the_moment_allows() {
        let access = |entry, flags| access(&Policy { entry, ..Policy::default() }, flags, 0);

        assert_eq!(access(Entry::Open, flag::NO_TICKET), Access::Send);
        assert_eq!(access(Entry::Guest, flag::NO_TICKET), Access::Read);
        assert_eq!(access(Entry::Token, flag::NO_TICKET), Access::Refuse);
        assert_eq!(access(Entry::Token, flag::GUEST), Access::Send);
    }

    #[test]
    fn values_outside_their_bounds_are_named() {
        let policy = |token_ttl_s, skew_s| Policy { token_ttl_s, skew_s, ..Policy::default() };

        assert_eq!(check(&policy(120, 60), 240), Ok(()));
        assert_eq!(check(&policy(0, 0), 600), Err(PolicyError::Ttl { ttl_s: 0 }));
        assert_eq!(check(&policy(121, 0), 600), Err(PolicyError::Ttl { ttl_s: 121 }));
        assert_eq!(check(&policy(60, 61), 600), Err(PolicyError::Skew { skew_s: 61 }));
        let interval = PolicyError::Interval { interval_s: 119, ttl_s: 60 };
        assert_eq!(check(&policy(60, 30), 119), Err(interval));
    }
}
