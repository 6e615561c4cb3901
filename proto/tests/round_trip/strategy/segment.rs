//! Segments.

use proptest::collection::vec;
use proptest::prelude::*;
use proto::head::Tier;
use proto::id::{Seq, SlotNo};
use proto::item::{Placed, Repeat};
use proto::segment::{Header, Segment};
use proto::time::Wall;

use super::{bases, gen_info, gen_no, heat, item, placed, room};

fn tier() -> impl Strategy<Value = Tier> {
    prop::sample::select(vec![Tier::Full, Tier::Lite])
}

fn header() -> impl Strategy<Value = Header> {
    let place = (room(), gen_no(), any::<u64>(), tier());
    let clock = any::<(u64, u32, u64, u32)>();
    let ahead = (prop::option::of(tier()), prop::option::of(gen_info()), any::<Option<u64>>());
    (place, clock, ahead, any::<u32>(), heat(), bases()).prop_map(
        |(
            (room, gen_no, slot, tier),
            (epoch_ms, interval_ms, now_ms, spread_ms),
            (next_tier, next, end),
            online,
            heat,
            bases,
        )| Header {
            room,
            gen_no,
            slot: SlotNo(slot),
            tier,
            epoch_ms: Wall(epoch_ms),
            interval_ms,
            now_ms: Wall(now_ms),
            spread_ms,
            next_tier,
            online,
            heat,
            bases,
            next,
            end: end.map(SlotNo),
        },
    )
}

pub(crate) fn segment() -> impl Strategy<Value = Segment> {
    let repeat = (gen_no(), any::<u64>(), item())
        .prop_map(|(gen_no, seq, item)| Repeat { gen_no, placed: Placed { seq: Seq(seq), item } });
    (header(), placed(), vec(repeat, 0..6)).prop_map(|(header, items, repeats)| Segment {
        header,
        items,
        repeats,
    })
}
