//! The HTTP server of segments and heads: the exact headers that caches need.
//!
//! Paths are `/dm/1/{room}/head.json` and `/dm/1/{room}/{gen}/{tier}/{slot}.bin|json`, and for the
//! stream of a room's flushes `/dm/1/{room}/live.flv`, spelled in one way only. Everything else is refused, query strings too: they would make many cache keys of
//! one file. Every answer has an explicit lifetime.

mod answer;

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, Method, Uri};
use axum::response::Response;
use broadcaster_core::shelf;
use broadcaster_core::video::fragment;
use bytes::Bytes;
use futures_util::StreamExt;
use kit::clock::Clock;
use parking_lot::Mutex;
use prometheus::IntGauge;
use proto::head::Head;
use proto::id::{Gen, RoomId, SlotNo};
use proto::time::Mono;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::config::{Config, millis};
use crate::counts::Counts;
use crate::display::{Display, Shown};
use crate::live::Live;
use crate::origin::answer::Answer;
use crate::press::shelf_of;
use crate::store::{File, SegmentStore};

/// Rooms of other broadcasters whose heads are remembered.
const FOREIGN_MAX: usize = 10_000;
/// A head of another broadcaster's room is read again after this long.
const FOREIGN_KEEP: Duration = Duration::from_millis(100);

/// Serves what this process shows, and what others put into the same stores.
#[derive(Debug)]
pub(crate) struct Origin {
    clock: Clock,
    counts: Counts,
    display: Arc<Display>,
    live: Arc<Live>,
    /// What comes before the fragments of any room.
    init: Bytes,
    stores: Vec<Arc<dyn SegmentStore>>,
    store_max: Duration,
    hold_extra: Duration,
    held: Semaphore,
    foreign: Mutex<BTreeMap<RoomId, (Mono, Arc<Shown>)>>,
    closing: CancellationToken,
}

/// The router of the origin.
pub(crate) fn router(origin: Arc<Origin>) -> Router {
    Router::new().fallback(serve).with_state(origin)
}

async fn serve(
    State(origin): State<Arc<Origin>>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
) -> Response {
    let response = match streamed_room(&uri) {
        Some(room) => origin.stream(&method, &room),
        None => origin.find(&method, &uri).await.respond(&headers),
    };
    origin.counts.answer(response.status().as_u16());
    response
}

impl Origin {
    /// Requests still held at `closing` are answered "not yet".
    pub(crate) fn new(
        config: &Config,
        clock: Clock,
        counts: Counts,
        display: Arc<Display>,
        live: Arc<Live>,
        stores: Vec<Arc<dyn SegmentStore>>,
        closing: CancellationToken,
    ) -> Self {
        Self {
            clock,
            counts,
            display,
            live,
            init: fragment::init(),
            stores,
            store_max: millis(config.store_ms_max),
            hold_extra: millis(config.hold_extra_ms),
            held: Semaphore::new(config.held_max),
            foreign: Mutex::default(),
            closing,
        }
    }

    async fn find(&self, method: &Method, uri: &Uri) -> Answer {
        if method != Method::GET && method != Method::HEAD {
            return Answer::Method;
        }
        if uri.query().is_some() {
            return Answer::Grammar;
        }
        let path = uri.path().strip_prefix('/').and_then(File::parse);
        match path {
            Some(File::Head(room)) => self.find_head(&room).await,
            Some(File::Playlist(room)) => self.find_playlist(&room).await,
            Some(File::Init(_)) => Answer::Init(self.init.clone()),
            Some(File::Segment { room, gen_no, tier, slot, ext }) => {
                let file = File::Segment { room: room.clone(), gen_no, tier, slot, ext };
                self.find_segment(&room, gen_no, slot, file).await
            }
            // Whose recording it is does not matter: the stores have it, or nobody does.
            Some(file @ (File::Recording { .. } | File::Minute { .. })) => {
                let found = self.read(file.clone()).await;
                found.map_or(Answer::NotYet, |bytes| Answer::Written(file, bytes))
            }
            Some(file @ (File::Dictionary(_) | File::Catalogue(..))) => self.body(file).await,
            Some(File::Gen(..)) | None => Answer::Grammar,
        }
    }

    /// The stream of a room that this process drives.
    fn stream(&self, method: &Method, room: &RoomId) -> Response {
        if method != Method::GET {
            return Answer::Method.respond(&HeaderMap::new());
        }
        if self.display.find(room).is_none() || self.live.is_closed(room) {
            return Answer::NotYet.respond(&HeaderMap::new());
        }
        match self.live.watch(room, self.closing.clone()) {
            Some(bytes) => answer::stream(Body::from_stream(bytes.map(Ok::<_, Infallible>))),
            None => Answer::Full.respond(&HeaderMap::new()),
        }
    }

    async fn find_head(&self, room: &RoomId) -> Answer {
        let shown = self.shown(room).await;
        shown.and_then(|it| it.head.clone()).map_or(Answer::NotYet, Answer::Head)
    }

    async fn find_playlist(&self, room: &RoomId) -> Answer {
        let found = match self.display.find(room) {
            Some(shown) => shown.borrow().playlist.clone(),
            None => self.read(File::Playlist(room.clone())).await,
        };
        found.map_or(Answer::NotYet, Answer::Playlist)
    }

