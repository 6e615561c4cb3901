//! A room's `head.json`, from what its machine last said.

use proto::head::{GenInfo, Head, Tier};
use proto::id::{Gen, ItemId, SlotNo};
use proto::segment::Header;

/// Layout of `head.json`.
pub const HEAD_VERSION: u32 = 1;

/// The head after a slot was sealed and stored; `oldest` is the first slot of the gen still served.
#[must_use]
pub fn build(header: &Header, oldest: SlotNo, recalled: Vec<ItemId>) -> Head {
    Head {
        v: HEAD_VERSION,
        gen_no: header.gen_no,
        epoch_ms: header.epoch_ms,
        interval_ms: header.interval_ms,
        slot: header.slot,
        oldest,
        now_ms: header.now_ms,
        spread_ms: header.spread_ms,
        tiers: vec![Tier::Full, Tier::Lite],
        heat: header.heat,
        online: header.online,
        sealed: false,
        bases: header.bases.clone(),
        recalled,
        catalogue: 0,
        app: None,
        dict: None,
        next: header.next,
        end: header.end,
        past: Vec::new(),
        hls: None,
    }
}

/// The first slot that a head names, in the oldest gen that it does.
#[must_use]
pub fn first(head: &Head) -> (Gen, SlotNo) {
    head.past.first().map_or((head.gen_no, head.oldest), |it| (it.info.gen_no, it.oldest))
}

/// Ends a gen at its newest sealed slot and names the one that follows.
pub fn end(head: &mut Head, next: Option<GenInfo>) {
    head.end = Some(head.end.unwrap_or(head.slot));
    head.next = next.or(head.next);
}
