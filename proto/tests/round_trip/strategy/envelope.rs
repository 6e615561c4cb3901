//! Envelopes.

use std::net::{IpAddr, SocketAddr};

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proto::envelope::{
    Accepted, AcceptedBatch, Act, LinkGauges, Origin, Reply, ReplyBatch, RoomBatch, RoomEntry,
    RoomEvent, RoomGauge, UplinkBatch, UplinkEntry,
};
use proto::id::{
    AppId, Cid, DeviceId, ItemId, NodeId, RoomId, Seq, SessionId, SlotNo, UnitId, ViewerId,
};
use proto::limits::{BASES_MAX, ENVELOPE_ENTRIES_MAX};
use proto::quality::{BaseGauge, BaseGauges, StoreGauge};
use proto::time::Wall;
use proto::verdict::Fate;

use super::{
    close_code, gen_no, heat, item, media_ms, outcome, placed, reason, role, room, style, word,
};

/// A few rooms that entries share, as in life, or any.
fn app_room() -> impl Strategy<Value = (AppId, RoomId)> {
    let shared = (0..3_u32).prop_map(|it| {
        (AppId(1), RoomId::parse(&format!("r{it}")).expect("the pattern is the grammar"))
    });
    prop_oneof![3 => shared, 1 => (any::<u32>().prop_map(AppId), room())]
}

/// Few entries, or as many as are allowed.
fn entries<T: Clone + std::fmt::Debug>(
    entry: impl Strategy<Value = T> + Clone,
) -> impl Strategy<Value = Vec<T>> {
    let full = entry.clone().prop_map(|it| vec![it; ENVELOPE_ENTRIES_MAX]);
    prop_oneof![8 => vec(entry, 0..30), 1 => full]
}

pub(crate) fn uplink_batch() -> impl Strategy<Value = UplinkBatch> {
    (any::<u32>(), entries(uplink_entry().boxed()))
        .prop_map(|(node, entries)| UplinkBatch { node: NodeId(node), entries })
}

fn uplink_entry() -> impl Strategy<Value = UplinkEntry> {
    let act = prop_oneof![
        any::<u32>().prop_map(|age_ms| Act::Join { age_ms }),
        Just(Act::Leave),
        (any::<u64>(), "\\PC{0,20}", style(), media_ms()).prop_map(
            |(cid, text, style, media_ms)| Act::Comment { cid: Cid(cid), text, style, media_ms }
        ),
        any::<u32>().prop_map(|count| Act::Like { count }),
    ];
    let viewer =
        "\\PC{1,16}".prop_map(|it| ViewerId::parse(&it).expect("the pattern is the grammar"));
    (any::<(u64, u64, bool)>(), app_room(), viewer, role(), option::of(origin()), act).prop_map(
        |((session, at, may_send), (app, room), viewer, role, origin, act)| UplinkEntry {
            session: SessionId(session),
            app,
            room,
            viewer,
            role,
            may_send,
            at: Wall(at),
            origin: origin.map(Box::new),
            act,
        },
    )
}

fn origin() -> impl Strategy<Value = Origin> {
    let device = "[!-~]{1,32}".prop_map(|it| DeviceId::parse(&it).expect("as its grammar"));
    (any::<IpAddr>(), any::<u16>(), option::of(device)).prop_map(|(address, port, device)| Origin {
        address: SocketAddr::new(address, port),
        device,
    })
}

pub(crate) fn reply_batch() -> impl Strategy<Value = ReplyBatch> {
    let session = any::<u64>().prop_map(SessionId);
    let reply =
        prop_oneof![
            (session.clone(), any::<u64>(), outcome())
                .prop_map(|(session, cid, outcome)| Reply::Ack { session, cid: Cid(cid), outcome }),
            (session, close_code()).prop_map(|(session, code)| Reply::Close { session, code }),
        ];
    (any::<u32>(), entries(reply.boxed()))
        .prop_map(|(node, entries)| ReplyBatch { node: NodeId(node), entries })
}

