//! Rooms' rings, and who listens to them.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use link_core::outbox::OfRoom;
use link_core::ring::{Limits, Reading, Ring, Wake};
use parking_lot::{Mutex, RwLock};
use proto::id::{RoomId, SessionId};

use crate::line::Line;
use crate::pump::Pump;

/// One room on this node.
#[derive(Debug)]
pub(crate) struct Room {
    pub(crate) id: RoomId,
    ring: RwLock<Ring>,
    listeners: Mutex<BTreeSet<Listener>>,
}

/// A session of a room, in the order of sessions and found by its number, which its line knows.
#[derive(Debug)]
struct Listener {
    line: Arc<Line>,
    reading: Reading,
}

impl Borrow<SessionId> for Listener {
    fn borrow(&self) -> &SessionId {
        &self.line.session
    }
}

impl Ord for Listener {
    fn cmp(&self, other: &Self) -> Ordering {
        self.line.session.cmp(&other.line.session)
    }
}

impl PartialOrd for Listener {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Listener {
    fn eq(&self, other: &Self) -> bool {
        self.line.session == other.line.session
    }
}

impl Eq for Listener {}

impl OfRoom for Room {
    fn room(&self) -> &RoomId {
        &self.id
    }
}

impl Room {
    /// Reads the ring.
    pub(crate) fn read<T>(&self, read: impl FnOnce(&Ring) -> T) -> T {
        read(&self.ring.read())
    }

    /// Changes the ring; the caller then rings for whom it concerns.
    pub(crate) fn change<T>(&self, change: impl FnOnce(&mut Ring) -> T) -> T {
        change(&mut self.ring.write())
    }

    /// Adds a listener and says where it begins. Nothing is flushed in between.
    pub(crate) fn listen<T>(
        &self,
        reading: Reading,
        line: &Arc<Line>,
        begin: impl FnOnce(&Ring) -> T,
    ) -> T {
        let ring = self.ring.read();
        self.listeners.lock().replace(Listener { line: Arc::clone(line), reading });
        begin(&ring)
    }

    pub(crate) fn forget(&self, session: SessionId) {
        self.listeners.lock().remove(&session);
    }

    /// Rings for every session that has something new.
    pub(crate) fn ring(&self, wake: Wake, pump: &Pump) {
        if wake != Wake::Nobody {
            let listeners = self.listeners.lock();
            let concerned = listeners.iter().filter(|it| wake.concerns(it.reading));
            pump.ring_all(concerned.map(|it| &it.line));
        }
    }

    /// Lets every session look whether it may still be here.
    pub(crate) fn review(&self) {
        for listener in &*self.listeners.lock() {
            listener.line.review();
        }
    }

    fn is_idle(&self) -> bool {
        // One lock after the other: a listener takes them the other way round.
        let is_deserted = self.listeners.lock().is_empty();
        is_deserted && self.read(|it| it.bytes() == 0)
    }
}

/// All rooms that this node knows.
#[derive(Debug)]
pub(crate) struct Rooms {
    rooms: RwLock<BTreeMap<RoomId, Arc<Room>>>,
    limits: Limits,
    rooms_max: usize,
}

impl Rooms {
    pub(crate) const fn new(limits: Limits, rooms_max: usize) -> Self {
        Self { rooms: RwLock::new(BTreeMap::new()), limits, rooms_max }
    }

    /// The room, if it is known.
    pub(crate) fn find(&self, id: &RoomId) -> Option<Arc<Room>> {
        self.rooms.read().get(id).cloned()
    }

    /// The room, known from now on, unless there are too many.
    pub(crate) fn know(&self, id: &RoomId) -> Option<Arc<Room>> {
        if let Some(room) = self.find(id) {
            return Some(room);
        }
        let mut rooms = self.rooms.write();
        if rooms.len() >= self.rooms_max && !rooms.contains_key(id) {
            return None;
        }
        let room = rooms.entry(id.clone()).or_insert_with(|| {
            let ring = RwLock::new(Ring::new(id.clone(), self.limits));
            Arc::new(Room { id: id.clone(), ring, listeners: Mutex::default() })
        });
        Some(Arc::clone(room))
    }

    /// All of them.
    pub(crate) fn all(&self) -> Vec<Arc<Room>> {
        self.rooms.read().values().cloned().collect()
    }

    /// Forgets rooms that nobody is in and that keep nothing: whoever comes, or what is flushed,
    /// makes them known again.
    pub(crate) fn prune(&self) {
        self.rooms.write().retain(|_, room| Arc::strong_count(room) > 1 || !room.is_idle());
    }
}
