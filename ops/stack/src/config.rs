//! The whole system's configuration: one section for each service.

mod carriers;

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use auth_core::app::App;
use auth_core::node::{NodeRole, NodeSecret};
use auth_core::secret::Secret;
use kit::config::ConfigError;
use link::ListenerConfig;
use proto::address::{Carrier, Transport};
use proto::limits::ADDRESSES_MAX;
use serde::{Deserialize, Serialize};

use crate::identity::{self, Identity};
use crate::tls::Tls;

/// The folder that `barrage up` uses when none is named.
pub const DATA: &str = "barrage-data";

/// The folder of the segments in that folder.
pub const SEGMENTS: &str = "segments";

/// The folder of the recordings in that folder.
pub const ARCHIVE: &str = "archive";

/// The room store's file in that folder.
pub const ROOMS: &str = "rooms.redb";

/// Least life of the embedded link's lease. On a busy machine the whole process stands still
/// together, and there is no other link that viewers could be sent to meanwhile.
const LEASE_MS_MIN: u32 = 3000;

/// Least burst of logins for the embedded link: there is no other that viewers could be sent to, so
/// a crowd waits for its handshakes rather than for an address.
const BURST_MS_MIN: u32 = 1000;

/// Least age of control at which the embedded link lets somebody in: its bus is in the same process
/// and stands still with it.
const CONTROL_MS_MIN: u32 = 3000;

/// The configuration file. Every role reads the same one and uses its own section.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Folder of rooms, segments and keys. Relative paths below are not moved into it.
    pub data: PathBuf,
    /// Log lines.
    pub log: Log,
    /// Metrics and health of the process.
    pub admin: Admin,
    /// The demo page of `up`.
    pub page: Page,
    /// Certificates that viewers are shown.
    pub tls: Tls,
    /// Customers' applications.
    pub app: Vec<App>,
    /// Nodes' secrets.
    pub node: Vec<NodeSecret>,
    /// Epochs and keys.
    pub auth: auth::Config,
    /// Addresses and tokens for arriving viewers.
    pub gslb: gslb::Config,
    /// The long connections.
    pub link: link::Config,
    /// Rooms, admission, the business API.
    pub chatserver: chatserver::Config,
    /// Lanes, slots, segments, the origin.
    pub broadcaster: broadcaster::Config,
    /// Chatservers beside the first one, each with a node and a shard of its own: for long runs,
    /// and not for files.
    #[serde(skip)]
    pub more_chatservers: Vec<chatserver::Config>,
}

/// `[log]`.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Log {
    /// `level` or `package=level,…`.
    pub filter: String,
    /// One JSON object a line.
    pub json: bool,
}

/// `[admin]`.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Admin {
    /// Where `/metrics`, `/livez` and `/readyz` are served; port 0 picks a free one.
    pub listen: SocketAddr,
}

/// `[page]`.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Page {
    /// Where the demo page is served; port 0 picks a free one.
    pub listen: SocketAddr,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            data: PathBuf::from(DATA),
            log: Log::default(),
            admin: Admin::default(),
            page: Page::default(),
            tls: Tls::default(),
            app: Vec::new(),
            node: Vec::new(),
            auth: auth::Config::default(),
            gslb: gslb::Config::default(),
            link: link::Config::default(),
            chatserver: chatserver::Config::default(),
            broadcaster: broadcaster::Config::default(),
            more_chatservers: Vec::new(),
        }
    }
}

impl Default for Log {
    fn default() -> Self {
        Self { filter: "warn".to_owned(), json: false }
    }
}

impl Default for Admin {
    fn default() -> Self {
        Self { listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 9100)) }
    }
}

impl Default for Page {
    fn default() -> Self {
        Self { listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)) }
    }
}

impl Config {
    /// The file and the environment, see [`kit::config::load`]. Carriers may be called by the names
    /// that `[[gslb.place.carriers]]` gives them.
    ///
    /// # Errors
    /// As [`kit::config::load`].
    pub fn load(file: Option<&Path>) -> Result<Self, ConfigError> {
        kit::config::load_edited(file, carriers::number)
    }

    /// The demonstration's configuration: everything in `data`, on free ports of loopback.
    #[must_use]
    pub fn demo(data: &Path) -> Self {
        let mut config = Self { data: data.to_owned(), ..Self::default() };
        config.use_free_ports();
        // Crowds log in as fast as this machine can.
        config.link.handshakes_per_s_max = 0;
        config
    }

    /// Lets every service take a free port of loopback, with one listener for each transport: with
    /// workers, for as many as they can tell gslb the addresses of.
    pub fn use_free_ports(&mut self) {
        let free = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        self.admin.listen = free;
        self.page.listen = free;
        self.auth.listen = free;
        self.gslb.listen = free;
        self.gslb.collector.listen = free;
        self.chatserver.listen = free;
        self.broadcaster.listen = free;
        let transports = [
            Transport::Tls,
            Transport::Wss,
            Transport::Tcp,
            Transport::Ws,
            Transport::Quic,
            Transport::National,
        ];
        let transports_max = ADDRESSES_MAX / usize::from(self.link.workers.max(1));
        let transports = transports.into_iter().take(transports_max);
        self.link.listeners = transports.map(|it| listener(free, it)).collect();
    }

