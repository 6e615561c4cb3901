//! A room's `head.json`, from what its machine last said.

use proto::head::{GenInfo, Head, Tier};
use proto::id::{ItemId, SlotNo};
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
        next: header.next,
        end: header.end,
    }
}

/// Ends a gen at its newest sealed slot and names the one that follows.
pub fn end(head: &mut Head, next: Option<GenInfo>) {
    head.end = Some(head.end.unwrap_or(head.slot));
    head.next = next.or(head.next);
}

/// First slot still served: those that ended within `retention_ms` before the end of `newest`, and
/// never before `first`, the first one written.
#[must_use]
pub fn oldest(newest: SlotNo, interval_ms: u32, retention_ms: u64, first: SlotNo) -> SlotNo {
    let slots = (retention_ms / u64::from(interval_ms.max(1))).max(1);
    SlotNo((newest.0 + 1).saturating_sub(slots)).max(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retention_counts_back_from_the_newest_slot() {
        assert_eq!(oldest(SlotNo(99), 1000, 20_000, SlotNo(0)), SlotNo(80));
        assert_eq!(oldest(SlotNo(99), 1000, 20_000, SlotNo(90)), SlotNo(90));
        assert_eq!(oldest(SlotNo(5), 1000, 20_000, SlotNo(0)), SlotNo(0));
        assert_eq!(oldest(SlotNo(5), 5000, 1000, SlotNo(0)), SlotNo(5));
    }
}
