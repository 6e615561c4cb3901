//! Tickets, reports, keys and names of the world.

use std::path::PathBuf;
use std::sync::Arc;

use auth_core::app::{App, TicketAlg, TicketKey};
use auth_core::node::{NodeRole, NodeSecret};
use auth_core::secret::Secret;
use auth_core::ticket::Signer;
use hmac::digest::KeyInit;
use hmac::{Hmac, Mac};
use kit::clock::Clock;
use proto::address::{Address, Carrier, Transport};
use proto::id::{AppId, NodeId, UnitId};
use proto::load::{Load, LoadReport};
use proto::policy::Policy;
use proto::time::Wall;
use sha2::Sha256;

use super::{APP, OTHER_APP};

/// A ticket for room `lobby`, issued now.
pub(crate) fn ticket(account: &str) -> String {
    ticket_with(account, |_| {})
}

pub(crate) fn ticket_with(
    account: &str,
    change: impl FnOnce(&mut auth_core::ticket::Claims),
) -> String {
    let now = Clock::system().wall().unix_s();
    let mut claims = auth_core::ticket::Claims::viewer(APP, account, "lobby", now, now + 600);
    change(&mut claims);
    let signer = Signer::new("", TicketAlg::Hs256, &ticket_secret(claims.app)).unwrap();
    signer.sign(&claims).unwrap()
}

pub(crate) fn report(node: u32, start: Wall, counter: u64, load: Load) -> LoadReport {
    let address = |port, transport| Address {
        host: format!("link-{node}.example"),
        port,
        transport,
        carrier: Carrier::Bgp,
        machine_room: format!("room-{}", node % 2),
    };
    LoadReport {
        node: NodeId(node),
        unit: UnitId(1),
        region: "local".to_owned(),
        counter,
        start,
        addresses: vec![
            address(443, Transport::Tls),
            address(8443, Transport::Wss),
            address(9443, Transport::National),
        ],
        reserve: Vec::new(),
        load,
    }
}

pub(crate) fn sign(report: &LoadReport, secret: &Secret) -> Vec<u8> {
    let bytes = report.encode();
    let mac = Hmac::<Sha256>::new_from_slice(secret.expose().as_bytes()).unwrap();
    let mac = mac.chain_update(&bytes).finalize().into_bytes();
    [&bytes[..], &mac[..]].concat()
}

pub(crate) fn secret(node: NodeId) -> Secret {
    Secret::new(format!("the secret of node {node}, long enough"))
}

pub(crate) fn api_key(app: AppId) -> String {
    format!("the API key of app {app}")
}

pub(crate) fn node_of(address: &Address) -> NodeId {
    let number = address.host.trim_start_matches("link-").trim_end_matches(".example");
    NodeId(number.parse().unwrap())
}

fn ticket_secret(app: AppId) -> Secret {
    Secret::new(format!("the ticket secret of app {app}, long enough"))
}

/// Node 1 is the gslb, 2 to 9 are links, 10 serves segments.
pub(super) fn nodes() -> Arc<[NodeSecret]> {
    let role = |it| match it {
        1 => NodeRole::Gslb,
        10 => NodeRole::Broadcaster,
        _ => NodeRole::Link,
    };
    (1..=10)
        .map(|it| NodeSecret {
            node: NodeId(it),
            role: role(it),
            secret: secret(NodeId(it)),
            unit: UnitId(1),
            hosts: vec![format!("link-{it}.example")],
        })
        .collect()
}

pub(super) fn apps() -> Vec<App> {
    let app = |id| App {
        id,
        name: String::new(),
        ticket_keys: vec![TicketKey {
            kid: String::new(),
            alg: TicketAlg::Hs256,
            key: ticket_secret(id),
        }],
        jwks: PathBuf::new(),
        api_keys: vec![Secret::new(api_key(id))],
        policy: Policy::default(),
    };
    [app(APP), app(OTHER_APP)].into()
}
