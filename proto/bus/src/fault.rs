//! A bus that fails on command: for tests and drills.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use tokio::sync::watch;

use crate::{At, Bus, Offset, PartitionNo, Publish, PublishError, ReadError, Record, Topic};

/// What is wrong.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Fault {
    /// Nothing.
    #[default]
    None,
    /// Records are refused as [`PublishError::Busy`]; reading works.
    Busy,
    /// Every call answers that the bus is away.
    Away,
    /// No call answers, as when the peer is stopped; they go on when the fault ends.
    Silent,
    /// Every call takes this much longer.
    Slow(Duration),
    /// No record can be read; where they end is still told, and publishing works.
    Unread,
    /// Every call to publish loses its records and says that they were taken.
    Lossy,
    /// The end is told some offsets behind the last record, as where a log marks the ends of
    /// transactions.
    Hollow,
}

/// Offsets without a record before the end of a hollow bus.
const HOLLOW_OFFSETS: u64 = 5;

/// The wrapper. Clones of the `Arc` share the switch.
#[derive(Debug)]
pub struct FaultyBus {
    bus: Mutex<Arc<dyn Bus>>,
    fault: watch::Sender<Fault>,
}

impl FaultyBus {
    /// Around `bus`, working.
    #[must_use]
    pub fn new(bus: Arc<dyn Bus>) -> Arc<Self> {
        Arc::new(Self { bus: Mutex::new(bus), fault: watch::Sender::default() })
    }

    /// Puts another bus in the place of this one, which comes back without what it held.
    pub fn replace(&self, bus: Arc<dyn Bus>) {
        *self.bus.lock() = bus;
    }

    /// Breaks it, or mends it with [`Fault::None`]. Calls in progress are concerned too.
    pub fn set(&self, fault: Fault) {
        self.fault.send_replace(fault);
    }

    async fn publish_or_fail(&self, records: Vec<Publish>) -> Vec<Result<Offset, PublishError>> {
        let count = records.len();
        match self.speak().await {
            Fault::Busy => vec![Err(PublishError::Busy); count],
            Fault::Away => vec![Err(PublishError::Away); count],
            Fault::Lossy => vec![Ok(Offset(0)); count],
            Fault::None | Fault::Silent | Fault::Slow(_) | Fault::Unread | Fault::Hollow => {
                self.now().publish(records).await
            }
        }
    }

    fn now(&self) -> Arc<dyn Bus> {
        Arc::clone(&self.bus.lock())
    }

    async fn ask<T>(
        &self,
        failing: &[Fault],
        call: impl Fn(Arc<dyn Bus>) -> BoxFuture<'static, Result<T, ReadError>>,
    ) -> Result<T, ReadError> {
        let mut fault = self.fault.subscribe();
        loop {
            if failing.contains(&self.speak().await) {
                return Err(ReadError::Away);
            }
            tokio::select! {
                answer = call(self.now()) => return answer,
                _ = fault.changed() => {}
            }
        }
    }

    /// Waits as the fault has it; then tells which one it is.
    async fn speak(&self) -> Fault {
        let mut fault = self.fault.subscribe();
        // The sender is in `self`, so waiting for it cannot fail.
        let now = fault.wait_for(|it| *it != Fault::Silent).await.map_or(Fault::None, |it| *it);
        if let Fault::Slow(by) = now {
            tokio::time::sleep(by).await;
        }
        now
    }
}

impl Bus for FaultyBus {
    fn publish(&self, records: Vec<Publish>) -> BoxFuture<'_, Vec<Result<Offset, PublishError>>> {
        self.publish_or_fail(records).boxed()
    }

    fn read(
        &self,
        topic: Topic,
        partition: PartitionNo,
        from: Offset,
        records_max: usize,
        wait: Duration,
    ) -> BoxFuture<'_, Result<Vec<Record>, ReadError>> {
        self.ask(&[Fault::Away, Fault::Unread], move |bus| {
            let topic = topic.clone();
            async move { bus.read(topic, partition, from, records_max, wait).await }.boxed()
        })
        .boxed()
    }

    fn locate(
        &self,
        topic: Topic,
        partition: PartitionNo,
        at: At,
    ) -> BoxFuture<'_, Result<Offset, ReadError>> {
        let located = self.ask(&[Fault::Away], {
            let at = at.clone();
            move |bus| {
                let (topic, at) = (topic.clone(), at.clone());
                async move { bus.locate(topic, partition, at).await }.boxed()
            }
        });
        async move {
            let Offset(located) = located.await?;
            let is_hollow = at == At::End && *self.fault.borrow() == Fault::Hollow;
            Ok(Offset(if is_hollow { located + HOLLOW_OFFSETS } else { located }))
        }
        .boxed()
    }

    fn commit(
        &self,
        group: Arc<str>,
        topic: Topic,
        partition: PartitionNo,
        next: Offset,
    ) -> BoxFuture<'_, Result<(), ReadError>> {
        self.ask(&[Fault::Away], move |bus| {
            let (group, topic) = (Arc::clone(&group), topic.clone());
            async move { bus.commit(group, topic, partition, next).await }.boxed()
        })
        .boxed()
    }
}

#[cfg(test)]
mod tests {
    use kit::clock::Clock;

    use super::*;
    use crate::memory::{Limits, MemoryBus};
    use crate::tail::{Tail, Tailed};
    use crate::topic;

    #[tokio::test]
    async fn a_tail_survives_two_losses_of_the_bus() {
        let (bus, mut tail) = tailed().await;

        for _ in 0..2 {
            bus.set(Fault::Away);
            assert_eq!(tail.next(10).await.unwrap_err(), ReadError::Away);
            assert_eq!(publish(&bus).await, Err(PublishError::Away));

            bus.set(Fault::None);
            publish(&bus).await.unwrap();
            assert!(matches!(tail.next(10).await.unwrap(), Tailed::Records(it) if it.len() == 1));
        }
    }

    #[tokio::test]
    async fn each_fault_shows_in_its_own_way() {
        let (bus, mut tail) = tailed().await;

        bus.set(Fault::Busy);
        assert_eq!(publish(&bus).await, Err(PublishError::Busy));

        bus.set(Fault::Lossy);
        assert!(publish(&bus).await.is_ok());

        bus.set(Fault::Hollow);
        let end = bus.locate(topic::sealed(), PartitionNo(3), At::End).await;
        assert_eq!(end, Ok(Offset(HOLLOW_OFFSETS)));

        bus.set(Fault::Silent);
        assert!(publish(&bus).now_or_never().is_none());
        assert!(tail.next(10).now_or_never().is_none());

        bus.set(Fault::Slow(Duration::from_millis(1)));
        assert_eq!(publish(&bus).await, Ok(Offset(0)));
        assert!(matches!(tail.next(10).await.unwrap(), Tailed::Records(it) if it.len() == 1));
    }

    async fn tailed() -> (Arc<FaultyBus>, Tail) {
        let bus = FaultyBus::new(MemoryBus::new(Clock::system(), Limits::default()));
        let shared: Arc<dyn Bus> = Arc::<FaultyBus>::clone(&bus);
        let tail = Tail::open(shared, topic::sealed(), vec![PartitionNo(3)], At::End);
        let tail = tail.await.unwrap();
        (bus, tail)
    }

    async fn publish(bus: &FaultyBus) -> Result<Offset, PublishError> {
        let value = "value".into();
        let record = Publish {
            topic: topic::sealed(),
            partition: PartitionNo(3),
            term: None,
            key: None,
            value,
        };
        bus.publish(vec![record]).await[0]
    }
}
