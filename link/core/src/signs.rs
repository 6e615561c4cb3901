//! Connections that came to nothing through no fault of the node's, and from how many places.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use proto::close::CloseCode;
use proto::time::Mono;

use crate::places::Site;

/// Addresses are counted apart for so long.
const COUNTED: Duration = Duration::from_secs(1);
/// Addresses counted apart, 40 bytes each. If there are more within [`COUNTED`], nothing is left to
/// find out about whether few or many are at it.
const SITES_MAX: usize = 4_096;

/// How many connections came to nothing.
#[derive(Debug)]
pub struct Signs {
    site_max: u32,
    since: Mono,
    sites: BTreeMap<IpAddr, u32>,
    tally: Tally,
}

/// What was counted since the start.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Tally {
    /// All of them.
    pub failures: u64,
    /// No more of one address than its share.
    pub shared: u64,
}

impl Signs {
    /// Nothing failed yet. Of one address at most `site_max` a second are counted as shared.
    #[must_use]
    pub const fn new(site_max: u32) -> Self {
        let tally = Tally { failures: 0, shared: 0 };
        Self { site_max, since: Mono(0), sites: BTreeMap::new(), tally }
    }

    /// A connection from `site` came to nothing.
    ///
    /// [`Site::Everybodys`] has no share.
    pub fn note(&mut self, site: Site, now: Mono) {
        if now.since(self.since) >= COUNTED {
            self.since = now;
            self.sites.clear();
        }
        self.tally.failures += 1;
        let is_shared = match site {
            Site::Everybodys => true,
            Site::Own(address) => self.is_within_share(address),
        };
        self.tally.shared += u64::from(is_shared);
    }

    /// What was counted since the start.
    #[must_use]
    pub const fn tally(&self) -> Tally {
        self.tally
    }

    fn is_within_share(&mut self, site: IpAddr) -> bool {
        if self.sites.len() >= SITES_MAX && !self.sites.contains_key(&site) {
            return true;
        }
        let count = self.sites.entry(site).or_default();
        *count = count.saturating_add(1);
        *count <= self.site_max
    }
}

/// Whether a connection that ends so before its login is a sign of an attack: the peer caused it,
/// and not what the node has room for, knows, or was told to refuse.
#[must_use]
pub fn is_sign(code: CloseCode) -> bool {
    let signs = [
        CloseCode::Silent,
        CloseCode::Slow,
        CloseCode::RateLimited,
        CloseCode::LoginTimeout,
        CloseCode::TokenExpired,
        CloseCode::TokenElsewhere,
        CloseCode::TokenReplayed,
        CloseCode::TokenInvalid,
        CloseCode::BadFrame,
        CloseCode::FrameTooLarge,
        CloseCode::Unexpected,
        CloseCode::NoCommonVersion,
        CloseCode::BadBinder,
        CloseCode::Bye,
    ];
    signs.contains(&code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_address_counts_for_no_more_than_its_share_each_second() {
        let mut signs = Signs::new(30);

        for second in 1..=2 {
            (0..2_000).for_each(|ms| signs.note(site(1), Mono(second * 1_000 + ms / 2)));
        }

        assert_eq!(signs.tally(), Tally { failures: 4_000, shared: 60 });
    }

    #[test]
    fn many_addresses_count_for_all_they_do_and_everybodys_does() {
        let mut signs = Signs::new(1);

        for last in 0..=u8::MAX {
            signs.note(site(last), Mono(0));
            signs.note(Site::Everybodys, Mono(0));
        }

        assert_eq!(signs.tally(), Tally { failures: 512, shared: 512 });
    }

    #[test]
    fn one_who_is_named_as_loopback_counts_for_no_more_than_its_share() {
        let mut signs = Signs::new(1);

        (0..10).for_each(|_| signs.note(Site::Own(IpAddr::from([127, 0, 0, 1])), Mono(0)));

        assert_eq!(signs.tally(), Tally { failures: 10, shared: 1 });
    }

    #[test]
    fn what_is_remembered_is_bounded_and_beyond_it_all_count() {
        let mut signs = Signs::new(1);

        for number in 0..10_000_u32 {
            signs.note(Site::Own(IpAddr::from(number.to_be_bytes())), Mono(0));
        }

        assert_eq!(signs.sites.len(), SITES_MAX);
        assert_eq!(signs.tally().shared, 10_000);
    }

    #[test]
    fn what_the_node_refuses_by_itself_is_no_sign() {
        let own = [
            CloseCode::Draining,
            CloseCode::Full,
            CloseCode::Unavailable,
            CloseCode::TokenEpoch,
            CloseCode::Moved,
            CloseCode::KickedLately,
            CloseCode::Kicked,
            CloseCode::Banned,
            CloseCode::UpgradeRequired,
            CloseCode::NoRoom,
            CloseCode::TicketRequired,
        ];

        assert!(!own.into_iter().any(is_sign));
        assert!([CloseCode::LoginTimeout, CloseCode::TokenInvalid].into_iter().all(is_sign));
    }

    fn site(last: u8) -> Site {
        Site::Own(IpAddr::from([192, 0, 2, last]))
    }
}
