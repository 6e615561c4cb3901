//! Calls to one store, each with its deadline; what fails is counted.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use crate::counts::Counts;
use crate::store::{Created, File, Replaced, SegmentStore, Stamp, StoreError};

/// One store, as its writers and its eraser call it.
#[derive(Clone, Debug)]
pub(super) struct Calls {
    pub(super) number: usize,
    pub(super) store: Arc<dyn SegmentStore>,
    pub(super) counts: Counts,
    /// Longest time for one call.
    pub(super) call_max: Duration,
}

impl Calls {
    /// Writes files that are not there yet; fails with the first that failed.
    pub(super) async fn create(&self, files: Vec<(File, Bytes)>) -> Result<(), StoreError> {
        for result in self.in_time("create", self.store.create(files)).await? {
            match result {
                // Whoever wrote it before sealed the same slot.
                Ok(Created::New | Created::Existed) => {}
                Err(error) => return Err(self.failed("create", error)),
            }
        }
        Ok(())
    }

    pub(super) async fn replace(
        &self,
        file: File,
        bytes: Bytes,
        stamp: Stamp,
    ) -> Result<Replaced, StoreError> {
        let replaced = self.in_time("replace", self.store.replace(file, bytes, stamp)).await?;
        replaced.map_err(|error| self.failed("replace", error))
    }

    pub(super) async fn get(&self, file: File) -> Result<Option<Bytes>, StoreError> {
        let got = self.in_time("get", self.store.get(file)).await?;
        got.map_err(|error| self.failed("get", error))
    }

    /// Removes files; gives those that are still there.
    pub(super) async fn remove(&self, files: Vec<File>) -> Result<Vec<File>, StoreError> {
        let results = self.in_time("remove", self.store.remove(files.clone())).await?;
        let mut results = results.into_iter();
        let mut left = files;
        left.retain(|_| match results.next() {
            Some(Ok(())) => false,
            Some(Err(error)) => {
                self.failed("remove", error);
                true
            }
            None => true,
        });
        Ok(left)
    }

    async fn in_time<R>(
        &self,
        call: &'static str,
        future: impl Future<Output = R>,
    ) -> Result<R, StoreError> {
        let late = |_| self.failed(call, StoreError::Away("it did not answer in time".to_owned()));
        tokio::time::timeout(self.call_max, future).await.map_err(late)
    }

    fn failed(&self, call: &str, error: StoreError) -> StoreError {
        self.counts.store_error(self.number, call);
        error
    }
}
