//! Pushes, comments and verdicts, resume, gaps filled from segments.

use kit::clock::Clock;
use proto::address::Transport;
use proto::close::CloseCode;
use proto::frame::{Ack, Close, Comment, Downlink, Outcome, Path, Place, Refused, Resumed, Uplink};
use proto::heat::Heat;
use proto::id::{AppId, ItemId, Seq, SlotNo};
use proto::item::{Body, Placed, Style};
use proto::time::Wall;
use proto::verdict::{Reason, Verdict};
use sdk::Event;
use sdk::event::Via;

use crate::link::{Conn, Link};
use crate::rooms::{GEN, batch, head, item, room, seal, segment};
use crate::site::Site;
use crate::viewer::{Viewer, file, options};

#[tokio::test]
async fn comments_get_their_verdicts_and_later_fates() {
    let (_site, _link, mut conn, mut viewer) = connected().await;

    let cid = viewer.client.send(&room(), "hello", Style::default(), Some(9)).unwrap();
    viewer.client.like(&room(), 3).unwrap();
    let Some(Uplink::Comment(comment)) = conn.recv().await else { panic!("no comment") };
    let like = conn.recv().await;
    let admitted = Outcome::Verdict(Verdict::Admit(ItemId(5)));
    conn.send(&Downlink::Ack(Ack { cid, outcome: admitted })).await;
    conn.send(&Downlink::Ack(Ack { cid, outcome: Outcome::Shed(Reason::OverBudget) })).await;

    let (text, style) = ("hello".to_owned(), Style::default());
    assert_eq!(comment, Comment { cid, room: room(), text, style, media_ms: Some(9) });
    assert_eq!(like, Some(Uplink::Like { room: room(), count: 3 }));
    assert_eq!(viewer.next().await, Event::Ack(Ack { cid, outcome: admitted }));
    let shed = Outcome::Shed(Reason::OverBudget);
    assert_eq!(viewer.next().await, Event::Ack(Ack { cid, outcome: shed }));
}

#[tokio::test]
async fn compressed_batches_are_shown_as_others_are() {
    let (_site, _link, mut conn, mut viewer) = connected().await;
    let first: Vec<u64> = (1..=20).collect();

    conn.packed(batch(1, 0, &first)).await;
    conn.batch(batch(1, 1, &[21])).await;

    assert_eq!(viewer.shown(21).await, (1..=21).collect::<Vec<_>>());
}

#[tokio::test]
async fn after_a_broken_connection_nothing_is_missing_and_nothing_comes_twice() {
    let (_site, link, mut conn, mut viewer) = connected().await;
    conn.batch(batch(1, 0, &[1, 2])).await;
    conn.send(&Downlink::Seal(seal(1, &[1, 2]))).await;
    conn.batch(batch(2, 0, &[3])).await;
    assert_eq!(viewer.shown(3).await, [1, 2, 3]);
    let cid = viewer.client.send(&room(), "under way", Style::default(), None).unwrap();
    assert!(matches!(conn.recv().await, Some(Uplink::Comment(_))));

    drop(conn);
    let mut conn = link.accept().await;
    let login = conn.login().await;
    conn.let_in(&login, Path::Push, Resumed::Recovered { items: 2 }).await;
    conn.batch(batch(2, 0, &[3])).await;
    conn.batch(batch(2, 1, &[4, 5])).await;
    conn.send(&Downlink::Seal(seal(2, &[3, 4, 5]))).await;
    conn.batch(batch(3, 0, &[6])).await;

    assert_eq!(login.joins[0].resume, Some(Place { gen_no: GEN, seq: Seq(3) }));
    assert_eq!(viewer.shown(3).await, [4, 5, 6]);
    let again = conn.recv().await;
    let is_same = |it: &Uplink| matches!(it, Uplink::Comment(comment) if comment.cid == cid);
    assert!(again.as_ref().is_some_and(is_same), "sent again with its number: {again:?}");
}

#[tokio::test]
async fn a_hole_in_the_push_is_filled_from_the_segment_in_order() {
    let (site, _link, mut conn, mut viewer) = connected().await;
    site.put_segment(&segment(2, vec![item(3), item(4), item(5)]));
    conn.batch(batch(1, 0, &[1, 2])).await;
    conn.send(&Downlink::Seal(seal(1, &[1, 2]))).await;

    conn.batch(batch(2, 0, &[3])).await;
    conn.batch(batch(2, 2, &[5])).await;
    conn.send(&Downlink::Seal(seal(2, &[3, 4, 5]))).await;
    conn.batch(batch(3, 0, &[6])).await;

    assert_eq!(viewer.shown(6).await, [1, 2, 3, 4, 5, 6]);
}

