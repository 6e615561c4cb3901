//! Copies of a room store.

use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use anyhow::Context;
use redb::backends::FileBackend;
use redb::{Builder, Database, ReadableDatabase, ReadableTable, TableError};

use super::{definition, schema};
use crate::store::Table;

/// Memory for pages of the copy.
const CACHE_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Copies the room store at `from` to the new file `to`, which is durable when it returns, and is a
/// room store itself. Gives the rows copied.
///
/// Every row is read and its checksums with it, so that what is copied is whole. A running
/// chatserver has its file to itself, and is refused here; it makes copies itself
/// ([`super::CopiesConfig`]).
///
/// # Errors
/// When `from` is not there, damaged or in use, or `to` is there already or cannot be written.
pub fn backup(from: &Path, to: &Path) -> anyhow::Result<u64> {
    let mut builder = Builder::new();
    builder.set_check_integrity_on_open(true);
    let source = builder.open(from).with_context(|| {
        format!(
            "cannot open {}: it is not there, damaged, or in use by a running system",
            from.display()
        )
    })?;
    let rows = write_new(&source, to)?;
    if let Some(folder) = to.parent().filter(|it| !it.as_os_str().is_empty()) {
        std::fs::File::open(folder)?.sync_all()?;
    }
    Ok(rows)
}

/// Copies a store to the new file `to`, which is its owner's alone.
pub(super) fn write_new(source: &Database, to: &Path) -> anyhow::Result<u64> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create_new(true).mode(0o600);
    let file = options.open(to).with_context(|| format!("cannot make {}", to.display()))?;
    let mut builder = Builder::new();
    builder.set_cache_size(CACHE_BYTES_MAX);
    let target = builder.create_with_backend(FileBackend::new(file)?)?;
    copy(source, &target).context("the copy is not complete: remove it")
}

fn copy(source: &Database, target: &Database) -> anyhow::Result<u64> {
    let (reading, writing) = (source.begin_read()?, target.begin_write()?);
    let mut rows = 0;
    for table in Table::ALL {
        let read = match reading.open_table(definition(table)) {
            Ok(read) => read,
            // An older program did not have it.
            Err(TableError::TableDoesNotExist(_)) => continue,
            Err(error) => return Err(error.into()),
        };
        let mut written = writing.open_table(definition(table))?;
        for row in read.iter()? {
            let (name, value) = row?;
            written.insert(name.value(), value.value())?;
            rows += 1;
        }
    }
    schema::copy(&reading, &writing)?;
    writing.commit()?;
    Ok(rows)
}
