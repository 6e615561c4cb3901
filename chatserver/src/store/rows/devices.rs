//! Who is in rooms that take one device.

use std::time::Duration;

use chatserver_core::device::Place;
use proto::id::{AppId, RoomId, ViewerId};
use proto::time::Wall;
use serde::{Deserialize, Serialize};

use super::Rows;
use crate::store::{Change, Expect, Key, StoreError, Table, Value, Write, Written};

/// How long a place that nobody holds is remembered: records come again within seconds.
const EMPTY_LIFE: Duration = Duration::from_mins(10);

/// A viewer in a room.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) struct Subject {
    pub(crate) app: AppId,
    pub(crate) room: RoomId,
    pub(crate) viewer: ViewerId,
}

/// What is remembered of one.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub(crate) struct Row {
    pub(crate) place: Place,
    /// When the bus took the newest join.
    pub(crate) seen_at: Wall,
}

/// A row as it was read.
#[derive(Clone, Debug)]
pub(crate) struct Held {
    pub(crate) row: Row,
    /// What must be there for it to be replaced.
    pub(crate) expect: Expect,
}

impl Rows {
    /// What is remembered of these, in order.
    pub(crate) async fn devices(&self, subjects: &[Subject]) -> Result<Vec<Held>, StoreError> {
        let values = self.store.get(subjects.iter().map(key).collect()).await?;
        Ok(values.iter().map(held).collect())
    }

    /// Remembers these; whether it did, since somebody else may have been quicker.
    pub(crate) async fn write_devices(
        &self,
        rows: &[(&Subject, Expect, Row)],
    ) -> Result<bool, StoreError> {
        let writes = rows.iter().map(|(subject, expect, row)| {
            let bytes =
                serde_json::to_vec(row).expect("a row has no map and no failing serializer");
            key(subject).put(*expect, bytes)
        });
        Ok(self.store.write(writes.collect()).await? == Written::Done)
    }

    /// Forgets, in the page after the name `after`, who cannot be there any more: sessions live
    /// for `life` without telling. Gives the name to go on after.
    pub(crate) async fn purge_devices(
        &self,
        now: Wall,
        life: Duration,
        after: Option<String>,
    ) -> Result<Option<String>, StoreError> {
        let (rows, next) = self.page(Table::Devices, after).await?;
        let over = rows.into_iter().filter(|(_, value)| {
            let Row { place, seen_at } = held(&Some(value.clone())).row;
            seen_at + if place.is_empty() { EMPTY_LIFE } else { life } < now
        });
        for (name, value) in over {
            let (key, expect) = (Key::new(Table::Devices, name), Expect::Version(value.version));
            // Who came in meanwhile stays.
            self.store.write(vec![Write { key, expect, change: Change::Remove }]).await?;
        }
        Ok(next)
    }
}

fn key(Subject { app, room, viewer }: &Subject) -> Key {
    Key::new(Table::Devices, format!("{app}:{room}:{viewer}"))
}

/// A row that cannot be read is as good as none: the next join replaces it.
fn held(value: &Option<Value>) -> Held {
    match value {
        None => Held { row: Row::default(), expect: Expect::Absent },
        Some(value) => Held {
            row: serde_json::from_slice(&value.bytes).unwrap_or_default(),
            expect: Expect::Version(value.version),
        },
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use chatserver_core::device::{Session, Stay};
    use proto::id::{NodeId, SessionId};

    use super::*;
    use crate::store::RedbStore;

    const LIFE: Duration = Duration::from_mins(75);

    fn subject(viewer: &str) -> Subject {
        let room = RoomId::parse("r").unwrap();
        Subject { app: AppId(1), room, viewer: ViewerId::parse(viewer).unwrap() }
    }

    fn stay(at: Wall) -> Stay {
        Stay { at, session: Session { node: NodeId(1), session: SessionId(1) } }
    }

    #[tokio::test]
    async fn rows_are_replaced_by_who_read_them_last_and_forgotten_when_over() {
        let folder = tempfile::tempdir().unwrap();
        let store = RedbStore::open(&folder.path().join("rooms.redb")).unwrap();
        let rows = Rows::new(Arc::new(store));
        let subjects = [subject("there"), subject("gone")];
        let now = Wall(1_000_000_000);
        let mut there = Row { seen_at: now, ..Row::default() };
        there.place.join(stay(now));
        let gone = Row { seen_at: now, ..Row::default() };

        let [first, _] = rows.devices(&subjects).await.unwrap().try_into().unwrap();
        let written = [
            (&subjects[0], first.expect, there.clone()),
            (&subjects[1], Expect::Absent, gone.clone()),
        ];
        assert_eq!(rows.write_devices(&written).await, Ok(true));
        assert_eq!(rows.write_devices(&written).await, Ok(false));

        rows.purge_devices(now + EMPTY_LIFE * 2, LIFE, None).await.unwrap();
        let kept: Vec<_> = rows.devices(&subjects).await.unwrap();
        assert_eq!((&kept[0].row, kept[1].expect), (&there, Expect::Absent));
        rows.purge_devices(now + LIFE * 2, LIFE, None).await.unwrap();
        assert_eq!(rows.devices(&subjects).await.unwrap()[0].expect, Expect::Absent);
    }
}
