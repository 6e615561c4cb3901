//! Each service with the parts that it is given here.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, bail};
use auth_core::app::App;
use auth_core::node::NodeSecret;
use broadcaster::store::{Directory, SegmentStore};
use channel::ServerTls;
use futures_util::FutureExt;
use kit::quota::MemoryQuota;
use kit::seed::derive;

use super::Shared;
use crate::apart::{Auth, AuthSwitch};
use crate::config::Config;
use crate::tls::Trust;

pub(super) async fn auth(
    config: &Config,
    parts: &Shared,
    apps: Arc<[App]>,
    nodes: Arc<[NodeSecret]>,
    tls: ServerTls,
) -> anyhow::Result<Auth> {
    let (mut config, parts) = (config.auth.clone(), parts.clone());
    let bind = move |config: auth::Config| {
        let parts = auth::Parts {
            clock: parts.clock.clone(),
            meter: parts.meter.clone(),
            health: parts.health.clone(),
            global_bus: Arc::clone(&parts.bus),
            nodes: Arc::clone(&nodes),
            apps: Arc::clone(&apps),
            tls: Some(tls.clone()),
        };
        auth::Service::bind(config, parts)
    };
    let service = bind(config.clone()).await?;
    config.listen = service.addr();
    let again = Box::new(move || bind(config.clone()).boxed());
    Ok(Auth { service, again, switch: AuthSwitch::default() })
}

pub(super) async fn gslb(
    config: &Config,
    parts: &Shared,
    apps: Arc<[App]>,
    nodes: Arc<[NodeSecret]>,
    trust: &Trust,
    seed: u64,
) -> anyhow::Result<gslb::Service> {
    let parts = gslb::Parts {
        clock: parts.clock.clone(),
        meter: parts.meter.clone(),
        health: parts.health.clone(),
        seed: derive(seed, "gslb"),
        apps,
        nodes,
        global_bus: Arc::clone(&parts.bus),
        load_table: gslb::MemoryTable::new(),
        auth_tls: trust.tls.clone(),
        tls: None,
    };
    gslb::Service::bind(config.gslb.clone(), parts).await
}

/// The chatserver, and those beside it on the same store and quota.
pub(super) async fn chatservers(
    config: &Config,
    parts: &Shared,
    apps: Arc<[App]>,
    quota: Arc<MemoryQuota>,
    seed: u64,
) -> anyhow::Result<Vec<chatserver::Service>> {
    let rooms = chatserver::store::RedbStore::open(&config.data.join(crate::config::ROOMS))?;
    let copies = parts.health.part("chatserver_copies");
    let rooms = rooms.copied(&config.chatserver.copies, parts.clock.clone(), copies)?;
    let parts = chatserver::Parts {
        clock: parts.clock.clone(),
        meter: parts.meter.clone(),
        health: parts.health.clone(),
        seed: derive(seed, "chatserver"),
        apps,
        global_bus: Arc::clone(&parts.bus),
        unit_bus: Arc::clone(&parts.bus),
        room_store: Arc::new(rooms),
        quota,
    };
    let mut services = Vec::new();
    for config in std::iter::once(&config.chatserver).chain(&config.more_chatservers) {
        services.push(chatserver::Service::bind(config.clone(), parts.clone()).await?);
    }
    Ok(services)
}

pub(super) async fn broadcaster(
    config: &Config,
    parts: &Shared,
    seed: u64,
) -> anyhow::Result<broadcaster::Service> {
    let own = config.data.join("segments");
    let mirrors = config.broadcaster.mirrors.iter().map(|it| &it.directory);
    let stores = std::iter::once(&own)
        .chain(mirrors)
        .map(|it| open(it, config.broadcaster.free_bytes_min))
        .collect::<anyhow::Result<Vec<_>>>()?;
    let parts = broadcaster::Parts {
        clock: parts.clock.clone(),
        meter: parts.meter.clone(),
        health: parts.health.clone(),
        seed: derive(seed, "broadcaster"),
        global_bus: Arc::clone(&parts.bus),
        unit_buses: BTreeMap::from([(config.link.unit, Arc::clone(&parts.bus))]),
        stores,
    };
    broadcaster::Service::bind(config.broadcaster.clone(), parts).await
}

/// A folder for segments, with room for more.
fn open(folder: &Path, free_bytes_min: u64) -> anyhow::Result<Arc<dyn SegmentStore>> {
    let store = Directory::open(folder, free_bytes_min)
        .with_context(|| format!("cannot open {}", folder.display()))?;
    if let Err(error) = store.check_space() {
        bail!("{} takes no segments: {error}; {}", folder.display(), error.hint());
    }
    Ok(Arc::new(store))
}
