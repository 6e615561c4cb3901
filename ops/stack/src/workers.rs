//! A link that is several processes under one supervisor.
//!
//! The supervisor is the process with everything else. It starts each worker with one end of a
//! pair of sockets as standard input, over which the worker uses its buses and its quota; it takes
//! the workers' load reports and sends one; it starts again whoever ends untold, after a pause; and
//! on SIGHUP it ends one after the other by SIGTERM, each once the one before is ready again. Where
//! it has a terminal, SIGHUP means that this was closed, and all drain.
//! When the supervisor ends in whatever way, the pairs do, and the workers drain.

mod crew;
mod process;
mod worker;

use std::io::IsTerminal;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context;
use bus::remote::Ports;
use kit::clock::Clock;
use kit::health::Health;
use kit::meter::Meter;
use kit::task::Tasks;
use link::workers::Relay;
use proto::address::Address;
use rustix::process::{Signal, getpid, kill_process};
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::config::Config;
use crew::Crew;
use process::{Orders, Process};

pub use worker::{NAME, run};

/// What the supervisor is built from.
pub(crate) struct Parts {
    pub(crate) clock: Clock,
    pub(crate) meter: Meter,
    pub(crate) health: Health,
    pub(crate) ports: Ports,
    /// The executable of workers, which calls [`run`] when its first argument is [`NAME`].
    pub(crate) program: PathBuf,
}

/// All workers, started and not yet watched.
pub(crate) struct Workers {
    crew: Arc<Crew>,
    processes: Vec<Process>,
}

impl std::fmt::Debug for Workers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Workers").field("processes", &self.processes.len()).finish_non_exhaustive()
    }
}

impl Workers {
    /// Starts all, and waits until they listen. `config` is complete: nothing is decided later.
    ///
    /// # Errors
    /// When one does not start, says why, or takes too long.
    pub(crate) async fn start(config: &Config, parts: Parts) -> anyhow::Result<Self> {
        let (clock, meter) = (parts.clock.clone(), parts.meter.clone());
        let relay = Relay::bind(config.link.clone(), clock, &meter).await?;
        let orders = (0..config.link.workers).map(|no| Orders::new(config, no, &relay));
        let orders: Vec<Orders> = orders.collect::<anyhow::Result<_>>()?;
        let starts = orders.iter().map(|it| Process::start(&parts.program, it, &parts.ports));
        let processes = futures_util::future::try_join_all(starts).await?;
        let orders = orders.into_iter().zip(&processes).map(|(it, process)| it.fixed(process));
        let orders = orders.collect();
        Ok(Self { crew: Arc::new(Crew::new(orders, relay, parts)), processes })
    }

    /// Where viewers connect.
    pub(crate) fn addrs(&self) -> Vec<Address> {
        self.processes.iter().flat_map(|it| it.bound().addresses.clone()).collect()
    }

    /// Base of each worker's `/metrics`, `/livez` and `/readyz`.
    pub(crate) fn metrics(&self) -> Vec<String> {
        self.processes.iter().map(|it| format!("http://{}", it.bound().admin)).collect()
    }

    /// Keeps them running until `shutdown`, then lets them drain.
    ///
    /// # Errors
    /// When reports cannot be sent or signals not be heard. A worker's end is no error.
    pub(crate) async fn run(self, shutdown: CancellationToken) -> anyhow::Result<()> {
        let Self { crew, processes } = self;
        let mut hangup = signal(SignalKind::hangup()).context("SIGHUP cannot be heard")?;
        let mut keepers = Tasks::default();
        for (no, process) in (0..).zip(processes) {
            let (crew, shutdown) = (Arc::clone(&crew), shutdown.clone());
            keepers.spawn("worker", async move { crew.keep(no, process, &shutdown).await });
        }
        let done = CancellationToken::new();
        let mut last = Tasks::default();
        let (relaying, relayed) = (Arc::clone(&crew), done.clone());
        last.spawn("relay", async move { relaying.relay.run(relayed).await });
        last.spawn("rolling", async move {
            loop {
                tokio::select! {
                    _ = hangup.recv() => match std::io::stdin().is_terminal() {
                        // The terminal is closed: that ends the process as it would without workers,
                        // but lets them drain.
                        true => kill_process(getpid(), Signal::TERM)?,
                        false => crew.roll(&shutdown).await,
                    },
                    () = shutdown.cancelled() => return Ok(()),
                }
            }
        });
        loop {
            tokio::select! {
                ended = keepers.next() => match ended {
                    Some(ended) => ended?,
                    None => break,
                },
                Some(ended) = last.next() => ended.context("workers cannot be watched")?,
            }
        }
        done.cancel();
        last.join().await
    }
}
