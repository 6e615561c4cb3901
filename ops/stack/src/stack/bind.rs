//! Each service with the parts that it is given here.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail};
use auth_core::app::App;
use auth_core::node::NodeSecret;
use broadcaster::archive::Archive;
use broadcaster::store::{Directory, SegmentStore};
use channel::ServerTls;
use futures_util::FutureExt;
use kit::quota::MemoryQuota;
use kit::seed::derive;

use super::Shared;
use crate::apart::{Auth, AuthSwitch};
use crate::config::{ARCHIVE, Config, SEGMENTS};
use crate::tls::Trust;

/// Longest time for a mirror to be opened; then it is written to once it can be.
const MIRROR_OPEN_MAX: Duration = Duration::from_secs(2);

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
    trust: &Trust,
    seed: u64,
) -> anyhow::Result<broadcaster::Service> {
    let free_bytes_min = config.broadcaster.free_bytes_min;
    let mut stores = vec![open(&config.data.join(SEGMENTS), free_bytes_min)?];
    for mirror in &config.broadcaster.mirrors {
        stores.push(open_mirror(&mirror.directory, free_bytes_min).await);
    }
    let parts = broadcaster::Parts {
        clock: parts.clock.clone(),
        meter: parts.meter.clone(),
        health: parts.health.clone(),
        seed: derive(seed, "broadcaster"),
        global_bus: Arc::clone(&parts.bus),
        unit_buses: BTreeMap::from([(config.link.unit, Arc::clone(&parts.bus))]),
        archive: Some(Archive::new(&config.data.join(ARCHIVE))),
        stores,
        auth_tls: Some(trust.tls.clone()),
    };
    broadcaster::Service::bind(config.broadcaster.clone(), parts).await
}

/// A further folder for segments, which holds nothing up: it may be full, hang, or not be there yet.
async fn open_mirror(folder: &Path, free_bytes_min: u64) -> Arc<dyn SegmentStore> {
    let mirror = folder.to_path_buf();
    let opening = tokio::task::spawn_blocking(move || open(&mirror, free_bytes_min));
    let error = match tokio::time::timeout(MIRROR_OPEN_MAX, opening).await {
        Ok(Ok(Ok(store))) => return store,
        Ok(Ok(Err(error))) => format!("{error:#}"),
        Ok(Err(error)) => error.to_string(),
        Err(_) => format!("{} does not answer", folder.display()),
    };
    tracing::warn!(error, "a mirror takes no segments for now");
    Arc::new(Directory::later(folder, free_bytes_min))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_mirror_that_is_full_or_not_there_holds_nothing_up() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        std::fs::write(&file, "no folder").unwrap();

        for (at, free_bytes_min) in [(folder.path(), u64::MAX), (&*file, 0)] {
            assert!(open(at, free_bytes_min).is_err(), "{}", at.display());
            open_mirror(at, free_bytes_min).await;
        }
    }
}
