//! Which of all collecting gslbs does what one alone must do: the one that holds a lease on
//! `control`.
//!
//! Within two to three seconds another one takes over from a leader that was killed, stopped or cut
//! off; at once after one that ended in order.

use std::sync::Arc;
use std::time::Duration;

use bus::{Bus, Lease, LeaseConfig, LeaseEvent};
use kit::clock::Clock;
use kit::meter::{Meter, list};
use prometheus::IntGauge;
use proto::id::NodeId;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// What the lease is called; it has one partition.
const LEASE: &str = "gslb";
/// Pause after `control` could not be read.
const PAUSE: Duration = Duration::from_millis(500);
/// Time for reading what others have claimed.
const JOIN_MAX: Duration = Duration::from_secs(5);

/// A candidate.
#[derive(Debug)]
pub(crate) struct Lead {
    bus: Arc<dyn Bus>,
    clock: Clock,
    /// Drawn for each start: two services that were given one number by mistake would both lead.
    member: NodeId,
    leads: watch::Sender<bool>,
    gauge: IntGauge,
}

impl Lead {
    /// # Errors
    /// When the operating system gives no randomness.
    pub(crate) fn new(bus: Arc<dyn Bus>, clock: Clock, meter: &Meter) -> anyhow::Result<Self> {
        Ok(Self {
            bus,
            clock,
            member: NodeId(u32::from_be_bytes(kit::seed::random_bytes()?)),
            leads: watch::Sender::default(),
            gauge: meter.gauge(list::GSLB_LEADS, &[]),
        })
    }

    /// Whether this process leads, as it changes.
    pub(crate) fn leads(&self) -> watch::Receiver<bool> {
        self.leads.subscribe()
    }

    /// Stands until `shutdown`, then lets go.
    pub(crate) async fn keep(self, shutdown: CancellationToken) -> anyhow::Result<()> {
        let mut lease = tokio::select! {
            lease = self.join() => lease,
            () = shutdown.cancelled() => return Ok(()),
        };
        loop {
            let event = tokio::select! {
                event = lease.next() => event,
                () = shutdown.cancelled() => break,
            };
            let leads = matches!(event, LeaseEvent::Gained { .. });
            tracing::info!(leads, "which gslb leads has changed");
            self.tell(leads);
        }
        self.tell(false);
        lease.leave().await;
        Ok(())
    }

    fn tell(&self, leads: bool) {
        self.gauge.set(leads.into());
        self.leads.send_replace(leads);
    }

    async fn join(&self) -> Lease {
        loop {
            let config = LeaseConfig {
                control: Arc::clone(&self.bus),
                name: LEASE.into(),
                partitions: 1,
                node: self.member,
                clock: self.clock.clone(),
            };
            match tokio::time::timeout(JOIN_MAX, Lease::join(config)).await {
                Ok(Ok(lease)) => return lease,
                Ok(Err(error)) => tracing::debug!(%error, "the lease cannot be joined"),
                Err(_) => tracing::debug!("the lease cannot be joined: the bus does not answer"),
            }
            self.clock.sleep(PAUSE).await;
        }
    }
}
