//! Files beside the slots, shared by rooms: the house's dictionary, and an app's gift catalogues.
//!
//! Heads name them, so a room's stores are given them together with the first slot whose head does.
//! They are never changed and never removed: slots and clients of long ago may still need them.

use std::collections::BTreeMap;

use broadcaster_core::pack::compress;
use bytes::Bytes;
use proto::control::{CataloguePart, Gathering};
use proto::dictionary::DictionaryInfo;
use proto::head::Head;
use proto::id::AppId;

use crate::press::files::Printer;
use crate::store::File;

/// Apps whose catalogues are published, up to 128 KiB each in memory.
const APPS_MAX: usize = 1_000;
/// A store that went without a slot may have gone without these files: all are given them again
/// with every so-manieth slot.
const AGAIN_SLOTS: u64 = 64;

/// What is to be beside the slots.
#[derive(Debug, Default)]
pub(super) struct Aside {
    catalogues: BTreeMap<AppId, Catalogue>,
}

/// An app's catalogue: the newest that is whole, and what comes.
#[derive(Debug, Default)]
struct Catalogue {
    version: u32,
    bytes: Bytes,
    next: Gathering,
}

/// What the stores of one room were given last.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct Given {
    dict: Option<DictionaryInfo>,
    catalogue: u32,
}

impl Aside {
    /// Hears a part of a catalogue; false if there are too many apps.
    pub(super) fn hear(&mut self, part: CataloguePart, printer: &Printer) -> bool {
        let app = part.app;
        if self.catalogues.len() >= APPS_MAX && !self.catalogues.contains_key(&app) {
            return false;
        }
        let catalogue = self.catalogues.entry(app).or_default();
        if let Some((version, text)) = catalogue.next.take(part) {
            catalogue.version = version;
            catalogue.bytes = compress(text.as_bytes(), printer.packing.encoding);
        }
        true
    }

    /// Names in the head of an app's room what there is, and gives the files that its stores may
    /// not have.
    pub(super) fn name(
        &self,
        app: AppId,
        printer: &Printer,
        head: &mut Head,
        given: &mut Given,
    ) -> Vec<(File, Bytes)> {
        let catalogue = self.catalogues.get(&app).filter(|it| it.version > 0);
        let lexicon = printer.packing.lexicon.as_ref();
        head.catalogue = catalogue.map_or(0, |it| it.version);
        head.app = catalogue.map(|_| app);
        // Files of a sealed room have one form.
        let lexicon = lexicon.filter(|_| !head.sealed);
        head.dict = lexicon.map(|it| it.info());
        let named = Given { dict: head.dict, catalogue: head.catalogue };
        if std::mem::replace(given, named) == named && !head.slot.0.is_multiple_of(AGAIN_SLOTS) {
            return Vec::new();
        }
        let catalogue = catalogue.map(|it| (File::Catalogue(app, it.version), it.bytes.clone()));
        let dictionary = lexicon.map(|it| {
            let dictionary = it.dictionary();
            (File::Dictionary(dictionary.id()), dictionary.bytes().clone())
        });
        catalogue.into_iter().chain(dictionary).collect()
    }
}
