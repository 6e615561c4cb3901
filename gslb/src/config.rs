//! What an operator can set.

use std::net::{Ipv4Addr, SocketAddr};

use auth_core::secret::Secret;
use proto::enter::Retry;
use proto::head::Base;
use proto::id::NodeId;
use serde::{Deserialize, Serialize};

/// The gslb's configuration, `[gslb]`.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields, rename_all = "snake_case")]
pub struct Config {
    /// Where `POST /v1/enter` is served; port 0 picks a free one.
    pub listen: SocketAddr,
    /// This process among the `[[node]]`s; its role there is `gslb`.
    pub node: NodeId,
    /// The secret of that `[[node]]`: the master keys are fetched with it.
    pub secret: Secret,
    /// Where the auth service is, without a path. HTTPS only, since the masters come from there.
    pub auth_url: String,
    /// Who tickets must be made for (`aud`); empty: tickets must not have an `aud`.
    pub audience: String,
    /// The region whose addresses are handed out first; others only where it has none left.
    pub region: String,
    /// Milliseconds between two snapshots. At 2,000 nodes one costs some 50 µs, so 5 ms is one
    /// hundredth of a core; raise it with the number of nodes.
    pub snapshot_ms: u32,
    /// Milliseconds a load report holds. Links report every 100 ms at the latest: below 200 ms
    /// one lost datagram takes a node out of the answers.
    pub lease_ms: u32,
    /// Link nodes known at a time, about 1 KiB each; at most 32,768. More are refused.
    pub nodes_max: u32,
    /// Viewers of one node, in multiples of the mean: lower it if a node that just started gets
    /// more logins than it can shake hands with.
    pub share_max: u32,
    /// Where segments are served; empty: what the broadcasters announce.
    pub segments: Vec<Base>,
    /// Proxies in front of this process that append to `X-Forwarded-For`. A number too high lets
    /// clients choose their own address; too low puts everybody under the proxy's rate.
    pub trusted_hops: u32,
    /// How clients are told to try again.
    pub retry: Retry,
    /// Kicks and bans remembered, about 200 bytes each. Beyond it, tickets older than the oldest
    /// kick are refused, whoever they are of.
    pub revocations_max: u32,
    /// How often one client address may ask.
    pub rate: Rate,
    /// Where load reports come in.
    pub collector: Collector,
    /// What the server spends on its clients.
    pub http: kit::http::Limits,
}

/// How often one client address (IPv6: its /64) may ask. `[gslb.rate]`.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields, rename_all = "snake_case")]
pub struct Rate {
    /// Whether there is a limit.
    pub enabled: bool,
    /// Questions a second in the long run. Many viewers can share one address of a carrier.
    pub per_s: u32,
    /// Questions at once.
    pub burst: u32,
    /// Addresses told apart, about 50 bytes each. Addresses that fall together share a rate.
    pub addresses_max: u32,
}

/// Where load reports come in. `[gslb.collector]`.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields, rename_all = "snake_case")]
pub struct Collector {
    /// Whether this process collects; otherwise others write to the load table.
    pub enabled: bool,
    /// Where datagrams are received; port 0 picks a free one.
    pub listen: SocketAddr,
    /// Milliseconds between two values of a region while something changes.
    pub pack_ms: u32,
    /// Milliseconds between two values of a region while nothing does.
    pub idle_ms: u32,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            listen: local(8001),
            node: NodeId(1),
            secret: Secret::default(),
            auth_url: "https://127.0.0.1:8003".to_owned(),
            audience: String::new(),
            region: "local".to_owned(),
            snapshot_ms: 5,
            lease_ms: 300,
            nodes_max: 20_000,
            share_max: 4,
            segments: Vec::new(),
            trusted_hops: 0,
            retry: Retry::default(),
            revocations_max: 100_000,
            rate: Rate::default(),
            collector: Collector::default(),
            http: kit::http::Limits::default(),
        }
    }
}

impl Default for Rate {
    fn default() -> Self {
        Self { enabled: true, per_s: 200, burst: 2_000, addresses_max: 65_536 }
    }
}

impl Default for Collector {
    fn default() -> Self {
        Self { enabled: true, listen: local(8001), pack_ms: 5, idle_ms: 100 }
    }
}

fn local(port: u16) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, port))
}