pub(crate) fn accepted_batch() -> impl Strategy<Value = AcceptedBatch> {
    let entry = (app_room(), item()).prop_map(|((app, room), item)| Accepted { app, room, item });
    vec(entry, 0..30).prop_map(|entries| AcceptedBatch { entries })
}

pub(crate) fn room_batch() -> impl Strategy<Value = RoomBatch> {
    let entry =
        (app_room(), room_event()).prop_map(|((app, room), event)| RoomEntry { app, room, event });
    let small =
        (app_room(), room_change()).prop_map(|((app, room), event)| RoomEntry { app, room, event });
    let many = small.prop_map(|it| vec![it; ENVELOPE_ENTRIES_MAX]);
    prop_oneof![8 => vec(entry, 0..8), 1 => many].prop_map(|entries| RoomBatch { entries })
}

fn room_event() -> impl Strategy<Value = RoomEvent> {
    let flush = (gen_no(), any::<u64>(), any::<u32>(), any::<u64>(), placed()).prop_map(
        |(gen_no, slot, part, at, items)| RoomEvent::Flush {
            gen_no,
            slot: SlotNo(slot),
            part,
            at: Wall(at),
            items,
        },
    );
    prop_oneof![flush, room_change()]
}

fn room_change() -> impl Strategy<Value = RoomEvent> {
    let slot = any::<u64>().prop_map(SlotNo);
    prop_oneof![
        (gen_no(), any::<(u64, u32, u32)>()).prop_map(
            |(gen_no, (epoch_ms, interval_ms, layout))| {
                RoomEvent::Opened { gen_no, epoch_ms: Wall(epoch_ms), interval_ms, layout }
            }
        ),
        (gen_no(), slot.clone(), any::<u32>(), any::<u32>())
            .prop_map(|(gen_no, slot, items, crc)| RoomEvent::Seal { gen_no, slot, items, crc }),
        vec((any::<u64>().prop_map(ItemId), fate()), 0..12)
            .prop_map(|fates| RoomEvent::Fates { fates }),
        (heat(), gen_no(), slot, any::<u32>()).prop_map(|(heat, gen_no, slot, online)| {
            RoomEvent::Heat { heat, gen_no, slot, online }
        }),
    ]
}

fn fate() -> impl Strategy<Value = Fate> {
    prop_oneof![
        (gen_no(), any::<u64>(), any::<u64>()).prop_map(|(gen_no, seq, slot)| Fate::Sealed {
            gen_no,
            seq: Seq(seq),
            slot: SlotNo(slot),
        }),
        any::<u64>().prop_map(|into| Fate::Merged { into: ItemId(into) }),
        reason().prop_map(|reason| Fate::Shed { reason }),
    ]
}

pub(crate) fn link_gauges() -> impl Strategy<Value = LinkGauges> {
    let gauge = (app_room(), any::<(u32, u32, u32)>()).prop_map(
        |((app, room), (people, sessions, offered))| RoomGauge {
            app,
            room,
            people,
            sessions,
            offered,
        },
    );
    (any::<(u32, u16, u64)>(), entries(gauge.boxed())).prop_map(|((node, unit, at), rooms)| {
        LinkGauges { node: NodeId(node), unit: UnitId(unit), at: Wall(at), rooms }
    })
}

pub(crate) fn base_gauges() -> impl Strategy<Value = BaseGauges> {
    let base = (word(), any::<(u32, u32, u32)>())
        .prop_map(|(base, (reports, bad, fetch_ms))| BaseGauge { base, reports, bad, fetch_ms });
    let store = (word(), any::<(u32, u32, u32, u32)>()).prop_map(
        |(base, (weight, stored, unstored, store_ms))| StoreGauge {
            base,
            weight,
            stored,
            unstored,
            store_ms,
        },
    );
    (any::<(u32, u64)>(), vec(base, 0..=BASES_MAX), option::of(store)).prop_map(
        |((node, at), bases, store)| BaseGauges { node: NodeId(node), at: Wall(at), bases, store },
    )
}
