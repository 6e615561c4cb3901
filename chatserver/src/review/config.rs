//! `[[chatserver.review]]`: the hook that is asked about an app's comments.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context, ensure};
use auth_core::secret::Secret;
use chatserver_core::review::{Fail, Rule};
use proto::control::Review;
use proto::id::AppId;
use serde::{Deserialize, Serialize};

/// The review hook of one app.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields, rename_all = "snake_case")]
pub struct ReviewConfig {
    /// Whose comments it is asked about. An app has one hook at most.
    pub app: AppId,
    /// Where questions are posted: `https` or `http`. Addresses that are not of the public internet
    /// must be in `outward.networks`.
    pub url: String,
    /// What questions are signed with, at least 16 bytes; known to the hook as well.
    pub secret: Secret,
    /// About which comments it is asked in rooms that say nothing of it: `none`, `listed` (those in
    /// which something was found that is to be reviewed), `all`.
    pub when: Review,
    /// What becomes of a comment that it says nothing about, because it fails, is slow, or has too
    /// many calls already: `closed` refuses it, `open` shows it.
    pub fail: Fail,
    /// How long it has for an answer, in milliseconds; as long as senders wait for theirs.
    pub deadline_ms: u32,
    /// Calls at a time, about 20 KiB each while they last. By Little's law as many as comments a
    /// second times the seconds of an answer: 64 do for 1,000 a second at 60 ms.
    pub calls_max: u32,
}

impl Default for ReviewConfig {
    fn default() -> Self {
        Self {
            app: AppId(0),
            url: String::new(),
            secret: Secret::default(),
            when: Review::Listed,
            fail: Fail::Closed,
            deadline_ms: 200,
            calls_max: 64,
        }
    }
}

/// Checks what the types do not, and the URLs do not say themselves.
pub(crate) fn check(hooks: &[ReviewConfig]) -> anyhow::Result<()> {
    let mut apps = BTreeSet::new();
    for hook in hooks {
        hook.check().with_context(|| format!("review hook of app {}", hook.app))?;
        ensure!(apps.insert(hook.app), "app {} has two review hooks", hook.app);
    }
    Ok(())
}

impl ReviewConfig {
    fn check(&self) -> anyhow::Result<()> {
        ensure!((1..=10_000).contains(&self.deadline_ms), "deadline_ms must be 1 to 10,000");
        ensure!((1..=4096).contains(&self.calls_max), "calls_max must be 1 to 4,096");
        Ok(())
    }

    pub(crate) fn rule(&self) -> Rule {
        let calls_max = usize::try_from(self.calls_max).unwrap_or(usize::MAX);
        Rule { when: self.when, fail: self.fail, calls_max }
    }

    pub(crate) fn deadline(&self) -> Duration {
        Duration::from_millis(self.deadline_ms.into())
    }
}
