//! The journal: items that are durable before they are acknowledged, under keys that stand for them.

use std::time::Duration;

use chatserver_core::journal::Open;
use proto::envelope::{Accepted, AcceptedBatch};
use proto::id::ItemId;
use proto::time::Wall;

use super::{PAGE_MAX, Rows, damaged};
use crate::store::{Expect, Key, StoreError, Table, Value, Write, Written};

/// How long a key stands for its first content. Requests are repeated within minutes.
const KEY_LIFE: Duration = Duration::from_hours(24);
/// Open entries looked at for one partition, about 500 bytes each: minutes of all lanes' shares of
/// many rooms, and far more than wait when all is well.
const OPEN_MAX: usize = 5000;

/// What became of an item that was to be journaled.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Wrote {
    /// It is durable.
    New,
    /// Its id was there before, with content of this digest.
    Known([u8; 32]),
    /// What was to be written with it found something else than it expected.
    Changed,
}

/// A journaled item on its way in.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    /// What is to be shown, and where.
    pub(crate) accepted: Accepted,
    /// Partition of the room on `accepted`.
    pub(crate) partition: u32,
    /// What makes two requests the same.
    pub(crate) digest: [u8; 32],
    /// Now.
    pub(crate) written_at: Wall,
}

impl Rows {
    /// The digest of the content that an item id stands for.
    pub(crate) async fn digest(&self, id: ItemId) -> Result<Option<[u8; 32]>, StoreError> {
        let value = self.one(Key::new(Table::Keys, hex_of(id))).await?;
        Ok(value.and_then(|it| it.bytes.as_ref().try_into().ok()))
    }

    /// Journals an item, unless its id is known, and writes `beside` with it, or neither.
    pub(crate) async fn journal(
        &self,
        entry: Entry,
        beside: Vec<Write>,
    ) -> Result<Wrote, StoreError> {
        let Entry { accepted, partition, digest, written_at } = entry;
        let id = accepted.item.id;
        let batch = AcceptedBatch { entries: vec![accepted] };
        let row = [&written_at.0.to_be_bytes()[..], &batch.encode()].concat();
        let age = format!("{:016x}:{}", written_at.0, hex_of(id));
        let mut writes = vec![
            Key::new(Table::Keys, hex_of(id)).put(Expect::Absent, digest.to_vec()),
            Key::new(Table::Ages, age).put(Expect::Any, partition.to_be_bytes().to_vec()),
            open_key(partition, id).put(Expect::Any, row),
        ];
        writes.extend(beside);
        match self.store.write(writes).await? {
            Written::Done => Ok(Wrote::New),
            // The first one that found something else: the key.
            Written::Conflict { index: 1.. } => Ok(Wrote::Changed),
            Written::Conflict { index: 0 } => {
                let known = self.digest(id).await?;
                Ok(Wrote::Known(known.ok_or_else(|| damaged("an idempotency key"))?))
            }
        }
    }

    /// The open entries of a partition, at most [`OPEN_MAX`].
    pub(crate) async fn open(&self, partition: u32) -> Result<Vec<Open>, StoreError> {
        let prefix = format!("{partition:04}:");
        let rows = self.store.list(Table::Open, prefix, None, OPEN_MAX).await?;
        Ok(rows.into_iter().filter_map(|(name, value)| open_of(&name, &value)).collect())
    }

    /// Closes entries; those that are not open do not matter.
    pub(crate) async fn close(&self, ids: &[(u32, ItemId)]) -> Result<(), StoreError> {
        for ids in ids.chunks(PAGE_MAX) {
            let writes = ids.iter().map(|&(partition, id)| open_key(partition, id).remove());
            self.store.write(writes.collect()).await?;
        }
        Ok(())
    }

    /// Forgets idempotency keys that are older than [`KEY_LIFE`] and not open; at most a page.
    pub(crate) async fn purge_keys(&self, now: Wall) -> Result<(), StoreError> {
        let rows = self.store.list(Table::Ages, String::new(), None, PAGE_MAX).await?;
        let oldest_kept = format!("{:016x}", (now - KEY_LIFE).0);
        let mut over = Vec::new();
        for (name, value) in rows {
            if name >= oldest_kept {
                break;
            }
            let partition = value.bytes.as_ref().try_into().map(u32::from_be_bytes).unwrap_or(0);
            if let Some(id) = name.rsplit_once(':').and_then(|it| id_of(it.1)) {
                over.push((name, open_key(partition, id), id));
            }
        }
        let open = self.store.get(over.iter().map(|it| it.1.clone()).collect()).await?;
        let closed = over.into_iter().zip(open).filter(|it| it.1.is_none());
        let writes: Vec<Write> = closed
            .flat_map(|((name, _, id), _)| {
                [Key::new(Table::Keys, hex_of(id)).remove(), Key::new(Table::Ages, name).remove()]
            })
            .collect();
        if writes.is_empty() {
            return Ok(());
        }
        self.store.write(writes).await.map(|_| ())
    }
}

