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
use proto::limits::{ADDRESSES_MAX, REPORT_BYTES_MAX};
use proto::time::Wall;

use crate::config::ms;
use crate::{Config, ListenerConfig};
use gather::SILENCE_MAX;

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
    /// When the node began, as its load reports say: earlier than this process.
    pub node_start: Wall,
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

    /// What the worker with this number is told: ports and a folder of its own. The node began at
    /// `node_start`.
    ///
    /// # Errors
    /// When there is no such worker, or its ports would be above 65,535.
    pub fn of_worker(&self, no: u8, node_start: Wall) -> anyhow::Result<Self> {
        ensure!(no < self.workers, "there are {} workers, and none is number {no}", self.workers);
        let mut config = self.clone();
        config.worker = Some(Worker { no, workers: self.workers, node_start });
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
        if self.workers > 0 {
            self.check_reports()?;
        }
        let mut taken = BTreeSet::new();
        for no in 0..self.workers {
            for ListenerConfig { listen, transport, .. } in
                self.of_worker(no, Wall::default())?.listeners
            {
                let is_free = listen.port() == 0 || taken.insert(socket(listen, transport));
                ensure!(is_free, "worker {no} would listen on {listen}, where another one does");
            }
        }
        Ok(())
    }

    /// Refuses reports that could not be told, or not in time.
    fn check_reports(&self) -> anyhow::Result<()> {
        ensure!(
            ms(self.report_ms_max) * 2 <= SILENCE_MAX,
            "report_ms_max is {}: a worker that says nothing for {SILENCE_MAX:?} counts as gone, so \
             set half of that at most",
            self.report_ms_max
        );
        for ListenerConfig { listen, port, reserve, .. } in &self.listeners {
            ensure!(
                !reserve || (listen.port(), *port) == (0, 0) || self.workers == 1,
                "reserve listener {listen}: ports of workers follow from each other, and whoever is \
                 told one could guess the rest: set its port to 0, so that each takes any"
            );
        }
        let bytes = relay::longest_report(self).encode().len();
        ensure!(
            bytes <= REPORT_BYTES_MAX,
            "a load report of {} listeners of {} workers takes {bytes} bytes, and there is room for \
             {REPORT_BYTES_MAX}: set fewer workers or listeners, or shorter names of region, hosts \
             and machine rooms",
            self.listeners.len(),
            self.workers
        );
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

        let workers: Vec<Config> =
            (0..3).map(|it| config.of_worker(it, Wall(1)).unwrap()).collect();

        let ports = |it: &Config| it.listeners.iter().map(|it| it.listen.port()).collect();
        let ports: Vec<Vec<u16>> = workers.iter().map(ports).collect();
        assert_eq!(ports, [[7401, 7402], [7403, 7404], [7405, 7406]]);
        assert!(workers.iter().all(|it| it.node == config.node));
        let numbers: BTreeSet<NodeId> = workers.iter().map(Config::bus_node).collect();
        assert_eq!((numbers.len(), numbers.contains(&config.node)), (3, false));
        let folders: BTreeSet<_> = workers.iter().map(|it| it.data.clone()).collect();
        assert_eq!(folders.len(), 3);
        assert!(config.of_worker(3, Wall(1)).is_err());
    }

    #[test]
    fn a_node_that_is_one_process_is_itself_on_the_bus() {
        assert_eq!(config(0).bus_node(), config(0).node);
        assert_eq!(config(0).part(7), 7);
    }

    #[test]
    fn parts_come_to_the_whole() {
        for whole in [0, 1, 6, 7, 100_001] {
            let parts = (0..7).map(|no| Worker { no, workers: 7, node_start: Wall(1) }.part(whole));

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

    #[test]
    fn reports_that_could_not_be_told_are_refused() {
        let refused = |it: &Config| it.check().unwrap_err().to_string();
        let mut config = config(8);
        for listener in &mut config.listeners {
            listener.host = "a-name-of-forty-bytes.of-a-link.of-ours.example".to_owned();
            listener.machine_room = "the third floor of the second house".to_owned();
        }

        assert!(refused(&config).contains("set fewer workers"), "{}", refused(&config));
        config.workers = 2;
        config.check().unwrap();

        config.report_ms_max = 501;
        assert!(refused(&config).contains("report_ms_max"));
        config.workers = 0;
        config.check().unwrap();
    }

    #[test]
    fn reserve_ports_that_could_be_guessed_are_refused() {
        let mut config = config(2);
        config.listeners[1].reserve = true;

        assert!(config.check().unwrap_err().to_string().contains("set its port to 0"));
        config.listeners[1].listen.set_port(0);
        config.check().unwrap();
    }
}
