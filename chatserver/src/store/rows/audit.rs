//! Who did what: a record beside each change, written with it or not at all.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use proto::id::{AppId, RoomId, ViewerId};
use proto::time::Wall;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{PAGE_MAX, Rows};
use crate::store::{Expect, Key, StoreError, Table, Write};

/// Records that this process made: of those of one millisecond, the later one comes first.
static RECORDS: AtomicU32 = AtomicU32::new(0);

/// Bytes of a reason.
pub(crate) const WHY_BYTES_MAX: usize = 512;

/// One act.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub(crate) struct Record {
    /// When.
    pub(crate) at: Wall,
    /// In whose name; absent: the business server's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) by: Option<ViewerId>,
    /// What.
    pub(crate) act: String,
    /// To whom, or to what.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) on: Option<String>,
    /// Until when it counts, if it ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) until: Option<Wall>,
    /// What was said, written or set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) value: Option<Value>,
    /// Why, in the words of whoever did it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) why: Option<String>,
}

impl Record {
    /// A record of an act of the business server itself.
    pub(crate) fn new(at: Wall, act: &str) -> Self {
        let act = act.to_owned();
        Self { at, by: None, act, on: None, until: None, value: None, why: None }
    }

    /// The write that keeps it, of a room, or of the app as a whole.
    pub(crate) fn write(&self, app: AppId, room: Option<&RoomId>) -> Result<Write, StoreError> {
        let bytes = serde_json::to_vec(self).expect("a record has string keys only");
        // Several may be of one millisecond, from several chatservers.
        let other = kit::seed::random_bytes::<4>()
            .map_err(|error| StoreError::Away { why: error.to_string() })?;
        let turn = u32::MAX - RECORDS.fetch_add(1, Ordering::Relaxed);
        let newest_first = u64::MAX - self.at.0;
        let prefix = prefix(app, room);
        let name = format!("{prefix}{newest_first:016x}:{turn:08x}{}", hex::encode(other));
        Ok(Key::new(Table::Audit, name).put(Expect::Absent, bytes))
    }
}

impl Rows {
    /// Keeps a record of an act that changes nothing in the store.
    pub(crate) async fn write_record(&self, record: Write) -> Result<(), StoreError> {
        self.store.write(vec![record]).await.map(|_| ())
    }

    /// Up to a page of what was done in a room, or to an app as a whole, the newest first, and the
    /// mark to go on after.
    pub(crate) async fn records(
        &self,
        app: AppId,
        room: Option<&RoomId>,
        after: Option<&str>,
    ) -> Result<(Vec<Record>, Option<String>), StoreError> {
        let prefix = prefix(app, room);
        let after = after.map(|it| format!("{prefix}{it}"));
        let rows = self.store.list(Table::Audit, prefix.clone(), after, PAGE_MAX).await?;
        let next = rows.last().filter(|_| rows.len() == PAGE_MAX);
        let next = next.and_then(|it| it.0.strip_prefix(&prefix)).map(str::to_owned);
        Ok((rows.iter().filter_map(|it| serde_json::from_slice(&it.1.bytes).ok()).collect(), next))
    }

    /// Removes records older than `life`, in the page after the name `after`. Gives the name to go
    /// on after.
    pub(crate) async fn purge_records(
        &self,
        now: Wall,
        life: Duration,
        after: Option<String>,
    ) -> Result<Option<String>, StoreError> {
        let (rows, next) = self.page(Table::Audit, after).await?;
        let oldest = now - life;
        let is_old = |name: &str| at(name).is_some_and(|it| it < oldest);
        let old = rows.into_iter().filter(|it| is_old(&it.0));
        let writes: Vec<_> = old.map(|it| Key::new(Table::Audit, it.0).remove()).collect();
        if !writes.is_empty() {
            self.store.write(writes).await?;
        }
        Ok(next)
    }
}

fn prefix(app: AppId, room: Option<&RoomId>) -> String {
    format!("{app}:{}:", room.map_or("", RoomId::as_str))
}

/// When the record of this name was made.
fn at(name: &str) -> Option<Wall> {
    let newest_first = name.split(':').nth(2)?;
    Some(Wall(u64::MAX - u64::from_str_radix(newest_first, 16).ok()?))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::store::RedbStore;

    #[tokio::test]
    async fn records_come_newest_first_and_are_forgotten_when_old() {
        let folder = tempfile::tempdir().unwrap();
        let store = RedbStore::open(&folder.path().join("rooms.redb")).unwrap();
        let rows = Rows::new(Arc::new(store));
        let (app, room) = (AppId(1), RoomId::parse("r").unwrap());
        let (old, new) = (Record::new(Wall(1000), "old"), Record::new(Wall(2000), "new"));
        for record in [&old, &new] {
            rows.write_record(record.write(app, Some(&room)).unwrap()).await.unwrap();
        }
        rows.write_record(old.write(app, None).unwrap()).await.unwrap();

        let both = (vec![new.clone(), old.clone()], None);
        assert_eq!(rows.records(app, Some(&room), None).await, Ok(both));
        assert_eq!(rows.records(app, None, None).await, Ok((vec![old], None)));
        assert_eq!(rows.records(AppId(2), Some(&room), None).await, Ok((vec![], None)));

        let life = Duration::from_millis(500);
        assert_eq!(rows.purge_records(Wall(2000), life, None).await, Ok(None));
        assert_eq!(rows.records(app, Some(&room), None).await, Ok((vec![new], None)));
        assert_eq!(rows.records(app, None, None).await, Ok((vec![], None)));
    }
}
