//! What the origin may show: per room the head and the slots, and recent files in memory.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use broadcaster_core::Shelf;
use bytes::Bytes;
use parking_lot::{Mutex, RwLock};
use proto::id::RoomId;
use tokio::sync::watch;

use crate::store::File;

/// What is shown of a room.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shown {
    /// Rises with every change.
    pub(crate) version: u64,
    /// Its slots.
    pub(crate) shelf: Shelf,
    /// `head.json`; none before the first written slot.
    pub(crate) head: Option<Bytes>,
    /// `live.m3u8`; none where none is written.
    pub(crate) playlist: Option<Bytes>,
}

/// Shared by the press, which writes, and the origin, which reads.
#[derive(Debug)]
pub(crate) struct Display {
    /// Rooms that this process writes.
    rooms: RwLock<BTreeMap<RoomId, watch::Sender<Arc<Shown>>>>,
    recent: Mutex<Recent>,
}

#[derive(Debug)]
struct Recent {
    files: BTreeMap<File, Bytes>,
    order: VecDeque<File>,
    bytes: usize,
    bytes_max: usize,
}

impl Display {
    /// Keeps recent files up to `bytes_max`.
    pub(crate) fn new(bytes_max: usize) -> Self {
        let recent = Recent { files: BTreeMap::new(), order: VecDeque::new(), bytes: 0, bytes_max };
        Self { rooms: RwLock::default(), recent: Mutex::new(recent) }
    }

    /// Shows a room, unless something newer is shown.
    pub(crate) fn show(&self, room: &RoomId, shown: Shown) {
        let mut rooms = self.rooms.write();
        let Some(sender) = rooms.get(room) else {
            rooms.insert(room.clone(), watch::Sender::new(Arc::new(shown)));
            return;
        };
        if sender.borrow().version < shown.version {
            sender.send_replace(Arc::new(shown));
        }
    }

    /// Another process writes the room from now on, and may erase from its files. Those who wait
    /// hear it.
    pub(crate) fn release(&self, room: &RoomId) {
        self.rooms.write().remove(room);
        self.recent.lock().forget(room);
    }

    /// A room that this process writes.
    pub(crate) fn find(&self, room: &RoomId) -> Option<watch::Receiver<Arc<Shown>>> {
        self.rooms.read().get(room).map(watch::Sender::subscribe)
    }

    /// Keeps a file in memory; the oldest give way.
    pub(crate) fn keep(&self, file: File, bytes: Bytes) {
        self.recent.lock().keep(file, bytes);
    }

    /// Other bytes for a file that is in memory.
    pub(crate) fn renew(&self, file: &File, bytes: Bytes) {
        self.recent.lock().renew(file, bytes);
    }

    /// A recent file.
    pub(crate) fn recent(&self, file: &File) -> Option<Bytes> {
        self.recent.lock().files.get(file).cloned()
    }
}

impl Recent {
    fn forget(&mut self, of: &RoomId) {
        let is_of = |file: &File| matches!(file, File::Segment { room, .. } if room == of);
        let gone = self.files.extract_if(.., |file, _| is_of(file));
        self.bytes -= gone.map(|(_, bytes)| bytes.len()).sum::<usize>();
        self.order.retain(|file| !is_of(file));
    }

    fn renew(&mut self, file: &File, bytes: Bytes) {
        if let Some(old) = self.files.get_mut(file) {
            self.bytes = self.bytes - old.len() + bytes.len();
            *old = bytes;
        }
    }

    fn keep(&mut self, file: File, bytes: Bytes) {
        self.bytes += bytes.len();
        match self.files.insert(file.clone(), bytes) {
            Some(old) => self.bytes -= old.len(),
            None => self.order.push_back(file),
        }
        while self.bytes > self.bytes_max
            && let Some(oldest) = self.order.pop_front()
        {
            self.bytes -= self.files.remove(&oldest).map_or(0, |it| it.len());
        }
    }
}

#[cfg(test)]
mod tests {
    use proto::id::Gen;

    use super::*;

    fn file(gen_no: u32) -> File {
        File::Gen(RoomId::parse("r").unwrap(), Gen(gen_no))
    }

    #[test]
    fn recent_files_are_bounded_in_bytes() {
        let display = Display::new(10);

        for gen_no in 0..4 {
            display.keep(file(gen_no), Bytes::from_static(b"1234"));
        }
        display.keep(file(3), Bytes::from_static(b"12"));

        let kept: Vec<bool> = (0..4).map(|it| display.recent(&file(it)).is_some()).collect();
        assert_eq!(kept, [false, false, true, true]);
        assert_eq!(display.recent.lock().bytes, 6);
    }

    #[test]
    fn only_what_is_in_memory_is_renewed() {
        let display = Display::new(10);
        display.keep(file(1), Bytes::from_static(b"1234"));

        display.renew(&file(1), Bytes::from_static(b"12"));
        display.renew(&file(2), Bytes::from_static(b"12"));

        assert_eq!(display.recent(&file(1)).as_deref(), Some(&b"12"[..]));
        assert_eq!(display.recent(&file(2)), None);
        assert_eq!(display.recent.lock().bytes, 2);
    }

    #[test]
    fn an_older_version_is_not_shown() {
        let display = Display::new(10);
        let room = RoomId::parse("r").unwrap();

        display.show(&room, Shown { version: 2, ..Shown::default() });
        display.show(&room, Shown { version: 1, ..Shown::default() });

        assert_eq!(display.find(&room).unwrap().borrow().version, 2);
    }

    #[test]
    fn a_released_rooms_files_are_out_of_memory() {
        let display = Display::new(10);
        let room = RoomId::parse("r").unwrap();
        let file = File::Segment {
            room: room.clone(),
            gen_no: Gen(1),
            tier: proto::head::Tier::Full,
            slot: proto::id::SlotNo(1),
            ext: crate::store::Ext::Bin,
        };
        display.keep(file.clone(), Bytes::from_static(b"12"));

        display.release(&RoomId::parse("s").unwrap());
        let still = display.recent(&file).is_some();
        display.release(&room);

        assert!(still && display.recent(&file).is_none());
        let recent = display.recent.lock();
        assert_eq!((recent.bytes, recent.order.len()), (0, 0));
    }
}
