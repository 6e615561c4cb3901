//! Closed rooms, which are forgotten after a while: their names are free again then.
//!
//! An empty row stays, so that a later room of the name has later versions: whoever still knows the
//! old one takes it for what it is.

use std::time::Duration;

use proto::control::{Fact, RoomFact};
use proto::id::RoomId;
use proto::time::Wall;

use super::acts::ended;
use super::{List, PAGE_MAX, Record, Rows, Scope};
use crate::store::{Expect, Key, StoreError, Table, Write, Written, closed_key, rooms_key};

/// Rooms forgotten in one go.
const ROOMS_MAX: usize = 20;
/// What a room has of acts, by the beginning of their keys.
const KINDS: [&str; 6] = ["mute", "ban", "kick", "exclude", "person", "attribute"];

/// A room that was closed long ago.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Over {
    /// The room as it was.
    pub(crate) fact: RoomFact,
    mark: Key,
}

/// A page of what was said in a room.
#[derive(Debug)]
pub(crate) struct Past {
    /// What everyone is told before it is removed.
    pub(crate) ends: Vec<Fact>,
    rows: Vec<(String, u64)>,
}

/// Where it stands that a room was closed then.
pub(super) fn mark(room: &RoomId, at: Wall) -> Write {
    closed_key(room, at).put(Expect::Any, "")
}

impl Rows {
    /// Rooms that were closed longer than `life` ago, the first ones.
    pub(crate) async fn over(&self, now: Wall, life: Duration) -> Result<Vec<Over>, StoreError> {
        let marks = self.store.list(Table::Own, "closed:".to_owned(), None, ROOMS_MAX).await?;
        let oldest_kept = format!("closed:{:016x}", (now - life).0);
        let mut over = Vec::new();
        for (name, _) in marks.into_iter().take_while(|it| it.0 < oldest_kept) {
            let room = name.rsplit_once(':').and_then(|it| RoomId::parse(it.1).ok());
            let fact = match room {
                Some(room) => self.room(&room).await?.filter(|it| !it.open),
                None => None,
            };
            let mark = Key::new(Table::Own, name);
            match fact {
                Some(fact) => over.push(Over { fact, mark }),
                None => self.store.write(vec![mark.remove()]).await.map(|_| ())?,
            }
        }
        Ok(over)
    }

    /// Some of what was said in a room that is to be forgotten; None: nothing is left.
    pub(crate) async fn past(&self, over: &Over) -> Result<Option<Past>, StoreError> {
        for kind in KINDS {
            let prefix = format!("{kind}:{}:{}:", over.fact.app, over.fact.room);
            let rows = self.store.list(Table::Acts, prefix, None, PAGE_MAX).await?;
            if !rows.is_empty() {
                let acts = rows.iter().filter_map(|it| Fact::decode(&it.1.bytes).ok());
                let ends = acts.filter_map(ended).collect();
                let rows = rows.into_iter().map(|it| (it.0, it.1.version)).collect();
                return Ok(Some(Past { ends, rows }));
            }
        }
        Ok(None)
    }

    /// Removes it, once it is told; whether that could be done.
    pub(crate) async fn remove_past(&self, past: Past) -> Result<bool, StoreError> {
        self.remove_acts(past.rows).await
    }

    /// Forgets a room of which nothing else is left; whether it did.
    pub(crate) async fn forget(&self, over: Over, now: Wall) -> Result<bool, StoreError> {
        let Over { fact: RoomFact { app, room, version, .. }, mark } = over;
        let record = Record::new(now, "forget");
        let scope = Scope { app, room: Some(room.clone()) };
        let words = self.words_version(&scope).await?;
        if words > 0 {
            let none = List { version: now.0.max(words + 1), words: Vec::new() };
            self.write_words(&scope, words, &none, vec![record.write(app, Some(&room))?]).await?;
        }
        let count = self.one(rooms_key(app)).await?;
        let expect = count.as_ref().map_or(Expect::Absent, |it| Expect::Version(it.version));
        let rooms = count.and_then(|it| it.bytes.as_ref().try_into().ok());
        let rooms = rooms.map_or(0, u32::from_be_bytes).saturating_sub(1);
        let key = Key::new(Table::Rooms, room.as_str());
        let writes = vec![
            key.put(Expect::Version(version), ""),
            rooms_key(app).put(expect, rooms.to_be_bytes().to_vec()),
            mark.remove(),
            record.write(app, Some(&room))?,
        ];
        Ok(self.store.write(writes).await? == Written::Done)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proto::control::{Action, RoomSettings};
    use proto::id::{AppId, ViewerId};

    use super::super::Created;
    use super::*;
    use crate::store::RedbStore;
    use chatserver_core::words::Word;

    const LIFE: Duration = Duration::from_hours(24);

    #[tokio::test]
    async fn a_closed_room_is_forgotten_with_all_that_was_said_in_it() {
        let folder = tempfile::tempdir().unwrap();
        let store = RedbStore::open(&folder.path().join("rooms.redb")).unwrap();
        let rows = Rows::new(Arc::new(store));
        let (app, now) = (AppId(1), Wall(1_800_000_000_000));
        let record = Record::new(now, "test");
        let create = async |name| rows.create_room(room(name, 1, true), &record, 2).await;
        for name in ["r", "s"] {
            assert_eq!(create(name).await, Ok(Created::Done(room(name, 1, true))));
        }
        let viewer = ViewerId::parse("v").unwrap();
        let mute = |until| Fact::Mute { app, room: id("r"), viewer: viewer.clone(), until };
        rows.write_act(&mute(Wall(u64::MAX)), Expect::Absent, vec![], 1).await.unwrap();
        let words = vec![Word { text: "bad".to_owned(), action: Action::Refuse }];
        let (scope, list) = (Scope { app, room: Some(id("r")) }, List { version: 1, words });
        let write = record.write(app, None).unwrap();
        assert_eq!(rows.write_words(&scope, 0, &list, vec![write]).await, Ok(true));
        assert_eq!(rows.write_room(&room("r", 2, false), &record, vec![]).await, Ok(true));

        assert_eq!(rows.over(now + LIFE, LIFE).await, Ok(vec![]));
        let full = create("t").await;
        let over = rows.over(now + LIFE * 2, LIFE).await.unwrap().remove(0);
        let past = rows.past(&over).await.unwrap().unwrap();
        assert_eq!(past.ends, [mute(Wall(0))]);
        assert_eq!(rows.remove_past(past).await, Ok(true));
        assert!(rows.past(&over).await.unwrap().is_none());
        assert_eq!(rows.forget(over, now + LIFE * 2).await, Ok(true));

        assert_eq!(full, Ok(Created::TooMany));
        assert_eq!(rows.room(&id("r")).await, Ok(None));
        assert_eq!(rows.acts("", None).await, Ok((vec![], None)));
        assert_eq!(rows.words(&scope).await, Ok(List::default()));
        assert_eq!(rows.over(now + LIFE * 2, LIFE).await, Ok(vec![]));
        assert_eq!(rows.rooms(None).await, Ok((vec![room("s", 1, true)], None)));
        assert_eq!(create("r").await, Ok(Created::Done(room("r", 4, true))));
        assert_eq!(rows.room(&id("r")).await, Ok(Some(room("r", 4, true))));
    }

    fn id(name: &str) -> RoomId {
        RoomId::parse(name).unwrap()
    }

    fn room(name: &str, version: u64, open: bool) -> RoomFact {
        RoomFact { app: AppId(1), room: id(name), version, open, settings: RoomSettings::default() }
    }
}
