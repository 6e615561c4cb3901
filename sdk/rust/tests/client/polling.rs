//! Segments: polling in the server's time, what is missing, other gens, no link at all.

use std::time::Duration;

use axum::http::StatusCode;
use kit::clock::Clock;
use proto::address::Transport;
use proto::close::CloseCode;
use proto::enter::Class;
use proto::frame::{Ack, Downlink, Outcome, Path, Refused, Uplink};
use proto::head::{Base, GenInfo, Head};
use proto::id::{Gen, ItemId, SlotNo};
use proto::item::Style;
use proto::time::Wall;
use proto::verdict::Verdict;
use sdk::Event;
use sdk::segments::{FetchError, Name, fetch};

use crate::link::{Link, SERVER_MS, STEP};
use crate::rooms::{
    GEN, INTERVAL_MS, gift, head, head_of, item, repeat, room, segment, segment_of,
};
use crate::site::{FULL_MS, Site};
use crate::viewer::{Viewer, file, options};

/// How far a wrong clock is ahead.
const AHEAD: Duration = Duration::from_secs(3600);

#[tokio::test]
async fn segments_are_read_while_the_connection_carries_the_verdicts() {
    let site = Site::start(&Clock::system()).await;
    let link = Link::bind(Transport::Tcp, None).await;
    site.offer(&[link.address()], &[&site]);
    site.put_head(&head(1));
    for slot in 1..=3 {
        site.put_segment(&segment(slot, vec![item(slot * 2), item(slot * 2 + 1)]));
    }

    let mut viewer = Viewer::start(options(&site, Path::Segments));
    let (mut conn, login) = link.welcome(Path::Segments).await;
    viewer.connected().await;
    let cid = viewer.client.send(&room(), "hello", Style::default(), None).unwrap();
    assert!(matches!(conn.recv().await, Some(Uplink::Comment(_))));
    let outcome = Outcome::Verdict(Verdict::Admit(ItemId(5)));
    conn.send(&Downlink::Ack(Ack { cid, outcome })).await;

    assert_eq!(login.joins[0].path, Path::Segments);
    viewer.until(|it| (*it == Event::Ack(Ack { cid, outcome })).then_some(())).await;
    // Some were shown before the verdict; go on until the last.
    viewer
        .until(|it| match it {
            Event::Show { place, .. } if place.seq.0 == 7 => Some(()),
            Event::Gap { .. } => panic!("{it:?}"),
            _ => None,
        })
        .await;
    let once = |slot| site.asked().iter().filter(|(it, _)| it.ends_with(&file(slot))).count();
    assert_eq!([once(1), once(2), once(3)], [1, 1, 1]);
}

#[tokio::test]
async fn a_link_whose_clock_runs_ahead_and_finds_tokens_too_old_does_not_spoil_the_time() {
    let site = Site::start(&Clock::system()).await;
    let link = Link::bind(Transport::Tcp, None).await;
    site.offer(&[link.address()], &[&site]);
    site.put_head(&Head { now_ms: SERVER_MS, ..head(0) });
    for slot in 0..=2 {
        site.put_segment(&segment(slot, vec![item(slot)]));
    }
    let mut viewer = Viewer::start(options(&site, Path::Segments));

    let mut conn = link.accept().await;
    conn.spoil = |it| it.server_ms = SERVER_MS + AHEAD;
    conn.login().await;
    let refused = Refused {
        code: CloseCode::TokenExpired,
        reason: String::new(),
        retry_after_ms: 0,
        server_ms: SERVER_MS + AHEAD,
    };
    conn.send(&Downlink::Refused(refused)).await;
    let (_conn, _) = link.welcome(Path::Segments).await;

    assert_eq!(viewer.shown(3).await, [0, 1, 2]);
    let near: Vec<_> = (0..1000).map(file).collect();
    let is_near =
        |it: &str| near.iter().any(|near| it.ends_with(near)) || it.ends_with("head.json");
    assert!(site.asked().iter().all(|(it, _)| is_near(it)), "{:?}", site.asked());
}

