//! Which rooms are being recorded: the press says so, the recorder looks.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use parking_lot::Mutex;
use proto::id::{Gen, ItemId, RoomId, SlotNo};
use tokio::sync::{mpsc, watch};

/// Erasures that the recorder has not taken yet; beyond, the newest count as failed.
const ERASURES_MAX: usize = 10_000;

/// Which slots of a room are to be recorded.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Call {
    /// The first one.
    pub(super) from: (Gen, SlotNo),
    /// The first one that is not any more.
    pub(super) until: Option<(Gen, SlotNo)>,
}

/// An item to be taken out; `noted` is told once that is sure to happen.
#[derive(Debug)]
pub(super) struct Erasure {
    pub(super) room: RoomId,
    pub(super) id: ItemId,
    pub(super) noted: watch::Sender<bool>,
}

/// Shared by the press and the recorder.
#[derive(Debug)]
pub(crate) struct Roll {
    /// Its end tells the recorder that nothing more comes.
    _press: mpsc::Sender<()>,
    lines: Arc<Lines>,
}

/// What stands on the roll.
#[derive(Debug, Default)]
pub(super) struct Lines {
    rooms: Mutex<BTreeMap<RoomId, Call>>,
    erasures: Mutex<VecDeque<Erasure>>,
}

impl Roll {
    /// An empty roll, what the recorder sees of it, and what ends with the press.
    pub(super) fn new() -> (Self, Arc<Lines>, mpsc::Receiver<()>) {
        let (press, ended) = mpsc::channel(1);
        let lines = Arc::new(Lines::default());
        (Self { _press: press, lines: Arc::clone(&lines) }, lines, ended)
    }

    /// A slot was sealed that is to be recorded.
    pub(crate) fn keep(&self, room: &RoomId, place: (Gen, SlotNo)) {
        let mut rooms = self.lines.rooms.lock();
        match rooms.get_mut(room) {
            Some(call) => call.until = None,
            None => drop(rooms.insert(room.clone(), Call { from: place, until: None })),
        }
    }

    /// From this place on nothing is to be recorded: it was switched off, or the room was closed.
    pub(crate) fn end(&self, room: &RoomId, place: (Gen, SlotNo)) {
        if let Some(call) = self.lines.rooms.lock().get_mut(room) {
            call.until.get_or_insert(place);
        }
    }

    /// Another process has the room.
    pub(crate) fn release(&self, room: &RoomId) {
        self.lines.rooms.lock().remove(room);
    }

    /// An item is to be in no recording any more. What is given becomes true when that is sure, or
    /// ends when it cannot be.
    pub(crate) fn erase(&self, room: &RoomId, id: ItemId) -> watch::Receiver<bool> {
        let (noted, told) = watch::channel(false);
        let mut erasures = self.lines.erasures.lock();
        if erasures.len() < ERASURES_MAX {
            erasures.push_back(Erasure { room: room.clone(), id, noted });
        } else {
            tracing::error!(%room, "too many erasures: one is lost for the archive");
        }
        told
    }
}

impl Lines {
    pub(super) fn rooms(&self) -> Vec<(RoomId, Call)> {
        self.rooms.lock().iter().map(|(room, call)| (room.clone(), *call)).collect()
    }

    pub(super) fn has(&self, room: &RoomId) -> bool {
        self.rooms.lock().contains_key(room)
    }

    pub(super) fn erasures(&self) -> Vec<Erasure> {
        self.erasures.lock().drain(..).collect()
    }

    /// What was said of a room is done, unless something else has been said since.
    pub(super) fn done(&self, room: &RoomId, call: Call) {
        let mut rooms = self.rooms.lock();
        if rooms.get(room) == Some(&call) {
            rooms.remove(room);
        }
    }
}
