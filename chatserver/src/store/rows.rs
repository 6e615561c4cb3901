//! What lies in the room store's tables, by its types.

mod acts;
mod audit;
mod catalogue;
mod closed;
mod devices;
mod journal;
mod used;
mod words;

use std::sync::Arc;

use proto::control::{Fact, RoomFact};
use proto::id::RoomId;
use proto::time::Wall;

use super::{Expect, Key, RoomStore, StoreError, Table, Value, Write, Written, rooms_key};

pub(crate) use acts::{Acted, ended};
pub(crate) use audit::{Record, WHY_BYTES_MAX};
pub(crate) use closed::Over;
pub(crate) use devices::{Held, Row, Subject};
pub(crate) use journal::{Entry, Wrote};
pub(crate) use used::Used;
pub(crate) use words::{APP_WORDS_MAX, LISTS_MAX, List, Scope};

/// Rows of one page.
const PAGE_MAX: usize = 500;

/// The room store, by its rows.
#[derive(Clone, Debug)]
pub(crate) struct Rows {
    store: Arc<dyn RoomStore>,
    /// Whoever changes how many acts an app has holds it: all of them would write one row.
    counting: Arc<tokio::sync::Mutex<()>>,
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

fn floor_key(shard: u16) -> Key {
    Key::new(Table::Own, format!("floor:{shard}"))
}

fn damaged(what: &str) -> StoreError {
    StoreError::Away { why: format!("{what} is damaged") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::RedbStore;

    #[tokio::test]
    async fn the_first_secret_stays_also_when_the_store_is_opened_again() {
        let (rows, folder) = rows();

        assert_eq!(rows.sender_secret([1; 32]).await, Ok([1; 32]));
        assert_eq!(rows.sender_secret([2; 32]).await, Ok([1; 32]));
        drop(rows);
        let store = RedbStore::open(&folder.path().join("rooms.redb")).unwrap();
        assert_eq!(Rows::new(Arc::new(store)).sender_secret([3; 32]).await, Ok([1; 32]));
    }

    fn rows() -> (Rows, tempfile::TempDir) {
        let folder = tempfile::tempdir().unwrap();
        let store = RedbStore::open(&folder.path().join("rooms.redb")).unwrap();
        (Rows::new(Arc::new(store)), folder)
    }
}
