//! Single-use tokens that were used, remembered until they would be refused for their age.
//!
//! The set is bounded. When it is full, a token is refused rather than another forgotten: a
//! forgotten one could be used again.

use std::collections::BTreeMap;

use foldhash::HashSet;
use proto::time::Wall;

/// Tokens that were used, by the second in which they may be forgotten.
///
/// About 30 bytes an entry; at 5,000 logins a second and 120 s from the token to its end a node
/// holds 600,000 in 18 MB.
#[derive(Clone, Debug)]
pub struct Replays {
    /// By whole seconds since 1970, as the token's own checks compare.
    seen: BTreeMap<u64, HashSet<[u8; 16]>>,
    entries: usize,
    entries_max: usize,
}

/// Why a token was not taken.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum NotTaken {
    /// Used before.
    #[error("the token was used before")]
    Seen,
    /// The set is full of tokens that could still be used again.
    #[error("no place to remember one more token")]
    Full,
}

impl Replays {
    /// An empty set that never holds more than `entries_max`.
    #[must_use]
    pub const fn new(entries_max: usize) -> Self {
        Self { seen: BTreeMap::new(), entries: 0, entries_max }
    }

    /// Marks a token as used.
    ///
    /// `end` is the last moment at which the token passes the other checks; it must follow from
    /// the token, so that the same token always comes with the same `end`.
    pub fn take(&mut self, jti: [u8; 16], end: Wall, now: Wall) -> Result<(), NotTaken> {
        self.forget(now);
        let seen = self.seen.entry(end.unix_s()).or_default();
        if seen.contains(&jti) {
            return Err(NotTaken::Seen);
        }
        if self.entries >= self.entries_max {
            return Err(NotTaken::Full);
        }
        seen.insert(jti);
        self.entries += 1;
        Ok(())
    }

    /// How many are remembered.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.entries
    }

    /// Whether none is remembered.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.entries == 0
    }

    fn forget(&mut self, now: Wall) {
        while let Some(oldest) = self.seen.first_entry() {
            if *oldest.key() >= now.unix_s() {
                break;
            }
            self.entries -= oldest.remove().len();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_taken_once() {
        let mut replays = Replays::new(10);

        assert_eq!(replays.take([1; 16], Wall(5_000), Wall(0)), Ok(()));
        assert_eq!(replays.take([1; 16], Wall(5_000), Wall(0)), Err(NotTaken::Seen));
        assert_eq!(replays.take([2; 16], Wall(5_000), Wall(0)), Ok(()));
    }

    #[test]
    fn a_token_is_remembered_through_its_last_second() {
        let mut replays = Replays::new(10);
        replays.take([1; 16], Wall(5_000), Wall(0)).unwrap();

        assert_eq!(replays.take([1; 16], Wall(5_000), Wall(5_999)), Err(NotTaken::Seen));
        assert_eq!(replays.take([2; 16], Wall(9_000), Wall(6_000)), Ok(()));
        assert_eq!(replays.len(), 1);
    }

    #[test]
    fn a_full_set_refuses_and_forgets_nothing() {
        let mut replays = Replays::new(2);
        replays.take([1; 16], Wall(5_000), Wall(0)).unwrap();
        replays.take([2; 16], Wall(6_000), Wall(0)).unwrap();

        assert_eq!(replays.take([3; 16], Wall(7_000), Wall(0)), Err(NotTaken::Full));
        assert_eq!(replays.take([1; 16], Wall(5_000), Wall(0)), Err(NotTaken::Seen));
        assert_eq!(replays.take([3; 16], Wall(7_000), Wall(6_000)), Ok(()));
    }
}
