//! How often one app may ask: a bucket of requests for each, whatever they ask for.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::time::Duration;

use auth_core::app::App;
use governor::clock::Clock as _;
use governor::middleware::NoOpMiddleware;
use governor::state::{InMemoryState, NotKeyed};
use governor::{Quota, RateLimiter};
use kit::clock::Clock;
use proto::id::AppId;
use proto::time::millis;

use crate::config::Config;

/// Catalogues that an app may set at once: each goes to every node, and is a file for good.
const CATALOGUES_BURST: NonZeroU32 = NonZeroU32::new(20).expect("20 is not 0");
/// Further ones a minute.
const CATALOGUES_PER_MINUTE: NonZeroU32 = NonZeroU32::MIN;

/// The buckets of all apps.
#[derive(Debug)]
pub(crate) struct Rates(BTreeMap<AppId, Bucket>);

type Bucket = RateLimiter<NotKeyed, InMemoryState, Ticks, NoOpMiddleware<Duration>>;

/// The process's clock, as governor reads it.
#[derive(Clone, Debug)]
struct Ticks(Clock);

impl governor::clock::Clock for Ticks {
    type Instant = Duration;

    fn now(&self) -> Duration {
        Duration::from_millis(self.0.mono().0)
    }
}

impl Rates {
    /// Zeros count as 1; the configuration refuses them.
    pub(crate) fn new(apps: &[App], config: &Config, clock: &Clock) -> Self {
        let at_least_1 = |it| NonZeroU32::new(it).unwrap_or(NonZeroU32::MIN);
        let quota = |app: AppId| {
            let own = config.quota_of(app);
            let quota = Quota::per_second(at_least_1(own.requests_per_s));
            quota.allow_burst(at_least_1(own.requests_burst))
        };
        Self::of(apps, quota, clock)
    }

    /// How often an app may set its catalogue, at one chatserver.
    pub(crate) fn of_catalogues(apps: &[App], clock: &Clock) -> Self {
        let quota = Quota::per_minute(CATALOGUES_PER_MINUTE).allow_burst(CATALOGUES_BURST);
        Self::of(apps, |_| quota, clock)
    }

    fn of(apps: &[App], quota: impl Fn(AppId) -> Quota, clock: &Clock) -> Self {
        let bucket = |app| RateLimiter::direct_with_clock(quota(app), Ticks(clock.clone()));
        Self(apps.iter().map(|it| (it.id, bucket(it.id))).collect())
    }

    /// Lets one request of the app pass, or says after how many milliseconds it may ask again.
    pub(super) fn check(&self, app: AppId) -> Result<(), u32> {
        let Some(bucket) = self.0.get(&app) else { return Ok(()) };
        bucket.check().map_err(|until| {
            let wait = millis(until.wait_time_from(bucket.clock().now()));
            u32::try_from(wait).unwrap_or(u32::MAX).max(1)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_app_that_goes_on_setting_its_catalogue_waits_for_minutes() {
        let apps: Vec<App> = serde_json::from_str(r#"[{"id": 1, "api_keys": []}]"#).unwrap();
        let rates = Rates::of_catalogues(&apps, &Clock::system());

        let passed = (0..30).filter(|_| rates.check(AppId(1)).is_ok()).count();
        let wait = rates.check(AppId(1)).unwrap_err();

        assert_eq!(passed, 20);
        assert!((50_000..=60_000).contains(&wait), "{wait}");
    }

    #[test]
    fn each_app_has_its_own_bucket() {
        let apps: Vec<App> =
            serde_json::from_str(r#"[{"id": 1, "api_keys": []}, {"id": 2, "api_keys": []}]"#)
                .unwrap();
        let config = Config { app_requests_per_s: 1, app_requests_burst: 3, ..Config::default() };
        let rates = Rates::new(&apps, &config, &Clock::system());

        let passed = (0..4).map(|_| rates.check(AppId(1)).is_ok()).filter(|it| *it).count();
        let wait = rates.check(AppId(1)).unwrap_err();

        assert_eq!(passed, 3);
        assert!((1..=1000).contains(&wait), "{wait}");
        assert_eq!(rates.check(AppId(2)), Ok(()));
    }
}
