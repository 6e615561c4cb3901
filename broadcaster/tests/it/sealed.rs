//! Sealed rooms: what lies in stores and leaves the origin opens with the room's key alone.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use auth_core::room_key::{self, RoomKey};
use auth_core::secret::Secret;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::post;
use axum::{Json, Router};
use broadcaster::Config;
use broadcaster_core::pack::expand;
use kit::task::Tasks;
use proto::control::RoomSettings;
use proto::envelope::RoomEvent;
use proto::id::{AppId, Gen, ItemId};
use proto::keys::{RoomKeys, RoomKeysAnswer, RoomKeysRequest};
use proto::sealed::is_sealed;
use proto::segment::Segment;
use tokio::net::TcpListener;

use crate::erase::erasure;
use crate::faults::until;
use crate::get::get;
use crate::stage::{Running, World, comment, config, gift, room, settings};

const MASTER: [u8; 32] = [9; 32];

/// An auth service that can be away.
struct Auth {
    url: String,
    is_away: Arc<AtomicBool>,
    _tasks: Tasks,
}

impl Auth {
    async fn start(is_away: bool) -> Self {
        let is_away = Arc::new(AtomicBool::new(is_away));
        let router = Router::new().route("/v1/keys/rooms", post(keys));
        let router = router.with_state(Arc::clone(&is_away));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let mut tasks = Tasks::default();
        tasks.spawn("auth", async move { Ok(axum::serve(listener, router).await?) });
        Self { url, is_away, _tasks: tasks }
    }

    fn config(&self, node: u32) -> Config {
        let secret = Secret::new("the broadcaster's own secret".to_owned());
        Config { auth_url: self.url.clone(), secret, hls: true, ..config(node) }
    }
}

async fn keys(
    State(is_away): State<Arc<AtomicBool>>,
    Json(request): Json<RoomKeysRequest>,
) -> Result<Json<RoomKeysAnswer>, StatusCode> {
    if is_away.load(Ordering::Relaxed) {
        return Err(StatusCode::SERVICE_UNAVAILABLE);
    }
    let keys = |gens: Vec<Gen>| gens.into_iter().map(|it| key(it.0).tell()).collect();
    let rooms = request.rooms.into_iter();
    let rooms = rooms.map(|it| RoomKeys { keys: keys(it.gens), room: it.room }).collect();
    Ok(Json(RoomKeysAnswer { rooms }))
}

fn key(gen_no: u32) -> RoomKey {
    RoomKey::derive(&MASTER, 0, AppId(1), &room(), Gen(gen_no))
}

fn sealed_settings() -> RoomSettings {
    RoomSettings { sealed: true, ..settings() }
}

fn bin(gen_no: u32, tier: &str, slot: u64) -> String {
    format!("dm/1/room-1/{gen_no}/{tier}/{slot}.bin")
}

fn open(gen_no: u32, path: &str, file: &[u8]) -> Segment {
    let packed = room_key::open(&[key(gen_no)], path, file).unwrap();
    Segment::decode(&expand(&packed).unwrap()).unwrap()
}

fn ids(segment: &Segment) -> Vec<u64> {
    segment.items.iter().map(|it| it.item.id.0).collect()
}

/// Every file below a folder.
fn files(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else if let Ok(bytes) = std::fs::read(&path) {
            found.push((path.display().to_string(), bytes));
        }
    }
    found
}

