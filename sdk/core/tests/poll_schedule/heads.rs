//! Heads and headers as servers would write them.

use super::*;

pub(super) fn header(slot: u64) -> Header {
    Header {
        room: RoomId::parse("room-1").expect("a room's name"),
        gen_no: GEN,
        slot: SlotNo(slot),
        tier: Tier::Full,
        epoch_ms: EPOCH,
        interval_ms: 1_000,
        now_ms: EPOCH,
        spread_ms: 400,
        next_tier: None,
        online: 0,
        heat: Heat::Hot,
        bases: Vec::new(),
        next: None,
        end: None,
    }
}

pub(super) fn head(gen_no: Gen, newest: u64) -> Head {
    Head {
        v: 1,
        gen_no,
        epoch_ms: EPOCH,
        interval_ms: 1_000,
        slot: SlotNo(newest),
        oldest: SlotNo(newest.saturating_sub(600)),
        now_ms: EPOCH,
        spread_ms: 400,
        tiers: vec![Tier::Full],
        heat: Heat::Hot,
        online: 0,
        sealed: false,
        bases: Vec::new(),
        recalled: Vec::new(),
        catalogue: 0,
        app: None,
        dict: None,
        next: None,
        end: None,
        past: Vec::new(),
        hls: None,
    }
}
