//! Logins that failed, by the account that they named.
//!
//! Whoever floods an account with wrong tokens is not even read any more, while its viewer, who
//! comes from somewhere else, is: only addresses from which logins for the account failed wait.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::IpAddr;
use std::time::Duration;

use proto::id::{AppId, ViewerId};
use proto::time::Mono;

use crate::bucket::{Bucket, Rate};

/// Failures of one account that are nothing unusual: a device that slept, a link without keys.
pub const RATE: Rate = Rate { burst: 10, per_s: 1 };
/// Accounts remembered; beyond, the one whose last failure is the oldest is forgotten. With all
/// their addresses they take 16 MiB.
pub const ACCOUNTS_MAX: usize = 16_384;
/// Addresses remembered of an account; beyond, the oldest is, and has one more login read.
pub const SITES_MAX: usize = 32;

type Subject = (AppId, ViewerId);

/// Which logins failed lately.
#[derive(Debug, Default)]
pub struct Failures {
    accounts: BTreeMap<Subject, Account>,
    order: BTreeSet<(Mono, Subject)>,
}

#[derive(Debug)]
struct Account {
    bucket: Bucket,
    /// Where they came from, oldest first.
    sites: VecDeque<IpAddr>,
    last: Mono,
}

impl Failures {
    /// Whether a login that names an account, from `site`, is read; if not, when one may be.
    pub fn admit(
        &self,
        app: AppId,
        account: &ViewerId,
        site: IpAddr,
        now: Mono,
    ) -> Result<(), Duration> {
        let known = self.accounts.get(&(app, account.clone()));
        match known {
            // Trying it on a copy takes nothing.
            Some(it) if it.sites.contains(&site) => it.bucket.clone().take(now),
            Some(_) | None => Ok(()),
        }
    }

    /// A login that named an account, from `site`, failed.
    pub fn failed(&mut self, app: AppId, account: ViewerId, site: IpAddr, now: Mono) {
        let subject = (app, account);
        let account = self.accounts.entry(subject.clone()).or_insert_with(|| Account {
            bucket: Bucket::new(RATE),
            sites: VecDeque::new(),
            last: now,
        });
        // Beyond the rate nothing is left to take.
        account.bucket.take(now).ok();
        if !account.sites.contains(&site) {
            account.sites.push_back(site);
            if account.sites.len() > SITES_MAX {
                account.sites.pop_front();
            }
        }
        self.order.remove(&(account.last, subject.clone()));
        account.last = now;
        self.order.insert((now, subject));
        if self.accounts.len() > ACCOUNTS_MAX
            && let Some((_, oldest)) = self.order.pop_first()
        {
            self.accounts.remove(&oldest);
        }
    }

    /// Forgets accounts at which nothing failed for so long that they start anew.
    pub fn tick(&mut self, now: Mono) {
        let anew = Duration::from_secs(u64::from(RATE.burst / RATE.per_s));
        while self.order.first().is_some_and(|(last, _)| now.since(*last) > anew) {
            if let Some((_, subject)) = self.order.pop_first() {
                self.accounts.remove(&subject);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const APP: AppId = AppId(1);

    fn name(number: usize) -> ViewerId {
        ViewerId::parse(&format!("viewer-{number}")).unwrap()
    }

    fn site(last: u8) -> IpAddr {
        IpAddr::from([192, 0, 2, last])
    }

    fn flooded() -> Failures {
        let mut failures = Failures::default();
        for _ in 0..RATE.burst {
            assert_eq!(failures.admit(APP, &name(1), site(1), Mono(0)), Ok(()));
            failures.failed(APP, name(1), site(1), Mono(0));
        }
        failures
    }

    #[test]
    fn a_flood_waits_and_the_viewer_elsewhere_does_not() {
        let failures = flooded();

        let second = Duration::from_secs(1);
        assert_eq!(failures.admit(APP, &name(1), site(1), Mono(0)), Err(second));
        assert_eq!(failures.admit(APP, &name(1), site(2), Mono(0)), Ok(()));
        assert_eq!(failures.admit(APP, &name(2), site(1), Mono(0)), Ok(()));
        assert_eq!(failures.admit(AppId(2), &name(1), site(1), Mono(0)), Ok(()));
        assert_eq!(failures.admit(APP, &name(1), site(1), Mono(1000)), Ok(()));
    }

    #[test]
    fn a_flood_from_many_places_has_one_login_of_each_read() {
        let mut failures = flooded();

        assert_eq!(failures.admit(APP, &name(1), site(2), Mono(0)), Ok(()));
        failures.failed(APP, name(1), site(2), Mono(0));

        assert!(failures.admit(APP, &name(1), site(2), Mono(0)).is_err());
        assert!(failures.admit(APP, &name(1), site(1), Mono(0)).is_err());
    }

    #[test]
    fn what_is_remembered_is_bounded_and_ends() {
        let mut failures = Failures::default();
        for number in 0..=ACCOUNTS_MAX {
            failures.failed(APP, name(number), site(1), Mono(number as u64));
        }
        for last in 0..=u8::MAX {
            failures.failed(APP, name(ACCOUNTS_MAX), site(last), Mono(ACCOUNTS_MAX as u64));
        }

        assert_eq!(failures.accounts.len(), ACCOUNTS_MAX);
        assert_eq!(failures.order.len(), ACCOUNTS_MAX);
        assert!(!failures.accounts.contains_key(&(APP, name(0))));
        assert_eq!(failures.accounts[&(APP, name(ACCOUNTS_MAX))].sites.len(), SITES_MAX);

        failures.tick(Mono(ACCOUNTS_MAX as u64 + 10_001));
        assert!(failures.accounts.is_empty() && failures.order.is_empty());
    }
}
