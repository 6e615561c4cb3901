//! `[[chatserver.quota]]`: what one app may have and ask, where that is not what all others may.

use std::collections::BTreeSet;

use anyhow::ensure;
use proto::id::AppId;
use serde::{Deserialize, Serialize};

use crate::config::Config;

/// What one app may have and ask. What is not said is as for all apps.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields, rename_all = "snake_case")]
pub struct QuotaConfig {
    /// Whose; an app has one at most.
    pub app: AppId,
    /// Rooms, in the place of `app_rooms_max`.
    pub rooms_max: Option<u32>,
    /// Mutes, bans, roles and the like, in the place of `app_acts_max`.
    pub acts_max: Option<u32>,
    /// Requests a second, in the place of `app_requests_per_s`.
    pub requests_per_s: Option<u32>,
    /// Requests in a burst, in the place of `app_requests_burst`.
    pub requests_burst: Option<u32>,
}

/// What an app may have and ask.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Quota {
    pub(crate) rooms_max: u32,
    pub(crate) acts_max: u32,
    pub(crate) requests_per_s: u32,
    pub(crate) requests_burst: u32,
}

impl Config {
    /// What an app may have and ask.
    pub(crate) fn quota_of(&self, app: AppId) -> Quota {
        let none = QuotaConfig::default();
        let own = self.quota.iter().find(|it| it.app == app).unwrap_or(&none);
        Quota {
            rooms_max: own.rooms_max.unwrap_or(self.app_rooms_max),
            acts_max: own.acts_max.unwrap_or(self.app_acts_max),
            requests_per_s: own.requests_per_s.unwrap_or(self.app_requests_per_s),
            requests_burst: own.requests_burst.unwrap_or(self.app_requests_burst),
        }
    }
}

/// Checks what the types do not.
pub(crate) fn check(quotas: &[QuotaConfig]) -> anyhow::Result<()> {
    let mut apps = BTreeSet::new();
    for QuotaConfig { app, acts_max, requests_per_s, requests_burst, .. } in quotas {
        ensure!(apps.insert(*app), "app {app} has two quotas");
        let bounds = [acts_max, requests_per_s, requests_burst];
        ensure!(
            bounds.iter().all(|it| **it != Some(0)),
            "the quota of app {app}: acts_max, requests_per_s and requests_burst must be > 0"
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_app_has_its_own_quota_and_the_others_the_common_one() {
        let own = QuotaConfig { app: AppId(2), rooms_max: Some(3), ..QuotaConfig::default() };
        let config = Config { app_rooms_max: 7, quota: vec![own], ..Config::default() };

        assert_eq!(config.quota_of(AppId(1)).rooms_max, 7);
        assert_eq!(config.quota_of(AppId(2)).rooms_max, 3);
        assert_eq!(config.quota_of(AppId(2)).acts_max, config.app_acts_max);
    }

    #[test]
    fn two_quotas_of_an_app_and_one_that_allows_nothing_are_refused() {
        let quota = |app, acts_max| QuotaConfig { app, acts_max, ..QuotaConfig::default() };

        assert!(check(&[quota(AppId(1), Some(1)), quota(AppId(2), None)]).is_ok());
        assert!(check(&[quota(AppId(1), Some(1)), quota(AppId(1), None)]).is_err());
        assert!(check(&[quota(AppId(1), Some(0))]).is_err());
    }
}
