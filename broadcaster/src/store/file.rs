//! The files of a store, and the one grammar of their paths.

use std::fmt;

use proto::head::{Tier, gen_path, head_path, init_path, playlist_path, segment_path};
use proto::id::{Gen, RoomId, SlotNo};

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
}

impl Ext {
    /// All.
    pub const ALL: [Self; 3] = [Self::Bin, Self::Json, Self::M4s];

    /// The end of the file's name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Bin => "bin",
            Self::Json => "json",
            Self::M4s => "m4s",
        }
    }
}

impl File {
    /// Reads a path; `None` if it is not exactly one that [`fmt::Display`] writes.
    #[must_use]
    pub fn parse(path: &str) -> Option<Self> {
        let mut parts = path.strip_prefix("dm/1/")?.split('/');
        let room = RoomId::parse(parts.next()?).ok()?;
        let file = match (parts.next()?, parts.next(), parts.next()) {
            ("head.json", None, None) => Self::Head(room),
            ("live.m3u8", None, None) => Self::Playlist(room),
            ("init.mp4", None, None) => Self::Init(room),
            (gen_no, Some("gen.json"), None) => Self::Gen(room, Gen(gen_no.parse().ok()?)),
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

    /// Whose file it is.
    #[must_use]
    pub const fn room(&self) -> &RoomId {
        match self {
            Self::Head(room)
            | Self::Playlist(room)
            | Self::Init(room)
            | Self::Gen(room, _)
            | Self::Segment { room, .. } => room,
        }
    }
}

impl fmt::Display for File {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&match self {
            Self::Head(room) => head_path(room),
            Self::Playlist(room) => playlist_path(room),
            Self::Init(room) => init_path(room),
            Self::Gen(room, gen_no) => gen_path(room, *gen_no),
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
            "dm/1/r/1/lite/18446744073709551615.json",
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
            "dm/1/r/1/full/..",
        ] {
            assert_eq!(File::parse(path), None, "{path}");
        }
    }
}
