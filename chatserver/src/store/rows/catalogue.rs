//! Gift catalogues: each app's newest, in the parts in which it is told.

use proto::control::{CataloguePart, Fact, Gathering};
use proto::id::AppId;

use super::{Rows, damaged};
use crate::store::{Expect, Key, StoreError, Table, Value, Write, Written};

impl Rows {
    /// An app's catalogue and its version; `None` if it set none.
    pub(crate) async fn catalogue(&self, app: AppId) -> Result<Option<(u32, String)>, StoreError> {
        let (facts, _) = self.acts(&format!("catalogue:{app}:"), None).await?;
        let is_any = !facts.is_empty();
        let mut gathering = Gathering::default();
        let mut parts = facts.into_iter().filter_map(part_of);
        let whole = parts.find_map(|it| gathering.take(it));
        if is_any && whole.is_none() {
            return Err(damaged("a gift catalogue"));
        }
        Ok(whole)
    }

    /// The version of an app's catalogue; 0 if it set none.
    pub(crate) async fn catalogue_version(&self, app: AppId) -> Result<u32, StoreError> {
        let first = self.one(key(app, 0)).await?;
        Ok(first.as_ref().and_then(part).map_or(0, |it| it.version))
    }

    /// Puts a catalogue in the place of the one of version `before`, with `record` beside it. Gives
    /// what is to be told; `None` if another one was there.
    pub(crate) async fn write_catalogue(
        &self,
        app: AppId,
        before: u32,
        text: &str,
        record: Write,
    ) -> Result<Option<Vec<Fact>>, StoreError> {
        let first = self.one(key(app, 0)).await?;
        let expect = first.as_ref().map_or(Expect::Absent, |it| Expect::Version(it.version));
        let old = first.as_ref().and_then(part);
        if old.as_ref().map_or(0, |it| it.version) != before {
            return Ok(None);
        }
        let parts = CataloguePart::cut(app, before.saturating_add(1), text);
        let surplus = parts.len()..old.map_or(0, |it| it.parts.into());
        let facts: Vec<Fact> = parts.into_iter().map(Fact::Catalogue).collect();
        let mut writes = vec![record];
        for (number, fact) in facts.iter().enumerate() {
            let expect = if number == 0 { expect } else { Expect::Any };
            writes.push(Key::new(Table::Acts, fact.key()).put(expect, fact.encode()));
        }
        writes.extend(surplus.map(|it| key(app, it).remove()));
        let written = self.store.write(writes).await?;
        Ok((written == Written::Done).then_some(facts))
    }
}

fn key(app: AppId, part: usize) -> Key {
    Key::new(Table::Acts, format!("catalogue:{app}:{part}"))
}

fn part(value: &Value) -> Option<CataloguePart> {
    Fact::decode(&value.bytes).ok().and_then(part_of)
}

fn part_of(fact: Fact) -> Option<CataloguePart> {
    if let Fact::Catalogue(part) = fact { Some(part) } else { None }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proto::limits::CATALOGUE_PART_BYTES;
    use proto::time::Wall;

    use super::super::Record;
    use super::*;
    use crate::store::RedbStore;

    #[tokio::test]
    async fn a_catalogue_is_replaced_whole_and_only_by_who_knew_it() {
        let folder = tempfile::tempdir().unwrap();
        let store = RedbStore::open(&folder.path().join("rooms.redb")).unwrap();
        let rows = Rows::new(Arc::new(store));
        let (app, other) = (AppId(1), AppId(11));
        let long = format!("[{:?}]", "x".repeat(11 * CATALOGUE_PART_BYTES));
        let record = || Record::new(Wall(1), "catalogue").write(app, None).unwrap();

        assert_eq!(rows.catalogue(app).await, Ok(None));
        let told = rows.write_catalogue(app, 0, &long, record()).await.unwrap().unwrap();
        assert_eq!(told.len(), 12);
        assert_eq!(rows.catalogue(app).await, Ok(Some((1, long))));
        assert_eq!(rows.write_catalogue(app, 0, "[]", record()).await, Ok(None));
        let told = rows.write_catalogue(app, 1, "[]", record()).await.unwrap().unwrap();

        assert_eq!(told.len(), 1);
        assert_eq!(rows.catalogue(app).await, Ok(Some((2, "[]".to_owned()))));
        assert_eq!(rows.catalogue_version(app).await, Ok(2));
        assert_eq!(rows.catalogue(other).await, Ok(None));
        assert_eq!(rows.acts("", None).await, Ok((told, None)));
    }
}
