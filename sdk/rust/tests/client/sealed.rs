//! Sealed rooms: what opens is shown, and nothing else ever is.

use std::time::Duration;

use auth_core::room_key::RoomKey;
use broadcaster_core::pack::compress;
use kit::clock::Clock;
use proto::address::Transport;
use proto::encoding::Encoding;
use proto::frame::{Control, Downlink, Path};
use proto::head::{Head, Tier, segment_path};
use proto::id::{AppId, Gen, SlotNo};
use proto::keys::RoomKeys;
use proto::segment::Segment;
use sdk::Event;
use sdk::sealed::{Keys, Locked};
use sdk::segments::{FetchError, Name, fetch, fetch_sealed};

use crate::link::Link;
use crate::rooms::{GEN, head, item, room, segment};
use crate::site::Site;
use crate::viewer::{Viewer, options};

const WAIT: Duration = Duration::from_secs(10);

fn key(gen_no: Gen) -> RoomKey {
    RoomKey::derive(&[4; 32], 0, AppId(1), &room(), gen_no)
}

fn told() -> RoomKeys {
    RoomKeys { room: room(), keys: vec![key(GEN).tell(), key(Gen(GEN.0 + 1)).tell()] }
}

fn path(slot: u64) -> String {
    segment_path(&room(), GEN, Tier::Full, SlotNo(slot), "bin")
}

/// The segment as a broadcaster seals it, as the file of a slot.
fn seal(segment: &Segment, slot: u64) -> Vec<u8> {
    let packed = compress(&segment.encode(), Encoding::Gzip);
    key(GEN).seal(&path(slot), &packed, [u8::try_from(slot).unwrap(); 12])
}

fn put(site: &Site, slot: u64, file: Vec<u8>) {
    site.put_packed(&path(slot), "", file);
}

#[tokio::test]
async fn a_file_opens_with_its_key_at_its_place_and_else_is_missing() {
    let site = Site::start(&Clock::system()).await;
    let http = options(&site, Path::Segments).http;
    let whole = segment(1, vec![item(1)]);
    let mut changed = seal(&whole, 3);
    let last = changed.len() - 1;
    changed[last] ^= 1;
    put(&site, 1, seal(&whole, 1));
    put(&site, 2, seal(&whole, 1));
    put(&site, 3, changed);
    put(&site, 4, seal(&whole, 4)[..40].to_vec());
    put(&site, 5, seal(&whole, 5));
    let name = |slot| Name { room: room(), gen_no: GEN, tier: Tier::Full, slot: SlotNo(slot) };
    let base = site.base();
    let keys = Keys::from(&told());
    let get = async |slot| fetch_sealed(&http, &base, &name(slot), &keys, WAIT).await;

    let without = fetch(&http, &base, &name(1), WAIT).await;

    assert_eq!(get(1).await.unwrap(), whole);
    for slot in 2..=4 {
        let locked = get(slot).await.unwrap_err();
        assert!(matches!(locked, FetchError::Locked(Locked::Closed)), "{slot}: {locked:?}");
    }
    // Sealed for slot 5 by who had the key, and says that it is slot 1.
    assert!(matches!(get(5).await, Err(FetchError::Other)));
    assert!(matches!(without, Err(FetchError::Locked(Locked::NoKey))));
}

#[tokio::test]
async fn a_viewer_with_the_keys_of_enter_sees_a_sealed_room() {
    let site = Site::start(&Clock::system()).await;
    let link = Link::bind(Transport::Tcp, None).await;
    site.offer(&[link.address()], &[&site]);
    site.tell_keys(told());
    site.put_head(&Head { sealed: true, ..head(1) });
    for slot in 1..=3 {
        put(&site, slot, seal(&segment(slot, vec![item(slot)]), slot));
    }

    let mut viewer = Viewer::start(options(&site, Path::Segments));
    let (_conn, _) = link.welcome(Path::Segments).await;

    assert_eq!(viewer.shown(3).await, [1, 2, 3]);
}

#[tokio::test]
async fn a_viewer_without_a_key_is_told_so_once_and_goes_on_when_it_comes() {
    let site = Site::start(&Clock::system()).await;
    let link = Link::bind(Transport::Tcp, None).await;
    site.offer(&[link.address()], &[&site]);
    site.put_head(&Head { sealed: true, ..head(1) });
    for slot in 1..=30 {
        put(&site, slot, seal(&segment(slot, vec![item(slot)]), slot));
    }
    let mut viewer = Viewer::start(options(&site, Path::Segments));
    let (mut conn, _) = link.welcome(Path::Segments).await;

    viewer
        .until(|it| match it {
            Event::Locked { gen_no, .. } => {
                assert_eq!(*gen_no, GEN);
                Some(())
            }
            Event::Show { .. } => panic!("{it:?}"),
            _ => None,
        })
        .await;
    conn.send(&Downlink::Control(Control::Keys(told()))).await;

    viewer
        .until(|it| match it {
            Event::Show { .. } => Some(()),
            Event::Locked { .. } | Event::Control(_) => panic!("{it:?}"),
            _ => None,
        })
        .await;
}
