//! Which of all collecting gslbs does what one alone must do: the one that holds a lease on
//! `control`.
//!
//! Within two to three seconds another one takes over from a leader that was killed, stopped or cut
//! off; at once after one that ended in order, or that can read no loads any more. Where nobody can,
//! they lead by turns: what hangs on other things than loads goes on.

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

/// A leader that has read no new loads for so long lets go; collectors pause for less.
const SILENCE_MAX: Duration = Duration::from_secs(2);

/// A candidate.
#[derive(Debug)]
pub(crate) struct Lead {
    bus: Arc<dyn Bus>,
    clock: Clock,
    /// Drawn for each start: two services that were given one number by mistake would both lead.
    member: NodeId,
    leads: watch::Sender<bool>,
    /// Told whenever there were new loads; false before the first time.
    looked: watch::Sender<bool>,
    silence_max: Duration,
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
            looked: watch::Sender::default(),
            silence_max: SILENCE_MAX,
            gauge: meter.gauge(list::GSLB_LEADS, &[]),
        })
    }

    /// Whether this process leads, as it changes.
    pub(crate) fn leads(&self) -> watch::Receiver<bool> {
        self.leads.subscribe()
    }

    /// Where to say that there were new loads.
    pub(crate) fn looked(&self) -> watch::Sender<bool> {
        self.looked.clone()
    }

    /// Stands until `shutdown`, then lets go.
    pub(crate) async fn keep(self, shutdown: CancellationToken) -> anyhow::Result<()> {
        while !shutdown.is_cancelled() {
            tokio::select! {
                lease = self.join() => self.stand(lease, &shutdown).await,
                () = shutdown.cancelled() => {}
            }
        }
        Ok(())
    }

    /// Leads when it may, until `shutdown` or until it leads and there are no loads.
    async fn stand(&self, mut lease: Lease, shutdown: &CancellationToken) {
        let mut leads = false;
        loop {
            let event = tokio::select! {
                event = lease.next() => event,
                () = self.silence(), if leads => {
                    tracing::warn!("no new loads are read: another gslb may lead");
                    break;
                }
                () = shutdown.cancelled() => break,
            };
            leads = matches!(event, LeaseEvent::Gained { .. });
            tracing::info!(leads, "which gslb leads has changed");
            self.tell(leads);
        }
        self.tell(false);
        lease.leave().await;
        if !shutdown.is_cancelled() {
            // The others have time to take over.
            self.clock.sleep(PAUSE).await;
        }
    }

    /// Waits until there were loads once, and none for long.
    async fn silence(&self) {
        let mut looked = self.looked.subscribe();
        // `self` has a sender, so waiting cannot fail.
        looked.wait_for(|it| *it).await.ok();
        while tokio::time::timeout(self.silence_max, looked.changed()).await.is_ok() {}
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

#[cfg(test)]
mod tests {
    use bus::memory::{Limits, MemoryBus};
    use kit::task::Tasks;

    use super::*;

    #[tokio::test]
    async fn who_reads_no_loads_any_more_lets_another_one_lead() {
        let clock = Clock::system();
        let bus: Arc<dyn Bus> = MemoryBus::new(clock.clone(), Limits::default());
        let lead = |silence_max| {
            let meter = Meter::default();
            let lead = Lead::new(Arc::clone(&bus), clock.clone(), &meter).unwrap();
            Lead { silence_max, ..lead }
        };
        let (first, second) = (lead(Duration::from_millis(50)), lead(SILENCE_MAX));
        let (mut leads, looked, mut follows) = (first.leads(), first.looked(), second.leads());
        let mut tasks = Tasks::default();
        tasks.spawn("first", first.keep(CancellationToken::new()));
        leads.wait_for(|it| *it).await.unwrap();
        tasks.spawn("second", second.keep(CancellationToken::new()));

        looked.send_replace(true);

        leads.wait_for(|it| !*it).await.unwrap();
        follows.wait_for(|it| *it).await.unwrap();
    }
}
