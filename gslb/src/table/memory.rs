//! The load table of one process.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::{BoxFuture, ready};
use parking_lot::Mutex;

use super::{LoadTable, REGIONS_MAX, TableError, VALUE_BYTES_MAX, Value};

/// Values in memory, shared by those who share the table.
#[derive(Debug, Default)]
pub struct MemoryTable {
    regions: Mutex<BTreeMap<Arc<str>, Bytes>>,
}

impl MemoryTable {
    /// An empty table.
    #[must_use]
    pub fn new() -> Arc<Self> {
        Arc::default()
    }

    fn replace(&self, values: Vec<Value>) -> Result<(), TableError> {
        let mut regions = self.regions.lock();
        let mut refusal = Ok(());
        for Value { region, bytes } in values {
            if bytes.len() > VALUE_BYTES_MAX {
                refusal = Err(TableError::TooLarge { bytes: bytes.len() });
            } else if regions.len() >= REGIONS_MAX && !regions.contains_key(&region) {
                refusal = Err(TableError::Full);
            } else {
                regions.insert(region, bytes);
            }
        }
        refusal
    }

    fn all(&self) -> Vec<Value> {
        let regions = self.regions.lock();
        let values = regions.iter();
        values
            .map(|(region, bytes)| Value { region: region.clone(), bytes: bytes.clone() })
            .collect()
    }
}

impl LoadTable for MemoryTable {
    fn put(&self, values: Vec<Value>) -> BoxFuture<'_, Result<(), TableError>> {
        Box::pin(ready(self.replace(values)))
    }

    fn get(&self) -> BoxFuture<'_, Result<Vec<Value>, TableError>> {
        Box::pin(ready(Ok(self.all())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::contract;

    #[tokio::test]
    async fn the_memory_table_keeps_the_contract() {
        contract::check(&MemoryTable::default()).await;
    }
}
