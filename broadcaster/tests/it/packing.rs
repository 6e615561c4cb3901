//! Encodings, dictionaries and gift catalogues, from the configuration to the files.

use std::path::Path;

use broadcaster::Config;
use broadcaster_core::pack::expand;
use broadcaster_core::pack::train::train;
use bus::{Publish, topic};
use proto::control::{CataloguePart, Fact, catalogue_path};
use proto::dictionary::{Dictionary, dictionary_path};
use proto::encoding::Encoding;
use proto::id::{AppId, Seq, SlotNo};
use proto::item::Placed;
use proto::segment::Segment;

use crate::get::get;
use crate::stage::{Running, World, comment, config, settings};

fn encoded(encoding: Encoding) -> Config {
    Config { encoding, ..config(1) }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_slot_is_told_in_the_encoding_that_it_was_written_in() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::new(folder.path());
    world.set_room(settings(), true).await;
    let mut sealed = world.sealed().await;
    let mut slots = Vec::new();

    for (id, encoding) in (1..).zip(Encoding::ALL) {
        let broadcaster = world.start(Config { hls: true, ..encoded(encoding) }).await;
        world.admit(vec![comment(id)]).await;
        let (gen_no, slot, placed) = sealed.flush_of(id).await;
        sealed.seal_of(gen_no, slot).await;
        slots.push((encoding, gen_no, slot, placed));
        for (encoding, gen_no, slot, placed) in &slots {
            for (ext, path) in [
                ("bin", format!("/dm/1/room-1/{gen_no}/full/{slot}.bin")),
                ("json", format!("/dm/1/room-1/{gen_no}/lite/{slot}.json")),
            ] {
                let got = get(broadcaster.addr, &path).await;
                assert_eq!((got.status, got.header("content-encoding")), (200, encoding.name()));
                assert_eq!(Encoding::of(&got.body), Some(*encoding));
                assert_eq!(got.header("vary"), "", "nobody is asked");
                let bytes = expand(&got.body).unwrap();
                if ext == "bin" {
                    let segment = Segment::decode(&bytes).unwrap();
                    assert!(segment.items.contains(placed), "{encoding:?}");
                }
            }
            let path = format!("/dm/1/room-1/{gen_no}/full/{slot}.m4s");
            let fragment = get(broadcaster.addr, &path).await.body;
            let owner = b"segment.json.gz\0\x1f\x8b";
            assert!(fragment.windows(owner.len()).any(|it| it == owner), "gzip, as it is named");
        }
        broadcaster.stop().await;
    }
}

/// A dictionary of slots like this one, in a file.
fn dictionary(slot: &Segment, file: &Path) -> Dictionary {
    let slots: Vec<_> = (0..120_u64)
        .map(|number| {
            let mut slot = slot.clone();
            slot.header.slot = SlotNo(number);
            let placed = |it| Placed { seq: Seq(it), item: comment(it) };
            slot.items = (number * 9..number * 9 + 9).map(placed).collect();
            slot.encode()
        })
        .collect();
    let dictionary = train(&slots, Encoding::Gzip).unwrap().dictionary;
    std::fs::write(file, dictionary.bytes()).unwrap();
    dictionary
}

/// Shows a comment; the gen and the slot that it stands in, sealed.
async fn shown(world: &World, broadcaster: &Running, id: u64) -> (u32, u64, Segment) {
    let mut sealed = world.sealed().await;
    world.admit(vec![comment(id)]).await;
    let (gen_no, slot, _) = sealed.flush_of(id).await;
    sealed.seal_of(gen_no, slot).await;
    let got = broadcaster.segment(gen_no, slot).await;
    (gen_no, slot, Segment::decode(&expand(&got.body).unwrap()).unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn with_a_dictionary_each_slot_has_a_smaller_form_and_the_head_names_it() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::new(folder.path());
    world.set_room(settings(), true).await;
    let broadcaster = world.start(config(1)).await;
    let (gen_no, slot, segment) = shown(&world, &broadcaster, 1).await;
    assert_eq!(broadcaster.head().await.dict, None);
    let path = format!("/dm/1/room-1/{gen_no}/full/{slot}.zbin");
    assert_eq!(get(broadcaster.addr, &path).await.status, 404);
    broadcaster.stop().await;
    let file = folder.path().join("dictionary");
    let dictionary = dictionary(&segment, &file);

    let broadcaster = world.start(Config { dictionary: file, ..config(1) }).await;
    let (gen_no, slot, segment) = shown(&world, &broadcaster, 2).await;

    assert_eq!(broadcaster.head().await.dict, Some(dictionary.info()));
    let path = format!("/{}", dictionary_path(dictionary.id()));
    let got = get(broadcaster.addr, &path).await;
    assert_eq!(got.header("cache-control"), "public, max-age=86400, immutable");
    assert_eq!((got.header("content-encoding"), &got.body[..]), ("", &dictionary.bytes()[..]));
    assert!(folder.path().join(dictionary_path(dictionary.id())).exists());
    let plain = broadcaster.segment(gen_no, slot).await;
    let path = format!("/dm/1/room-1/{gen_no}/full/{slot}.zbin");
    let small = get(broadcaster.addr, &path).await;
    assert_eq!((small.status, small.header("content-encoding")), (200, ""));
    assert_eq!(Segment::decode(&dictionary.expand(&small.body).unwrap()), Ok(segment));
    assert!(small.body.len() < plain.body.len());
    broadcaster.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_catalogue_lies_beside_the_slots_before_a_head_names_it() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::new(folder.path());
    world.set_room(settings(), true).await;
    let broadcaster = world.start(config(1)).await;
    let long = format!("[\"{}\"]", "x".repeat(20_000));

    let mut id = 0;
    for (app, version, text) in [(1, 1, "{}"), (2, 9, "{}"), (1, 2, &*long)] {
        for part in CataloguePart::cut(AppId(app), version, text) {
            let fact = Fact::Catalogue(part);
            world
                .publish(Publish {
                    topic: topic::control(),
                    partition: bus::PartitionNo(0),
                    term: None,
                    key: Some(fact.key().into()),
                    value: fact.encode().into(),
                })
                .await;
        }
        let mut head = broadcaster.head_of_slot(&world, &mut id).await;
        while app == 1 && head.catalogue < version {
            head = broadcaster.head_of_slot(&world, &mut id).await;
        }
        let file = folder.path().join(catalogue_path(AppId(1), head.catalogue));
        assert!(file.exists(), "{}", head.catalogue);
    }

    let head = broadcaster.head().await;
    assert_eq!((head.catalogue, head.app), (2, Some(AppId(1))));
    for (version, text) in [(1, "{}"), (2, &*long)] {
        let path = format!("/{}", catalogue_path(AppId(1), version));
        let got = get(broadcaster.addr, &path).await;
        assert_eq!((got.status, got.header("content-encoding")), (200, "gzip"));
        assert_eq!(got.header("content-type"), "application/json");
        assert_eq!(expand(&got.body).unwrap(), text.as_bytes());
    }
    broadcaster.stop().await;
}

impl Running {
    /// The head after a further slot with an item.
    async fn head_of_slot(&self, world: &World, id: &mut u64) -> proto::head::Head {
        *id += 1;
        shown(world, self, *id).await;
        self.head().await
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_is_no_dictionary_is_refused_at_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::new(folder.path());
    let file = folder.path().join("dictionary");
    std::fs::write(&file, "other").unwrap();

    let refused = world.try_start(Config { dictionary: file, ..config(1) }).await;

    let error = format!("{:#}", refused.err().unwrap());
    assert!(error.contains("dictionary cannot be used"), "{error}");
}
