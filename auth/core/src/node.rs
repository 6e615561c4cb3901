//! A node's own secret, as configured: `[[node]]`.

use proto::id::{NodeId, UnitId};
use serde::{Deserialize, Serialize};

use crate::secret::Secret;

/// What a node proves itself with: load reports are signed with it, keys are fetched with it.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct NodeSecret {
    /// Which node.
    pub node: NodeId,
    /// What it is.
    pub role: NodeRole,
    /// At least 32 bytes of text.
    pub secret: Secret,
    /// A link's slice: of resume keys it gets this unit's alone.
    #[serde(default)]
    pub unit: UnitId,
    /// A link's hosts, such as `link-07.example`: it gets the keys of addresses on them alone,
    /// whatever the port, so a stolen node cannot mint for others.
    #[serde(default)]
    pub hosts: Vec<String>,
}

impl NodeSecret {
    /// Whether `host:port` (IPv6 in brackets) is on one of the node's hosts.
    #[must_use]
    pub fn has_address(&self, authority: &str) -> bool {
        let host = authority.rsplit_once(':').map_or(authority, |(host, _)| host);
        let host = host.trim_start_matches('[').trim_end_matches(']');
        self.has_host(host)
    }

    /// Whether it is one of the node's hosts.
    #[must_use]
    pub fn has_host(&self, host: &str) -> bool {
        self.hosts.iter().any(|it| it == host)
    }
}

/// What a node is.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum NodeRole {
    /// Holds viewers' connections; gets its own derived keys only.
    Link,
    /// Hands out addresses; gets the masters.
    Gslb,
    /// Serves segments; gets room keys of sealed rooms.
    Broadcaster,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_the_node_s_by_its_whole_host() {
        let node = NodeSecret {
            node: NodeId(1),
            role: NodeRole::Link,
            secret: Secret::default(),
            unit: UnitId(0),
            hosts: vec!["link-07.example".to_owned(), "2001:db8::7".to_owned()],
        };

        for own in ["link-07.example:443", "link-07.example:1", "[2001:db8::7]:443"] {
            assert!(node.has_address(own), "{own}");
        }
        for other in
            ["link-08.example:443", "xlink-07.example:443", "[2001:db8::8]:443", ":443", ""]
        {
            assert!(!node.has_address(other), "{other}");
        }
    }
}
