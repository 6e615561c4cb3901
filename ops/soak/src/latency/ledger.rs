//! Who heard what, and when.

use std::collections::BTreeMap;

use kit::clock::Clock;
use parking_lot::Mutex;
use serde_json::Value;

/// A kind of reader.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) enum Way {
    /// The long connection.
    Push,
    /// `live.flv`.
    Flv,
    /// The RTMP push.
    Rtmp,
    /// Segments, each asked for before it is there, as an edge does: the origin holds the question.
    Segments,
    /// A viewer by segments, who asks some hundred milliseconds after a slot's end so that edges have
    /// it and not everybody asks at once.
    Viewer,
    /// Fragments of the HLS playlist.
    Hls,
}

impl Way {
    pub(super) const ALL: [Self; 6] =
        [Self::Push, Self::Flv, Self::Rtmp, Self::Segments, Self::Viewer, Self::Hls];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Push => "push",
            Self::Flv => "flv",
            Self::Rtmp => "rtmp",
            Self::Segments => "segments",
            Self::Viewer => "viewer",
            Self::Hls => "hls",
        }
    }

    /// What 99 of a hundred comments take at most, in milliseconds: the first three are told each
    /// flush, the others each slot, and the playlist is asked for now and then.
    pub(super) const fn p99_ms_max(self, interval_ms: u64) -> u64 {
        match self {
            Self::Push | Self::Flv | Self::Rtmp => 500,
            Self::Segments => interval_ms + 300,
            // 300 ms for edges to have it, and 300 to spread over.
            Self::Viewer => interval_ms + 900,
            Self::Hls => interval_ms + 500,
        }
    }
}

/// The first time that each reader had each text.
#[derive(Debug)]
pub(super) struct Ledger {
    clock: Clock,
    heard: Mutex<BTreeMap<Way, Heard>>,
}

#[derive(Debug, Default)]
struct Heard {
    /// Microseconds of the clock, by text.
    at: BTreeMap<String, u64>,
    again: usize,
}

impl Ledger {
    pub(super) const fn new(clock: Clock) -> Self {
        Self { clock, heard: Mutex::new(BTreeMap::new()) }
    }

    pub(super) fn hear(&self, way: Way, text: &str) {
        let at = self.clock.micros();
        let mut heard = self.heard.lock();
        let heard = heard.entry(way).or_default();
        if heard.at.insert(text.to_owned(), at).is_some() {
            heard.again += 1;
        }
    }

    /// Takes the items of a flush or a slot in JSON.
    pub(super) fn hear_json(&self, way: Way, json: &[u8]) -> anyhow::Result<()> {
        let page: Value = serde_json::from_slice(json)?;
        let items = page["items"].as_array().into_iter().flatten();
        items.filter_map(|it| it["text"].as_str()).for_each(|it| self.hear(way, it));
        Ok(())
    }

    /// Everything that a reader heard.
    pub(super) fn heard(&self, way: Way) -> BTreeMap<String, u64> {
        self.heard.lock().get(&way).map(|it| it.at.clone()).unwrap_or_default()
    }

    /// Whether a reader heard all of these.
    pub(super) fn has<'a>(&self, way: Way, mut texts: impl Iterator<Item = &'a String>) -> bool {
        let heard = self.heard.lock();
        let heard = heard.get(&way);
        texts.all(|text| heard.is_some_and(|it| it.at.contains_key(text)))
    }

    /// Those who have heard nothing yet.
    pub(super) fn silent(&self) -> Vec<Way> {
        let heard = self.heard.lock();
        Way::ALL.into_iter().filter(|it| !heard.contains_key(it)).collect()
    }

    /// How often something was heard that had been heard on the same way.
    pub(super) fn again(&self) -> usize {
        self.heard.lock().values().map(|it| it.again).sum()
    }
}
