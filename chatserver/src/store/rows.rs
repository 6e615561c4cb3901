//! What lies in the room store's tables, by its types.

mod acts;
mod audit;
mod closed;
mod devices;
mod used;
mod words;

use std::sync::Arc;
use std::time::Duration;

use chatserver_core::journal::Open;
use proto::control::{Fact, RoomFact};
use proto::envelope::{Accepted, AcceptedBatch};
use proto::id::{ItemId, RoomId};
use proto::time::Wall;

use super::{Expect, Key, RoomStore, StoreError, Table, Value, Write, Written, rooms_key};

pub(crate) use acts::{Acted, ended};
pub(crate) use audit::{Record, WHY_BYTES_MAX};
pub(crate) use closed::Over;
pub(crate) use devices::{Held, Row, Subject};
pub(crate) use used::Used;
pub(crate) use words::{APP_WORDS_MAX, LISTS_MAX, List, Scope};

/// How long a key stands for its first content. Requests are repeated within minutes.
pub(crate) const KEY_LIFE: Duration = Duration::from_hours(24);
/// Open entries looked at for one partition, about 500 bytes each: minutes of all lanes' shares of
/// many rooms, and far more than wait when all is well.
const OPEN_MAX: usize = 5000;
/// Rows of one page.
const PAGE_MAX: usize = 500;

/// The room store, by its rows.
#[derive(Clone, Debug)]
pub(crate) struct Rows {
    store: Arc<dyn RoomStore>,
    /// Whoever changes how many acts an app has holds it: all of them would write one row.
    counting: Arc<tokio::sync::Mutex<()>>,
}

/// Whether a write was the first one.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Wrote<T> {
    /// It was, and is durable.
    New,
    /// This was there before.
    Known(T),
    /// What was to be written with it found something else than it expected.
    Changed,
}

