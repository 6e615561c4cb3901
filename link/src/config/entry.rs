//! How many may come in.

use anyhow::ensure;
use link_core::bucket::Rate;
use link_core::turnstile::Limits;
use serde::{Deserialize, Serialize};

/// Limits of connections, and of joins into rooms. Whoever is refused is told when to come back.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields, rename_all = "snake_case")]
pub struct Entry {
    /// Connections a second that this node takes from all addresses, and at once; beyond, they are
    /// closed before anything is read. What an address has too many of by
    /// `address_handshakes_per_s` is not counted. 0 sets no limit. A little over what
    /// `handshakes_per_s_max` promises protects the sessions that are here.
    pub connections_per_s: u32,
    /// Joins a second into one room, over all link nodes; 0 sets no limit. Nodes tell each other
    /// ten times a second what is wanted; each lets in its part. Beyond, viewers are told when it is
    /// their turn. Chatservers are told of each join: set it to what they are to bear beside the
    /// comments. Hosts and moderators always come in.
    pub room_joins_per_s: u32,
    /// Joins a second into all rooms of this node; a tenth of them at once.
    pub node_joins_per_s: u32,
    /// People in one room, as far as this node knows: all of them, within ten seconds of a change of
    /// the room's heat, which tells them; at other times only those on this node, so that N nodes
    /// let in up to N times as many. Beyond, others are refused as `full`, but not further sessions
    /// of those who are here. 0 sets no limit.
    pub room_people_max: u32,
    /// Link nodes that share a room's limit, at least. It counts while this node has not heard from
    /// so many: its part is then the limit divided by the nodes it knows of, these at least.
    pub nodes_min: u32,
}

impl Default for Entry {
    fn default() -> Self {
        Self {
            connections_per_s: 20_000,
            room_joins_per_s: 50_000,
            node_joins_per_s: 50_000,
            room_people_max: 0,
            nodes_min: 1,
        }
    }
}

impl Entry {
    /// Refuses what cannot work.
    pub(super) fn check(&self) -> anyhow::Result<()> {
        ensure!(self.node_joins_per_s > 0, "entry.node_joins_per_s of 0 lets nobody in");
        ensure!(self.nodes_min > 0, "entry.nodes_min is 0, and this node is one");
        Ok(())
    }

    /// What the turnstile holds to.
    pub(crate) fn limits(&self, rooms_max: usize) -> Limits {
        let node =
            Rate { burst: (self.node_joins_per_s / 10).max(1), per_s: self.node_joins_per_s };
        Limits { room_per_s: self.room_joins_per_s, node, nodes_min: self.nodes_min, rooms_max }
    }
}
