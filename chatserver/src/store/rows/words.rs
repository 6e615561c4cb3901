//! Lists of words, in parts that fit the store's values.

use chatserver_core::words::Word;
use proto::id::{AppId, RoomId};
use serde::{Deserialize, Serialize};

use super::{PAGE_MAX, Rows, damaged};
use crate::store::{Change, Expect, Key, StoreError, Table, Value, Write, Written};

/// Lists of one app: its own and its rooms'.
pub(crate) const LISTS_MAX: usize = 1000;
/// Words of all lists of one app, about 100 bytes each in every chatserver.
pub(crate) const APP_WORDS_MAX: usize = 400_000;
/// Bytes of a part, as JSON.
const PART_BYTES: usize = 48 * 1024;
/// How often a list is read again because it was replaced meanwhile.
const TRIES_MAX: usize = 5;

/// Whose list it is: an app's, or one room's.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) struct Scope {
    pub(crate) app: AppId,
    /// None: all rooms of the app.
    pub(crate) room: Option<RoomId>,
}

/// A list as it lies in the store.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct List {
    /// Rises with each change, also when the list was empty between; 0: there is none.
    pub(crate) version: u64,
    pub(crate) words: Vec<Word>,
}

/// What is kept beside the parts.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize)]
struct Head {
    version: u64,
    parts: usize,
    words: usize,
}

impl Rows {
    /// A list; empty where there is none.
    pub(crate) async fn words(&self, scope: &Scope) -> Result<List, StoreError> {
        for _ in 0..TRIES_MAX {
            let Some((_, Head { version, parts, .. })) = self.words_head(scope).await? else {
                return Ok(List::default());
            };
            let keys = (0..parts).map(|no| part_key(scope, version, no)).collect();
            let found: Option<Vec<_>> = self.store.get(keys).await?.into_iter().collect();
            // A missing part was removed by whoever replaced the list.
            let Some(found) = found else { continue };
            let mut words = Vec::new();
            for part in found {
                let part: Vec<Word> =
                    serde_json::from_slice(&part.bytes).map_err(|_| damaged("a list of words"))?;
                words.extend(part);
            }
            return Ok(List { version, words });
        }
        Err(StoreError::Away { why: "a list of words changes too fast".to_owned() })
    }

    /// Its version; 0: there is none.
    pub(crate) async fn words_version(&self, scope: &Scope) -> Result<u64, StoreError> {
        Ok(self.words_head(scope).await?.map_or(0, |it| it.1.version))
    }

    /// Puts `list` in the place of the one of version `before`; whether that one was there. An
    /// empty list leaves nothing.
    pub(crate) async fn write_words(
        &self,
        scope: &Scope,
        before: u64,
        list: &List,
        beside: Vec<Write>,
    ) -> Result<bool, StoreError> {
        let (expect, old) = match self.words_head(scope).await? {
            Some((row, head)) => (Expect::Version(row), head),
            None => (Expect::Absent, Head::default()),
        };
        if old.version != before {
            return Ok(false);
        }
        let parts = parts(&list.words);
        let head = Head { version: list.version, parts: parts.len(), words: list.words.len() };
        let bytes = serde_json::to_vec(&head).expect("numbers are JSON");
        let change = if head.words > 0 { Change::Put(bytes.into()) } else { Change::Remove };
        let mut writes = vec![Write { key: head_key(scope), expect, change }];
        writes.extend(beside);
        writes.extend((0..old.parts).map(|no| part_key(scope, before, no).remove()));
        let new = parts.into_iter().enumerate();
        writes
            .extend(new.map(|(no, part)| part_key(scope, list.version, no).put(Expect::Any, part)));
        Ok(self.store.write(writes).await? == Written::Done)
    }

    /// How many lists, other than that of `scope`, its app has, and how many words in them.
    pub(crate) async fn other_words(&self, scope: &Scope) -> Result<(usize, usize), StoreError> {
        self.counted_words(scope.app, Some(scope)).await
    }

    /// How many lists an app has, and how many words in them, but for those of `but`.
    pub(super) async fn counted_words(
        &self,
        app: AppId,
        but: Option<&Scope>,
    ) -> Result<(usize, usize), StoreError> {
        let prefix = format!("{HEAD}{app}:");
        let rows = self.store.list(Table::Words, prefix, None, LISTS_MAX).await?;
        let others = rows.iter().filter(|it| but.is_none() || scope_of(&it.0).as_ref() != but);
        let words = others.clone().filter_map(|it| head_of(&it.1).ok()).map(|it| it.words).sum();
        Ok((others.count(), words))
    }

