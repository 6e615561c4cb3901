//! Segments in every encoding, with a dictionary, and what else heads name.

use std::io::Write;

use brotli::CompressorWriter;
use kit::clock::Clock;
use proto::address::Transport;
use proto::control::catalogue_path;
use proto::dictionary::{Dictionary, dictionary_path};
use proto::frame::Path;
use proto::head::{Head, Tier, segment_path};
use proto::id::{AppId, SlotNo};
use proto::limits::SEGMENT_BYTES_MAX;
use proto::segment::Segment;
use sdk::Event;
use sdk::segments::{FetchError, Name, fetch};

use crate::link::{Link, STEP};
use crate::rooms::{GEN, head, item, room, segment};
use crate::site::Site;
use crate::viewer::{Viewer, options};

fn path(slot: u64, ext: &str) -> String {
    segment_path(&room(), GEN, Tier::Full, SlotNo(slot), ext)
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(bytes).unwrap();
    gzip.finish().unwrap()
}

fn br(bytes: &[u8]) -> Vec<u8> {
    let mut br = CompressorWriter::new(Vec::new(), 4096, 1, 22);
    br.write_all(bytes).unwrap();
    br.into_inner()
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    zstd::bulk::compress(bytes, 1).unwrap()
}

async fn fetched(site: &Site) -> Result<Segment, FetchError> {
    let name = Name { room: room(), gen_no: GEN, tier: Tier::Full, slot: SlotNo(1) };
    fetch(&options(site, Path::Segments).http, &site.base(), &name, STEP).await
}

#[tokio::test]
async fn a_segment_is_read_in_every_encoding_and_without() {
    let site = Site::start(&Clock::system()).await;
    let sound = segment(1, vec![item(1)]);
    let bytes = sound.encode();

    for (encoding, packed) in
        [("gzip", gzip(&bytes)), ("br", br(&bytes)), ("zstd", zstd(&bytes)), ("", bytes.to_vec())]
    {
        site.put_packed(&path(1, "bin"), encoding, packed);

        assert_eq!(fetched(&site).await.unwrap(), sound, "{encoding}");
    }
}

#[tokio::test]
async fn what_expands_beyond_a_segment_or_is_no_such_encoding_is_refused() {
    let site = Site::start(&Clock::system()).await;
    let much = vec![0; 64 * SEGMENT_BYTES_MAX];
    let packed =
        [("gzip", gzip(&much)), ("br", br(&much)), ("zstd", zstd(&much)), ("compress", Vec::new())];

    for (encoding, packed) in packed {
        assert!(packed.len() < SEGMENT_BYTES_MAX, "{encoding}");
        site.put_packed(&path(1, "bin"), encoding, packed);

        assert!(fetched(&site).await.is_err(), "{encoding}");
    }
}

/// A dictionary of segments like those of these tests.
fn dictionary() -> Dictionary {
    let samples: Vec<_> = (0..200_u64)
        .map(|slot| segment(slot, (slot * 9..slot * 9 + 9).map(item).collect()).encode())
        .collect();
    Dictionary::new(zstd::dict::from_samples(&samples, 4096).unwrap().into()).unwrap()
}

fn packed_with(dictionary: &Dictionary, segment: &Segment) -> Vec<u8> {
    let compressor = zstd::bulk::Compressor::with_dictionary(1, dictionary.bytes());
    compressor.unwrap().compress(&segment.encode()).unwrap()
}

/// A site whose head names a dictionary, and a viewer who has fetched it.
async fn with_dictionary() -> (Site, Dictionary, Viewer) {
    let (site, dictionary) = (Site::start(&Clock::system()).await, dictionary());
    site.offer(&[], &[&site]);
    site.put_head(&Head { dict: Some(dictionary.info()), ..head(0) });
    let path_of = dictionary_path(dictionary.id());
    site.put_packed(&path_of, "", dictionary.bytes().to_vec());
    site.put_segment(&segment(0, vec![item(0)]));
    let mut viewer = Viewer::start(options(&site, Path::Segments));
    assert_eq!(viewer.shown(1).await, [0]);
    site.wait_for(&path_of, 1).await;
    (site, dictionary, viewer)
}

#[tokio::test]
async fn who_has_the_dictionary_asks_for_the_smaller_form_alone() {
    let (site, dictionary, mut viewer) = with_dictionary().await;

    for slot in 1..=4 {
        let segment = segment(slot, vec![item(slot)]);
        site.put_packed(&path(slot, "zbin"), "", packed_with(&dictionary, &segment));
        if slot == 1 {
            // The dictionary may be on its way still.
            site.put_segment(&segment);
        }
    }

    assert_eq!(viewer.shown(4).await, [1, 2, 3, 4]);
    let plain = site.asked().iter().filter(|it| it.0 == path(4, "bin")).count();
    assert_eq!(plain, 0);
}

#[tokio::test]
async fn a_slot_without_the_smaller_form_or_with_another_dictionary_is_read_as_it_is() {
    let (site, _, mut viewer) = with_dictionary().await;

    for slot in 1..=8 {
        let segment = segment(slot, vec![item(slot)]);
        site.put_segment(&segment);
        if slot % 2 == 0 {
            site.put_packed(&path(slot, "zbin"), "", zstd(b"made otherwise"));
        }
    }

    assert_eq!(viewer.shown(8).await, [1, 2, 3, 4, 5, 6, 7, 8]);
    let small = site.asked().iter().filter(|it| it.0.ends_with(".zbin")).count();
    assert_eq!(small, 3, "after three slots in a row nobody asks for it any more");
}

#[tokio::test]
async fn a_dictionary_that_is_not_the_one_that_was_named_is_not_used() {
    let (site, dictionary) = (Site::start(&Clock::system()).await, dictionary());
    site.offer(&[], &[&site]);
    site.put_head(&Head { dict: Some(dictionary.info()), ..head(0) });
    let mut other = dictionary.bytes().to_vec();
    *other.last_mut().unwrap() ^= 1;
    site.put_packed(&dictionary_path(dictionary.id()), "", other);
    for slot in 0..=3 {
        site.put_segment(&segment(slot, vec![item(slot)]));
    }

    let mut viewer = Viewer::start(options(&site, Path::Segments));

    assert_eq!(viewer.shown(4).await, [0, 1, 2, 3]);
    assert!(site.asked().iter().all(|it| !it.0.ends_with(".zbin")));
}

#[tokio::test]
async fn a_catalogue_comes_with_the_head_and_when_it_is_asked_for() {
    let site = Site::start(&Clock::system()).await;
    let link = Link::bind(Transport::Tcp, None).await;
    site.offer(&[link.address()], &[&site]);
    site.put_head(&Head { catalogue: 7, app: Some(AppId(3)), ..head(0) });
    site.put_packed(&catalogue_path(AppId(3), 7), "br", br(b"{\"gifts\":[]}"));
    site.put_segment(&segment(0, vec![item(0)]));
    let catalogue = |it: &Event| match it {
        Event::Catalogue { version, catalogue, .. } => Some((*version, catalogue.clone())),
        _ => None,
    };

    let mut viewer = Viewer::start(options(&site, Path::Segments));
    let (_conn, _) = link.welcome(Path::Segments).await;
    let of_head = viewer.until(catalogue).await;
    site.put_head(&Head { catalogue: 0, app: None, ..head(0) });
    viewer.client.catalogue(&room()).unwrap();
    let asked_for = viewer.until(catalogue).await;

    assert_eq!(of_head, (7, Some(b"{\"gifts\":[]}".as_slice().into())));
    assert_eq!(asked_for, (0, None));
}
