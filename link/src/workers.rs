//! A node that is several processes: which of them one is, and what they tell gslb together.
//!
//! A process has only so many descriptors, and a port that is one core's own needs no balancing
//! among cores. To auth and to gslb the workers of a machine are one node: one secret, one load
//! report with the addresses of all. On the bus each is a node of its own, whose number has the
//! worker in its top byte: answers, counts and quotas are told apart by it.

mod gather;
mod relay;

use std::collections::BTreeSet;
use std::net::SocketAddr;

use anyhow::{Context, ensure};
use proto::address::Transport;
use proto::id::NodeId;
use proto::limits::ADDRESSES_MAX;

use crate::{Config, ListenerConfig};

pub use relay::Relay;

/// Where a worker's number stands within a node's.
const WORKER_SHIFT: u32 = 24;

/// Which process of a node one is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Worker {
    /// From 0.
    pub no: u8,
    /// Of how many.
    pub workers: u8,
}

impl Worker {
    /// Its part of something that the whole node does: parts differ by one at most.
    pub(crate) fn part(self, whole: u32) -> u32 {
        let workers = u32::from(self.workers.max(1));
        whole / workers + u32::from(u32::from(self.no) < whole % workers)
    }
}

impl Config {
    /// The node as `control`, chatservers and quotas know this process.
    #[must_use]
    pub fn bus_node(&self) -> NodeId {
        self.worker.map_or(self.node, |it| worker_node(self.node, it.no))
    }

    /// Sessions of this process among so many of the node.
    pub(crate) fn part(&self, sessions: u32) -> u32 {
        self.worker.map_or(sessions, |it| it.part(sessions))
    }

    /// What the worker with this number is told: ports and a folder of its own.
    ///
    /// # Errors
    /// When there is no such worker, or its ports would be above 65,535.
    pub fn of_worker(&self, no: u8) -> anyhow::Result<Self> {
        ensure!(no < self.workers, "there are {} workers, and none is number {no}", self.workers);
        let mut config = self.clone();
        config.worker = Some(Worker { no, workers: self.workers });
        config.data = self.data.join(format!("worker-{no}"));
        let step = u16::try_from(self.listeners.len()).context("too many listeners")?;
        for listener in &mut config.listeners {
            let ListenerConfig { listen, port, .. } = listener;
            listen.set_port(shifted(listen.port(), step, no)?);
            *port = shifted(*port, step, no)?;
        }
        Ok(config)
    }

    /// Refuses workers that could not work beside each other.
    pub(crate) fn check_workers(&self) -> anyhow::Result<()> {
        ensure!(self.node.0 >> WORKER_SHIFT == 0, "node is over {}", (1 << WORKER_SHIFT) - 1);
        let addresses = self.listeners.len() * usize::from(self.workers.max(1));
        ensure!(
            addresses <= ADDRESSES_MAX,
            "{} listeners of {} workers: a load report has room for {ADDRESSES_MAX} addresses",
            self.listeners.len(),
            self.workers
        );
        let mut taken = BTreeSet::new();
        for no in 0..self.workers {
            for ListenerConfig { listen, transport, .. } in self.of_worker(no)?.listeners {
                let is_free = listen.port() == 0 || taken.insert(socket(listen, transport));
                ensure!(is_free, "worker {no} would listen on {listen}, where another one does");
            }
        }
        Ok(())
    }
}

/// A worker's number on the bus.
pub(crate) fn worker_node(node: NodeId, no: u8) -> NodeId {
    NodeId(node.0 | ((u32::from(no) + 1) << WORKER_SHIFT))
}

/// QUIC has the ports of UDP.
const fn socket(listen: SocketAddr, transport: Transport) -> (SocketAddr, bool) {
    (listen, matches!(transport, Transport::Quic))
}

/// A port that is not 0 is followed by those of all listeners of the next worker.
fn shifted(port: u16, step: u16, no: u8) -> anyhow::Result<u16> {
    if port == 0 {
        return Ok(0);
    }
    let shifted = step.checked_mul(no.into()).and_then(|it| port.checked_add(it));
    shifted.with_context(|| format!("worker {no} finds no port above {port}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(workers: u8) -> Config {
        Config { workers, ..Config::default() }
    }

    #[test]
    fn workers_have_ports_folders_and_numbers_of_their_own() {
        let config = config(3);

        let workers: Vec<Config> = (0..3).map(|it| config.of_worker(it).unwrap()).collect();

        let ports = |it: &Config| it.listeners.iter().map(|it| it.listen.port()).collect();
        let ports: Vec<Vec<u16>> = workers.iter().map(ports).collect();
        assert_eq!(ports, [[7401, 7402], [7403, 7404], [7405, 7406]]);
        assert!(workers.iter().all(|it| it.node == config.node));
        let numbers: BTreeSet<NodeId> = workers.iter().map(Config::bus_node).collect();
        assert_eq!((numbers.len(), numbers.contains(&config.node)), (3, false));
        let folders: BTreeSet<_> = workers.iter().map(|it| it.data.clone()).collect();
        assert_eq!(folders.len(), 3);
        assert!(config.of_worker(3).is_err());
    }

    #[test]
    fn a_node_that_is_one_process_is_itself_on_the_bus() {
        assert_eq!(config(0).bus_node(), config(0).node);
        assert_eq!(config(0).part(7), 7);
    }

    #[test]
    fn parts_come_to_the_whole() {
        for whole in [0, 1, 6, 7, 100_001] {
            let parts = (0..7).map(|no| Worker { no, workers: 7 }.part(whole));

            assert_eq!(parts.sum::<u32>(), whole);
        }
    }

    #[test]
    fn workers_that_could_not_listen_are_refused() {
        let refused = |it: &Config| it.check().unwrap_err().to_string();

        assert!(refused(&config(9)).contains("room for 16 addresses"));
        assert!(config(8).check().is_ok());

        let mut config = config(2);
        config.listeners[1].listen.set_port(7403);
        assert!(refused(&config).contains("where another one does"));
        config.listeners[0].listen.set_port(u16::MAX);
        assert!(refused(&config).contains("finds no port"));
        config.node = NodeId(1 << WORKER_SHIFT);
        assert!(refused(&config).contains("node is over"));
    }
}
