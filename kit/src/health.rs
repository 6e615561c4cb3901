//! Whether this process can do its job: `/readyz` fails when it cannot, not only when it is dead.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;

/// The health of a process, by part.
#[derive(Clone, Debug, Default)]
pub struct Health {
    parts: Arc<Mutex<BTreeMap<&'static str, State>>>,
}

#[derive(Clone, Debug, Eq, PartialEq)]
enum State {
    Ok,
    Warns(String),
    Fails(String),
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
        self.parts.lock().insert(name, State::Fails("starting".to_owned()));
        Part { name, health: self.clone() }
    }

    /// What fails, and why; empty when the process is ready.
    #[must_use]
    pub fn failures(&self) -> Vec<(&'static str, String)> {
        self.select(|state| match state {
            State::Fails(why) => Some(why.clone()),
            State::Ok | State::Warns(_) => None,
        })
    }

    /// What still works and will not for long, and why: somebody should look.
    #[must_use]
    pub fn warnings(&self) -> Vec<(&'static str, String)> {
        self.select(|state| match state {
            State::Warns(why) => Some(why.clone()),
            State::Ok | State::Fails(_) => None,
        })
    }

    fn select(&self, why: impl Fn(&State) -> Option<String>) -> Vec<(&'static str, String)> {
        let parts = self.parts.lock();
        parts.iter().filter_map(|(&name, state)| Some((name, why(state)?))).collect()
    }
}

impl Part {
    /// It works. A log line says so when it did not before.
    pub fn ok(&self) {
        if self.replace(State::Ok).is_some_and(|it| it != State::Ok) {
            tracing::info!(part = self.name, "a part works");
        }
    }

    /// It works, and somebody should look: the process stays ready. A log line says so when it did
    /// not warn before.
    pub fn warn(&self, why: impl Into<String>) {
        let why = why.into();
        let before = self.replace(State::Warns(why.clone()));
        if !matches!(before, Some(State::Warns(_))) {
            tracing::warn!(part = self.name, why, "a part warns");
        }
    }

    /// It does not. A log line says so when it did before.
    pub fn fail(&self, why: impl Into<String>) {
        let why = why.into();
        let before = self.replace(State::Fails(why.clone()));
        if !matches!(before, Some(State::Fails(_)) | None) {
            tracing::info!(part = self.name, why, "a part fails");
        }
    }

    fn replace(&self, state: State) -> Option<State> {
        self.health.parts.lock().insert(self.name, state)
    }
}
