//! The port to where segments lie: a directory, a bucket, several at once.

mod directory;
mod file;

#[cfg(test)]
pub(crate) mod contract;

use std::fmt::Debug;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use proto::id::{Gen, Term};

pub use directory::Directory;
pub(crate) use directory::check_space;
pub use file::{Ext, File};

/// Age of a file that may be replaced: the higher one is newer.
///
/// The gen comes first, because terms start again at 1 when the bus lost everything, and a gen is
/// opened by create-only and so cannot come back.
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
pub struct Stamp {
    /// Gen of the writer's room.
    pub gen_no: Gen,
    /// Lease term of the writer.
    pub term: Term,
    /// Rises with each of the writer's versions.
    pub version: u64,
}

/// What a create did.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Created {
    /// The file is new.
    New,
    /// There was one already, and it stays as it is.
    Existed,
}

/// What a replace did.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Replaced {
    /// The file holds these bytes now.
    Done,
    /// The file there is newer, or as new, and stays as it is.
    Stale,
}

/// Why a store did not do it.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum StoreError {
    /// It would fill the disk.
    #[error("only {free_bytes} bytes of its disk are free, and {free_bytes_min} must stay so")]
    Full {
        /// Bytes left.
        free_bytes: u64,
        /// Bytes that must be left.
        free_bytes_min: u64,
    },
    /// It cannot be reached, or failed; trying again may help.
    #[error("the store is away: {0}")]
    Away(String),
}

impl StoreError {
    /// What an operator can do about it.
    #[must_use]
    pub const fn hint(&self) -> &'static str {
        match self {
            Self::Full { .. } => "make room on its disk, or lower broadcaster.free_bytes_min",
            Self::Away(_) => "see whether it can be reached and written to",
        }
    }
}

/// Where segments lie. Every call may be repeated.
pub trait SegmentStore: Send + Sync + Debug {
    /// Writes files that are not there yet; existing bytes win. One result each, in order.
    fn create(&self, files: Vec<(File, Bytes)>) -> BoxFuture<'_, Vec<Result<Created, StoreError>>>;

    /// Writes a file if `stamp` is newer than the one it was written with.
    fn replace(
        &self,
        file: File,
        bytes: Bytes,
        stamp: Stamp,
    ) -> BoxFuture<'_, Result<Replaced, StoreError>>;

    /// Reads a file; `None` if there is none.
    fn get(&self, file: File) -> BoxFuture<'_, Result<Option<Bytes>, StoreError>>;

    /// Removes files; one that is not there is removed already. One result each, in order.
    fn remove(&self, files: Vec<File>) -> BoxFuture<'_, Vec<Result<(), StoreError>>>;
}
