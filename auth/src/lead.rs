//! Who draws the epochs: one of the auth services, by a lease on `control`.
//!
//! The lease alone does not keep a stopped process from publishing what it had in hand; the
//! driver's fence does. The lease makes that rare, and tells who takes over: within two to three
//! seconds of a leader that was killed, stopped or cut off, at once after one that ended in order.

use std::sync::Arc;
use std::time::Duration;

use bus::{Lease, LeaseConfig, LeaseEvent};
use kit::meter::list;
use proto::id::NodeId;
use tokio_util::sync::CancellationToken;

use crate::site::Site;

/// What the lease is called; it has one partition.
pub(crate) const LEASE: &str = "epochs";
/// Pause after `control` could not be read.
const PAUSE: Duration = Duration::from_millis(500);

/// Keeps `site.lead` right until `shutdown`; then lets go.
///
/// `node` is drawn for each start, not configured: two services that were given one number by
/// mistake would share a term, and nothing could tell them apart.
pub(crate) async fn run(
    site: Arc<Site>,
    node: NodeId,
    shutdown: CancellationToken,
) -> anyhow::Result<()> {
    let leads = site.meter.gauge(list::AUTH_LEADS, &[]);
    let mut lease = tokio::select! {
        lease = join(&site, node) => lease,
        () = shutdown.cancelled() => return Ok(()),
    };
    loop {
        let event = tokio::select! {
            event = lease.next() => event,
            () = shutdown.cancelled() => break,
        };
        let term = match event {
            LeaseEvent::Gained { term, .. } => Some(term),
            LeaseEvent::Lost { .. } => None,
        };
        tracing::info!(leads = term.is_some(), "who draws the epochs has changed");
        leads.set(i64::from(term.is_some()));
        site.lead.send_replace(term);
    }
    leads.set(0);
    site.lead.send_replace(None);
    lease.leave().await;
    Ok(())
}

async fn join(site: &Site, node: NodeId) -> Lease {
    loop {
        let config = LeaseConfig {
            control: Arc::clone(&site.bus),
            name: LEASE.into(),
            partitions: 1,
            node,
            clock: site.clock.clone(),
        };
        match tokio::time::timeout(site.answer_max, Lease::join(config)).await {
            Ok(Ok(lease)) => return lease,
            Ok(Err(error)) => tracing::debug!(%error, "the lease cannot be joined"),
            Err(_) => tracing::debug!("the lease cannot be joined: the bus does not answer"),
        }
        site.clock.sleep(PAUSE).await;
    }
}
