//! Where collectors leave the loads and every gslb finds them: one packed value per region.

pub mod contract;
mod fault;
mod memory;

use std::fmt::Debug;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::BoxFuture;

pub use fault::{Fault, FaultyTable};
pub use memory::MemoryTable;

/// Regions of one table; more are refused.
pub const REGIONS_MAX: usize = 256;
/// Bytes of one region's value: 1,000 nodes of some 400 bytes fit more than twice.
pub const VALUE_BYTES_MAX: usize = proto::limits::RECORD_BYTES_MAX;

/// A region's loads: an encoded [`proto::load::RegionLoads`].
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Value {
    /// Which region.
    pub region: Arc<str>,
    /// At most [`VALUE_BYTES_MAX`].
    pub bytes: Bytes,
}

/// Why the table did not do it.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum TableError {
    /// A new region beyond [`REGIONS_MAX`]. The other values of the call were taken.
    #[error("the load table holds {REGIONS_MAX} regions already")]
    Full,
    /// A value beyond [`VALUE_BYTES_MAX`]. The other values of the call were taken.
    #[error("a value of {bytes} bytes is too large for the load table")]
    TooLarge {
        /// Bytes given.
        bytes: usize,
    },
    /// The table cannot be reached.
    #[error("the load table is away")]
    Away,
}

/// The port. Both calls may be repeated and cancelled.
pub trait LoadTable: Send + Sync + Debug {
    /// Replaces the values of these regions.
    fn put(&self, values: Vec<Value>) -> BoxFuture<'_, Result<(), TableError>>;

    /// The values of all regions, by name.
    fn get(&self) -> BoxFuture<'_, Result<Vec<Value>, TableError>>;
}
