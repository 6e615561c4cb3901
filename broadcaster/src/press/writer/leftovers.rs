//! Files that are to be removed and are not yet.

use std::collections::VecDeque;

use parking_lot::Mutex;

use crate::store::File;

/// Files of one writer, about 100 bytes each; beyond, the oldest are left lying.
const FILES_MAX: usize = 16 * 1024;
/// Files removed with one call.
const CALL_FILES_MAX: usize = 512;

/// Shared by a writer and whoever fills its queue, so that none is lost with a full queue.
#[derive(Debug, Default)]
pub(super) struct Leftovers {
    files: Mutex<VecDeque<File>>,
}

impl Leftovers {
    pub(super) fn add(&self, files: impl IntoIterator<Item = File>) {
        let mut left = self.files.lock();
        left.extend(files);
        let beyond = left.len().saturating_sub(FILES_MAX);
        left.drain(..beyond);
    }

    /// The oldest, as many as one call removes.
    pub(super) fn take(&self) -> Vec<File> {
        let mut left = self.files.lock();
        let count = left.len().min(CALL_FILES_MAX);
        left.drain(..count).collect()
    }
}
