//! Apps, nodes and configurations of the measured side.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use auth_core::app::{App, TicketAlg, TicketKey};
use auth_core::node::{NodeRole, NodeSecret};
use auth_core::secret::Secret;
use proto::id::{AppId, NodeId, UnitId};
use proto::policy::{Entry, Policy};

use super::super::fleet::{host, region};

/// Viewers need a ticket.
pub(super) const APP: AppId = AppId(1);
/// Its rooms ask for no ticket.
pub(super) const OPEN_APP: AppId = AppId(2);
const GSLB: NodeId = NodeId(10_000);
/// Fetches the keys of all nodes' addresses, to check tokens with.
pub(super) const LINK: NodeId = NodeId(10_001);
pub(super) const UNIT: UnitId = UnitId(0);
/// Of a measurement in which nobody else takes part.
pub(in super::super) const SECRET: &str = "a secret of this benchmark, long enough for everything";
/// The key pair of RFC 8032, section 7.1, test 1.
pub(super) const ED25519_PRIVATE: &str = "-----BEGIN PRIVATE KEY-----\n\
    MC4CAQAwBQYDK2VwBCIEIJ1hsZ3v/VpguoRK9JLsLMREScVpezJpGXA7rAMcrn9g\n\
    -----END PRIVATE KEY-----\n";
const ED25519_PUBLIC: &str = "-----BEGIN PUBLIC KEY-----\n\
    MCowBQYDK2VwAyEA11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=\n\
    -----END PUBLIC KEY-----\n";

/// An auth service whose files are in `data`.
pub(super) fn auth(data: &Path) -> auth::Config {
    auth::Config {
        listen: loopback(),
        data: data.join("auth"),
        seal: secret(),
        ..auth::Config::default()
    }
}

/// A gslb without limits of rate, whose files are in `data`.
pub(super) fn gslb(data: &Path, auth_url: &str) -> gslb::Config {
    let mut config = gslb::Config {
        listen: loopback(),
        node: GSLB,
        secret: secret(),
        auth_url: auth_url.to_owned(),
        data: data.join("gslb"),
        region: region(0),
        ..gslb::Config::default()
    };
    config.rate.enabled = false;
    // Callers keep their connections while others are asked, on a busy machine for long.
    config.http.header_ms_max = 60_000;
    config.collector.enabled = false;
    config.collector.listen = loopback();
    config
}

/// What opens an app's door for batches.
pub(super) fn api_key(app: AppId) -> String {
    format!("{SECRET} of {app}")
}

/// Both apps.
pub(super) fn apps() -> Arc<[App]> {
    let key = |kid: &str, alg, key: &str| TicketKey {
        kid: kid.to_owned(),
        alg,
        key: Secret::new(key.to_owned()),
    };
    let app = |id, entry| App {
        id,
        name: String::new(),
        ticket_keys: vec![
            key("", TicketAlg::Hs256, SECRET),
            key("ed25519", TicketAlg::EdDsa, ED25519_PUBLIC),
        ],
        jwks: PathBuf::new(),
        api_keys: vec![Secret::new(api_key(id))],
        policy: Policy { entry, ..Policy::default() },
    };
    [app(APP, Entry::Token), app(OPEN_APP, Entry::Open)].into()
}

/// The gslb, so many nodes, and one that has all their addresses.
pub(super) fn nodes(nodes: u32) -> Arc<[NodeSecret]> {
    let node = |node, role, hosts| NodeSecret { node, role, secret: secret(), unit: UNIT, hosts };
    let link = |it| node(NodeId(it), NodeRole::Link, vec![host(it)]);
    let hosts = (0..nodes).map(host).collect();
    let others = [node(GSLB, NodeRole::Gslb, Vec::new()), node(LINK, NodeRole::Link, hosts)];
    (0..nodes).map(link).chain(others).collect()
}

fn secret() -> Secret {
    Secret::new(SECRET.to_owned())
}

fn loopback() -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, 0))
}
