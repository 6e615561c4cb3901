//! The files of a store, and the one grammar of their paths.

use std::fmt;

use proto::control::catalogue_path;
use proto::dictionary::{DictionaryId, dictionary_path};
use proto::head::{
    Tier, gen_path, head_path, init_path, minute_path, playlist_path, recording_path, segment_path,
};
use proto::id::{AppId, Gen, RoomId, SlotNo};

/// A file of a store. Its text is the path below the store's root or base, without a first slash.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum File {
    /// `dm/1/{room}/head.json`.
    Head(RoomId),
    /// `dm/1/{room}/live.m3u8`.
    Playlist(RoomId),
    /// `dm/1/{room}/init.mp4`.
    Init(RoomId),
    /// `dm/1/{room}/{gen}/gen.json`.
    Gen(RoomId, Gen),
    /// `dm/1/dict/{id}`.
    Dictionary(DictionaryId),
    /// `dm/1/catalogue/{app}/{version}.json`.
    Catalogue(AppId, u32),
    /// `dm/1/{room}/vod/index.json`, or `dm/1/{room}/vod/{version}/index.json`.
    Recording {
        /// Room.
        room: RoomId,
        /// Which recording; none: the newest.
        version: Option<u64>,
    },
    /// `dm/1/{room}/vod/{version}/{minute}.{ext}`, of the forms `bin` and `json`.
    Minute {
        /// Room.
        room: RoomId,
        /// Recording.
        version: u64,
        /// Minute of media time, from 0.
        minute: u64,
        /// Form.
        ext: Ext,
    },
    /// `dm/1/{room}/{gen}/{tier}/{slot}.{ext}`.
    Segment {
        /// Room.
        room: RoomId,
        /// Gen.
        gen_no: Gen,
        /// How much it carries.
        tier: Tier,
        /// Slot.
        slot: SlotNo,
        /// Form.
        ext: Ext,
    },
}

/// Form of a segment's file.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Ext {
    /// FlatBuffers columns.
    Bin,
    /// JSON.
    Json,
    /// A fragment of MP4, of the full tier only.
    M4s,
    /// As `Bin`, for those who have the dictionary.
    Zbin,
}

impl Ext {
    /// All.
    pub const ALL: [Self; 4] = [Self::Bin, Self::Json, Self::M4s, Self::Zbin];

    /// The end of the file's name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Bin => "bin",
            Self::Json => "json",
            Self::M4s => "m4s",
            Self::Zbin => "zbin",
        }
    }
}

impl File {
    /// Reads a path; `None` if it is not exactly one that [`fmt::Display`] writes.
    #[must_use]
    pub fn parse(path: &str) -> Option<Self> {
        Self::parse_shared(path).or_else(|| Self::parse_room(path))
    }

    /// One that belongs to no room; no room has a file of such a name.
    fn parse_shared(path: &str) -> Option<Self> {
        let mut parts = path.strip_prefix("dm/1/")?.split('/');
        let file = match (parts.next()?, parts.next()?, parts.next()) {
            ("dict", id, None) => Self::Dictionary(id.parse().ok()?),
            ("catalogue", app, Some(name)) => {
                let version = name.strip_suffix(".json")?.parse().ok()?;
                Self::Catalogue(AppId(app.parse().ok()?), version)
            }
            _ => return None,
        };
        (parts.next().is_none() && file.to_string() == path).then_some(file)
    }

    fn parse_room(path: &str) -> Option<Self> {
        let mut parts = path.strip_prefix("dm/1/")?.split('/');
        let room = RoomId::parse(parts.next()?).ok()?;
        let file = match (parts.next()?, parts.next(), parts.next()) {
            ("head.json", None, None) => Self::Head(room),
            ("live.m3u8", None, None) => Self::Playlist(room),
            ("init.mp4", None, None) => Self::Init(room),
            (gen_no, Some("gen.json"), None) => Self::Gen(room, Gen(gen_no.parse().ok()?)),
            ("vod", Some("index.json"), None) => Self::Recording { room, version: None },
            ("vod", Some(version), Some("index.json")) => {
                Self::Recording { room, version: Some(version.parse().ok()?) }
            }
            ("vod", Some(version), Some(name)) => {
                let (version, (minute, ext)) = (version.parse().ok()?, name.split_once('.')?);
                let ext = [Ext::Bin, Ext::Json].into_iter().find(|it| it.name() == ext)?;
                Self::Minute { room, version, minute: minute.parse().ok()?, ext }
            }
            (gen_no, Some(tier), Some(name)) => {
                let (slot, ext) = name.split_once('.')?;
                Self::Segment {
                    room,
                    gen_no: Gen(gen_no.parse().ok()?),
                    tier: [Tier::Full, Tier::Lite].into_iter().find(|it| it.name() == tier)?,
                    slot: SlotNo(slot.parse().ok()?),
                    ext: Ext::ALL.into_iter().find(|it| it.name() == ext)?,
                }
            }
            _ => return None,
        };
        // Also refuses other spellings of a number, such as `+1` and `01`.
        (parts.next().is_none() && file.to_string() == path).then_some(file)
    }
}