fn open_of(name: &str, value: &Value) -> Option<Open> {
    let open = value.bytes.split_first_chunk().and_then(|(written_at, batch)| {
        let accepted = AcceptedBatch::decode(batch).ok()?.entries.pop()?;
        Some(Open { accepted, written_at: Wall(u64::from_be_bytes(*written_at)) })
    });
    if open.is_none() {
        tracing::warn!(name, "a journal entry is damaged");
    }
    open
}

fn open_key(partition: u32, id: ItemId) -> Key {
    Key::new(Table::Open, format!("{partition:04}:{}", hex_of(id)))
}

fn hex_of(id: ItemId) -> String {
    format!("{:016x}", id.0)
}

fn id_of(hex: &str) -> Option<ItemId> {
    u64::from_str_radix(hex, 16).ok().map(ItemId)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proto::id::{AppId, RoomId, SenderRef};
    use proto::item::{Body, Item, Lane, Role};

    use super::*;
    use crate::store::RedbStore;

    const NOW: Wall = Wall(1_800_000_000_000);

    #[tokio::test]
    async fn keys_are_forgotten_a_day_after_their_item_was_closed() {
        let (rows, _folder) = rows();
        let (shown, open) = (ItemId(1), ItemId(2));
        for id in [shown, open] {
            assert_eq!(rows.journal(entry(id), vec![]).await, Ok(Wrote::New));
        }
        rows.close(&[(3, shown)]).await.unwrap();

        rows.purge_keys(NOW + KEY_LIFE).await.unwrap();
        assert_eq!(rows.digest(shown).await, Ok(Some([7; 32])));
        rows.purge_keys(NOW + KEY_LIFE + Duration::from_millis(1)).await.unwrap();

        assert_eq!(rows.digest(shown).await, Ok(None));
        assert_eq!(rows.digest(open).await, Ok(Some([7; 32])));
        assert_eq!(rows.open(3).await.unwrap().len(), 1);
    }

    #[tokio::test]
    async fn a_journaled_item_comes_back_as_it_was() {
        let (rows, _folder) = rows();
        rows.journal(entry(ItemId(1)), vec![]).await.unwrap();

        let open = rows.open(3).await.unwrap();

        let expected = Open { accepted: entry(ItemId(1)).accepted, written_at: NOW };
        assert_eq!(open, [expected]);
        assert_eq!(rows.open(4).await, Ok(vec![]));
        assert_eq!(rows.journal(entry(ItemId(1)), vec![]).await, Ok(Wrote::Known([7; 32])));
    }

    #[tokio::test]
    async fn an_item_is_journaled_with_what_is_written_beside_it_or_not_at_all() {
        let (rows, _folder) = rows();
        let (guard, record) = (Key::new(Table::Acts, "g"), Key::new(Table::Audit, "r"));
        let beside = |expect| {
            vec![guard.clone().keep(expect), record.clone().put(Expect::Absent, &b"it"[..])]
        };

        let changed = rows.journal(entry(ItemId(1)), beside(Expect::Version(1))).await;
        let before = (rows.open(3).await.unwrap().len(), rows.one(record.clone()).await.unwrap());
        let written = rows.journal(entry(ItemId(1)), beside(Expect::Absent)).await;

        assert_eq!((changed, before), (Ok(Wrote::Changed), (0, None)));
        assert_eq!(written, Ok(Wrote::New));
        assert_eq!(rows.one(record.clone()).await.unwrap().unwrap().bytes, "it");
        let again = rows.journal(entry(ItemId(1)), beside(Expect::Absent)).await;
        assert_eq!(again, Ok(Wrote::Known([7; 32])));
    }

    fn rows() -> (Rows, tempfile::TempDir) {
        let folder = tempfile::tempdir().unwrap();
        let store = RedbStore::open(&folder.path().join("rooms.redb")).unwrap();
        (Rows::new(Arc::new(store)), folder)
    }

    fn entry(id: ItemId) -> Entry {
        let item = Item {
            id,
            lane: Lane::Notice,
            sender: SenderRef(0),
            role: Role::Host,
            at: NOW,
            body: Body::Notice { text: "hello".into() },
        };
        let accepted = Accepted { app: AppId(1), room: RoomId::parse("r").unwrap(), item };
        Entry { accepted, partition: 3, digest: [7; 32], written_at: NOW }
    }
}
