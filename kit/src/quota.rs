//! How much of something may pass: a port, because several processes can share one quota.
//!
//! Two ways to share. A bucket per key, which holds up to `burst` and fills at `rate_per_s`: who
//! asks first gets it, and has to ask each time. And a window per key: each process decides by
//! itself, says several times a second what it saw, and learns what all saw.

#[cfg(any(test, feature = "contract"))]
pub mod contract;
pub mod memory;
mod window;

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use proto::id::NodeId;
use proto::time::Wall;
use serde::{Deserialize, Serialize};

pub use memory::MemoryQuota;

/// A wish to take from one key's bucket.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Ask {
    /// Whose bucket, such as `low_gift:{app}:{room}`.
    pub key: Arc<str>,
    /// How much.
    pub wanted: u32,
    /// How fast the bucket fills.
    pub rate_per_s: u32,
    /// How much it holds; a new bucket is full.
    pub burst: u32,
}

/// What was given.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Taken {
    /// At most what was wanted.
    pub granted: u32,
    /// When the missing part (at most one `burst`) will be there; 0 if nothing is missing,
    /// `u32::MAX` if it never will be (rate or burst 0).
    pub retry_after_ms: u32,
}

/// How far back a window reaches; a node that said nothing for so long is not counted any more.
pub const WINDOW: Duration = Duration::from_secs(1);

/// What a node says of one key.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Use {
    /// Which key, such as `entry:{room}` or `flow:{app}:{room}`.
    pub key: Arc<str>,
    /// How many want to pass a second, lately.
    pub wanted_per_s: u32,
    /// How many passed since it last said so.
    pub passed: u32,
}

/// What all nodes said of one key within the [`WINDOW`].
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct Seen {
    /// How many want to pass a second, by what each node said last.
    pub wanted_per_s: u32,
    /// How many of those at the node that asks.
    pub own_per_s: u32,
    /// How many passed.
    pub passed: u32,
}

/// What all nodes said.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct Shared {
    /// Nodes that said something within the [`WINDOW`], the one that asks among them.
    pub nodes: u32,
    /// For each use that was told, in its order.
    pub seen: Vec<Seen>,
}

/// The server that all share does not answer.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize, thiserror::Error)]
#[error("the shared quota is away")]
pub struct Away;

/// The port.
pub trait Quota: Send + Sync + Debug {
    /// Takes what is there, for each ask in order; one answer each. Always answers: an adapter
    /// whose server is away gives from a local share.
    ///
    /// Not to be repeated: what is granted is gone.
    fn take(&self, asks: Vec<Ask>, now: Wall) -> BoxFuture<'_, Vec<Taken>>;

    /// Tells what `node` sees, and learns what all see, itself included. No use at all is a sign of
    /// life.
    ///
    /// # Errors
    /// [`Away`]; then it is not known whether others hear of it. What passed is not to be told
    /// again: to count it twice does more harm than not to count it.
    fn share(&self, node: NodeId, uses: Vec<Use>, now: Wall)
    -> BoxFuture<'_, Result<Shared, Away>>;
}