#[tokio::test]
async fn a_resume_that_came_too_late_is_filled_from_the_segments() {
    let (site, link, mut conn, mut viewer) = connected().await;
    conn.batch(batch(1, 0, &[1])).await;
    assert_eq!(viewer.shown(1).await, [1]);
    site.put_segment(&segment(1, vec![item(1), item(2)]));
    site.put_segment(&segment(2, vec![item(3)]));
    site.put_segment(&segment(3, Vec::new()));

    drop(conn);
    let mut conn = link.accept().await;
    let login = conn.login().await;
    let place = |seq| Place { gen_no: GEN, seq: Seq(seq) };
    conn.let_in(&login, Path::Push, Resumed::Gap { from: place(2), to: place(4) }).await;
    conn.batch(batch(4, 0, &[4, 5])).await;

    assert_eq!(viewer.shown(4).await, [2, 3, 4, 5]);
}

#[tokio::test]
async fn a_gap_that_nothing_fills_is_told() {
    let (site, _link, mut conn, mut viewer) = connected().await;
    site.put(&format!("dm/1/room-1{}", file(1)), axum::http::StatusCode::GONE, Vec::new());
    conn.batch(batch(0, 0, &[1])).await;
    conn.send(&Downlink::Seal(seal(0, &[1]))).await;
    conn.batch(batch(1, 1, &[3])).await;
    conn.send(&Downlink::Seal(seal(1, &[2, 3]))).await;
    assert_eq!(viewer.shown(1).await, [1]);

    let gap = viewer.next().await;

    let place = |seq| Place { gen_no: GEN, seq: Seq(seq) };
    let (from, to, items) = (place(2), place(3), Some(1));
    assert_eq!(gap, Event::Gap { room: room(), from, to, items });
    assert_eq!(viewer.shown(1).await, [3]);
}

#[tokio::test]
async fn items_left_out_for_a_slow_session_are_told_and_not_fetched() {
    let (site, _link, mut conn, mut viewer) = connected().await;
    conn.batch(batch(1, 0, &[1])).await;
    conn.send(&Downlink::Skipped { room: room(), items: 2 }).await;
    conn.batch(batch(1, 3, &[4])).await;
    conn.send(&Downlink::Seal(seal(1, &[1, 2, 3, 4]))).await;
    conn.batch(batch(2, 0, &[5])).await;

    let mut seqs = Vec::new();
    let mut skipped = 0;
    while seqs.len() < 3 {
        match viewer.next().await {
            Event::Show { place, .. } => seqs.push(place.seq.0),
            Event::Skipped { items, .. } => skipped += items,
            other => panic!("{other:?}"),
        }
    }

    assert_eq!((seqs, skipped), (vec![1, 4, 5], 2));
    assert!(site.asked().is_empty());
}