    async fn find_segment(&self, room: &RoomId, gen_no: Gen, slot: SlotNo, file: File) -> Answer {
        let Some(shown) = self.shown(room).await else {
            return Answer::NotYet;
        };
        let mut found = shown.shelf.find(gen_no, slot);
        if found == shelf::Answer::Hold {
            found = self.hold(room, gen_no, slot, &shown).await;
        }
        match found {
            shelf::Answer::Serve => self.body(file).await,
            shelf::Answer::Hold | shelf::Answer::NotYet => Answer::NotYet,
            shelf::Answer::Expired => Answer::Expired,
            shelf::Answer::Ended => Answer::Ended,
        }
    }

    /// Waits for the next slot; gives what is known of it in the end.
    async fn hold(&self, room: &RoomId, gen_no: Gen, slot: SlotNo, shown: &Shown) -> shelf::Answer {
        let Ok(_place) = self.held.try_acquire() else {
            return shelf::Answer::NotYet;
        };
        let _counted = Counted::new(&self.counts.held);
        let interval_ms = shown.shelf.newest().map_or(0, |it| it.info.interval_ms);
        let hold = millis(interval_ms) + self.hold_extra;
        let found = tokio::select! {
            found = tokio::time::timeout(hold, self.watch(room, gen_no, slot)) => found,
            () = self.closing.cancelled() => Ok(shelf::Answer::NotYet),
        };
        found.unwrap_or(shelf::Answer::NotYet)
    }

    /// Looks at a room at every change until the slot is not the next one any more.
    async fn watch(&self, room: &RoomId, gen_no: Gen, slot: SlotNo) -> shelf::Answer {
        loop {
            let changes = self.display.find(room);
            let found = match self.shown(room).await {
                Some(shown) => shown.shelf.find(gen_no, slot),
                None => return shelf::Answer::NotYet,
            };
            if found != shelf::Answer::Hold {
                return found;
            }
            match changes {
                // An error means that the room is another's now: look there.
                Some(mut changes) => drop(changes.changed().await),
                None => self.clock.sleep(FOREIGN_KEEP).await,
            }
        }
    }

    /// What is shown of a room, by this process or by the head in a store.
    async fn shown(&self, room: &RoomId) -> Option<Arc<Shown>> {
        if let Some(receiver) = self.display.find(room) {
            return Some(Arc::clone(&receiver.borrow()));
        }
        let now = self.clock.mono();
        if let Some((since, shown)) = self.foreign.lock().get(room)
            && now.since(*since) < FOREIGN_KEEP
        {
            return shown.head.is_some().then(|| Arc::clone(shown));
        }
        let bytes = self.read(File::Head(room.clone())).await;
        let head = bytes.as_deref().and_then(|it| serde_json::from_slice::<Head>(it).ok());
        let shelf = head.as_ref().map(shelf_of).unwrap_or_default();
        let shown = Arc::new(Shown { head: bytes, shelf, ..Shown::default() });
        self.remember(room.clone(), now, &shown);
        shown.head.is_some().then_some(shown)
    }

    fn remember(&self, room: RoomId, now: Mono, shown: &Arc<Shown>) {
        let mut foreign = self.foreign.lock();
        if foreign.len() >= FOREIGN_MAX {
            foreign.retain(|_, (since, _)| now.since(*since) < FOREIGN_KEEP);
        }
        if foreign.len() < FOREIGN_MAX {
            foreign.insert(room, (now, Arc::clone(shown)));
        }
    }

    async fn body(&self, file: File) -> Answer {
        let bytes = match self.display.recent(&file) {
            Some(bytes) => Some(bytes),
            None => self.read(file.clone()).await,
        };
        bytes.map_or(Answer::NotYet, |bytes| Answer::Written(file, bytes))
    }

    /// The first store that has the file.
    async fn read(&self, file: File) -> Option<Bytes> {
        for (number, store) in self.stores.iter().enumerate() {
            match tokio::time::timeout(self.store_max, store.get(file.clone())).await {
                Ok(Ok(Some(bytes))) => return Some(bytes),
                Ok(Ok(None)) => {}
                Ok(Err(_)) | Err(_) => self.counts.store_error(number, "get"),
            }
        }
        None
    }
}

/// One more in a gauge, until it is dropped: also when a client gives its request up.
struct Counted<'a>(&'a IntGauge);

impl<'a> Counted<'a> {
    fn new(gauge: &'a IntGauge) -> Self {
        gauge.inc();
        Self(gauge)
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.dec();
    }
}

/// The room whose stream is asked for.
fn streamed_room(uri: &Uri) -> Option<RoomId> {
    let room = uri.path().strip_prefix("/dm/1/")?.strip_suffix("/live.flv")?;
    if uri.query().is_some() { None } else { RoomId::parse(room).ok() }
}

/// Whether the client has these very bytes.
fn is_known(headers: &HeaderMap, etag: &str) -> bool {
    let values = headers.get_all(axum::http::header::IF_NONE_MATCH);
    let tags = values.iter().filter_map(|it| it.to_str().ok()).flat_map(|it| it.split(','));
    tags.map(str::trim).any(|it| it == "*" || it.strip_prefix("W/").unwrap_or(it) == etag)
}