/// What became of a new room.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Created {
    /// It is there, like this.
    Done(RoomFact),
    /// Somebody else was quicker with it, or with another room of the app.
    Changed,
    /// The app has as many as it may.
    TooMany,
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
    pub(crate) fn new(store: Arc<dyn RoomStore>) -> Self {
        Self { store, counting: Arc::default() }
    }

    /// A room; its version is that of its row.
    pub(crate) async fn room(&self, room: &RoomId) -> Result<Option<RoomFact>, StoreError> {
        Ok(self.one(Key::new(Table::Rooms, room.as_str())).await?.and_then(|it| room_of(&it)))
    }

    /// Up to a page of rooms after the name `after`, and the name to go on after.
    pub(crate) async fn rooms(
        &self,
        after: Option<String>,
    ) -> Result<(Vec<RoomFact>, Option<String>), StoreError> {
        let (rows, next) = self.page(Table::Rooms, after).await?;
        Ok((rows.iter().filter_map(|it| room_of(&it.1)).collect(), next))
    }

    /// Makes a room, unless its app has `rooms_max` already. Closed ones count.
    pub(crate) async fn create_room(
        &self,
        mut fact: RoomFact,
        record: &Record,
        rooms_max: u32,
    ) -> Result<Created, StoreError> {
        let room = Key::new(Table::Rooms, fact.room.as_str());
        // Of a forgotten room there is an empty row.
        let before = self.one(room.clone()).await?;
        if before.as_ref().is_some_and(|it| !it.bytes.is_empty()) {
            return Ok(Created::Changed);
        }
        let before = before.map(|it| it.version);
        fact.version = before.unwrap_or(0) + 1;
        let count = self.one(rooms_key(fact.app)).await?;
        let expect = count.as_ref().map_or(Expect::Absent, |it| Expect::Version(it.version));
        let count = count.and_then(|it| it.bytes.as_ref().try_into().ok());
        let rooms = count.map_or(0, u32::from_be_bytes);
        if rooms >= rooms_max {
            return Ok(Created::TooMany);
        }
        let writes = vec![
            room.put(
                before.map_or(Expect::Absent, Expect::Version),
                Fact::Room(fact.clone()).encode(),
            ),
            rooms_key(fact.app).put(expect, (rooms + 1).to_be_bytes().to_vec()),
            record.write(fact.app, Some(&fact.room))?,
        ];
        match self.store.write(writes).await? {
            Written::Done => Ok(Created::Done(fact)),
            Written::Conflict { .. } => Ok(Created::Changed),
        }
    }

    /// Writes a room if its row has the version before `fact.version`, and `guards` hold; whether
    /// it did.
    pub(crate) async fn write_room(
        &self,
        fact: &RoomFact,
        record: &Record,
        guards: Vec<Write>,
    ) -> Result<bool, StoreError> {
        let expect = match fact.version.saturating_sub(1) {
            0 => Expect::Absent,
            before => Expect::Version(before),
        };
        let bytes = Fact::Room(fact.clone()).encode();
        let write = Key::new(Table::Rooms, fact.room.as_str()).put(expect, bytes);
        let at = record.at;
        let mut writes = vec![write, record.write(fact.app, Some(&fact.room))?];
        writes.extend((!fact.open).then(|| closed::mark(&fact.room, at)));
        writes.extend(guards);
        Ok(self.store.write(writes).await? == Written::Done)
    }

    /// What the store says about the things that these facts are about, in order.
    pub(crate) async fn current(&self, facts: &[Fact]) -> Result<Vec<Option<Fact>>, StoreError> {
        let key = |fact: &Fact| {
            if let Fact::Room(it) = fact {
                Key::new(Table::Rooms, it.room.as_str())
            } else {
                Key::new(Table::Acts, fact.key())
            }
        };
        let values = self.store.get(facts.iter().map(key).collect()).await?;
        let facts = values.into_iter().map(|value| match Fact::decode(&value.as_ref()?.bytes) {
            Ok(Fact::Room(_)) => room_of(&value?).map(Fact::Room),
            fact => fact.ok(),
        });
        Ok(facts.collect())
    }

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
    ) -> Result<Wrote<[u8; 32]>, StoreError> {
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

    /// The secret behind sender refs; `fresh` becomes it if there is none.
    pub(crate) async fn sender_secret(&self, fresh: [u8; 32]) -> Result<[u8; 32], StoreError> {
        let key = Key::new(Table::Own, "sender-secret");
        self.store.write(vec![key.clone().put(Expect::Absent, fresh.to_vec())]).await?;
        let secret = self.one(key).await?.and_then(|it| it.bytes.as_ref().try_into().ok());
        secret.ok_or_else(|| damaged("the secret behind sender refs"))
    }

    /// The time before which a shard may have drawn ids.
    pub(crate) async fn floor(&self, shard: u16) -> Result<Wall, StoreError> {
        let value = self.one(floor_key(shard)).await?;
        let floor = value.and_then(|it| it.bytes.as_ref().try_into().ok());
        Ok(Wall(floor.map_or(0, u64::from_be_bytes)))
    }

    /// Raises that time.
    pub(crate) async fn write_floor(&self, shard: u16, floor: Wall) -> Result<(), StoreError> {
        let write = floor_key(shard).put(Expect::Any, floor.0.to_be_bytes().to_vec());
        self.store.write(vec![write]).await.map(|_| ())
    }

    async fn one(&self, key: Key) -> Result<Option<Value>, StoreError> {
        Ok(self.store.get(vec![key]).await?.pop().flatten())
    }

    async fn page(
        &self,
        table: Table,
        after: Option<String>,
    ) -> Result<(Vec<(String, Value)>, Option<String>), StoreError> {
        let rows = self.store.list(table, String::new(), after, PAGE_MAX).await?;
        let next = rows.last().filter(|_| rows.len() == PAGE_MAX).map(|it| it.0.clone());
        Ok((rows, next))
    }
}

fn room_of(value: &Value) -> Option<RoomFact> {
    match Fact::decode(&value.bytes) {
        Ok(Fact::Room(fact)) => Some(RoomFact { version: value.version, ..fact }),
        Ok(_) | Err(_) => None,
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

fn floor_key(shard: u16) -> Key {
    Key::new(Table::Own, format!("floor:{shard}"))
}

fn hex_of(id: ItemId) -> String {
    format!("{:016x}", id.0)
}

fn id_of(hex: &str) -> Option<ItemId> {
    u64::from_str_radix(hex, 16).ok().map(ItemId)
}

fn damaged(what: &str) -> StoreError {
    StoreError::Away { why: format!("{what} is damaged") }
}

#[cfg(test)]
mod tests {
    use proto::id::{AppId, SenderRef};
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

    #[tokio::test]
    async fn the_first_secret_stays() {
        let (rows, _folder) = rows();

        assert_eq!(rows.sender_secret([1; 32]).await, Ok([1; 32]));
        assert_eq!(rows.sender_secret([2; 32]).await, Ok([1; 32]));
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