#[tokio::test]
async fn a_recalled_item_is_taken_off_and_never_shown() {
    let (_site, _link, mut conn, mut viewer) = connected().await;
    let tombstone = |seq: u64, of: u64| {
        let Placed { seq, item } = item(seq);
        let body = Body::Tombstone { of: ItemId(1_000 + of) };
        Placed { seq, item: proto::item::Item { body, ..item } }
    };

    let mut flush = batch(1, 0, &[1]);
    flush.items.push(tombstone(2, 1));
    flush.items.push(tombstone(3, 4));
    conn.batch(flush).await;
    conn.batch(batch(1, 1, &[4, 5])).await;

    let mut recalled = Vec::new();
    let mut shown = Vec::new();
    while shown.last() != Some(&5) {
        match viewer.next().await {
            Event::Show { place, .. } => shown.push(place.seq.0),
            Event::Recall { id, .. } => recalled.push(id),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(shown.iter().filter(|it| **it == 4).count(), 0);
    assert_eq!(recalled, [ItemId(1_001), ItemId(1_004)]);
}

#[tokio::test]
async fn a_room_that_turns_hot_and_cold_again_loses_and_repeats_nothing() {
    let (site, _link, mut conn, mut viewer) = connected().await;
    let heat = |heat, slot| {
        Downlink::Control(proto::frame::Control::Heat {
            room: room(),
            heat,
            gen_no: GEN,
            slot: SlotNo(slot),
        })
    };
    site.put_head(&head(1));
    conn.batch(batch(0, 0, &[1])).await;
    conn.send(&heat(Heat::Hot, 1)).await;
    site.put_segment(&segment(0, vec![item(1)]));
    site.put_segment(&segment(1, vec![item(2), item(3)]));
    assert_eq!(viewer.shown(3).await, [1, 2, 3]);

    conn.send(&heat(Heat::Cold, 3)).await;
    conn.batch(batch(3, 0, &[5])).await;
    site.put_segment(&segment(2, vec![item(4)]));

    assert_eq!(viewer.shown(2).await, [4, 5]);
    conn.batch(batch(3, 1, &[6])).await;
    let via = viewer.until(|it| match it {
        Event::Show { via, .. } => Some(*via),
        _ => None,
    });
    assert_eq!(via.await, Via::Push);
}

#[tokio::test]
async fn a_session_is_renewed_before_it_ends() {
    let site = Site::start(&Clock::system()).await;
    let link = Link::bind(Transport::Tcp, None).await;
    site.offer(&[link.address()], &[]);
    let mut options = options(&site, Path::Push);
    options.waits.renew_min = std::time::Duration::ZERO;
    let mut viewer = Viewer::start(options);
    let mut conn = link.accept().await;
    conn.life_ms = 30_000;
    let login = conn.login().await;
    conn.let_in(&login, Path::Push, Resumed::Fresh).await;
    viewer.connected().await;

    let refresh = conn.recv().await;

    let token = format!("token for {}", link.address().authority());
    assert_eq!(refresh, Some(Uplink::Refresh { token }));
    assert_eq!(site.entered()[1].renew, Some(link.address().authority()));
}

#[tokio::test]
async fn a_renewal_that_is_refused_is_tried_again_and_ends_nothing() {
    let site = Site::start(&Clock::system()).await;
    let link = Link::bind(Transport::Tcp, None).await;
    site.offer(&[link.address()], &[]);
    let mut options = options(&site, Path::Push);
    options.waits.renew_min = std::time::Duration::ZERO;
    let mut viewer = Viewer::start(options);
    let mut conn = link.accept().await;
    conn.life_ms = 30_000;
    let login = conn.login().await;
    conn.let_in(&login, Path::Push, Resumed::Fresh).await;
    viewer.connected().await;

    let refresh = conn.recv().await;
    let refused = Refused {
        code: CloseCode::TokenExpired,
        reason: String::new(),
        retry_after_ms: 0,
        server_ms: Wall(1),
    };
    conn.send(&Downlink::Refused(refused)).await;

    assert!(matches!(refresh, Some(Uplink::Refresh { .. })), "{refresh:?}");
    assert_eq!(conn.recv().await, refresh, "on the same connection");
}

#[tokio::test]
async fn without_a_ticket_nothing_is_renewed_and_the_client_enters_anew() {
    let site = Site::start(&Clock::system()).await;
    let link = Link::bind(Transport::Tcp, None).await;
    site.offer(&[link.address()], &[]);
    let mut options = options(&site, Path::Push);
    options.entry = sdk::Entry::NoTicket { app: AppId(3), room: room() };
    options.waits.renew_min = std::time::Duration::ZERO;
    let mut viewer = Viewer::start(options);
    let mut conn = link.accept().await;
    (conn.life_ms, conn.heartbeat_ms) = (30_000, 100);
    let login = conn.login().await;
    conn.let_in(&login, Path::Push, Resumed::Fresh).await;
    viewer.connected().await;

    // A renewal would be due before the first ping.
    let ping = conn.recv().await;
    let (code, reason) = (CloseCode::Expired, String::new());
    conn.send(&Downlink::Close(Close { code, reason, retry_after_ms: 0, addresses: vec![] })).await;
    link.welcome(Path::Push).await;

    assert!(matches!(ping, Some(Uplink::Ping { .. })), "{ping:?}");
    let entered = site.entered();
    assert_eq!(entered.len(), 2);
    for asked in entered {
        assert_eq!((asked.ticket.as_str(), asked.app), ("", Some(AppId(3))));
        assert_eq!((asked.room, asked.renew), (Some(room()), None));
    }
}

async fn connected() -> (Site, Link, Conn, Viewer) {
    let site = Site::start(&Clock::system()).await;
    let link = Link::bind(Transport::Tcp, None).await;
    site.offer(&[link.address()], &[&site]);
    let mut viewer = Viewer::start(options(&site, Path::Auto));
    let (conn, _) = link.welcome(Path::Push).await;
    viewer.connected().await;
    (site, link, conn, viewer)
}
