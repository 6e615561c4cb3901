//! The files of a room's slots.

use broadcaster_core::pack::compress;
use broadcaster_core::video::fragment;
use broadcaster_core::{Packed, Packing};
use bytes::Bytes;
use proto::encoding::Encoding;
use proto::head::Tier;
use proto::id::{Gen, RoomId, SlotNo};
use proto::segment::{Header, Segment};

use crate::store::{Ext, File};

/// Makes the files of slots as this house has them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Printer {
    pub(crate) packing: Packing,
    pub(crate) writes_hls: bool,
}

impl Printer {
    /// The files of a segment; the form that is looked at when one is rewritten stands last.
    pub(super) fn print(&self, segment: &Segment) -> Vec<(File, Bytes)> {
        let Packed { bin, json, zbin } = Packed::of(segment, &self.packing);
        let Header { room, gen_no, slot, tier, interval_ms, .. } = &segment.header;
        let (room, gen_no, tier, slot) = (room.clone(), *gen_no, *tier, *slot);
        let file = |ext| File::Segment { room: room.clone(), gen_no, tier, slot, ext };
        let mut files = Vec::new();
        if self.writes_hls && tier == Tier::Full {
            // Its owner's name promises gzip, whatever the house has.
            let is_gzip = self.packing.encoding == Encoding::Gzip;
            let other = (!is_gzip).then(|| compress(segment.to_json().as_bytes(), Encoding::Gzip));
            let gzip = other.as_ref().unwrap_or(&json);
            files.push((file(Ext::M4s), fragment::fragment(slot, *interval_ms, gzip)));
        }
        files.push((file(Ext::Json), json));
        files.extend(zbin.map(|it| (file(Ext::Zbin), it)));
        files.push((file(Ext::Bin), bin));
        files
    }
}

/// All files that slots may have.
pub(super) fn files_of(room: &RoomId, slots: &[(Gen, SlotNo)]) -> Vec<File> {
    let mut files = Vec::new();
    for &(gen_no, slot) in slots {
        for tier in [Tier::Full, Tier::Lite] {
            for ext in Ext::ALL {
                files.push(File::Segment { room: room.clone(), gen_no, tier, slot, ext });
            }
        }
    }
    files
}
