//! Rooms that are recorded: their recordings, and the minute files of those that were closed.

use std::path::Path;

use broadcaster::Config;
use broadcaster::archive::Archive;
use broadcaster_core::pack::expand;
use proto::control::RoomSettings;
use proto::head::Recording;
use proto::id::{ItemId, Seq};
use proto::item::{Body, Item, Mode, Size, Style};
use proto::segment::Segment;
use proto::time::Wall;

use crate::erase::erasure;
use crate::faults::until;
use crate::get::{Got, get};
use crate::stage::{PATIENCE, Running, World, comment, config, gift, room, settings};

const INDEX: &str = "/dm/1/room-1/vod/index.json";

/// A house that records every room.
fn recording(node: u32) -> Config {
    Config { archive: true, ..config(node) }
}

/// A comment at a position in the picture.
fn said(id: u64, media_ms: u64) -> Item {
    let style = Style { color: 0x12_34_56, mode: Mode::Top, size: Size::Large };
    let text = format!("text {id}").into();
    let body = Body::Comment { text, style, media_ms: Some(media_ms), count: 1 };
    Item { body, ..comment(id) }
}

/// Shows items, and waits until their slots are sealed.
async fn show(world: &World, items: Vec<Item>) -> (u32, u64) {
    let last = items.last().unwrap().id.0;
    let mut sealed = world.sealed().await;
    world.admit(items).await;
    let (gen_no, slot, _) = sealed.flush_of(last).await;
    sealed.seal_of(gen_no, slot).await;
    (gen_no, slot)
}

/// All items in a room's recordings, in their order.
fn recorded(archive: &Archive) -> Vec<u64> {
    let recordings = archive.recordings(&room()).unwrap();
    let slots = recordings.iter().flat_map(|it| it.slots().unwrap());
    slots.flat_map(|it| it.unwrap().items).map(|it| it.item.id.0).collect()
}

