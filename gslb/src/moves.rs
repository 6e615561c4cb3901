//! The sessions of nodes that are besieged or drain told where to go on, by one gslb for all.
//!
//! Which of them is decided by a lease on `control`: two that lead for a moment tell a node twice,
//! which moves nobody twice. All hear what is told, so that whoever leads next keeps what the nodes
//! that take the sessions in have promised.

use std::sync::Arc;
use std::time::Duration;

use bus::{Bus, PartitionNo, Publish, topic};
use gslb_core::fleet::Fleet;
use gslb_core::refuge::{Heard, Move, Moves, Why};
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

/// Looks for nodes whose sessions are to leave, while this process leads.
#[derive(Debug)]
pub(crate) struct Mover {
    leads: watch::Receiver<bool>,
    looked: watch::Sender<bool>,
    moves: Arc<Mutex<Moves>>,
    orders: mpsc::Sender<Move>,
    staying: IntGauge,
}

/// Hears what nodes are told, whoever tells them.
#[derive(Clone, Debug)]
pub(crate) struct Promises {
    moves: Arc<Mutex<Moves>>,
    clock: Clock,
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
        let mut moves = self.moves.lock();
        if !*self.leads.borrow() {
            // Whoever leads now tells of those that stay. What was promised holds.
            moves.settle(fleet, now);
            self.staying.set(0);
            return;
        }
        for order in moves.plan(fleet, now) {
            let (node, why) = (order.node, order.why);
            if let Err(error) = self.orders.try_send(order) {
                tracing::debug!(%error, "a move was not told");
                moves.untold(node, why, now);
            }
        }
        self.staying.set(moves.staying().into());
    }
}

impl Promises {
    /// A fact was read on `control`.
    pub(crate) fn hear(&self, fact: &Fact, heard: Heard) {
        self.moves.lock().hear(fact, self.clock.mono(), heard);
    }
}

impl Teller {
    /// Where to say what was told.
    pub(crate) fn promises(&self) -> Promises {
        Promises { moves: Arc::clone(&self.moves), clock: self.clock.clone() }
    }

    /// Tells until the mover is gone.
    pub(crate) async fn keep(mut self) -> anyhow::Result<()> {
        while let Some(order) = self.orders.recv().await {
            self.tell(order).await;
        }
        Ok(())
    }

    async fn tell(&self, order: Move) {
        log(&order);
        let Move { node, why, sessions, staying, window_ms, addresses, shares } = order;
        let drain = match why {
            Why::Siege => None,
            Why::Drain { start } => Some(start),
        };
        let is_nowhere = addresses.is_empty();
        if is_nowhere {
            self.nowhere.inc();
        }
        // A node that drains waits for an answer, whichever it is.
        if is_nowhere && drain.is_none() {
            return;
        }
        let sessions = (staying > 0).then_some(sessions);
        let at = self.clock.wall();
        let fact = Fact::Move { node, sessions, window_ms, addresses, at, drain, shares };
        if !self.publish(&fact).await {
            self.failed.inc();
            self.moves.lock().untold(node, why, self.clock.mono());
        } else if !is_nowhere {
            self.told.inc();
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

fn log(order: &Move) {
    let Move { node, why, sessions, staying, window_ms, addresses, .. } = order;
    match (why, addresses.is_empty()) {
        (Why::Siege, true) => {
            tracing::warn!(%node, staying, "no reserves of its unit have room: sessions stay");
        }
        (Why::Siege, false) => tracing::warn!(
            %node, sessions, staying, window_ms, "the sessions of a besieged node are moved"
        ),
        (Why::Drain { .. }, true) => {
            tracing::info!(%node, staying, "a node drains, and no other one has room");
        }
        (Why::Drain { .. }, false) => tracing::info!(
            %node, sessions, staying, window_ms, "the sessions of a node that drains are moved"
        ),
    }
}

#[cfg(test)]
mod tests;