    /// Refuses values that cannot work, without binding anything.
    ///
    /// # Errors
    /// Says which section, and which value.
    pub fn check(&self) -> anyhow::Result<()> {
        self.tls.check().context("[tls]")?;
        self.auth.check(&self.app).context("[auth]")?;
        self.gslb.check().context("[gslb]")?;
        self.link.check().context("[link]")?;
        self.chatserver.check().context("[chatserver]")?;
        self.broadcaster.check().context("[broadcaster]")
    }

    /// Fills in what the embedded system decides for itself: paths below `data`, numbers of its
    /// nodes, and secrets where the file names none.
    pub fn embed(&mut self, identity: &Identity) {
        if self.app.is_empty() {
            self.app.push(identity.app());
        }
        self.node.retain(|it| it.node != identity::LINK && it.node != identity::GSLB);
        self.node.extend(identity.nodes());
        let hosts: BTreeSet<String> =
            self.link.listeners.iter().map(|it| it.host.clone()).collect();
        for node in self.node.iter_mut().filter(|it| it.node == identity::LINK) {
            node.unit = self.link.unit;
            node.hosts = hosts.iter().cloned().collect();
        }
        self.auth.data = self.data.join("auth");
        if self.auth.seal.is_empty() {
            self.auth.seal = Secret::new(identity.seal.clone());
        }
        self.auth.operator_keys.push(Secret::new(identity.operator_key.clone()));
        self.link.node = identity::LINK;
        self.link.data = self.data.join("link");
        self.link.control_ms_max = self.link.control_ms_max.max(CONTROL_MS_MIN);
        self.link.secret = self.secret_of(identity::LINK);
        let is_other = |it: &NodeSecret| it.role == NodeRole::Link && it.node != identity::LINK;
        // A link that is alone keeps its viewers: nobody else could take them.
        self.link.siege.enabled &= self.node.iter().any(is_other);
        self.gslb.node = identity::GSLB;
        self.gslb.secret = self.secret_of(identity::GSLB);
        self.gslb.data = self.data.join("gslb");
        self.gslb.horizon_s_min = self.auth.interval_s.saturating_mul(self.auth.ahead) / 4;
        self.gslb.lease_ms = self.gslb.lease_ms.max(LEASE_MS_MIN);
        self.gslb.policy.burst_ms = self.gslb.policy.burst_ms.max(BURST_MS_MIN);
        self.chatserver.node = identity::CHATSERVER;
        self.chatserver.unit = self.link.unit;
        self.chatserver.evidence.folder = self.data.join("evidence");
        self.broadcaster.node = identity::BROADCASTER;
        self.broadcaster.secret = Secret::new(identity.broadcaster_secret.clone());
    }

    /// Longest time that a service but the link is configured to take for what is in progress when
    /// it ends.
    pub(crate) fn requests_drain_max(&self) -> Duration {
        let broadcaster =
            self.broadcaster.drain_ms_max.saturating_add(self.broadcaster.http.drain_ms_max);
        let longest = broadcaster.max(self.auth.http.drain_ms_max).max(self.gslb.http.drain_ms_max);
        Duration::from_millis(longest.into())
    }

    fn secret_of(&self, node: proto::id::NodeId) -> Secret {
        let found = self.node.iter().find(|it| it.node == node);
        found.map(|it| it.secret.clone()).unwrap_or_default()
    }
}

fn listener(listen: SocketAddr, transport: Transport) -> ListenerConfig {
    ListenerConfig {
        listen,
        transport,
        host: listen.ip().to_string(),
        port: 0,
        carrier: Carrier::Bgp,
        machine_room: String::new(),
        reserve: false,
        binder: link::Binder::Auto,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_that_is_alone_never_counts_as_attacked() {
        let folder = tempfile::tempdir().unwrap();
        let identity = Identity::load_or_create(folder.path()).unwrap();
        let mut alone = Config::demo(folder.path());
        let mut accompanied = alone.clone();
        let mut other = identity.nodes().into_iter().find(|it| it.role == NodeRole::Link).unwrap();
        other.node = proto::id::NodeId(50);
        accompanied.node.push(other);

        alone.embed(&identity);
        accompanied.embed(&identity);

        assert!(!alone.link.siege.enabled);
        assert!(accompanied.link.siege.enabled);
    }

    #[test]
    fn no_service_is_given_less_time_to_end_than_its_requests_are() {
        let folder = tempfile::tempdir().unwrap();
        let mut config = Config::demo(folder.path());
        config.gslb.http.drain_ms_max = 60_000;
        let longest = config.requests_drain_max();
        config.broadcaster.drain_ms_max = 90_000;

        assert_eq!(longest, Duration::from_secs(60));
        assert!(config.requests_drain_max() >= Duration::from_secs(90));
    }
}
