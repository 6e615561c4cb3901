//! A paid room through the whole system: who has a ticket sees everything, by segments and by push,
//! and what lies on the disk and leaves the origin tells nothing.

use std::path::{Path as Folder, PathBuf};
use std::time::Duration;

use proto::control::{RoomSettings, Segments};
use proto::enter::EnterRequest;
use proto::frame::Path;
use proto::head::{Head, Tier};
use proto::id::RoomId;
use proto::item::Style;
use proto::sealed::is_sealed;
use sdk::enter::EnterError;
use sdk::sealed::Locked;
use sdk::segments::{FetchError, Name, fetch, head};
use sdk::{Client, Event, Events};
use serde_json::json;
use tokio::time::timeout;

use crate::get::get;
use crate::process::until;
use crate::site::{STEP_MAX, Site};

/// Nothing that is waited for takes so long.
const SHOWN_MAX: Duration = Duration::from_secs(30);

#[tokio::test(flavor = "multi_thread")]
async fn a_paid_room_is_seen_by_who_has_a_ticket_and_by_nobody_else() {
    let mut data = PathBuf::new();
    let mut site = Site::with(|config| {
        config.broadcaster.hls = true;
        data.clone_from(&config.data);
    })
    .await;
    site.room = RoomId::parse("paid").unwrap();
    let settings = RoomSettings {
        sealed: true,
        guests: false,
        segments: Segments::Always,
        interval_ms: 400,
        ..RoomSettings::default()
    };
    site.business.create_room(&site.room, &settings).await.unwrap();
    // Whoever comes to segments begins with the newest slot, and needs a base and a key.
    until("slots, bases and keys", async || {
        newest(&site).await?;
        let (ticket, http) = (site.ticket("early"), sdk::http::client(&site.trust.tls).unwrap());
        let request = EnterRequest { ticket, ..EnterRequest::default() };
        let entered = sdk::enter::enter(&http, &site.addrs.enter, &request, STEP_MAX).await.ok()?;
        (!entered.segments.is_empty() && entered.keys.len() == 1).then_some(())
    })
    .await;
    let (speaker, mut pushed) = site.viewer("speaker", Path::Push);
    let (_reader, mut polled) = site.viewer("reader", Path::Segments);
    connected(&mut pushed).await;
    connected(&mut polled).await;

    let first = everywhere(&site, &speaker, &mut pushed, &mut polled, "a secret in gen one").await;
    let change = json!({ "interval_ms": 500 });
    let room = format!("{}/v1/rooms/paid", site.addrs.api);
    site.call(reqwest::Method::PATCH, &room, &change).await;
    until("the next gen", async || newest(&site).await.filter(|it| it.gen_no > first.gen_no)).await;
    let second = everywhere(&site, &speaker, &mut pushed, &mut polled, "a secret in gen two").await;

    assert!(first.sealed && second.sealed && second.gen_no > first.gen_no);
    let files = files(&data.join("segments/dm/1/paid"));
    let slots: Vec<_> = files.iter().filter(|it| is_slot(&it.0)).collect();
    assert!(slots.len() > 4);
    assert!(slots.iter().all(|(path, bytes)| path.ends_with(".bin") && is_sealed(bytes)));
    for name in ["live.flv", "live.m3u8", &format!("{}/full/0.json", first.gen_no)] {
        let got = get(&site.addrs.origin, &format!("/dm/1/paid/{name}")).await;
        assert_eq!(got.status, 404, "{name}");
    }
    check_strangers(&site, &second).await;
    site.stop().await;
}

/// Without a ticket there are no keys, and without keys nothing is read.
async fn check_strangers(site: &Site, head: &Head) {
    let http = sdk::http::client(&site.trust.tls).unwrap();
    let without = EnterRequest {
        app: Some(stack::identity::APP),
        room: Some(site.room.clone()),
        ..EnterRequest::default()
    };
    let refused = sdk::enter::enter(&http, &site.addrs.enter, &without, STEP_MAX).await;
    let Err(EnterError::Refused(problem)) = refused else { panic!("{refused:?}") };
    assert_eq!(problem.code, "ticket_required");
    let (gen_no, slot) = (head.gen_no, head.slot);
    let name = Name { room: site.room.clone(), gen_no, tier: Tier::Full, slot };
    let locked = fetch(&http, &site.addrs.origin, &name, STEP_MAX).await;
    assert!(matches!(locked, Err(FetchError::Locked(Locked::NoKey))), "{locked:?}");
}

/// Says something, waits until both viewers show it, and gives the head of then.
async fn everywhere(
    site: &Site,
    speaker: &Client,
    pushed: &mut Events,
    polled: &mut Events,
    text: &str,
) -> Head {
    speaker.send(&site.room, text, Style::default(), None).unwrap();
    shown(pushed, text).await;
    shown(polled, text).await;
    newest(site).await.unwrap()
}

async fn newest(site: &Site) -> Option<Head> {
    let http = sdk::http::client(&site.trust.tls).unwrap();
    head(&http, &site.addrs.origin, &site.room, STEP_MAX).await.ok()
}

async fn connected(events: &mut Events) {
    find(events, |it| matches!(it, Event::Connected { .. })).await;
}

async fn shown(events: &mut Events, text: &str) {
    find(events, |it| matches!(it, Event::Show { item, .. } if item.body.text() == Some(text)))
        .await;
}

async fn find(events: &mut Events, is_it: impl Fn(&Event) -> bool) {
    let mut seen = Vec::new();
    let finding = async {
        loop {
            let event = events.next().await.expect("the client goes on");
            assert!(!matches!(event, Event::Gap { .. }), "{event:?}");
            seen.push(format!("{event:?}"));
            if is_it(&event) {
                return;
            }
        }
    };
    let found = timeout(SHOWN_MAX, finding).await;
    assert!(found.is_ok(), "it did not come: {seen:?}");
}

fn is_slot(path: &str) -> bool {
    path.contains("/full/") || path.contains("/lite/")
}

/// Every file below a folder.
fn files(folder: &Folder) -> Vec<(String, Vec<u8>)> {
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
