//! What was done to people, and what rooms have written up: facts, each under its own key.
//!
//! Each app's are counted in a row of their own: on `control` every one takes a key.

use std::collections::BTreeMap;

use proto::control::{Fact, Standing};
use proto::time::Wall;

use super::{PAGE_MAX, Rows};
use crate::store::{Change, Expect, Key, StoreError, Table, Value, Write, Written, acts_key};

/// How long a kick is told to those who start: no ticket lives longer.
const KICK_LIFE: std::time::Duration = auth_core::revocation::NOT_BEFORE_LIFE;
/// How often a removal is tried again because something was written meanwhile.
const TRIES_MAX: usize = 5;

/// What became of an act.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Acted {
    /// It is written.
    Done,
    /// Something else stands there than was expected, or the app did something else meanwhile.
    Changed,
    /// The app has as many acts as it may.
    TooMany,
}

impl Rows {
    /// What is said under the key of `act`, and what must be there for it to be replaced.
    pub(crate) async fn act(&self, act: &Fact) -> Result<(Option<Fact>, Expect), StoreError> {
        let found = self.one(Key::new(Table::Acts, act.key())).await?;
        let expect = found.as_ref().map_or(Expect::Absent, |it| Expect::Version(it.version));
        Ok((found.and_then(|it| Fact::decode(&it.bytes).ok()), expect))
    }

    /// Writes an act, and `beside` it who did it, if that is to be remembered, and what that one's
    /// right rests on. Where nothing stands yet, the app must have fewer than `acts_max`, unless
    /// the act only ends something.
    pub(crate) async fn write_act(
        &self,
        act: &Fact,
        expect: Expect,
        beside: Vec<Write>,
        acts_max: u32,
    ) -> Result<Acted, StoreError> {
        let key = act.key();
        let mut writes = beside;
        let mut turn = None;
        if expect == Expect::Absent {
            turn = Some(self.counting.lock().await);
            let (count, counted) = self.count_of(app_of(&key)).await?;
            if count >= acts_max && ends(act) > Wall(0) {
                // It may have come between, and is there to be changed.
                let is_there = self.one(Key::new(Table::Acts, key)).await?.is_some();
                return Ok(if is_there { Acted::Changed } else { Acted::TooMany });
            }
            writes.push(acts_key(app_of(&key)).put(counted, (count + 1).to_be_bytes().to_vec()));
        }
        writes.push(Key::new(Table::Acts, key).put(expect, act.encode()));
        let written = self.store.write(writes).await?;
        drop(turn);
        match written {
            Written::Done => Ok(Acted::Done),
            Written::Conflict { .. } => Ok(Acted::Changed),
        }
    }

    /// The row of what a viewer is in a room, which must not change before something is done.
    pub(crate) fn guard(person: &Fact, expect: Expect) -> Write {
        Key::new(Table::Acts, person.key()).keep(expect)
    }

    /// Whether what others' rights rest on is still as it was.
    pub(crate) async fn hold(&self, guards: &[Write]) -> Result<bool, StoreError> {
        let rows = self.store.get(guards.iter().map(|it| it.key.clone()).collect()).await?;
        Ok(rows.into_iter().zip(guards).all(|(row, guard)| match guard.expect {
            Expect::Any => true,
            Expect::Absent => row.is_none(),
            Expect::Version(version) => row.is_some_and(|it| it.version == version),
        }))
    }

    /// How many acts an app has, and what must be there for that to be replaced.
    async fn count_of(&self, app: &str) -> Result<(u32, Expect), StoreError> {
        let found = self.one(acts_key(app)).await?;
        let expect = found.as_ref().map_or(Expect::Absent, |it| Expect::Version(it.version));
        let count = found.and_then(|it| it.bytes.as_ref().try_into().ok());
        Ok((count.map_or(0, u32::from_be_bytes), expect))
    }

    /// Acts whose keys begin with `prefix`, at most `acts_max`.
    pub(crate) async fn count_acts(
        &self,
        prefix: String,
        acts_max: usize,
    ) -> Result<usize, StoreError> {
        Ok(self.store.list(Table::Acts, prefix, None, acts_max).await?.len())
    }

    /// Up to a page of the acts whose keys begin with `prefix` and come after `after`, and the key
    /// to go on after.
    pub(crate) async fn acts(
        &self,
        prefix: &str,
        after: Option<String>,
    ) -> Result<(Vec<Fact>, Option<String>), StoreError> {
        let rows = self.store.list(Table::Acts, prefix.to_owned(), after, PAGE_MAX).await?;
        let next = rows.last().filter(|_| rows.len() == PAGE_MAX).map(|it| it.0.clone());
        Ok((rows.iter().filter_map(|it| Fact::decode(&it.1.bytes).ok()).collect(), next))
    }

