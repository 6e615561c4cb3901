//! Bytes on the wire: what the arithmetic of capacity starts from.

use std::hint::black_box;

use anyhow::Context;
use proto::address::{Address, Carrier, Transport};
use proto::envelope::{
    Accepted, AcceptedBatch, Act, RoomBatch, RoomEntry, RoomEvent, UplinkBatch, UplinkEntry,
};
use proto::frame::{Batch, Downlink, Seal, deflate, prefixed};
use proto::id::{AppId, Cid, Gen, NodeId, RoomId, Seq, SessionId, SlotNo, UnitId, ViewerId};
use proto::item::{Body, Item, Placed};
use proto::load::{Load, LoadReport};
use proto::time::Wall;

use crate::line::Line;
use crate::segment::Comments;
use crate::timing::per_second;

const APP: AppId = AppId(1);
const NODE: NodeId = NodeId(1);
const NOW: Wall = Wall(1_800_000_000_000);
/// Items of a full flush: 50 a second, in flushes of 200 ms.
const FLUSH_ITEMS: usize = 10;
/// Comments of one record from a busy link or chatserver.
const RECORD_ITEMS: usize = 100;

/// `wire.…`: bytes of frames and records with comments of 16 bytes in the mean; and
/// `link.compress…`: what compression leaves of a flush, and how many a core compresses.
pub(crate) fn run() -> anyhow::Result<Vec<Line>> {
    let room = RoomId::parse("concert")?;
    let viewer = ViewerId::parse("user-42")?;
    let items: Vec<Item> = Comments::new(NOW.0, 10).take(RECORD_ITEMS).collect();
    let flush = placed(&items[..FLUSH_ITEMS]);

    let batch =
        Batch { room: room.clone(), gen_no: Gen(1), slot: SlotNo(1000), part: 1, items: flush };
    let seal =
        Seal { room: room.clone(), gen_no: Gen(1), slot: SlotNo(1000), items: 50, crc: u32::MAX };
    let event = RoomEvent::Flush {
        gen_no: batch.gen_no,
        slot: batch.slot,
        part: batch.part,
        at: NOW,
        items: batch.items.clone(),
    };
    let sealed = RoomBatch { entries: vec![RoomEntry { app: APP, room: room.clone(), event }] };
    let accepted = |item: &Item| Accepted { app: APP, room: room.clone(), item: item.clone() };
    let accepted = AcceptedBatch { entries: items.iter().map(accepted).collect() };
    let entries = items.iter().filter_map(|it| uplink(it, &room, &viewer));
    let uplink = UplinkBatch { node: NODE, entries: entries.collect() };

    let plain = Downlink::Batch(batch).encode();
    let packed = deflate(&plain).context("a flush gains nothing by compression")?;
    let compressed = per_second(|| {
        black_box(deflate(black_box(&plain)));
    });
    let frame = prefixed(&plain).len();
    let seal = prefixed(&Downlink::Seal(seal).encode()).len();
    let record = |bytes: usize| bytes as f64 / RECORD_ITEMS as f64;
    Ok(vec![
        Line::alone("wire.flush.10", frame as f64, "bytes"),
        Line::alone("link.compress.ratio", packed.len() as f64 / plain.len() as f64, "of plain"),
        Line::alone("link.compress", compressed, "flushes/s"),
        Line::alone("wire.seal", seal as f64, "bytes"),
        Line::alone("wire.uplink.100", record(uplink.encode().len()), "bytes/item"),
        Line::alone("wire.accepted.100", record(accepted.encode().len()), "bytes/item"),
        Line::alone("wire.sealed.10", sealed.encode().len() as f64, "bytes"),
        Line::alone("wire.report", report().encode().len() as f64, "bytes"),
    ])
}

fn placed(items: &[Item]) -> Vec<Placed> {
    let numbered = (1000..).map(Seq).zip(items);
    numbered.map(|(seq, item)| Placed { seq, item: item.clone() }).collect()
}

fn uplink(item: &Item, room: &RoomId, viewer: &ViewerId) -> Option<UplinkEntry> {
    let Body::Comment { text, style, media_ms, .. } = item.body.clone() else {
        return None;
    };
    Some(UplinkEntry {
        session: SessionId(item.sender.0),
        app: APP,
        room: room.clone(),
        viewer: viewer.clone(),
        role: item.role,
        may_send: true,
        at: item.at,
        origin: None,
        act: Act::Comment { cid: Cid(1), text: text.into(), style, media_ms },
    })
}

/// A node with two listeners; the MAC is not counted.
fn report() -> LoadReport {
    let listeners = [(443, Transport::Tls), (8443, Transport::Wss)];
    LoadReport {
        node: NODE,
        unit: UnitId(1),
        region: "north".to_owned(),
        counter: 1,
        start: NOW,
        addresses: listeners
            .map(|(port, transport)| Address {
                host: "link-07.example".to_owned(),
                port,
                transport,
                carrier: Carrier::Bgp,
                machine_room: "north-a".to_owned(),
            })
            .into(),
        reserve: Vec::new(),
        load: Load { sessions: 9_000, sessions_max: 15_000, cpu_permille: 400, ..Load::default() },
    }
}
