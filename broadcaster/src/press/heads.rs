//! Heads, gens and slots, turned into each other and into bytes.

use broadcaster_core::Shelf;
use broadcaster_core::video::reel::Reel;
use bytes::Bytes;
use proto::head::{GenInfo, Head, PLAIN, SEALED};
use proto::segment::Header;

/// The gen that a slot says it is in.
pub(super) const fn gen_info(header: &Header, layout: u32) -> GenInfo {
    GenInfo {
        gen_no: header.gen_no,
        epoch_ms: header.epoch_ms,
        interval_ms: header.interval_ms,
        layout,
    }
}

/// The slots that a head names.
pub(crate) fn shelf_of(head: &Head) -> Shelf {
    Shelf::found(info_of(head), head.oldest, head.slot, head.end).behind(&head.past)
}

/// The playlist that a head describes; empty if it names no place.
pub(super) fn reel_of(head: &Head) -> Reel {
    let found = |place| Reel::found(&info_of(head), head.oldest, head.slot, place);
    head.hls.map(found).unwrap_or_default()
}

/// The gen that a head names as the newest.
pub(crate) const fn info_of(head: &Head) -> GenInfo {
    let Head { gen_no, epoch_ms, interval_ms, sealed, .. } = *head;
    let layout = if sealed { SEALED } else { PLAIN };
    GenInfo { gen_no, epoch_ms, interval_ms, layout }
}

/// What lies in a head's file.
pub(super) fn head_bytes(head: &Head) -> Bytes {
    serde_json::to_vec(head).expect("a head has string keys only").into()
}

/// What lies in a gen's own file.
pub(crate) fn gen_bytes(info: &GenInfo) -> Bytes {
    serde_json::to_vec(info).expect("a gen has string keys only").into()
}