async fn served(broadcaster: &Running, gen_no: u32, slot: u64) -> Segment {
    let path = bin(gen_no, "full", slot);
    let got = get(broadcaster.addr, &format!("/{path}")).await;
    assert_eq!(got.status, 200, "{path}");
    open(gen_no, &path, &got.body)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sealed_room_s_files_open_with_its_key_alone() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::new(folder.path());
    let auth = Auth::start(false).await;
    world.set_room(sealed_settings(), true).await;
    let broadcaster = world.start(auth.config(1)).await;

    world.admit(vec![comment(1), gift(2)]).await;

    let mut sealed = world.sealed().await;
    let (gen_no, slot, _) = sealed.flush_of(1).await;
    sealed.seal_of(gen_no, slot).await;
    let full = get(broadcaster.addr, &format!("/{}", bin(gen_no, "full", slot))).await;
    assert_eq!((full.status, full.header("content-encoding")), (200, ""));
    assert_eq!(ids(&open(gen_no, &bin(gen_no, "full", slot), &full.body)).len(), 2);
    let lite = std::fs::read(folder.path().join(bin(gen_no, "lite", slot))).unwrap();
    assert!(!ids(&open(gen_no, &bin(gen_no, "lite", slot), &lite)).is_empty());
    let other = bin(gen_no, "full", slot + 1);
    assert!(room_key::open(&[key(gen_no)], &other, &full.body).is_err());
    assert!(broadcaster.head().await.sealed);
    for name in ["full/0.json", "lite/0.json", "full/0.m4s"] {
        let got = get(broadcaster.addr, &format!("/dm/1/room-1/{gen_no}/{name}")).await;
        assert_eq!(
            (got.status, got.header("cache-control")),
            (404, "public, max-age=1, s-maxage=1")
        );
    }
    for name in ["live.flv", "live.m3u8"] {
        let got = get(broadcaster.addr, &format!("/dm/1/room-1/{name}")).await;
        assert_eq!(got.status, 404, "{name}");
    }
    for (path, bytes) in files(folder.path()) {
        let is_slot = path.contains("/full/") || path.contains("/lite/");
        assert!(!is_slot || path.ends_with(".bin") && is_sealed(&bytes), "{path}");
    }
    broadcaster.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_key_the_room_is_pushed_and_its_slots_wait() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::new(folder.path());
    let auth = Auth::start(true).await;
    world.set_room(sealed_settings(), true).await;
    let broadcaster = world.start(auth.config(1)).await;
    world.admit(vec![comment(1)]).await;
    let mut downlink = world.downlink().await;
    let (gen_no, slot, _) = downlink.flush_of(1).await;

    let waits = || broadcaster.meter.render().contains("broadcaster_keyless_slots ");
    until(|| waits() && !broadcaster.meter.render().contains("broadcaster_keyless_slots 0")).await;
    let fails = || broadcaster.health.failures().iter().any(|it| it.0 == "broadcaster_keys");
    until(fails).await;
    let is_slot = |path: &str| path.contains("/full/") || path.contains("/lite/");
    assert!(!files(folder.path()).iter().any(|it| is_slot(&it.0)));
    auth.is_away.store(false, Ordering::Relaxed);

    world.sealed().await.seal_of(gen_no, slot).await;
    assert_eq!(ids(&served(&broadcaster, gen_no, slot).await), [1]);
    for earlier in 0..slot {
        assert_eq!(served(&broadcaster, gen_no, earlier).await.header.slot.0, earlier);
    }
    until(|| broadcaster.health.failures().is_empty()).await;
    until(|| broadcaster.meter.render().contains("broadcaster_keyless_slots 0")).await;
    broadcaster.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_of_the_setting_opens_a_gen() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::new(folder.path());
    let auth = Auth::start(false).await;
    world.set_room(settings(), true).await;
    let broadcaster = world.start(auth.config(1)).await;
    let mut sealed = world.sealed().await;
    sealed.seal_of(1, 0).await;

    world.set_room(sealed_settings(), true).await;
    sealed.seal_of(2, 0).await;
    world.admit(vec![comment(1)]).await;
    let (gen_no, slot, _) = sealed.flush_of(1).await;
    sealed.seal_of(gen_no, slot).await;
    let during = broadcaster.head().await;
    world.set_room(settings(), true).await;
    sealed.seal_of(3, 0).await;

    let layouts: Vec<u32> = [1, 2, 3].map(|it| layout(folder.path(), it)).to_vec();
    assert_eq!((gen_no, during.sealed, layouts), (2, true, vec![1, 2, 1]));
    assert_eq!(ids(&served(&broadcaster, 2, slot).await), [1]);
    assert!(!is_sealed(&broadcaster.segment(1, 0).await.body));
    assert!(!is_sealed(&broadcaster.segment(3, 0).await.body));
    let head = broadcaster.head().await;
    let past: Vec<u32> = head.past.iter().map(|it| it.info.layout).collect();
    assert_eq!((head.sealed, past), (false, vec![1, 2]));
    broadcaster.stop().await;
}

fn layout(folder: &Path, gen_no: u32) -> u32 {
    let bytes = std::fs::read(folder.join(format!("dm/1/room-1/{gen_no}/gen.json"))).unwrap();
    let info: proto::head::GenInfo = serde_json::from_slice(&bytes).unwrap();
    info.layout
}

#[tokio::test(flavor = "multi_thread")]
async fn an_erased_item_leaves_sealed_files_too() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::new(folder.path());
    let auth = Auth::start(false).await;
    world.set_room(sealed_settings(), true).await;
    let broadcaster = world.start(auth.config(1)).await;
    let mut sealed = world.sealed().await;
    world.admit(vec![comment(1), gift(2)]).await;
    let (_, slot, _) = sealed.flush_of(2).await;
    sealed.seal_of(1, slot + 1).await;

    world.admit(vec![erasure(3, 2)]).await;
    let (_, last, _) = sealed.flush_of(3).await;
    sealed.seal_of(1, last).await;

    let path = bin(1, "full", slot);
    let stored = || open(1, &path, &std::fs::read(folder.path().join(&path)).unwrap());
    until(|| ids(&stored()) == [1]).await;
    assert_eq!(ids(&served(&broadcaster, 1, slot).await), [1]);
    broadcaster.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_lost_bus_what_sealed_files_hold_is_not_shown_again() {
    let folder = tempfile::tempdir().unwrap();
    let auth = Auth::start(false).await;
    let before = World::new(folder.path());
    before.set_room(sealed_settings(), true).await;
    let first = before.start(auth.config(1)).await;
    before.admit(vec![gift(1)]).await;
    let mut sealed = before.sealed().await;
    let (_, slot, _) = sealed.flush_of(1).await;
    sealed.seal_of(1, slot).await;
    first.kill();

    let after = World::new(folder.path());
    after.set_room(sealed_settings(), true).await;
    let second = after.start(auth.config(1)).await;
    after.admit(vec![gift(1), gift(2)]).await;

    let mut sealed = after.sealed().await;
    let shown = sealed
        .find(|event| match event {
            RoomEvent::Flush { items, .. } => Some(items.clone()),
            _ => None,
        })
        .await;
    assert_eq!(shown.iter().map(|it| it.item.id).collect::<Vec<_>>(), [ItemId(2)]);
    sealed.seal_of(2, 0).await;
    assert!(second.head().await.sealed);
    second.stop().await;
}
