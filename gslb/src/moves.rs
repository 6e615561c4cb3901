//! The sessions of besieged nodes told to move, by one gslb for all.
//!
//! Which of them is decided by a lease on `control`: two that lead for a moment tell a node twice,
//! which moves nobody twice.

use std::sync::Arc;
use std::time::Duration;

use bus::{Bus, PartitionNo, Publish, topic};
use gslb_core::fleet::Fleet;
use gslb_core::refuge::{Move, Moves};
use kit::clock::Clock;
use kit::meter::{Meter, list};
use parking_lot::Mutex;
use prometheus::{IntCounter, IntGauge};
use proto::control::Fact;
use proto::time::Mono;
use tokio::sync::{mpsc, watch};

use crate::lead::Lead;

/// Moves that wait to be told; one that does not fit is planned again a second later.
const ORDERS_MAX: usize = 64;
/// Time for one append to `control`.
const PUBLISH_MAX: Duration = Duration::from_secs(1);

/// Looks for besieged nodes while this process leads.
#[derive(Debug)]
pub(crate) struct Mover {
    leads: watch::Receiver<bool>,
    looked: watch::Sender<bool>,
    moves: Arc<Mutex<Moves>>,
    orders: mpsc::Sender<Move>,
    staying: IntGauge,
}

/// Tells the nodes.
#[derive(Debug)]
pub(crate) struct Teller {
    orders: mpsc::Receiver<Move>,
    moves: Arc<Mutex<Moves>>,
    bus: Arc<dyn Bus>,
    clock: Clock,
    told: IntCounter,
    failed: IntCounter,
    nowhere: IntCounter,
}

/// Both, with a queue between: planning waits for no bus.
pub(crate) fn mover(
    lead: &Lead,
    bus: Arc<dyn Bus>,
    clock: Clock,
    meter: &Meter,
) -> (Mover, Teller) {
    let (sender, receiver) = mpsc::channel(ORDERS_MAX);
    let moves = Arc::<Mutex<Moves>>::default();
    let count = |outcome| meter.counter(list::GSLB_MOVES_TOTAL, &[outcome]);
    let teller = Teller {
        orders: receiver,
        moves: Arc::clone(&moves),
        bus,
        clock,
        told: count("told"),
        failed: count("failed"),
        nowhere: count("nowhere"),
    };
    let (leads, looked) = (lead.leads(), lead.looked());
    let staying = meter.gauge(list::GSLB_UNMOVED_SESSIONS, &[]);
    (Mover { leads, looked, moves, orders: sender, staying }, teller)
}

impl Mover {
    /// Called whenever there are new loads.
    pub(crate) fn look(&mut self, fleet: &Fleet, now: Mono) {
        self.looked.send_replace(true);
        if !*self.leads.borrow() {
            // Whoever leads now tells of those that stay. What was promised here holds.
            self.staying.set(0);
            return;
        }
        let mut moves = self.moves.lock();
        for order in moves.plan(fleet, now) {
            let node = order.node;
            if let Err(error) = self.orders.try_send(order) {
                tracing::debug!(%error, "a move was not told");
                moves.untold(node, now);
            }
        }
        self.staying.set(moves.staying().into());
    }
}

impl Teller {
    /// Tells until the mover is gone.
    pub(crate) async fn keep(mut self) -> anyhow::Result<()> {
        while let Some(order) = self.orders.recv().await {
            self.tell(order).await;
        }
        Ok(())
    }

    async fn tell(&self, order: Move) {
        let Move { node, sessions, staying, window_ms, addresses } = order;
        if addresses.is_empty() {
            tracing::warn!(%node, staying, "no reserves of its unit have room: sessions stay");
            self.nowhere.inc();
            return;
        }
        tracing::warn!(
            %node, sessions, staying, window_ms, "the sessions of a besieged node are moved"
        );
        let sessions = (staying > 0).then_some(sessions);
        let fact = Fact::Move { node, sessions, window_ms, addresses, at: self.clock.wall() };
        if self.publish(&fact).await {
            self.told.inc();
        } else {
            self.failed.inc();
            self.moves.lock().untold(node, self.clock.mono());
        }
    }

    async fn publish(&self, fact: &Fact) -> bool {
        let record = Publish {
            topic: topic::control(),
            partition: PartitionNo(0),
            term: None,
            key: Some(fact.key().into()),
            value: fact.encode().into(),
        };
        let published = tokio::time::timeout(PUBLISH_MAX, self.bus.publish(vec![record])).await;
        published.is_ok_and(|it| it.iter().all(Result::is_ok))
    }
}

#[cfg(test)]
mod tests;
