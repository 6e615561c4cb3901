//! How much of something may pass: a port, because several processes can share one quota.
//!
//! A quota is a bucket per key. It holds up to `burst` and fills at `rate_per_s`.

#[cfg(test)]
mod contract;
pub mod memory;

use std::fmt::Debug;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use proto::time::Wall;

pub use memory::MemoryQuota;

/// A wish to take from one key's bucket.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Ask {
    /// Whose bucket, such as `flow:{room}`.
    pub key: Arc<str>,
    /// How much.
    pub wanted: u32,
    /// How fast the bucket fills.
    pub rate_per_s: u32,
    /// How much it holds; a new bucket is full.
    pub burst: u32,
}

/// What was given.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Taken {
    /// At most what was wanted.
    pub granted: u32,
    /// When the missing part (at most one `burst`) will be there; 0 if nothing is missing,
    /// `u32::MAX` if it never will be (rate or burst 0).
    pub retry_after_ms: u32,
}

/// The port.
pub trait Quota: Send + Sync + Debug {
    /// Takes what is there, for each ask in order; one answer each. Always answers: an adapter
    /// whose server is away gives from a local share.
    ///
    /// Not to be repeated: what is granted is gone.
    fn take(&self, asks: Vec<Ask>, now: Wall) -> BoxFuture<'_, Vec<Taken>>;
}
