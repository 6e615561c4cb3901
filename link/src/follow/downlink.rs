//! `downlink.{unit}`: flushes and seals of rooms become blocks of their rings.

use std::collections::BTreeMap;
use std::sync::Arc;

use bus::tail::{Tail, Tailed};
use bus::{At, Bus};
use kit::health::Part;
use link_core::ring::{Switch, Wake};
use proto::envelope::{RoomBatch, RoomEntry, RoomEvent};
use proto::frame::{Batch, Seal};
use proto::id::RoomId;
use proto::time::Mono;

use super::Follower;
use crate::config::ms;
use crate::node::Node;
use crate::rooms::Room;

/// Rooms with something new.
type Woken = BTreeMap<RoomId, (Arc<Room>, Wake)>;

/// Follows the topic for ever, from so long ago that the rings are full again after a restart.
pub(crate) async fn downlink(node: Arc<Node>, bus: Arc<dyn Bus>, part: Part) -> anyhow::Result<()> {
    let topic = bus::topic::downlink(node.config.unit);
    let from = At::Time(node.clock.wall() - ms(node.config.ring_ms));
    let partitions = Tail::all(&topic);
    let mut follower = Follower::open(&node, &bus, topic, partitions, from, part).await;
    loop {
        let mut woken = Woken::new();
        let first = follower.next().await;
        take(&node, first, &mut woken);
        let until = node.clock.mono() + ms(node.config.flush_ms);
        loop {
            let left = until.since(node.clock.mono());
            let Ok(more) = tokio::time::timeout(left, follower.next()).await else {
                break;
            };
            take(&node, more, &mut woken);
            if left.is_zero() {
                break;
            }
        }
        for (room, wake) in woken.values() {
            room.ring(*wake, &node.pump);
        }
        // Whoever is rung runs next on this thread, and no other thread may take it from here.
        tokio::task::yield_now().await;
    }
}

fn take(node: &Node, tailed: Tailed, woken: &mut Woken) {
    let records = match tailed {
        Tailed::Records(records) => records,
        Tailed::Skipped { partition, .. } => {
            let topic = bus::topic::downlink(node.config.unit);
            for room in node.rooms.all() {
                if topic.partition_of_room(&room.id) == partition {
                    room.change(|ring| ring.cut());
                }
            }
            return;
        }
    };
    let now = node.clock.mono();
    for record in records {
        let Ok(batch) = RoomBatch::decode(&record.value) else {
            node.counts.damaged.inc();
            continue;
        };
        for entry in batch.entries {
            let Some(room) = node.rooms.know(&entry.room) else {
                continue;
            };
            let wake = apply(node, &room, entry, now);
            let (_, strongest) =
                woken.entry(room.id.clone()).or_insert_with(|| (Arc::clone(&room), wake));
            *strongest = wake.max(*strongest);
        }
    }
}

fn apply(node: &Node, room: &Room, entry: RoomEntry, now: Mono) -> Wake {
    let id = entry.room;
    match entry.event {
        RoomEvent::Flush { gen_no, slot, part, at: _, items } => {
            node.counts.flushes.inc();
            let batch = Batch { room: id, gen_no, slot, part, items };
            room.change(|ring| ring.flush(batch, now))
        }
        RoomEvent::Seal { gen_no, slot, items, crc } => {
            let seal = Seal { room: id, gen_no, slot, items, crc };
            room.change(|ring| ring.seal(seal, now))
        }
        RoomEvent::Heat { heat, gen_no, slot, online } => room.change(|ring| {
            ring.count_people(online, now);
            ring.switch(Switch { heat, gen_no, slot }, now)
        }),
        RoomEvent::Opened { .. } | RoomEvent::Fates { .. } => Wake::Nobody,
    }
}
