//! Whether this process can do its job: `/readyz` fails when it cannot, not only when it is dead.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;

/// The health of a process, by part.
#[derive(Clone, Debug, Default)]
pub struct Health {
    parts: Arc<Mutex<BTreeMap<&'static str, Option<String>>>>,
}

/// One part's handle.
#[derive(Clone, Debug)]
pub struct Part {
    name: &'static str,
    health: Health,
}

impl Health {
    /// Adds a part, which fails as `starting` until it says otherwise.
    #[must_use]
    pub fn part(&self, name: &'static str) -> Part {
        self.parts.lock().insert(name, Some("starting".to_owned()));
        Part { name, health: self.clone() }
    }

    /// What fails, and why; empty when the process is ready.
    #[must_use]
    pub fn failures(&self) -> Vec<(&'static str, String)> {
        let parts = self.parts.lock();
        parts.iter().filter_map(|(&name, why)| Some((name, why.clone()?))).collect()
    }
}

impl Part {
    /// It works. A log line says so when it did not before.
    pub fn ok(&self) {
        let before = self.health.parts.lock().insert(self.name, None);
        if before.flatten().is_some() {
            tracing::info!(part = self.name, "a part works");
        }
    }

    /// It does not. A log line says so when it did before.
    pub fn fail(&self, why: impl Into<String>) {
        let why = why.into();
        let before = self.health.parts.lock().insert(self.name, Some(why.clone()));
        if matches!(before, Some(None)) {
            tracing::info!(part = self.name, why, "a part fails");
        }
    }
}
