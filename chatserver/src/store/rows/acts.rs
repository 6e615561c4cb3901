//! What was done to people, and what rooms have written up: facts, each under its own key.

use proto::control::Fact;
use proto::time::Wall;

use super::{PAGE_MAX, Rows};
use crate::store::{Expect, Key, StoreError, Table, Value, Write, Written};

/// How long a kick is told to those who start: no ticket lives longer.
const KICK_LIFE: std::time::Duration = auth_core::revocation::NOT_BEFORE_LIFE;

impl Rows {
    /// What is said under the key of `act`, and what must be there for it to be replaced.
    pub(crate) async fn act(&self, act: &Fact) -> Result<(Option<Fact>, Expect), StoreError> {
        let found = self.one(Key::new(Table::Acts, act.key())).await?;
        let expect = found.as_ref().map_or(Expect::Absent, |it| Expect::Version(it.version));
        Ok((found.and_then(|it| Fact::decode(&it.bytes).ok()), expect))
    }

    /// Writes an act and who did it; whether it did.
    pub(crate) async fn write_act(
        &self,
        act: &Fact,
        expect: Expect,
        record: Write,
    ) -> Result<bool, StoreError> {
        let write = Key::new(Table::Acts, act.key()).put(expect, act.encode());
        Ok(self.store.write(vec![write, record]).await? == Written::Done)
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
        let remove = |(name, value): (String, Value)| {
            let (key, expect) = (Key::new(Table::Acts, name), Expect::Version(value.version));
            Write { key, expect, bytes: None }
        };
        let writes: Vec<_> = over.map(remove).collect();
        if !writes.is_empty() {
            // What was written meanwhile stays, and the rest of the page waits for the next time.
            self.store.write(writes).await?;
        }
        Ok(next)
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
        | Fact::Revoked { .. } => NEVER,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use proto::control::Standing;
    use proto::id::{AppId, RoomId, ViewerId};

    use super::super::Record;
    use super::*;
    use crate::store::RedbStore;

    const NOW: Wall = Wall(1_800_000_000_000);

    #[tokio::test]
    async fn acts_that_are_over_are_removed() {
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
            let record = Record::new(NOW, "test").write(AppId(1), None).unwrap();
            assert_eq!(rows.write_act(act, Expect::Absent, record).await, Ok(true));
        }

        assert_eq!(rows.purge_acts(NOW, None).await, Ok(None));

        assert_eq!(rows.acts("", None).await, Ok((vec![lasting.clone(), listed], None)));
        assert_eq!(rows.acts("mute:", None).await, Ok((vec![lasting], None)));
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
