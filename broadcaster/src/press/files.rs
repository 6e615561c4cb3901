//! The files of a room's slots.

use broadcaster_core::Packed;
use broadcaster_core::video::fragment;
use bytes::Bytes;
use proto::head::Tier;
use proto::id::{Gen, RoomId, SlotNo};
use proto::segment::{Header, Segment};

use crate::store::{Ext, File};

/// The files of a segment; the form that is looked at when one is rewritten stands last.
pub(super) fn print(segment: &Segment, writes_hls: bool) -> Vec<(File, Bytes)> {
    let Packed { bin, json } = Packed::of(segment);
    let Header { room, gen_no, slot, tier, interval_ms, .. } = &segment.header;
    let file =
        |ext| File::Segment { room: room.clone(), gen_no: *gen_no, tier: *tier, slot: *slot, ext };
    let mut files = Vec::new();
    if writes_hls && *tier == Tier::Full {
        files.push((file(Ext::M4s), fragment::fragment(*slot, *interval_ms, &json)));
    }
    files.push((file(Ext::Json), json));
    files.push((file(Ext::Bin), bin));
    files
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
