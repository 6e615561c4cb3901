//! Gift catalogues on their way to whoever publishes them: in parts that fit a fact.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::id::AppId;
use crate::limits::{CATALOGUE_BYTES_MAX, CATALOGUE_PART_BYTES};

/// Path of an app's gift catalogue below a segment base.
#[must_use]
pub fn catalogue_path(app: AppId, version: u32) -> String {
    format!("dm/1/catalogue/{app}/{version}.json")
}

/// A part of an app's gift catalogue.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub struct CataloguePart {
    /// Whose.
    pub app: AppId,
    /// Rises by one with each change; from 1.
    pub version: u32,
    /// Which part, from 0.
    pub part: u16,
    /// How many parts there are.
    pub parts: u16,
    /// The catalogue's JSON from here on, at most [`CATALOGUE_PART_BYTES`].
    pub text: String,
}

impl CataloguePart {
    /// Cuts a catalogue.
    #[must_use]
    pub fn cut(app: AppId, version: u32, text: &str) -> Vec<Self> {
        let mut texts = Vec::new();
        let mut rest = text;
        while !rest.is_empty() {
            let (text, behind) = rest.split_at(rest.floor_char_boundary(CATALOGUE_PART_BYTES));
            texts.push(text.to_owned());
            rest = behind;
        }
        let parts = u16::try_from(texts.len()).unwrap_or(u16::MAX);
        let parts =
            (0..parts).zip(texts).map(|(part, text)| Self { app, version, part, parts, text });
        parts.collect()
    }
}

/// Parts of one app's catalogue until it is whole.
#[derive(Clone, Debug, Default)]
pub struct Gathering {
    version: u32,
    parts: u16,
    texts: BTreeMap<u16, String>,
}

impl Gathering {
    /// Takes a part; gives the version and the catalogue that it makes whole. A part of an older
    /// version than the newest seen changes nothing.
    pub fn take(&mut self, part: CataloguePart) -> Option<(u32, String)> {
        let CataloguePart { version, part, parts, text, .. } = part;
        if version < self.version || part >= parts {
            return None;
        }
        if version > self.version {
            *self = Self { version, parts, texts: BTreeMap::new() };
        }
        if parts != self.parts || self.bytes() + text.len() > CATALOGUE_BYTES_MAX {
            return None;
        }
        self.texts.insert(part, text);
        if self.texts.len() < usize::from(parts) {
            return None;
        }
        let texts = std::mem::take(&mut self.texts);
        Some((version, texts.into_values().collect()))
    }

    fn bytes(&self) -> usize {
        self.texts.values().map(String::len).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::Fact;
    use crate::limits::FACT_BYTES_MAX;

    /// Every second byte is escaped in a fact, which is the most that JSON text needs.
    fn text(bytes: usize) -> String {
        "\"ü\"\\"
            .chars()
            .cycle()
            .scan(0, |sum, it| {
                *sum += it.len_utf8();
                (*sum <= bytes).then_some(it)
            })
            .collect()
    }

    #[test]
    fn parts_fit_a_fact_and_make_the_whole_in_any_order() {
        let whole = text(CATALOGUE_BYTES_MAX);
        let mut parts = CataloguePart::cut(AppId(u32::MAX), u32::MAX, &whole);
        assert!(parts.len() > 10);
        parts.reverse();
        let mut gathering = Gathering::default();

        let mut found = Vec::new();
        for part in parts {
            assert!(Fact::Catalogue(part.clone()).encode().len() <= FACT_BYTES_MAX);
            found.extend(gathering.take(part));
        }

        assert_eq!(found, [(u32::MAX, whole)]);
    }

    #[test]
    fn versions_are_not_mixed() {
        let [old, new] = [(1, "a"), (2, "b")].map(|(version, it)| {
            CataloguePart::cut(AppId(1), version, &it.repeat(CATALOGUE_PART_BYTES + 1))
        });
        let mut gathering = Gathering::default();

        assert_eq!(gathering.take(old[0].clone()), None);
        assert_eq!(gathering.take(new[1].clone()), None);
        assert_eq!(gathering.take(old[1].clone()), None);
        let whole = gathering.take(new[0].clone());

        assert_eq!(whole, Some((2, "b".repeat(CATALOGUE_PART_BYTES + 1))));
    }
}