    /// Removes what is over, in the page after the key `after`. Gives the key to go on after.
    pub(crate) async fn purge_acts(
        &self,
        now: Wall,
        after: Option<String>,
    ) -> Result<Option<String>, StoreError> {
        let (rows, next) = self.page(Table::Acts, after).await?;
        let is_over = |it: &Value| Fact::decode(&it.bytes).is_ok_and(|it| ends(&it) <= now);
        let over = rows.into_iter().filter(|it| is_over(&it.1));
        // What was written meanwhile stays, and what is left waits for the next time.
        self.remove_acts(over.map(|(name, value)| (name, value.version)).collect()).await?;
        Ok(next)
    }

    /// Removes acts, by key and version; whether all of them that still stand are gone.
    pub(super) async fn remove_acts(
        &self,
        mut acts: Vec<(String, u64)>,
    ) -> Result<bool, StoreError> {
        let _turn = self.counting.lock().await;
        for _ in 0..TRIES_MAX {
            if acts.is_empty() {
                return Ok(true);
            }
            let mut apps: BTreeMap<&str, u32> = BTreeMap::new();
            let mut writes = Vec::with_capacity(acts.len() + 1);
            for (name, version) in &acts {
                *apps.entry(app_of(name)).or_default() += 1;
                let (key, expect) = (Key::new(Table::Acts, name), Expect::Version(*version));
                writes.push(Write { key, expect, change: Change::Remove });
            }
            for (app, removed) in apps {
                let (count, counted) = self.count_of(app).await?;
                let count = count.saturating_sub(removed).to_be_bytes().to_vec();
                writes.push(acts_key(app).put(counted, count));
            }
            match self.store.write(writes).await? {
                Written::Done => return Ok(true),
                Written::Conflict { index } if index < acts.len() => {
                    acts.remove(index);
                }
                // The app's count has changed.
                Written::Conflict { .. } => {}
            }
        }
        Ok(false)
    }
}

/// The app in the key of an act.
fn app_of(key: &str) -> &str {
    key.split(':').nth(1).unwrap_or_default()
}

/// What everyone is told instead of an act of a room that is forgotten. None: it ends by itself.
pub(crate) fn ended(act: Fact) -> Option<Fact> {
    match act {
        Fact::Mute { app, room, viewer, .. } => {
            Some(Fact::Mute { app, room, viewer, until: Wall(0) })
        }
        Fact::Ban { app, room, viewer, .. } => {
            Some(Fact::Ban { app, room, viewer, until: Wall(0) })
        }
        Fact::Exclude { app, room, what, .. } => {
            Some(Fact::Exclude { app, room, what, until: Wall(0) })
        }
        Fact::Person { app, room, viewer, .. } => {
            Some(Fact::Person { app, room, viewer, standing: Standing::default() })
        }
        Fact::Attribute { app, room, mut attribute } => {
            attribute.version += 1;
            attribute.value = None;
            Some(Fact::Attribute { app, room, attribute })
        }
        Fact::Kick { .. }
        | Fact::Epoch(_)
        | Fact::Room(_)
        | Fact::Close { .. }
        | Fact::Keep { .. }
        | Fact::Heat { .. }
        | Fact::Bases { .. }
        | Fact::Move { .. }
        | Fact::Lease(_)
        | Fact::Policy(_)
        | Fact::Sdk(_)
        | Fact::Words { .. }
        | Fact::Catalogue(_)
        | Fact::Sealed { .. }
        | Fact::Revoked { .. } => None,
    }
}

