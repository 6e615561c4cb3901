//! What heads name besides segments: the dictionary of the smaller form, gift catalogues.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;
use proto::dictionary::{Dictionary, DictionaryId, DictionaryInfo};
use proto::head::Head;
use proto::id::RoomId;
use proto::segment::Segment;

use super::Driver;
use super::jobs::Done;
use crate::event::Event;
use crate::options::Options;
use crate::sealed::Keys;
use crate::segments::{self, FetchError, Name, fetch_sealed, fetch_with};

/// Slots in a row that were there, but not in the smaller form: then it is not asked for until a
/// head names a dictionary again.
const FAILURES_MAX: u32 = 3;

/// What is known of dictionaries and catalogues.
#[derive(Debug, Default)]
pub(super) struct Aside {
    dictionary: Option<Dictionary>,
    /// By room, the one that its head named.
    named: BTreeMap<RoomId, DictionaryId>,
    /// The one that is being fetched.
    asked: Option<DictionaryId>,
    failures: u32,
    /// By room, the version of the newest catalogue that was fetched or is being fetched.
    catalogues: BTreeMap<RoomId, u32>,
    /// Rooms whose catalogue is being fetched.
    fetching: BTreeSet<RoomId>,
}

/// Whether a slot came in the smaller form.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Form {
    /// It did.
    Small,
    /// It was asked for, and the slot came without.
    Fallback,
    /// It was not asked for, or nothing came.
    Plain,
}

impl Aside {
    /// What a room's slots are read with.
    pub(super) fn dictionary(&self, room: &RoomId) -> Option<Dictionary> {
        let named = self.named.get(room)?;
        self.dictionary.clone().filter(|it| it.id() == *named)
    }

    /// Hears what a room's head names; gives it if it is to be fetched.
    fn names(&mut self, room: &RoomId, named: Option<DictionaryInfo>) -> Option<DictionaryInfo> {
        match named {
            Some(named) => self.named.insert(room.clone(), named.id),
            None => self.named.remove(room),
        };
        let is_new = |it: &DictionaryInfo| {
            self.asked != Some(it.id)
                && self.dictionary.as_ref().is_none_or(|had| had.id() != it.id)
        };
        let wanted = named.filter(is_new)?;
        self.asked = Some(wanted.id);
        Some(wanted)
    }

    /// Notes in which form a slot came.
    pub(super) fn came(&mut self, form: Form) {
        match form {
            Form::Small => self.failures = 0,
            Form::Fallback => self.failures += 1,
            Form::Plain => {}
        }
        if self.failures >= FAILURES_MAX {
            self.dictionary = None;
            self.failures = 0;
        }
    }
}

impl Driver {
    /// Has fetched what a head names and is not known yet.
    pub(super) fn look_aside(&mut self, room: &RoomId, head: &Head) {
        if let Some(named) = self.aside.names(room, head.dict) {
            let (options, base) = (Arc::clone(&self.options), self.bases.pick(0, self.now()));
            self.jobs.push(Box::pin(async move {
                let dictionary = match base {
                    Some(base) => {
                        let wait = options.waits.fetch;
                        segments::dictionary(&options.http, &base, named, wait).await
                    }
                    None => Err(FetchError::NotYet),
                };
                Done::Dictionary(dictionary.inspect_err(note).ok())
            }));
        }
        let known = self.aside.catalogues.get(room).copied().unwrap_or(0);
        if head.catalogue > known {
            self.aside.catalogues.insert(room.clone(), head.catalogue);
            self.fetch_catalogue(room.clone(), Some(head.clone()));
        }
    }

    /// Fetches the room's catalogue, unless that is under way; without a head, the room's newest is
    /// read first.
    pub(super) fn fetch_catalogue(&mut self, room: RoomId, head: Option<Head>) {
        if !self.aside.fetching.insert(room.clone()) {
            return;
        }
        let (options, base) = (Arc::clone(&self.options), self.bases.pick(0, self.now()));
        self.jobs.push(Box::pin(async move {
            let found = match base {
                Some(base) => catalogue(&options, &base, &room, head).await,
                None => Err(FetchError::NotYet),
            };
            Done::Catalogue { room, found: found.inspect_err(note).ok() }
        }));
    }

    pub(super) fn has_dictionary(&mut self, dictionary: Option<Dictionary>) {
        self.aside.asked = None;
        if dictionary.is_some() {
            self.aside.dictionary = dictionary;
            self.aside.failures = 0;
        }
    }

    /// A catalogue that did not come is asked for again with the next head.
    pub(super) fn has_catalogue(&mut self, room: RoomId, found: Option<(u32, Option<Bytes>)>) {
        self.aside.fetching.remove(&room);
        match found {
            Some((version, catalogue)) => {
                self.aside.catalogues.insert(room.clone(), version);
                self.outbox.push_back(Event::Catalogue { room, version, catalogue });
            }
            None => drop(self.aside.catalogues.remove(&room)),
        }
    }
}

/// The version and the bytes; none where there is no catalogue.
async fn catalogue(
    options: &Options,
    base: &str,
    room: &RoomId,
    head: Option<Head>,
) -> Result<(u32, Option<Bytes>), FetchError> {
    let wait = options.waits.fetch;
    let head = match head {
        Some(head) => head,
        None => segments::head(&options.http, base, room, wait).await?,
    };
    let bytes = segments::catalogue(&options.http, base, &head, wait).await?;
    Ok((head.catalogue, bytes.map(Bytes::from)))
}

/// Fetches a slot: in the smaller form where that can be read, else, and when that fails, as it is.
pub(super) async fn fetch_smallest(
    options: &Options,
    base: &str,
    name: &Name,
    keys: &Keys,
    dictionary: Option<&Dictionary>,
) -> (Result<Segment, FetchError>, Form) {
    let wait = options.waits.fetch;
    if let Some(dictionary) = dictionary {
        match fetch_with(&options.http, base, name, dictionary, wait).await {
            Ok(segment) => return (Ok(segment), Form::Small),
            Err(error) => note(&error),
        }
    }
    let segment = fetch_sealed(&options.http, base, name, keys, wait).await;
    let is_fallback = dictionary.is_some() && segment.is_ok();
    (segment, if is_fallback { Form::Fallback } else { Form::Plain })
}

fn note(error: &FetchError) {
    tracing::debug!(error = format!("{error:#}"), "no file");
}
