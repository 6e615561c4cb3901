//! A room store with faults.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use chatserver::store::{
    Key, RedbStore, RoomStore, StoreError, Table, Value as Stored, Write, Written,
};
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, ready};
use tokio::sync::RwLock;

/// The room store, away while the test wants it.
#[derive(Debug)]
pub(crate) struct FaultyStore {
    pub(crate) store: RedbStore,
    pub(crate) is_away: Arc<AtomicBool>,
    pub(crate) is_mute: Arc<AtomicBool>,
    pub(crate) turn: Arc<RwLock<()>>,
    pub(crate) waits: Arc<AtomicUsize>,
}

impl FaultyStore {
    fn unless_away<'a, T: Send + 'a>(
        &self,
        answer: BoxFuture<'a, Result<T, StoreError>>,
    ) -> BoxFuture<'a, Result<T, StoreError>> {
        if self.is_away.load(Ordering::Relaxed) {
            return ready(Err(StoreError::Away { why: "a test".to_owned() })).boxed();
        }
        answer
    }
}

impl RoomStore for FaultyStore {
    fn get(&self, keys: Vec<Key>) -> BoxFuture<'_, Result<Vec<Option<Stored>>, StoreError>> {
        self.unless_away(self.store.get(keys))
    }

    fn list(
        &self,
        table: Table,
        prefix: String,
        after: Option<String>,
        rows_max: usize,
    ) -> BoxFuture<'_, Result<Vec<(String, Stored)>, StoreError>> {
        self.unless_away(self.store.list(table, prefix, after, rows_max))
    }

    fn write(&self, writes: Vec<Write>) -> BoxFuture<'_, Result<Written, StoreError>> {
        async move {
            self.waits.fetch_add(1, Ordering::Relaxed);
            let turn = self.turn.read().await;
            self.waits.fetch_sub(1, Ordering::Relaxed);
            drop(turn);
            let written = self.unless_away(self.store.write(writes)).await;
            if self.is_mute.load(Ordering::Relaxed) {
                return Err(StoreError::Away { why: "a test".to_owned() });
            }
            written
        }
        .boxed()
    }
}
