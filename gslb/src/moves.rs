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
use prometheus::IntCounter;
use proto::control::Fact;
use proto::time::Mono;
use tokio::sync::{mpsc, watch};

use crate::lead::Lead;

/// Moves that wait to be told; one that does not fit is planned again.
const ORDERS_MAX: usize = 64;
/// Time for one append to `control`.
const PUBLISH_MAX: Duration = Duration::from_secs(1);

/// Looks for besieged nodes while this process leads.
#[derive(Debug)]
pub(crate) struct Mover {
    leads: watch::Receiver<bool>,
    looked: watch::Sender<bool>,
    moves: Moves,
    orders: mpsc::Sender<Move>,
}

/// Tells the nodes.
#[derive(Debug)]
pub(crate) struct Teller {
    orders: mpsc::Receiver<Move>,
    bus: Arc<dyn Bus>,
    clock: Clock,
    told: IntCounter,
    failed: IntCounter,
    nowhere: IntCounter,
    staying: IntCounter,
}

/// Both, with a queue between: planning waits for no bus.
pub(crate) fn mover(
    lead: &Lead,
    bus: Arc<dyn Bus>,
    clock: Clock,
    meter: &Meter,
) -> (Mover, Teller) {
    let (sender, receiver) = mpsc::channel(ORDERS_MAX);
    let count = |outcome| meter.counter(list::GSLB_MOVES_TOTAL, &[outcome]);
    let teller = Teller {
        orders: receiver,
        bus,
        clock,
        told: count("told"),
        failed: count("failed"),
        nowhere: count("nowhere"),
        staying: meter.counter(list::GSLB_UNMOVED_SESSIONS_TOTAL, &[]),
    };
    let (leads, looked) = (lead.leads(), lead.looked());
    (Mover { leads, looked, moves: Moves::default(), orders: sender }, teller)
}

impl Mover {
    /// Called whenever there are new loads.
    pub(crate) fn look(&mut self, fleet: &Fleet, now: Mono) {
        self.looked.send_replace(true);
        if !*self.leads.borrow() {
            // Whoever leads next tells everybody who is besieged then.
            self.moves = Moves::default();
            return;
        }
        for order in self.moves.plan(fleet, now) {
            if let Err(error) = self.orders.try_send(order) {
                tracing::debug!(%error, "a move was not told");
            }
        }
    }
}

impl Teller {
    /// Tells until the mover is gone.
    pub(crate) async fn keep(mut self) -> anyhow::Result<()> {
        while let Some(order) = self.orders.recv().await {
            let Move { node, sessions, staying, window_ms, addresses } = order;
            self.staying.inc_by(staying.into());
            if addresses.is_empty() {
                tracing::warn!(%node, staying, "no reserves of its unit have room: sessions stay");
                self.nowhere.inc();
                continue;
            }
            tracing::warn!(
                %node, sessions, staying, window_ms, "the sessions of a besieged node are moved"
            );
            let sessions = (staying > 0).then_some(sessions);
            let fact = Fact::Move { node, sessions, window_ms, addresses, at: self.clock.wall() };
            let count = if self.publish(&fact).await { &self.told } else { &self.failed };
            count.inc();
        }
        Ok(())
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