async fn index(broadcaster: &Running) -> Recording {
    let found = async {
        loop {
            let got = get(broadcaster.addr, INDEX).await;
            if got.status == 200 {
                assert_eq!(
                    got.header("cache-control"),
                    "public, max-age=10, s-maxage=10, stale-if-error=60"
                );
                return serde_json::from_slice(&got.body).unwrap();
            }
            assert_eq!(got.status, 404);
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, found).await.expect("the recording is published in time")
}

async fn minute(broadcaster: &Running, index: &Recording, minute: u64, ext: &str) -> Got {
    let path = format!("/dm/1/room-1/vod/{}/{minute}.{ext}", index.version);
    get(broadcaster.addr, &path).await
}

fn segment(got: &Got) -> Segment {
    Segment::decode(&expand(&got.body).unwrap()).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_room_that_was_closed_has_minute_files_of_what_it_showed() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::new(folder.path());
    world.set_room(settings(), true).await;
    let broadcaster = world.start(recording(1)).await;
    let recalled = Item { body: Body::Tombstone { of: ItemId(4) }, ..erasure(5, 4) };
    show(&world, vec![said(1, 59_999), said(2, 60_000), said(3, 200_000), said(4, 5)]).await;
    show(&world, vec![recalled]).await;
    assert_eq!(get(broadcaster.addr, INDEX).await.status, 404);

    world.set_room(settings(), false).await;
    let index = index(&broadcaster).await;

    assert_eq!((&index.minutes[..], index.items, index.left_out), (&[[0, 2], [3, 1]][..], 3, 0));
    let second = minute(&broadcaster, &index, 1, "bin").await;
    assert_eq!(second.header("cache-control"), "public, max-age=30, s-maxage=600, immutable");
    assert_eq!(second.header("content-type"), "application/octet-stream");
    let second = segment(&second);
    assert_eq!((second.header.epoch_ms, second.header.slot.0), (index.start_ms, 1));
    assert_eq!((second.items[0].seq, &second.items[0].item), (Seq(1), &said(2, 60_000)));
    let json = minute(&broadcaster, &index, 0, "json").await;
    let json: serde_json::Value = serde_json::from_slice(&expand(&json.body).unwrap()).unwrap();
    assert_eq!(json["items"].as_array().unwrap().len(), 1);
    assert_eq!(
        (&json["items"][0]["text"], &json["items"][0]["media_ms"]),
        (&"text 1".into(), &59_999.into())
    );
    assert_eq!(json["items"][0]["style"]["mode"], "top");
    assert_eq!(minute(&broadcaster, &index, 2, "bin").await.status, 404);
    let own = format!("/dm/1/room-1/vod/{}/index.json", index.version);
    let own: Recording = serde_json::from_slice(&get(broadcaster.addr, &own).await.body).unwrap();
    assert_eq!(own, index);
    broadcaster.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_recording_outlives_its_slots_and_its_process() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::new(folder.path());
    world.set_room(settings(), true).await;
    let short = |node| Config { retention_s: 1, ..recording(node) };
    let broadcaster = world.start(short(1)).await;
    let (_, slot) = show(&world, vec![said(1, 1), gift(2)]).await;
    until(|| recorded(&world.archive).len() == 2).await;
    until(|| !folder.path().join(format!("dm/1/room-1/1/full/{slot}.bin")).exists()).await;
    broadcaster.kill();

    let broadcaster = world.start(short(2)).await;
    show(&world, vec![said(3, 3)]).await;
    until(|| recorded(&world.archive).len() == 3).await;
    show(&world, vec![said(4, 4)]).await;
    broadcaster.stop().await;

    assert_eq!(recorded(&world.archive), [2, 1, 3, 4], "all, each once, gifts first");
    assert_eq!(world.archive.recordings(&room()).unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_erased_item_leaves_recordings_and_their_minute_files() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::new(folder.path());
    world.set_room(settings(), true).await;
    let broadcaster = world.start(recording(1)).await;
    show(&world, vec![said(1, 1), said(2, 2)]).await;
    world.set_room(settings(), false).await;
    let index = index(&broadcaster).await;
    world.set_room(settings(), true).await;
    world.sealed().await.seal_of(2, 0).await;
    show(&world, vec![said(3, 3)]).await;
    until(|| recorded(&world.archive) == [1, 2, 3]).await;

    world.admit(vec![erasure(7, 1), erasure(8, 3)]).await;

    until(|| {
        let erased = world.archive.erased(&room()).unwrap_or_default();
        [1, 3].iter().all(|it| erased.contains(&ItemId(*it)))
    })
    .await;
    until(|| !recorded(&world.archive).iter().any(|it| [1, 3].contains(it))).await;
    for ext in ["bin", "json"] {
        let bytes = expand(&minute(&broadcaster, &index, 0, ext).await.body).unwrap();
        let holds = |text: &[u8]| bytes.windows(text.len()).any(|it| it == text);
        assert_eq!((holds(b"text 1"), holds(b"text 2")), (false, true), "{ext}");
    }
    show(&world, vec![said(4, 4)]).await;
    until(|| recorded(&world.archive).contains(&4)).await;
    broadcaster.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_erased_item_leaves_minute_files_that_outlive_their_recording() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::new(folder.path());
    world.set_room(settings(), true).await;
    let broadcaster = world.start(recording(1)).await;
    show(&world, vec![said(1, 1), said(2, 2)]).await;
    world.set_room(settings(), false).await;
    let index = index(&broadcaster).await;
    let own = folder.path().join(format!("archive/room-1/{}", index.start_ms));
    std::fs::remove_dir_all(own).unwrap();
    world.set_room(settings(), true).await;
    world.sealed().await.seal_of(2, 0).await;

    world.admit(vec![erasure(7, 1)]).await;

    let file = folder.path().join(format!("dm/1/room-1/vod/{}/0.bin", index.version));
    until(|| {
        let bytes = expand(&std::fs::read(&file).unwrap()).unwrap();
        let left = Segment::decode(&bytes).unwrap().items;
        left.iter().map(|it| it.item.id.0).collect::<Vec<_>>() == [2]
    })
    .await;
    broadcaster.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn minutes_of_a_publication_that_was_cut_off_go() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::new(folder.path());
    world.set_room(settings(), false).await;
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path
    };
    let draft = Recording {
        v: 1,
        version: 5,
        start_ms: Wall(1_000),
        minutes: vec![[0, 1], [3, 2]],
        items: 0,
        left_out: 0,
    };
    let draft = serde_json::to_string(&draft).unwrap();
    let draft = write("archive/room-1/publishing.json", &draft);
    let minutes = ["0.bin", "0.json", "3.json", "4.bin"];
    let minutes = minutes.map(|it| write(&format!("dm/1/room-1/vod/5/{it}"), "minute"));
    let another = write("dm/1/room-1/vod/6/0.bin", "minute");

    let broadcaster = world.start(recording(1)).await;

    until(|| !is_there(&draft)).await;
    assert!(!minutes.iter().any(|it| is_there(it)));
    assert!(is_there(&another));
    broadcaster.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn only_rooms_that_want_it_are_recorded() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::new(folder.path());
    let files = folder.path().join("archive/room-1");
    let unwilling = RoomSettings { archive: Some(false), ..settings() };
    world.set_room(unwilling.clone(), true).await;
    let broadcaster = world.start(recording(1)).await;
    show(&world, vec![said(1, 1)]).await;

    world.set_room(settings(), true).await;
    show(&world, vec![said(2, 2)]).await;
    until(|| recorded(&world.archive) == [2]).await;
    world.set_room(unwilling, true).await;
    show(&world, vec![said(3, 3)]).await;
    until(|| world.archive.recordings(&room()).unwrap().iter().all(|it| it.has_ended())).await;
    broadcaster.stop().await;

    assert_eq!(recorded(&world.archive), [2]);
    std::fs::remove_dir_all(&files).unwrap();
    let none = Config { archive_days: 0, ..recording(2) };
    let broadcaster = world.start(none).await;
    world.set_room(RoomSettings { archive: Some(true), ..settings() }, true).await;
    show(&world, vec![said(4, 4)]).await;
    broadcaster.stop().await;
    assert!(!files.exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn recordings_that_are_too_old_go_and_unpublished_ones_are_published_at_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::new(folder.path());
    world.set_room(settings(), true).await;
    let broadcaster = world.start(recording(1)).await;
    show(&world, vec![said(1, 1)]).await;
    until(|| recorded(&world.archive) == [1]).await;
    broadcaster.stop().await;
    let files = folder.path().join("archive/room-1");
    let newest = world.archive.recordings(&room()).unwrap().pop().unwrap();
    let file = |recording: &str, name: &str| files.join(recording).join(name);
    std::fs::write(file(&newest.start.to_string(), "ended"), "").unwrap();
    std::fs::create_dir(files.join("1000")).unwrap();
    std::fs::write(file("1000", "0.dma"), "DMA1").unwrap();
    std::fs::write(file("1000", "ended"), "").unwrap();

    world.set_room(settings(), false).await;
    let broadcaster = world.start(recording(2)).await;
    let index = index(&broadcaster).await;

    assert_eq!((index.start_ms, index.items), (newest.start, 1));
    until(|| !is_there(&files.join("1000"))).await;
    broadcaster.stop().await;
}

fn is_there(path: &Path) -> bool {
    path.exists()
}
