//! Closed rooms, which are forgotten after a while: their names are free again then.
//!
//! An empty row stays, so that a later room of the name has later versions: whoever still knows the
//! old one takes it for what it is.

use std::time::Duration;

use proto::control::RoomFact;
use proto::id::RoomId;
use proto::time::Wall;

use super::{List, PAGE_MAX, Record, Rows, Scope};
use crate::store::{Expect, Key, StoreError, Table, Write, Written, rooms_key};

/// Rooms forgotten in one go.
const ROOMS_MAX: usize = 20;
/// What a room has of acts, by the beginning of their keys.
const KINDS: [&str; 6] = ["mute", "ban", "kick", "exclude", "person", "attribute"];

/// Where it stands that a room was closed then.
pub(super) fn mark(room: &RoomId, at: Wall) -> Write {
    Key::new(Table::Own, format!("closed:{:016x}:{room}", at.0)).put(Expect::Any, "")
}

impl Rows {
    /// Forgets rooms that were closed longer than `life` ago, with everything that was said in them.
    /// Gives how many; some may be left.
    pub(crate) async fn purge_rooms(&self, now: Wall, life: Duration) -> Result<usize, StoreError> {
        let marks = self.store.list(Table::Own, "closed:".to_owned(), None, ROOMS_MAX).await?;
        let oldest_kept = format!("closed:{:016x}", (now - life).0);
        let mut forgotten = 0;
        for (name, _) in marks.into_iter().take_while(|it| it.0 < oldest_kept) {
            let room = name.rsplit_once(':').and_then(|it| RoomId::parse(it.1).ok());
            let mark = Key::new(Table::Own, name).remove();
            match room {
                Some(room) => forgotten += usize::from(self.forget_room(&room, mark, now).await?),
                None => self.store.write(vec![mark]).await.map(|_| ())?,
            }
        }
        Ok(forgotten)
    }

    /// Whether the room was there.
    async fn forget_room(&self, room: &RoomId, mark: Write, now: Wall) -> Result<bool, StoreError> {
        let Some(fact) = self.room(room).await?.filter(|it| !it.open) else {
            return self.store.write(vec![mark]).await.map(|_| false);
        };
        // Its people first: should this end in between, it goes on from the mark.
        for kind in KINDS {
            self.forget_acts(&format!("{kind}:{}:{room}:", fact.app)).await?;
        }
        let RoomFact { app, version, .. } = fact;
        let record = Record::new(now, "forget");
        let scope = Scope { app, room: Some(room.clone()) };
        let words = self.words_version(&scope).await?;
        if words > 0 {
            let none = List { version: now.0.max(words + 1), words: Vec::new() };
            self.write_words(&scope, words, &none, record.write(app, Some(room))?).await?;
        }
        let count = self.one(rooms_key(app)).await?;
        let expect = count.as_ref().map_or(Expect::Absent, |it| Expect::Version(it.version));
        let rooms = count.and_then(|it| it.bytes.as_ref().try_into().ok());
        let rooms = rooms.map_or(0, u32::from_be_bytes).saturating_sub(1);
        let key = Key::new(Table::Rooms, room.as_str());
        let writes = vec![
            key.put(Expect::Version(version), ""),
            rooms_key(app).put(expect, rooms.to_be_bytes().to_vec()),
            mark,
            record.write(app, Some(room))?,
        ];
        Ok(self.store.write(writes).await? == Written::Done)
    }

    async fn forget_acts(&self, prefix: &str) -> Result<(), StoreError> {
        loop {
            let rows = self.store.list(Table::Acts, prefix.to_owned(), None, PAGE_MAX).await?;
            let writes: Vec<_> =
                rows.iter().map(|it| Key::new(Table::Acts, it.0.clone()).remove()).collect();
            if writes.is_empty() {
                return Ok(());
            }
            self.store.write(writes).await?;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proto::control::{Action, Fact, RoomSettings};
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
        let mute = Fact::Mute { app, room: id("r"), viewer, until: Wall(u64::MAX) };
        rows.write_act(&mute, Expect::Any, record.write(app, None).unwrap()).await.unwrap();
        let words = vec![Word { text: "bad".to_owned(), action: Action::Refuse }];
        let (scope, list) = (Scope { app, room: Some(id("r")) }, List { version: 1, words });
        let write = record.write(app, None).unwrap();
        assert_eq!(rows.write_words(&scope, 0, &list, write).await, Ok(true));
        assert_eq!(rows.write_room(&room("r", 2, false), &record).await, Ok(true));

        assert_eq!(rows.purge_rooms(now + LIFE, LIFE).await, Ok(0));
        let full = create("t").await;
        assert_eq!(rows.purge_rooms(now + LIFE * 2, LIFE).await, Ok(1));

        assert_eq!(full, Ok(Created::TooMany));
        assert_eq!(rows.room(&id("r")).await, Ok(None));
        assert_eq!(rows.acts("", None).await, Ok((vec![], None)));
        assert_eq!(rows.words(&scope).await, Ok(List::default()));
        assert_eq!(rows.purge_rooms(now + LIFE * 2, LIFE).await, Ok(0));
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
