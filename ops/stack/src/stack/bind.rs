//! Each service with the parts that it is given here.

use std::collections::BTreeMap;
use std::sync::Arc;

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

/// The disk keeps at least this much free: segments stop before it is full.
const FREE_BYTES_MIN: u64 = 256 * 1024 * 1024;

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
    let store: Arc<dyn SegmentStore> =
        Arc::new(Directory::open(&config.data.join("segments"), FREE_BYTES_MIN)?);
    let parts = broadcaster::Parts {
        clock: parts.clock.clone(),
        meter: parts.meter.clone(),
        health: parts.health.clone(),
        seed: derive(seed, "broadcaster"),
        global_bus: Arc::clone(&parts.bus),
        unit_buses: BTreeMap::from([(config.link.unit, Arc::clone(&parts.bus))]),
        stores: vec![store],
    };
    broadcaster::Service::bind(config.broadcaster.clone(), parts).await
}