    /// A page of the lists after the name `after`, and the name to go on after.
    pub(crate) async fn word_lists(
        &self,
        after: Option<String>,
    ) -> Result<(Vec<Scope>, Option<String>), StoreError> {
        let rows = self.store.list(Table::Words, HEAD.to_owned(), after, PAGE_MAX).await?;
        let next = rows.last().filter(|_| rows.len() == PAGE_MAX).map(|it| it.0.clone());
        Ok((rows.iter().filter_map(|it| scope_of(&it.0)).collect(), next))
    }

    /// The row's version and what it says.
    async fn words_head(&self, scope: &Scope) -> Result<Option<(u64, Head)>, StoreError> {
        let Some(value) = self.one(head_key(scope)).await? else { return Ok(None) };
        Ok(Some((value.version, head_of(&value)?)))
    }
}

fn head_of(value: &Value) -> Result<Head, StoreError> {
    serde_json::from_slice(&value.bytes).map_err(|_| damaged("a list of words"))
}

/// The list as JSON arrays of about [`PART_BYTES`].
fn parts(words: &[Word]) -> Vec<Vec<u8>> {
    let mut parts: Vec<Vec<u8>> = Vec::new();
    for word in words {
        let word = serde_json::to_vec(word).expect("a word has no map and no failing serializer");
        match parts.last_mut().filter(|it| it.len() + word.len() < PART_BYTES) {
            Some(part) => part.push(b','),
            None => parts.push(vec![b'[']),
        }
        if let Some(part) = parts.last_mut() {
            part.extend(word);
        }
    }
    for part in &mut parts {
        part.push(b']');
    }
    parts
}

/// Heads come before parts in the table.
const HEAD: &str = "head:";

fn name(scope: &Scope) -> String {
    format!("{}:{}", scope.app, scope.room.as_ref().map_or("", |it| it.as_str()))
}

fn head_key(scope: &Scope) -> Key {
    Key::new(Table::Words, format!("{HEAD}{}", name(scope)))
}

fn part_key(scope: &Scope, version: u64, no: usize) -> Key {
    Key::new(Table::Words, format!("part:{}:{version:016x}:{no:04}", name(scope)))
}

fn scope_of(name: &str) -> Option<Scope> {
    let (app, room) = name.strip_prefix(HEAD)?.split_once(':')?;
    let room = if room.is_empty() { None } else { Some(RoomId::parse(room).ok()?) };
    Some(Scope { app: AppId(app.parse().ok()?), room })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proto::control::Action;
    use proto::time::Wall;

    use super::super::Record;
    use super::*;
    use crate::store::RedbStore;

    fn word(text: &str) -> Word {
        Word { text: text.to_owned(), action: Action::Refuse }
    }

    #[tokio::test]
    async fn a_list_of_many_parts_comes_back_and_is_replaced_whole() {
        let folder = tempfile::tempdir().unwrap();
        let store = RedbStore::open(&folder.path().join("rooms.redb")).unwrap();
        let rows = Rows::new(Arc::new(store));
        let scope = Scope { app: AppId(1), room: Some(RoomId::parse("r").unwrap()) };
        let many: Vec<Word> = (0..10_000).map(|no| word(&format!("word {no} \"\u{0}"))).collect();

        let full = List { version: 7, words: many };
        let small = List { version: 9, words: vec![word("x")] };
        let none = List { version: 12, words: Vec::new() };

        let record = || Record::new(Wall(1), "words").write(AppId(1), None).unwrap();

        assert_eq!(rows.words(&scope).await, Ok(List::default()));
        assert_eq!(rows.write_words(&scope, 0, &full, vec![record()]).await, Ok(true));
        assert!(parts(&full.words).len() > 5);
        assert_eq!(rows.words(&scope).await, Ok(full.clone()));
        assert_eq!(rows.write_words(&scope, 0, &small, vec![record()]).await, Ok(false));
        assert_eq!(rows.write_words(&scope, 7, &small, vec![record()]).await, Ok(true));
        assert_eq!(rows.words(&scope).await, Ok(small));
        assert_eq!(rows.word_lists(None).await, Ok((vec![scope.clone()], None)));
        assert_eq!(rows.other_words(&scope).await, Ok((0, 0)));
        assert_eq!(rows.other_words(&Scope { room: None, ..scope.clone() }).await, Ok((1, 1)));
        assert_eq!(rows.write_words(&scope, 9, &none, vec![record()]).await, Ok(true));
        assert_eq!(rows.store.list(Table::Words, String::new(), None, 9).await.unwrap().len(), 0);
    }
}
