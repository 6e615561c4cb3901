//! What an app has in the room store.

use proto::id::AppId;

use super::Rows;
use crate::store::{StoreError, Value, acts_key, rooms_key};

/// What an app has.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Used {
    /// Closed ones too.
    pub(crate) rooms: u32,
    pub(crate) acts: u32,
    pub(crate) words: usize,
    /// Lists of words.
    pub(crate) lists: usize,
}

impl Rows {
    /// What an app has.
    pub(crate) async fn used(&self, app: AppId) -> Result<Used, StoreError> {
        let keys = vec![rooms_key(app), acts_key(&app.to_string())];
        let counts = self.store.get(keys).await?;
        let count = |it: &Option<Value>| {
            let bytes = it.as_ref().and_then(|it| it.bytes.as_ref().try_into().ok());
            bytes.map_or(0, u32::from_be_bytes)
        };
        let counts: Vec<u32> = counts.iter().map(count).collect();
        let (lists, words) = self.counted_words(app, None).await?;
        let of = |no: usize| counts.get(no).copied().unwrap_or_default();
        Ok(Used { rooms: of(0), acts: of(1), words, lists })
    }
}