impl fmt::Display for File {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&match self {
            Self::Head(room) => head_path(room),
            Self::Playlist(room) => playlist_path(room),
            Self::Init(room) => init_path(room),
            Self::Gen(room, gen_no) => gen_path(room, *gen_no),
            Self::Dictionary(id) => dictionary_path(*id),
            Self::Catalogue(app, version) => catalogue_path(*app, *version),
            Self::Recording { room, version } => recording_path(room, *version),
            Self::Minute { room, version, minute, ext } => {
                minute_path(room, *version, *minute, ext.name())
            }
            Self::Segment { room, gen_no, tier, slot, ext } => {
                segment_path(room, *gen_no, *tier, *slot, ext.name())
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_read_as_it_is_written() {
        for path in [
            "dm/1/room-1/head.json",
            "dm/1/room-1/4294967295/gen.json",
            "dm/1/room-1/live.m3u8",
            "dm/1/room-1/init.mp4",
            "dm/1/r/0/full/0.bin",
            "dm/1/r/0/full/0.m4s",
            "dm/1/r/0/lite/7.zbin",
            "dm/1/dict/00ba7816bf8f01cf",
            "dm/1/dict/head.json",
            "dm/1/dict/3/gen.json",
            "dm/1/catalogue/4294967295/1.json",
            "dm/1/catalogue/5/gen.json",
            "dm/1/catalogue/5/full/1.json",
            "dm/1/r/1/lite/18446744073709551615.json",
            "dm/1/r/vod/index.json",
            "dm/1/r/vod/1800000000000/index.json",
            "dm/1/r/vod/1800000000000/0.bin",
            "dm/1/r/vod/1/10079.json",
        ] {
            assert_eq!(File::parse(path).unwrap().to_string(), path);
        }
    }

    #[test]
    fn every_other_spelling_is_refused() {
        for path in [
            "",
            "dm/1/",
            "dm/1/room-1",
            "dm/1/room-1/",
            "dm/1/room-1/head.json/",
            "dm/1/room-1/head.json/x",
            "/dm/1/room-1/head.json",
            "dm/2/room-1/head.json",
            "dm/1/../head.json",
            "dm/1/a%2fb/head.json",
            "dm/1/r//head.json",
            "dm/1/r/1/full/1",
            "dm/1/r/1/full/1.exe",
            "dm/1/r/1/full/1.bin.bin",
            "dm/1/r/01/full/1.bin",
            "dm/1/r/1/full/+1.bin",
            "dm/1/r/1/Full/1.bin",
            "dm/1/r/1/full/18446744073709551616.bin",
            "dm/1/r/4294967296/full/1.bin",
            "dm/1/r/1/full/1.bin/x",
            "dm/1/r/vod/1/1.m4s",
            "dm/1/r/vod/01/1.bin",
            "dm/1/r/vod/1/01.bin",
            "dm/1/r/vod/+1/index.json",
            "dm/1/r/vod/index.json/x",
            "dm/1/r/vod/1/index.json/x",
            "dm/1/r/vod/head.json",
            "dm/1/r/1/full/..",
            "dm/1/dict/00BA7816BF8F01CF",
            "dm/1/dict/00ba7816bf8f01c",
            "dm/1/dict/00ba7816bf8f01cf/",
            "dm/1/catalogue/5/01.json",
            "dm/1/catalogue/5/1.bin",
            "dm/1/catalogue/5/1.json/",
            "dm/1/catalogue/x/1.json",
        ] {
            assert_eq!(File::parse(path), None, "{path}");
        }
    }
}
