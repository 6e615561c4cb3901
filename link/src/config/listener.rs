//! Where a link listens, and what it asks of those who come.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use proto::address::{Carrier, Transport};
use serde::{Deserialize, Serialize};

/// One listener.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub struct ListenerConfig {
    /// Socket address to listen on; port 0 takes a free one.
    pub listen: SocketAddr,
    /// `tcp`, `tls`, `ws`, `wss`, `quic` or `national`. A `quic` listener may have the number of a TCP
    /// listener, because its port is one of UDP.
    pub transport: Transport,
    /// Name or IP address that clients use.
    pub host: String,
    /// Port that clients use; 0 is the one it listens on.
    #[serde(default)]
    pub port: u16,
    /// Whose network the address is on: `bgp`, `telecom`, `unicom`, `mobile`, `c4` to `c15`, or
    /// a name from `[gslb.place]`, such as `softbank`.
    #[serde(default)]
    pub carrier: Carrier,
    /// Machine room, for people and for spreading.
    #[serde(default)]
    pub machine_room: String,
    /// Whether nobody is told of it but viewers of other nodes of the unit that are attacked: they
    /// move here. Its port must not be one that can be guessed from the others; with more than one
    /// worker it is 0.
    #[serde(default)]
    pub reserve: bool,
    /// Whether logins must be bound to the TLS connection, so that nobody between can use them:
    /// `auto`, `required` or `none`.
    #[serde(default)]
    pub binder: Binder,
}

/// Whether logins must be bound to the TLS connection they come over.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Binder {
    /// As the transport allows: required for `tls`, `national` and `quic`, whose clients have an
    /// exporter; none for `tcp`, `ws` and `wss`, behind which terminators and browsers are.
    #[default]
    Auto,
    /// They must: for clients that have an exporter.
    Required,
    /// They need not, but a binder that is given must be right: a `tls` listener whose clients
    /// have no exporter.
    None,
}

impl ListenerConfig {
    pub(super) fn plain(port: u16, transport: Transport) -> Self {
        Self {
            listen: SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port),
            transport,
            host: Ipv4Addr::LOCALHOST.to_string(),
            port: 0,
            carrier: Carrier::default(),
            machine_room: String::new(),
            reserve: false,
            binder: Binder::Auto,
        }
    }

    /// Whether logins must be bound to the TLS connection.
    pub(crate) const fn must_bind(&self) -> bool {
        match self.binder {
            Binder::Auto => self.clients_can_bind(),
            Binder::Required => true,
            Binder::None => false,
        }
    }

    /// Browsers have no exporter, and WebSocket clients do as browsers do.
    pub(super) const fn clients_can_bind(&self) -> bool {
        matches!(self.transport, Transport::Tls | Transport::National | Transport::Quic)
    }

    /// Whether it has TLS of its own.
    pub(crate) const fn is_tls(&self) -> bool {
        match self.transport {
            Transport::Tls | Transport::Wss | Transport::Quic | Transport::National => true,
            Transport::Tcp | Transport::Ws => false,
        }
    }
}
