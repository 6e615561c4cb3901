//! A load table that fails as it is told to: for tests and drills.

use std::sync::Arc;

use futures_util::future::{BoxFuture, pending, ready};
use parking_lot::Mutex;

use super::{LoadTable, TableError, Value};

/// What is the matter with a table.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Fault {
    /// Nothing.
    #[default]
    None,
    /// It refuses every call.
    Away,
    /// It answers no call.
    Silent,
    /// It takes no values, and gives what it has: as when nobody collects any more.
    Stale,
}

/// A table with a fault around it.
#[derive(Debug)]
pub struct FaultyTable {
    table: Arc<dyn LoadTable>,
    fault: Mutex<Fault>,
}

impl FaultyTable {
    /// A table that is as well as the one within.
    #[must_use]
    pub fn new(table: Arc<dyn LoadTable>) -> Arc<Self> {
        Arc::new(Self { table, fault: Mutex::default() })
    }

    /// From now on it fails so.
    pub fn set(&self, fault: Fault) {
        *self.fault.lock() = fault;
    }
}

impl LoadTable for FaultyTable {
    fn put(&self, values: Vec<Value>) -> BoxFuture<'_, Result<(), TableError>> {
        match *self.fault.lock() {
            Fault::None => self.table.put(values),
            Fault::Away => Box::pin(ready(Err(TableError::Away))),
            Fault::Silent => Box::pin(pending()),
            Fault::Stale => Box::pin(ready(Ok(()))),
        }
    }

    fn get(&self) -> BoxFuture<'_, Result<Vec<Value>, TableError>> {
        match *self.fault.lock() {
            Fault::None | Fault::Stale => self.table.get(),
            Fault::Away => Box::pin(ready(Err(TableError::Away))),
            Fault::Silent => Box::pin(pending()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::{MemoryTable, contract};

    #[tokio::test]
    async fn a_table_without_a_fault_keeps_the_contract() {
        contract::check(&*FaultyTable::new(MemoryTable::new())).await;
    }
}