/// When an act need not be told any more.
fn ends(act: &Fact) -> Wall {
    const NEVER: Wall = Wall(u64::MAX);
    match act {
        Fact::Mute { until, .. } | Fact::Ban { until, .. } | Fact::Exclude { until, .. } => *until,
        Fact::Kick { not_before, .. } => *not_before + KICK_LIFE,
        Fact::Person { standing, .. } if standing.is_none() => Wall(0),
        Fact::Attribute { attribute, .. } if attribute.value.is_none() => Wall(0),
        Fact::Person { .. }
        | Fact::Attribute { .. }
        | Fact::Epoch(_)
        | Fact::Room(_)
        | Fact::Close { .. }
        | Fact::Keep { .. }
        | Fact::Heat { .. }
        | Fact::Bases { .. }
        | Fact::Move { .. }
        | Fact::Lease(_)
        | Fact::Policy(_)
        | Fact::Sdk(_)
        | Fact::Words { .. }
        | Fact::Catalogue(_)
        | Fact::Sealed { .. }
        | Fact::Revoked { .. } => NEVER,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use proto::id::{AppId, RoomId, ViewerId};
    use proto::item::Role;

    use super::super::Record;
    use super::*;
    use crate::store::RedbStore;

    const NOW: Wall = Wall(1_800_000_000_000);

    #[tokio::test]
    async fn acts_that_are_over_are_removed_and_no_longer_counted() {
        let folder = tempfile::tempdir().unwrap();
        let store = RedbStore::open(&folder.path().join("rooms.redb")).unwrap();
        let rows = Rows::new(Arc::new(store));
        let lasting = mute("lasting", NOW + Duration::from_millis(1));
        let listed = person("listed", Standing { listed: true, ..Standing::default() });
        let acts = [
            mute("over", NOW),
            mute("lifted", Wall(0)),
            person("nobody", Standing::default()),
            lasting.clone(),
            listed.clone(),
        ];
        for act in &acts {
            let record = vec![Record::new(NOW, "test").write(AppId(1), None).unwrap()];
            assert_eq!(rows.write_act(act, Expect::Absent, record, 10).await, Ok(Acted::Done));
        }
        let one_more = mute("more", NOW + Duration::from_secs(1));
        let full = rows.write_act(&one_more, Expect::Absent, vec![], 5).await;

        assert_eq!(full, Ok(Acted::TooMany));
        assert_eq!(rows.count_of("1").await.map(|it| it.0), Ok(5));
        assert_eq!(rows.purge_acts(NOW, None).await, Ok(None));
        assert_eq!(rows.count_of("1").await.map(|it| it.0), Ok(2));

        assert_eq!(rows.acts("", None).await, Ok((vec![lasting.clone(), listed], None)));
        assert_eq!(rows.acts("mute:", None).await, Ok((vec![lasting], None)));
    }

    #[tokio::test]
    async fn nothing_is_done_on_a_right_that_ended_meanwhile() {
        let folder = tempfile::tempdir().unwrap();
        let store = RedbStore::open(&folder.path().join("rooms.redb")).unwrap();
        let rows = Rows::new(Arc::new(store));
        let moderator = Standing { role: Some(Role::Moderator), ..Standing::default() };
        let write = async |standing, expect| {
            rows.write_act(&person("mod", standing), expect, vec![], 10).await
        };
        write(moderator, Expect::Absent).await.unwrap();
        let guards = vec![Rows::guard(&person("mod", moderator), Expect::Version(1))];
        let mute = |name| mute(name, Wall(u64::MAX));
        let before = rows.write_act(&mute("a"), Expect::Absent, guards.clone(), 10).await;

        write(Standing::default(), Expect::Version(1)).await.unwrap();
        let after = rows.write_act(&mute("b"), Expect::Absent, guards.clone(), 10).await;

        assert_eq!((before, after), (Ok(Acted::Done), Ok(Acted::Changed)));
        assert_eq!(rows.hold(&guards).await, Ok(false));
        assert_eq!(rows.acts("mute:", None).await, Ok((vec![mute("a")], None)));
    }

    #[tokio::test]
    async fn whoever_has_all_acts_that_an_app_may_have_can_still_change_and_end_them() {
        let folder = tempfile::tempdir().unwrap();
        let store = RedbStore::open(&folder.path().join("rooms.redb")).unwrap();
        let rows = Rows::new(Arc::new(store));
        let write = async |act: &Fact, expect| rows.write_act(act, expect, vec![], 1).await;
        let first = mute("first", NOW);
        assert_eq!(write(&first, Expect::Absent).await, Ok(Acted::Done));

        assert_eq!(write(&mute("second", NOW), Expect::Absent).await, Ok(Acted::TooMany));
        assert_eq!(write(&mute("second", Wall(0)), Expect::Absent).await, Ok(Acted::Done));
        assert_eq!(write(&first, Expect::Absent).await, Ok(Acted::Changed));
        assert_eq!(write(&first, Expect::Version(1)).await, Ok(Acted::Done));
    }

    fn mute(name: &str, until: Wall) -> Fact {
        Fact::Mute { app: AppId(1), room: room(), viewer: viewer(name), until }
    }

    fn person(name: &str, standing: Standing) -> Fact {
        Fact::Person { app: AppId(1), room: room(), viewer: viewer(name), standing }
    }

    fn room() -> RoomId {
        RoomId::parse("r").unwrap()
    }

    fn viewer(name: &str) -> ViewerId {
        ViewerId::parse(name).unwrap()
    }
}
