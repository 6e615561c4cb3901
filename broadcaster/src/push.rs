//! Rooms that are pushed to live CDNs: the flushes of `live.flv` as messages beside a small picture,
//! over RTMP (`ops/docs/video.md`).
//!
//! Each push has a connection, a queue and a back-off of its own; what is slow or fails there is late
//! there alone. A room is pushed by its owner only: another process's push begins when the room is
//! its own.

mod backoff;
mod measure;
mod pusher;
mod session;
pub(crate) mod target;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use broadcaster_core::video::sei;
use bytes::Bytes;
use kit::clock::Clock;
use kit::health::{Health, Part};
use kit::seed::derive;
use kit::task::Tasks;
use parking_lot::Mutex;
use proto::envelope::{RoomBatch, RoomEvent};
use proto::id::RoomId;
use proto::segment::Moment;
use tokio::sync::{broadcast, watch};
use tokio_util::sync::CancellationToken;

use crate::counts::Counts;
use crate::push::pusher::Pusher;
use crate::push::target::Target;

/// Flushes and ends of slots that wait for one push, while it is slow or away: some ten seconds of a
/// busy room, about 3 KB each. The oldest give way, and are counted.
const MOMENTS_MAX: usize = 64;

/// A flush or the end of a slot, made into units once for all pushes of its room.
type Units = Arc<[Bytes]>;

/// The rooms that the configuration wants pushed.
#[derive(Debug, Default)]
pub(crate) struct Pushes {
    rooms: BTreeMap<RoomId, Room>,
}

#[derive(Debug)]
struct Room {
    moments: broadcast::Sender<Units>,
    /// Whether this process owns it.
    owned: watch::Sender<bool>,
}

/// What every push is given.
#[derive(Clone, Debug)]
struct Tools {
    clock: Clock,
    counts: Counts,
    wellness: Arc<Wellness>,
    closing: CancellationToken,
}

/// Which pushes are away.
#[derive(Debug)]
struct Wellness {
    part: Part,
    away: Mutex<BTreeSet<usize>>,
}

impl Pushes {
    /// Starts a task for each target. They end at `closing`.
    pub(crate) fn start(
        targets: Vec<Target>,
        (clock, counts, health): (&Clock, &Counts, &Health),
        seed: u64,
        closing: &CancellationToken,
        tasks: &mut Tasks,
    ) -> Self {
        let mut pushes = Self::default();
        if targets.is_empty() {
            return pushes;
        }
        let part = health.part("broadcaster_push");
        part.ok();
        let tools = Tools {
            clock: clock.clone(),
            counts: counts.clone(),
            wellness: Arc::new(Wellness { part, away: Mutex::default() }),
            closing: closing.clone(),
        };
        for (number, target) in targets.into_iter().enumerate() {
            let room = pushes.rooms.entry(target.room.clone()).or_insert_with(Room::new);
            let (moments, owned) = (room.moments.subscribe(), room.owned.subscribe());
            let seed = derive(seed, &format!("push {number}"));
            let pusher = Pusher::new(number, target, moments, owned, seed, tools.clone());
            tasks.spawn("push", pusher.run());
        }
        pushes
    }

    /// The rooms that are to be pushed.
    pub(crate) fn rooms(&self) -> impl Iterator<Item = &RoomId> {
        self.rooms.keys()
    }

    /// Whether the room is this process's to push from now on.
    pub(crate) fn aim(&self, room: &RoomId, is_owned: bool) {
        if let Some(room) = self.rooms.get(room) {
            room.owned.send_if_modified(|it| std::mem::replace(it, is_owned) != is_owned);
        }
    }

    /// Whether a room that is pushed is this process's.
    pub(crate) fn is_owned(&self) -> bool {
        self.rooms.values().any(Room::is_owned)
    }

    /// Passes on what a record says of rooms that are pushed.
    pub(crate) fn tell(&self, record: &Bytes) {
        if !self.is_owned() {
            return;
        }
        let Ok(batch) = RoomBatch::decode(record) else {
            return;
        };
        for entry in &batch.entries {
            if let Some(room) = self.rooms.get(&entry.room).filter(|it| it.is_owned()) {
                room.tell(&entry.event);
            }
        }
    }
}

impl Room {
    fn new() -> Self {
        Self { moments: broadcast::Sender::new(MOMENTS_MAX), owned: watch::Sender::new(false) }
    }

    fn is_owned(&self) -> bool {
        *self.owned.borrow()
    }

    fn tell(&self, event: &RoomEvent) {
        let Some(json) = Moment::of(event).map(|it| it.to_json()) else {
            return;
        };
        match sei::units(&json) {
            // Nobody hears it when all have ended.
            Some(units) => drop(self.moments.send(units.into())),
            // Cannot be: no flush has a third of that length.
            None => tracing::error!(bytes = json.len(), "a flush is too long for a push"),
        }
    }
}

impl Wellness {
    fn up(&self, number: usize) {
        let mut away = self.away.lock();
        away.remove(&number);
        self.tell(&away);
    }

    fn away(&self, number: usize) {
        let mut away = self.away.lock();
        away.insert(number);
        self.tell(&away);
    }

    fn tell(&self, away: &BTreeSet<usize>) {
        if away.is_empty() {
            self.part.ok();
        } else {
            self.part.warn(format!("pushes are away, by number: {away:?}"));
        }
    }
}
