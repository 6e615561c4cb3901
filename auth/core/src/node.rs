//! A node's own secret, as configured: `[[node]]`.

use proto::id::NodeId;
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
