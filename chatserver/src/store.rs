//! What chatservers remember across restarts: a port of versioned values in a few tables.
//!
//! Writes are compare-and-set over several keys at once, all or nothing, and durable when they
//! return. What lies in the tables is known to one module of this package; adapters know only keys
//! and bytes.

pub mod contract;
pub mod redb;
pub(crate) mod rows;

use std::fmt::Debug;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use proto::id::{AppId, RoomId};
use proto::time::Wall;

pub use self::redb::{CopiesConfig, RedbStore, backup};

/// A table. Keys of different tables never meet.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Table {
    /// Rooms and their settings, by room.
    Rooms,
    /// What was done to people, and what rooms have written up, by the key of its fact.
    Acts,
    /// Idempotency keys: which content an item id stands for.
    Keys,
    /// The same by age, for forgetting.
    Ages,
    /// Journaled items that are not known to be shown, by partition and id.
    Open,
    /// What chatservers keep for themselves: the secret behind sender refs, id floors.
    Own,
    /// Who is in rooms that take one device, by app, room and viewer.
    Devices,
    /// Lists of words, in parts.
    Words,
    /// Who did what, by app, room and time, the newest first.
    Audit,
}

impl Table {
    /// All tables.
    pub const ALL: [Self; 9] = [
        Self::Rooms,
        Self::Acts,
        Self::Keys,
        Self::Ages,
        Self::Open,
        Self::Own,
        Self::Devices,
        Self::Words,
        Self::Audit,
    ];

    /// The table's word.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Rooms => "rooms",
            Self::Acts => "acts",
            Self::Keys => "keys",
            Self::Ages => "ages",
            Self::Open => "open",
            Self::Own => "own",
            Self::Devices => "devices",
            Self::Words => "words",
            Self::Audit => "audit",
        }
    }
}

/// Where a value lies.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Key {
    /// In which table.
    pub table: Table,
    /// Under which name, at most [`NAME_BYTES_MAX`].
    pub name: String,
}

/// Bytes of a key's name: a fact's key with the longest app, room and viewer fits.
pub const NAME_BYTES_MAX: usize = 256;
/// Bytes of a value.
pub const VALUE_BYTES_MAX: usize = 64 * 1024;
/// Keys, or writes, of one call.
pub const BATCH_MAX: usize = 1000;

/// A value and how often it was written: 1 after the first time, counted anew after a removal.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Value {
    /// Rises by one with each write.
    pub version: u64,
    /// What was written.
    pub bytes: Bytes,
}

/// One change.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Write {
    /// Where.
    pub key: Key,
    /// What must be there now.
    pub expect: Expect,
    /// What is to be there.
    pub change: Change,
}

/// What a write does.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Change {
    /// Puts this there.
    Put(Bytes),
    /// Removes what is there, if anything.
    Remove,
    /// Nothing: the others of its batch happen only if it finds what it expects.
    Keep,
}

/// What must be there for a write to happen.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Expect {
    /// Whatever.
    Any,
    /// Nothing.
    Absent,
    /// A value of this version.
    Version(u64),
}

/// What became of a batch of writes.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Written {
    /// All of them happened and are durable.
    Done,
    /// None happened: this one, the first such, found something else than it expected.
    Conflict {
        /// Which of the batch.
        index: usize,
    },
}

/// Why the store did not answer.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum StoreError {
    /// It is away, or full, or refuses; trying again may help. After a write, it may have happened.
    #[error("the room store is away: {why}")]
    Away {
        /// The adapter's words.
        why: String,
    },
    /// More than [`NAME_BYTES_MAX`], [`VALUE_BYTES_MAX`] or [`BATCH_MAX`].
    #[error("a call to the room store is too large")]
    TooLarge,
}

/// The port. Every call is a batch and has the adapter's own deadline.
pub trait RoomStore: Send + Sync + Debug {
    /// The values of these keys, in order.
    fn get(&self, keys: Vec<Key>) -> BoxFuture<'_, Result<Vec<Option<Value>>, StoreError>>;

    /// Up to `rows_max` rows whose names begin with `prefix` and come after the name `after`,
    /// ordered by name.
    fn list(
        &self,
        table: Table,
        prefix: String,
        after: Option<String>,
        rows_max: usize,
    ) -> BoxFuture<'_, Result<Vec<(String, Value)>, StoreError>>;

    /// Does all of these writes, to different keys, or none.
    fn write(&self, writes: Vec<Write>) -> BoxFuture<'_, Result<Written, StoreError>>;
}

impl Key {
    /// The key of this name.
    #[must_use]
    pub fn new(table: Table, name: impl Into<String>) -> Self {
        Self { table, name: name.into() }
    }

    /// Puts `bytes` here, if `expect` holds.
    #[must_use]
    pub fn put(self, expect: Expect, bytes: impl Into<Bytes>) -> Write {
        Write { key: self, expect, change: Change::Put(bytes.into()) }
    }

    /// Removes what is here, if anything.
    #[must_use]
    pub fn remove(self) -> Write {
        Write { key: self, expect: Expect::Any, change: Change::Remove }
    }

    /// Leaves what is here, and lets the batch happen only if `expect` holds.
    #[must_use]
    pub const fn keep(self, expect: Expect) -> Write {
        Write { key: self, expect, change: Change::Keep }
    }
}

/// Where an app's rooms are counted.
pub(crate) fn rooms_key(app: AppId) -> Key {
    Key::new(Table::Own, format!("rooms:{app}"))
}

/// Where it stands that a room was closed then.
pub(crate) fn closed_key(room: &RoomId, at: Wall) -> Key {
    Key::new(Table::Own, format!("closed:{:016x}:{room}", at.0))
}

/// Where an app's acts are counted.
pub(crate) fn acts_key(app: &str) -> Key {
    Key::new(Table::Own, format!("acts:{app}"))
}

/// Whether a batch of writes is within the port's bounds; adapters call it first.
///
/// # Errors
/// [`StoreError::TooLarge`].
pub fn check_writes(writes: &[Write]) -> Result<(), StoreError> {
    let fits = |it: &Write| {
        it.key.name.len() <= NAME_BYTES_MAX
            && match &it.change {
                Change::Put(bytes) => bytes.len() <= VALUE_BYTES_MAX,
                Change::Remove | Change::Keep => true,
            }
    };
    if writes.len() <= BATCH_MAX && writes.iter().all(fits) {
        Ok(())
    } else {
        Err(StoreError::TooLarge)
    }
}
