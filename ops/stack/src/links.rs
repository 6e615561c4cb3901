//! The link: a service of this process, or workers of its own.

use std::sync::Arc;

use auth_core::policy::Policies;
use bus::remote::Ports;
use channel::{ClientTls, ServerTls};
use kit::clock::Clock;
use kit::quota::Quota;
use kit::seed::derive;
use proto::address::Address;
use tokio_util::sync::CancellationToken;

use crate::config::Config;
use crate::stack::Shared;
use crate::workers::{self, Workers};

/// What a link is built from, beside what all services share.
pub(crate) struct Parts {
    pub(crate) clock: Clock,
    pub(crate) seed: u64,
    pub(crate) quota: Arc<dyn Quota>,
    pub(crate) auth_tls: ClientTls,
    pub(crate) tls: ServerTls,
    pub(crate) national: ServerTls,
}

/// Bound, and not yet serving.
#[derive(Debug)]
pub(crate) enum Links {
    Here(Box<link::Service>),
    Workers(Workers),
}

impl Links {
    /// As `config` has it; workers are this executable once more.
    pub(crate) async fn bind(
        config: &Config,
        shared: &Shared,
        parts: Parts,
    ) -> anyhow::Result<Self> {
        let (global, unit) = (Arc::clone(&shared.bus), Arc::clone(&shared.bus));
        let Parts { clock, seed, quota, auth_tls, tls, national } = parts;
        if config.link.workers > 0 {
            let parts = workers::Parts {
                clock,
                meter: shared.meter.clone(),
                health: shared.health.clone(),
                ports: Ports { global, unit, quota },
                program: std::env::current_exe()?,
            };
            return Ok(Self::Workers(Workers::start(config, parts).await?));
        }
        let parts = link::Parts {
            clock,
            meter: shared.meter.clone(),
            health: shared.health.clone(),
            seed: derive(seed, "link"),
            global_bus: global,
            unit_bus: unit,
            quota,
            policies: Policies::new(&config.app),
            auth_tls,
            tls: Some(tls),
            national: Some(national),
        };
        Ok(Self::Here(Box::new(link::Service::bind(config.link.clone(), parts).await?)))
    }

    /// Where viewers connect.
    pub(crate) fn addrs(&self) -> Vec<Address> {
        match self {
            Self::Here(link) => link.addrs(),
            Self::Workers(workers) => workers.addrs(),
        }
    }

    /// Bases of the workers' own metrics.
    pub(crate) fn metrics(&self) -> Vec<String> {
        match self {
            Self::Here(_) => Vec::new(),
            Self::Workers(workers) => workers.metrics(),
        }
    }

    pub(crate) async fn run(self, shutdown: CancellationToken) -> anyhow::Result<()> {
        match self {
            Self::Here(link) => link.run(shutdown).await,
            Self::Workers(workers) => workers.run(shutdown).await,
        }
    }
}
