//! `[[chatserver.webhook]]`: where an app hears what happens in its rooms.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context, ensure};
use auth_core::secret::Secret;
use chatserver_core::webhook::{Kind, Limits};
use proto::id::AppId;
use serde::{Deserialize, Serialize};

/// Where one app hears what happens in its rooms.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields, rename_all = "snake_case")]
pub struct WebhookConfig {
    /// Whose rooms. An app has one webhook at most.
    pub app: AppId,
    /// Where batches of events are posted: `https` or `http`. Addresses that are not of the public
    /// internet must be in `outward.networks`.
    pub url: String,
    /// What batches are signed with, at least 16 bytes; known to the receiver as well.
    pub secret: Secret,
    /// What is told: `join`, `leave`, `refusal`, `mute`, `ban`, `kick`, `close`.
    pub kinds: Vec<Kind>,
    /// Events of one batch, about 150 bytes each.
    pub batch_max: u32,
    /// How long the first event of a batch waits for others, in milliseconds.
    pub linger_ms: u32,
    /// Events that wait, about 300 bytes each; an eighth is for what moderators do. Beyond it
    /// events are lost, and counted.
    pub events_max: u32,
    /// Joins, leaves and refusals that this chatserver tells a second. Of a hot room's crowd the
    /// rest is not told, and the next batch says how many that were.
    pub viewers_per_s_max: u32,
    /// How long the receiver has for an answer, in milliseconds.
    pub deadline_ms: u32,
    /// How long a batch is sent again that was not taken, in seconds. Then it is lost, and counted.
    pub age_s_max: u32,
}

impl Default for WebhookConfig {
    fn default() -> Self {
        Self {
            app: AppId(0),
            url: String::new(),
            secret: Secret::default(),
            kinds: Kind::ALL.to_vec(),
            batch_max: 200,
            linger_ms: 1000,
            events_max: 10_000,
            viewers_per_s_max: 500,
            deadline_ms: 5000,
            age_s_max: 300,
        }
    }
}

/// Checks what the types do not, and the URLs do not say themselves.
pub(crate) fn check(hooks: &[WebhookConfig]) -> anyhow::Result<()> {
    let mut apps = BTreeSet::new();
    for hook in hooks {
        hook.check().with_context(|| format!("webhook of app {}", hook.app))?;
        ensure!(apps.insert(hook.app), "app {} has two webhooks", hook.app);
    }
    Ok(())
}

impl WebhookConfig {
    fn check(&self) -> anyhow::Result<()> {
        ensure!((1..=1000).contains(&self.batch_max), "batch_max must be 1 to 1,000");
        ensure!(self.linger_ms <= 60_000, "linger_ms must be at most 60,000");
        ensure!(
            (self.batch_max..=1_000_000).contains(&self.events_max),
            "events_max must be batch_max to 1,000,000"
        );
        ensure!((1..=60_000).contains(&self.deadline_ms), "deadline_ms must be 1 to 60,000");
        ensure!(self.age_s_max <= 86_400, "age_s_max must be at most a day");
        Ok(())
    }

    pub(super) fn limits(&self) -> Limits {
        Limits {
            events_max: self.events_max(),
            batch_max: usize::try_from(self.batch_max).unwrap_or(usize::MAX),
            linger: Duration::from_millis(self.linger_ms.into()),
            viewers_per_s_max: self.viewers_per_s_max,
            age_max: Duration::from_secs(self.age_s_max.into()),
        }
    }

    pub(super) fn events_max(&self) -> usize {
        usize::try_from(self.events_max).unwrap_or(usize::MAX)
    }

    pub(super) fn deadline(&self) -> Duration {
        Duration::from_millis(self.deadline_ms.into())
    }
}
