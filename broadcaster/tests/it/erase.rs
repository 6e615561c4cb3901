//! An item that the law wants gone leaves files, memory and caches.

use std::collections::BTreeSet;
use std::io::Read;
use std::path::Path;

use broadcaster::Config;
use flate2::read::GzDecoder;
use proto::id::ItemId;
use proto::item::{Body, Item, Lane};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use crate::faults::{AWAY, moody, until};
use crate::get::get;
use crate::stage::{PATIENCE, World, comment, config, gift, notice, settings};

#[tokio::test(flavor = "multi_thread")]
async fn an_erased_item_leaves_every_file_that_shows_or_repeats_it() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::new(folder.path());
    world.set_room(settings(), true).await;
    let cache = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let purge = vec![format!("http://{}", cache.local_addr().unwrap())];
    let broadcaster = world.start(Config { purge, ..config(1) }).await;
    let mut sealed = world.sealed().await;
    world.admit(vec![comment(1), gift(2)]).await;
    let (_, slot, _) = sealed.flush_of(2).await;
    sealed.seal_of(1, slot + 1).await;
    let files: Vec<_> = [slot, slot + 1].into_iter().flat_map(files_of).collect();
    assert!(files.iter().all(|it| holds(folder.path(), it, 2)), "shown and repeated");
    // As a house with a dictionary wrote it before it had none.
    let stale = files[0].rsplit_once('.').unwrap().0.to_owned() + ".zbin";
    std::fs::copy(folder.path().join(&files[0]), folder.path().join(&stale)).unwrap();

    world.admit(vec![erasure(3, 2)]).await;
    let (_, last, _) = sealed.flush_of(3).await;
    sealed.seal_of(1, last).await;

    until(|| files.iter().all(|it| !holds(folder.path(), it, 2))).await;
    until(|| !folder.path().join(&stale).exists()).await;
    for file in &files {
        let got = get(broadcaster.addr, &format!("/{file}")).await;
        let stored = std::fs::read(folder.path().join(file)).unwrap();
        assert_eq!((got.status, got.body), (200, stored), "{file}");
    }
    assert!(files_of(slot).iter().all(|it| holds(folder.path(), it, 1)), "the comment stays");
    assert_eq!(broadcaster.head().await.recalled, [ItemId(2)]);
    // Forms that are not written now are purged, too.
    let mut paths: BTreeSet<String> = files.iter().map(|it| format!("/{it}")).collect();
    paths.insert(format!("/{stale}"));
    while !paths.is_empty() {
        let told = tokio::time::timeout(PATIENCE, purged(&cache)).await.unwrap();
        paths.remove(&told);
    }
    broadcaster.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_item_of_the_open_slot_is_in_no_file_at_all() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::new(folder.path());
    world.set_room(settings(), true).await;
    let broadcaster = world.start(config(1)).await;
    let mut sealed = world.sealed().await;
    sealed.seal_of(1, 0).await;
    world.admit(vec![gift(2)]).await;
    let (_, slot, _) = sealed.flush_of(2).await;

    world.admit(vec![erasure(3, 2), notice(4)]).await;
    let (_, last, _) = sealed.flush_of(4).await;
    sealed.seal_of(1, last + 1).await;

    let files = (slot..=last + 1).flat_map(files_of);
    assert!(files.into_iter().all(|it| !holds(folder.path(), &it, 2)));
    broadcaster.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slot_that_no_store_has_is_shown_from_memory_without_the_item() {
    let folder = tempfile::tempdir().unwrap();
    let (world, _store) = moody(folder.path(), AWAY);
    world.set_room(settings(), true).await;
    let broadcaster = world.start(Config { store_wait_ms_max: 100, ..config(1) }).await;
    let mut downlink = world.downlink().await;
    world.admit(vec![comment(1), gift(2)]).await;
    let (gen_no, slot, _) = downlink.flush_of(2).await;
    downlink.seal_of(gen_no, slot).await;
    let shown = broadcaster.segment(gen_no, slot).await;
    assert!(shows(&shown.body, 2), "{shown:?}");

    world.admit(vec![erasure(3, 2)]).await;
    let (_, last, _) = downlink.flush_of(3).await;
    downlink.seal_of(gen_no, last).await;

    let left = broadcaster.segment(gen_no, slot).await;
    assert_eq!(left.status, 200);
    assert_eq!((shows(&left.body, 1), shows(&left.body, 2)), (true, false));
    broadcaster.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_item_leaves_the_files_of_a_room_that_was_closed_before_this_process_began() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::new(folder.path());
    world.set_room(settings(), true).await;
    let broadcaster = world.start(config(1)).await;
    let mut sealed = world.sealed().await;
    world.admit(vec![gift(2)]).await;
    let (_, slot, _) = sealed.flush_of(2).await;
    sealed.seal_of(1, slot + 1).await;
    broadcaster.stop().await;
    let files: Vec<_> = [slot, slot + 1].into_iter().flat_map(files_of).collect();
    assert!(files.iter().all(|it| holds(folder.path(), it, 2)), "shown and repeated");

    // Another bus: nobody says any more what was shown in the room.
    let world = World::new(folder.path());
    world.set_room(settings(), false).await;
    let broadcaster = world.start(config(1)).await;
    world.admit(vec![erasure(3, 2)]).await;

    until(|| files.iter().all(|it| !holds(folder.path(), it, 2))).await;
    broadcaster.stop().await;
}

pub(crate) fn erasure(id: u64, of: u64) -> Item {
    Item { lane: Lane::Notice, body: Body::Erasure { of: ItemId(of) }, ..gift(id) }
}

/// The four files of a slot.
fn files_of(slot: u64) -> Vec<String> {
    let file = |tier, ext| format!("dm/1/room-1/1/{tier}/{slot}.{ext}");
    vec![file("full", "bin"), file("full", "json"), file("lite", "bin"), file("lite", "json")]
}

/// Whether an item stands in a file.
fn holds(folder: &Path, file: &str, id: u64) -> bool {
    let packed = std::fs::read(folder.join(file)).unwrap();
    if file.ends_with(".json") {
        let page: serde_json::Value = serde_json::from_slice(&expand(&packed)).unwrap();
        return page.to_string().contains(&format!("\"id\":\"{id}\""));
    }
    shows(&packed, id)
}

fn expand(packed: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    GzDecoder::new(packed).read_to_end(&mut bytes).unwrap();
    bytes
}

/// Whether an item stands in a segment.
fn shows(packed: &[u8], id: u64) -> bool {
    let bytes = expand(packed);
    let segment = proto::segment::Segment::decode(&bytes).unwrap();
    let repeats = segment.repeats.iter().map(|it| &it.placed);
    segment.items.iter().chain(repeats).any(|it| it.item.id == ItemId(id))
}

/// What a cache was told to forget.
async fn purged(cache: &TcpListener) -> String {
    let (mut stream, _) = cache.accept().await.unwrap();
    let mut request = vec![0; 256];
    let read = stream.read(&mut request).await.unwrap();
    stream.write_all(b"HTTP/1.1 200 Purged\r\n\r\n").await.unwrap();
    let request = String::from_utf8_lossy(&request[..read]).into_owned();
    request.strip_prefix("PURGE ").unwrap().split(' ').next().unwrap().to_owned()
}
