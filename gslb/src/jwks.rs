//! Files of ticket keys, read again when their content changes.
//!
//! A file that cannot be read or used changes nothing: the keys of its last good content go on, or
//! none if there was none yet. Health, a metric and the log say so until it is mended.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use auth_core::app::App;
use auth_core::ticket::{JWKS_BYTES_MAX, Jwks, JwksError, TicketKeyError, TicketKeys};
use kit::clock::Clock;
use kit::health::Part;
use kit::meter::{Meter, list};
use prometheus::IntCounter;
use proto::id::AppId;
use tokio_util::sync::CancellationToken;

use crate::known::Known;

/// Between two looks at the files: a key that is taken out of a file is refused this long after.
const LOOK: Duration = Duration::from_secs(2);

/// The files of all apps, and what was last in them.
#[derive(Debug)]
pub(crate) struct Files {
    apps: Arc<[App]>,
    audience: Option<String>,
    known: Arc<Known>,
    clock: Clock,
    health: Part,
    taken: IntCounter,
    refused: IntCounter,
    /// As last read: the same content is not parsed again.
    seen: BTreeMap<AppId, Content>,
    /// The last good content of each.
    sets: BTreeMap<AppId, Jwks>,
    /// Why the content that was last read does not count.
    wrong: BTreeMap<AppId, Wrong>,
}

/// What a file holds, or why it cannot be read.
type Content = Result<Vec<u8>, String>;

#[derive(Debug, thiserror::Error)]
enum Wrong {
    #[error("it cannot be read: {0}")]
    Unread(String),
    #[error(transparent)]
    Set(#[from] JwksError),
    #[error(transparent)]
    Keys(#[from] TicketKeyError),
}

impl Files {
    pub(crate) fn new(
        apps: Arc<[App]>,
        audience: Option<String>,
        known: Arc<Known>,
        clock: Clock,
        health: Part,
        meter: &Meter,
    ) -> Self {
        let count = |outcome| meter.counter(list::GSLB_JWKS_CHANGES_TOTAL, &[outcome]);
        Self {
            apps,
            audience,
            known,
            clock,
            health,
            taken: count("taken"),
            refused: count("refused"),
            seen: BTreeMap::new(),
            sets: BTreeMap::new(),
            wrong: BTreeMap::new(),
        }
    }

    /// Looks until `shutdown`.
    pub(crate) async fn keep(mut self, shutdown: CancellationToken) -> anyhow::Result<()> {
        loop {
            tokio::select! {
                () = self.clock.sleep(LOOK) => {}
                () = shutdown.cancelled() => return Ok(()),
            }
            self.look().await?;
        }
    }

    /// Reads all files once, and takes what changed.
    ///
    /// # Errors
    /// When the reading itself broke down.
    pub(crate) async fn look(&mut self) -> anyhow::Result<()> {
        let named = self.apps.iter().filter(|it| !it.jwks.as_os_str().is_empty());
        let named: Vec<(AppId, PathBuf)> = named.map(|it| (it.id, it.jwks.clone())).collect();
        let contents = tokio::task::spawn_blocking(move || {
            let content = |path: &Path| read(path).map_err(|it| it.to_string());
            named.into_iter().map(|(app, path)| (app, content(&path))).collect::<Vec<_>>()
        });
        for (app, content) in contents.await? {
            if self.seen.get(&app) != Some(&content) {
                self.change(app, &content);
                self.seen.insert(app, content);
            }
        }
        match self.wrong.first_key_value() {
            Some((app, why)) => self.health.warn(format!("the JWK set of app {app}: {why}")),
            None => self.health.ok(),
        }
        Ok(())
    }

    fn change(&mut self, app: AppId, content: &Content) {
        match self.take(app, content) {
            Ok(()) => {
                self.taken.inc();
                self.wrong.remove(&app);
            }
            Err(wrong) => {
                self.refused.inc();
                let why = wrong.to_string();
                tracing::warn!(%app, why, "a JWK set is not used, the keys before it are");
                self.wrong.insert(app, wrong);
            }
        }
    }

    fn take(&mut self, app: AppId, content: &Content) -> Result<(), Wrong> {
        let bytes = content.as_ref().map_err(|it| Wrong::Unread(it.clone()))?;
        let set = Jwks::parse(bytes)?;
        for skipped in set.skipped() {
            tracing::warn!(%app, key_no = skipped.key_no, why = %skipped.why, "a JWK is skipped");
        }
        let mut sets = self.sets.clone();
        sets.insert(app, set);
        let tickets = TicketKeys::new(&self.apps, &sets, self.audience.clone())?;
        tracing::info!(%app, kids = ?sets[&app].kids().collect::<Vec<_>>(), "ticket keys changed");
        self.known.replace_tickets(tickets);
        self.sets = sets;
        Ok(())
    }
}

/// One byte more than the longest set, so that a longer one is seen to be longer.
fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(JWKS_BYTES_MAX as u64 + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}
