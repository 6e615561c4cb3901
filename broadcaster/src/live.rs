//! Flushes as they come, for those who read a room as a video stream.
//!
//! A flush is made into a tag once for all viewers of its room, and only while there are any. A
//! viewer that falls behind by [`TAGS_MAX`] tags is let go: a client that comes again at once has
//! less to catch up than one that is told what it missed.

use std::collections::BTreeMap;
use std::sync::Arc;

use broadcaster_core::video::flv;
use bytes::Bytes;
use futures_util::{Stream, StreamExt, stream};
use parking_lot::RwLock;
use proto::envelope::{RoomBatch, RoomEvent};
use proto::id::RoomId;
use proto::segment::Moment;
use proto::time::Wall;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, broadcast};
use tokio_util::sync::CancellationToken;

use crate::counts::Counts;
use crate::room_keys::RoomKeys;

/// Tags that wait for the slowest viewer of a room: some ten seconds.
const TAGS_MAX: usize = 64;

/// Who watches which room.
#[derive(Debug)]
pub(crate) struct Live {
    rooms: RwLock<BTreeMap<RoomId, Channel>>,
    places: Arc<Semaphore>,
    keys: Arc<RoomKeys>,
    counts: Counts,
}

#[derive(Debug)]
struct Channel {
    tags: broadcast::Sender<Bytes>,
    /// When the first tag was made: the stream's own time begins there.
    since: Option<Wall>,
}

/// One who watches, counted as long as it lives.
#[derive(Debug)]
struct Viewer {
    room: RoomId,
    /// None: it is leaving.
    tags: Option<broadcast::Receiver<Bytes>>,
    closing: CancellationToken,
    live: Arc<Live>,
    _place: OwnedSemaphorePermit,
}

impl Drop for Viewer {
    fn drop(&mut self) {
        self.live.leave(&self.room, self.tags.take());
    }
}

impl Live {
    /// At most `viewers_max` viewers at a time, over all rooms.
    pub(crate) fn new(viewers_max: usize, keys: Arc<RoomKeys>, counts: Counts) -> Self {
        let places = Arc::new(Semaphore::new(viewers_max));
        Self { rooms: RwLock::default(), places, keys, counts }
    }

    /// Whether anybody watches a room.
    pub(crate) fn is_heard(&self) -> bool {
        !self.rooms.read().is_empty()
    }

    /// Passes on what a record says of rooms that somebody watches. The end of a slot has no time of
    /// its own: it is `now`.
    pub(crate) fn tell(&self, record: &Bytes, now: Wall) {
        if !self.is_heard() {
            return;
        }
        let Ok(batch) = RoomBatch::decode(record) else {
            return;
        };
        let mut rooms = self.rooms.write();
        for entry in &batch.entries {
            if let Some(channel) = rooms.get_mut(&entry.room)
                && let Some(tag) = channel.tag(&entry.event, now)
            {
                // The last one leaves at this moment.
                channel.tags.send(tag).ok();
            }
        }
    }

    /// Whether a room has no stream, since it is sealed.
    pub(crate) fn is_closed(&self, room: &RoomId) -> bool {
        self.keys.is_sealed(room)
    }

    /// The bytes of a room's stream from now on, until the viewer falls behind or `closing`. None:
    /// there are as many viewers as may be.
    pub(crate) fn watch(
        self: &Arc<Self>,
        room: &RoomId,
        closing: CancellationToken,
    ) -> Option<impl Stream<Item = Bytes> + Send + use<>> {
        let place = Arc::clone(&self.places).try_acquire_owned().ok()?;
        let tags = {
            let mut rooms = self.rooms.write();
            let channel = rooms.entry(room.clone()).or_insert_with(Channel::new);
            channel.tags.subscribe()
        };
        self.counts.live_viewers.inc();
        let (room, live) = (room.clone(), Arc::clone(self));
        let tags = Some(tags);
        let viewer = Viewer { room, tags, closing, live, _place: place };
        let header = stream::iter([Bytes::from_static(&flv::HEADER)]);
        Some(header.chain(stream::unfold(viewer, Viewer::next)))
    }

    /// Ends a room's streams: it is another's, or is over.
    pub(crate) fn end(&self, room: &RoomId) {
        self.rooms.write().remove(room);
    }

    fn leave(&self, room: &RoomId, tags: Option<broadcast::Receiver<Bytes>>) {
        self.counts.live_viewers.dec();
        let mut rooms = self.rooms.write();
        // Under the lock, so that of two that leave at once one is the last.
        drop(tags);
        if rooms.get(room).is_some_and(|it| it.tags.receiver_count() == 0) {
            rooms.remove(room);
        }
    }
}

impl Channel {
    fn new() -> Self {
        Self { tags: broadcast::Sender::new(TAGS_MAX), since: None }
    }

    fn tag(&mut self, event: &RoomEvent, now: Wall) -> Option<Bytes> {
        let json = Moment::of(event)?.to_json();
        let at = if let RoomEvent::Flush { at, .. } = event { *at } else { now };
        let since = *self.since.get_or_insert(at);
        flv::tag(proto::time::millis(at.since(since)), at.0, &json)
    }
}

impl Viewer {
    async fn next(mut self) -> Option<(Bytes, Self)> {
        let tags = self.tags.as_mut()?;
        let tag = tokio::select! {
            tag = tags.recv() => tag,
            () = self.closing.cancelled() => Err(RecvError::Closed),
        };
        if matches!(tag, Err(RecvError::Lagged(_))) {
            self.live.counts.live_lagged.inc();
        }
        Some((tag.ok()?, self))
    }
}
