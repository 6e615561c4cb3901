//! Looks every second whether another service, or an operator, changed the masters' file.

use std::sync::Arc;
use std::time::Duration;

use kit::health::Part;
use kit::meter::list;
use tokio_util::sync::CancellationToken;

use super::{MastersFile, Stamp};
use crate::site::{Site, on_disk};

const EVERY: Duration = Duration::from_secs(1);

/// Looks until `shutdown`. While the file cannot be used, what was read before stays in use, and
/// the part warns: a start would fail.
pub(crate) async fn run(
    site: Arc<Site>,
    part: Part,
    shutdown: CancellationToken,
) -> anyhow::Result<()> {
    let mut seen = None;
    loop {
        match look(&site, seen).await {
            Ok(stamp) => {
                seen = Some(stamp);
                part.ok();
            }
            Err(error) => part.warn(format!("{error:#}")),
        }
        let masters = i64::try_from(site.masters.read().len()).unwrap_or(i64::MAX);
        site.meter.gauge(list::AUTH_MASTERS, &[]).set(masters);
        tokio::select! {
            () = site.clock.sleep(EVERY) => {}
            () = shutdown.cancelled() => return Ok(()),
        }
    }
}

/// Reads the file if it is not the one that was seen.
async fn look(site: &Arc<Site>, seen: Option<Stamp>) -> anyhow::Result<Stamp> {
    // Before the reading: a change in between is found by the next look.
    let on_site = Arc::clone(site);
    let stamp = on_disk(move || on_site.file.lock().stamp()).await?;
    if seen != Some(stamp) {
        site.take_masters(MastersFile::read).await?;
        if seen.is_some() {
            tracing::info!(kids = ?site.kids(), "the masters' file has changed");
        }
    }
    Ok(stamp)
}