#[tokio::test]
async fn no_slot_is_asked_for_before_its_end_however_wrong_the_device_s_clock_is() {
    for step_ms in [-120_000, 120_000] {
        let clock = Clock::system();
        let site = Site::start(&clock).await;
        // Slot 0 begins now by the server's clock, which `enter` tells.
        site.offer(&[], &[&site]);
        site.put_head(&Head { now_ms: SERVER_MS, ..head(0) });
        for slot in 0..=4 {
            site.put_segment(&segment(slot, vec![item(slot)]));
        }
        let options = options(&site, Path::Segments);
        options.clock.step(step_ms);

        let started = clock.mono().0;
        let mut viewer = Viewer::start(options);

        assert_eq!(viewer.shown(5).await, [0, 1, 2, 3, 4]);
        for slot in 1..=4_u64 {
            let asked = site.asked();
            let (_, at) = asked.iter().find(|(it, _)| it.ends_with(&file(slot))).unwrap();
            let end = (slot + 1) * u64::from(INTERVAL_MS);
            let after = i64::try_from(at - started).unwrap() - i64::try_from(end).unwrap();
            assert!((150..1_500).contains(&after), "slot {slot} was asked for {after} ms after");
        }
    }
}

#[tokio::test]
async fn a_slot_that_is_not_there_yet_is_asked_for_again() {
    let site = polled(&head(1)).await;
    site.put_segment(&segment(1, vec![item(1)]));
    let mut viewer = Viewer::start(options(&site, Path::Segments));
    assert_eq!(viewer.shown(1).await, [1]);

    site.wait_for(&file(2), 1).await;
    site.put_segment(&segment(2, vec![item(2)]));

    assert_eq!(viewer.shown(1).await, [2]);
}

#[tokio::test]
async fn a_damaged_segment_is_fetched_from_the_next_base() {
    let good = polled(&head(1)).await;
    let bad = Site::start(&Clock::system()).await;
    bad.put_head(&head(1));
    good.offer(&[], &[&bad, &good]);
    let sound = segment(1, vec![item(1)]);
    let mut damaged = sound.encode().to_vec();
    let middle = damaged.len() / 2;
    damaged[middle] ^= 0x40;
    bad.put(&format!("dm/1/room-1{}", file(1)), StatusCode::OK, damaged);
    good.put_segment(&sound);

    let mut viewer = Viewer::start(options(&good, Path::Segments));

    assert_eq!(viewer.shown(1).await, [1]);
    assert!(bad.asked().iter().any(|(it, _)| it.ends_with(&file(1))), "the bad one was asked");
}

#[tokio::test]
async fn a_lost_segment_costs_what_the_next_one_does_not_repeat() {
    let site = polled(&head(1)).await;
    site.put_segment(&segment(1, vec![item(1)]));
    let path = format!("dm/1/room-1{}", file(2));
    site.put(&path, StatusCode::INTERNAL_SERVER_ERROR, Vec::new());
    let mut after = segment(3, vec![item(5)]);
    after.repeats = vec![repeat(gift(3))];
    site.put_segment(&after);

    let mut viewer = Viewer::start(options(&site, Path::Segments));

    let mut told = Vec::new();
    while told.len() < 4 {
        match viewer.next().await {
            Event::Show { place, .. } => {
                // While the head does not know slot 2, it is late and not lost.
                site.put_head(&head(3));
                told.push(format!("show {}", place.seq));
            }
            Event::Gap { from, to, items, .. } => {
                told.push(format!("gap {}..{} {items:?}", from.seq, to.seq));
            }
            _ => {}
        }
    }
    assert_eq!(told, ["show 1", "show 3", "gap 2..5 Some(2)", "show 5"]);
}

#[tokio::test]
async fn a_gen_that_ended_without_a_word_is_found_through_the_head() {
    let site = polled(&head(1)).await;
    site.put_segment(&segment(1, vec![item(1)]));
    let mut viewer = Viewer::start(options(&site, Path::Segments));
    assert_eq!(viewer.shown(1).await, [1]);

    site.put(&format!("dm/1/room-1{}", file(2)), StatusCode::GONE, Vec::new());
    let epoch = Wall(SERVER_MS.0 + 400);
    site.put_segment(&segment_of(Gen(2), 0, vec![item(1), item(7)], epoch));
    site.put_segment(&segment_of(Gen(2), 1, vec![item(8)], epoch));
    site.put_head(&head_of(Gen(2), 1, epoch));

    // Item 1 was shown in the old gen; its id does not come again.
    assert_eq!(viewer.shown(2).await, [7, 8]);
}

