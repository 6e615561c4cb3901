//! Lists of words, in parts that fit the store's values.

use chatserver_core::words::Word;
use proto::id::{AppId, RoomId};
use serde::{Deserialize, Serialize};

use super::{Rows, damaged};
use crate::store::{Expect, Key, StoreError, Table, Write, Written};

/// Lists of all apps and rooms together.
pub(crate) const LISTS_MAX: usize = 1000;
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
    /// Rises by one with each change; 0: there was none yet.
    pub(crate) version: u64,
    pub(crate) words: Vec<Word>,
}

/// What is kept beside the parts.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
struct Head {
    parts: usize,
}

impl Rows {
    /// A list; empty where there is none.
    pub(crate) async fn words(&self, scope: &Scope) -> Result<List, StoreError> {
        for _ in 0..TRIES_MAX {
            let (version, parts) = self.words_head(scope).await?;
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

    /// Replaces the list of version `before`; its new version, or `None` if that is not there.
    pub(crate) async fn write_words(
        &self,
        scope: &Scope,
        before: u64,
        words: &[Word],
    ) -> Result<Option<u64>, StoreError> {
        let (version, old_parts) = self.words_head(scope).await?;
        if version != before {
            return Ok(None);
        }
        let parts = parts(words);
        let head = serde_json::to_vec(&Head { parts: parts.len() }).expect("a number is JSON");
        let expect = if before == 0 { Expect::Absent } else { Expect::Version(before) };
        let mut writes: Vec<Write> = vec![head_key(scope).put(expect, head)];
        writes.extend((0..old_parts).map(|no| part_key(scope, before, no).remove()));
        let new = parts.into_iter().enumerate();
        writes.extend(new.map(|(no, part)| part_key(scope, before + 1, no).put(Expect::Any, part)));
        let written = self.store.write(writes).await?;
        Ok((written == Written::Done).then_some(before + 1))
    }

    /// Every list that was ever written, at most [`LISTS_MAX`].
    pub(crate) async fn word_lists(&self) -> Result<Vec<Scope>, StoreError> {
        let rows = self.store.list(Table::Words, HEAD.to_owned(), None, LISTS_MAX).await?;
        Ok(rows.iter().filter_map(|it| scope_of(&it.0)).collect())
    }

    /// Version and parts of a list.
    async fn words_head(&self, scope: &Scope) -> Result<(u64, usize), StoreError> {
        let Some(value) = self.one(head_key(scope)).await? else { return Ok((0, 0)) };
        let head: Head =
            serde_json::from_slice(&value.bytes).map_err(|_| damaged("a list of words"))?;
        Ok((value.version, head.parts))
    }
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

        assert_eq!(rows.words(&scope).await.unwrap(), List::default());
        assert_eq!(rows.write_words(&scope, 0, &many).await, Ok(Some(1)));
        assert!(parts(&many).len() > 5);
        assert_eq!(rows.words(&scope).await.unwrap(), List { version: 1, words: many });
        assert_eq!(rows.write_words(&scope, 0, &[]).await, Ok(None));
        assert_eq!(rows.write_words(&scope, 1, &[word("x")]).await, Ok(Some(2)));
        assert_eq!(rows.words(&scope).await.unwrap().words, [word("x")]);
        assert_eq!(rows.word_lists().await, Ok(vec![scope]));
        let left = rows.store.list(Table::Words, "part:".to_owned(), None, 100).await.unwrap();
        assert_eq!(left.len(), 1);
    }
}
