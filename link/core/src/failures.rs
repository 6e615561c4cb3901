//! Logins that failed, by the account that they named and where they came from.
//!
//! Whoever floods an account with wrong tokens is not even read any more, while its viewer is: only
//! the address from which logins for the account failed waits.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::time::Duration;

use proto::id::{AppId, ViewerId};
use proto::time::Mono;

use crate::bucket::{Bucket, Rate};

/// Failures that are nothing unusual for one account at one address: a device that slept, a link
/// without keys.
pub const RATE: Rate = Rate { burst: 10, per_s: 1 };
/// Accounts at addresses remembered; beyond, the one whose last failure is the oldest is forgotten,
/// and starts anew. They take some 16 MiB.
pub const SUBJECTS_MAX: usize = 65_536;

/// An account, and an address from which it was named.
type Subject = (AppId, ViewerId, IpAddr);

/// Which logins failed lately.
#[derive(Debug, Default)]
pub struct Failures {
    subjects: BTreeMap<Subject, Failed>,
    order: BTreeSet<(Mono, Subject)>,
}

#[derive(Debug)]
struct Failed {
    bucket: Bucket,
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
        let known = self.subjects.get(&(app, account.clone(), site));
        // Trying it on a copy takes nothing.
        known.map_or(Ok(()), |it| it.bucket.clone().take(now))
    }

    /// A login that named an account, from `site`, failed.
    pub fn failed(&mut self, app: AppId, account: ViewerId, site: IpAddr, now: Mono) {
        let subject = (app, account, site);
        let fresh = Failed { bucket: Bucket::new(RATE), last: now };
        let known = self.subjects.entry(subject.clone()).or_insert(fresh);
        // Beyond the rate nothing is left to take.
        known.bucket.take(now).ok();
        self.order.remove(&(known.last, subject.clone()));
        known.last = now;
        self.order.insert((now, subject));
        if self.subjects.len() > SUBJECTS_MAX
            && let Some((_, oldest)) = self.order.pop_first()
        {
            self.subjects.remove(&oldest);
        }
    }

    /// A login that named an account, from `site`, was good: what failed there does not count.
    pub fn forget(&mut self, app: AppId, account: ViewerId, site: IpAddr) {
        let subject = (app, account, site);
        if let Some(known) = self.subjects.remove(&subject) {
            self.order.remove(&(known.last, subject));
        }
    }

    /// Forgets those at which nothing failed for so long that they start anew.
    pub fn tick(&mut self, now: Mono) {
        let anew = Duration::from_secs(u64::from(RATE.burst / RATE.per_s));
        while self.order.first().is_some_and(|(last, _)| now.since(*last) > anew) {
            if let Some((_, subject)) = self.order.pop_first() {
                self.subjects.remove(&subject);
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
    fn a_viewer_who_failed_once_does_not_pay_for_a_flood_elsewhere() {
        let mut failures = flooded();

        failures.failed(APP, name(1), site(2), Mono(0));

        assert_eq!(failures.admit(APP, &name(1), site(2), Mono(0)), Ok(()));
        assert!(failures.admit(APP, &name(1), site(1), Mono(0)).is_err());
    }

    #[test]
    fn a_good_login_ends_the_wait_of_its_own_address_alone() {
        let mut failures = flooded();
        for _ in 0..RATE.burst {
            failures.failed(APP, name(1), site(2), Mono(0));
        }

        failures.forget(APP, name(1), site(2));

        assert_eq!(failures.admit(APP, &name(1), site(2), Mono(0)), Ok(()));
        assert!(failures.admit(APP, &name(1), site(1), Mono(0)).is_err());
        assert_eq!((failures.subjects.len(), failures.order.len()), (1, 1));
    }

    #[test]
    fn what_is_remembered_is_bounded_and_ends() {
        let mut failures = Failures::default();
        for number in 0..=SUBJECTS_MAX {
            failures.failed(APP, name(number), site(1), Mono(number as u64));
        }

        assert_eq!(failures.subjects.len(), SUBJECTS_MAX);
        assert_eq!(failures.order.len(), SUBJECTS_MAX);
        assert!(!failures.subjects.contains_key(&(APP, name(0), site(1))));

        failures.tick(Mono(SUBJECTS_MAX as u64 + 10_001));
        assert!(failures.subjects.is_empty() && failures.order.is_empty());
    }
}