#[tokio::test]
async fn an_announced_gen_is_entered_behind_the_last_slot_without_the_head() {
    let site = polled(&head(1)).await;
    let epoch_ms = Wall(SERVER_MS.0 + 600);
    let following = GenInfo { gen_no: Gen(2), epoch_ms, interval_ms: 300, layout: 1 };
    for slot in [1, 2] {
        let mut segment = segment(slot, vec![item(slot)]);
        segment.header.next = Some(following);
        segment.header.end = Some(SlotNo(2));
        site.put_segment(&segment);
    }
    site.put_segment(&segment_of(Gen(2), 0, vec![item(9)], epoch_ms));

    let mut viewer = Viewer::start(options(&site, Path::Segments));

    assert_eq!(viewer.shown(3).await, [1, 2, 9]);
    let heads = site.asked().iter().filter(|(it, _)| it.ends_with("head.json")).count();
    assert_eq!(heads, 1);
}

#[tokio::test]
async fn bases_move_when_a_segment_says_so() {
    let old = polled(&head(1)).await;
    let new = Site::start(&Clock::system()).await;
    let mut first = segment(1, vec![item(1)]);
    first.header.bases = vec![Base { base: new.base(), weight: 1 }];
    old.put_segment(&first);
    new.put_segment(&segment(2, vec![item(2)]));

    let link = Link::bind(Transport::Tcp, None).await;
    old.offer(&[link.address()], &[&old]);

    let mut viewer = Viewer::start(options(&old, Path::Segments));
    let (_conn, _) = link.welcome(Path::Segments).await;

    assert_eq!(viewer.shown(2).await, [1, 2]);
    assert!(old.asked().iter().all(|(it, _)| !it.ends_with(&file(2))));
}

#[tokio::test]
async fn a_full_system_is_read_by_segments_until_there_is_room() {
    let site = polled(&head(1)).await;
    site.put_segment(&segment(1, vec![item(1)]));
    let mut options = options(&site, Path::Auto);
    options.class = Class::Browser;
    let mut viewer = Viewer::start(options);
    let read_only = |it: &Event| match it {
        Event::ReadOnly { retry_in } => Some(*retry_in),
        _ => None,
    };
    let retry_in = viewer.until(read_only).await;
    assert!(retry_in >= Duration::from_millis(FULL_MS.into()), "{retry_in:?}");
    assert_eq!(site.entered()[0].client.class, Class::Browser);
    assert_eq!(viewer.shown(1).await, [1]);

    let link = Link::bind(Transport::Tcp, None).await;
    site.offer(&[link.address()], &[&site]);
    let (mut conn, login) = link.welcome(Path::Push).await;
    viewer.connected().await;
    site.put_segment(&segment(1, vec![item(1), item(2)]));
    conn.batch(crate::rooms::batch(2, 0, &[2, 3])).await;

    assert_eq!(login.joins[0].resume.map(|it| it.seq.0), Some(1));
    assert_eq!(viewer.shown(2).await, [2, 3]);
}

#[tokio::test]
async fn a_segment_that_is_another_one_or_too_long_is_refused() {
    let site = polled(&head(1)).await;
    let path = |slot| format!("dm/1/room-1{}", file(slot));
    site.put(&path(5), StatusCode::OK, segment(6, Vec::new()).encode().to_vec());
    // Highly compressed: a few KiB on the wire.
    site.put(&path(7), StatusCode::OK, vec![0; 5 * 1024 * 1024]);
    let http = options(&site, Path::Segments).http;
    let name = |slot| {
        let (tier, slot) = (proto::head::Tier::Full, SlotNo(slot));
        Name { room: room(), gen_no: GEN, tier, slot }
    };

    let other = fetch(&http, &site.base(), &name(5), STEP).await;
    let bomb = fetch(&http, &site.base(), &name(7), STEP).await;
    let none = fetch(&http, &site.base(), &name(8), STEP).await;

    assert!(matches!(other, Err(FetchError::Other)), "{other:?}");
    assert!(matches!(bomb, Err(FetchError::Http(_))), "{bomb:?}");
    assert!(matches!(none, Err(FetchError::NotYet)), "{none:?}");
}

/// A site with a head and no link.
async fn polled(head: &Head) -> Site {
    let site = Site::start(&Clock::system()).await;
    site.offer(&[], &[&site]);
    site.put_head(head);
    site
}
