//! Viewers without a ticket, by the real SDK, where the policy lets them and where it does not.

use auth_core::app::App;
use proto::frame::{Ack, Outcome, Path};
use proto::id::SessionId;
use proto::item::{Role, Style};
use proto::policy::{Entry, Policy};
use proto::verdict::{Reason, Verdict};
use sdk::{Client, End, Event, Events, Options};
use stack::Identity;
use stack::identity::APP;
use tokio::time::timeout;

use crate::process::WAIT_MAX;
use crate::site::Site;

#[tokio::test(flavor = "multi_thread")]
async fn in_an_open_room_they_read_and_send() {
    let site = Site::with_policy(policy(Entry::Open)).await;
    let (reader, mut heard) = Client::start(options(&site));
    let (writer, mut answered) = Client::start(options(&site));
    assert_eq!(connected(&mut heard).await.1, Role::Viewer);
    connected(&mut answered).await;

    let Verdict::Admit(id) = say(&site, &writer, &mut answered).await else { panic!("refused") };
    let shown = until(&mut heard, |event| match event {
        Event::Show { item, .. } => Some(item),
        _ => None,
    });

    assert_eq!(shown.await.id, id);
    reader.close();
    writer.close();
    site.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn as_guests_they_read() {
    let site = Site::with_policy(policy(Entry::Guest)).await;
    let (guest, mut events) = Client::start(options(&site));

    assert_eq!(connected(&mut events).await.1, Role::Guest);
    let verdict = say(&site, &guest, &mut events).await;

    assert_eq!(verdict, Verdict::Drop { reason: Reason::ReadOnly, retry_after_ms: 0 });
    guest.close();
    site.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn elsewhere_they_are_told_that_it_takes_a_ticket() {
    let site = Site::with_policy(Policy::default()).await;
    let (_stranger, mut events) = Client::start(options(&site));

    let problem = until(&mut events, |event| match event {
        Event::Ended(End::Enter(problem)) => Some(problem),
        _ => None,
    });

    assert_eq!(problem.await.code, "ticket_required");
    site.stop().await;
}

/// There is nothing to renew a session with, so it ends; the viewer comes back as another.
#[tokio::test(flavor = "multi_thread")]
async fn when_a_session_s_life_is_over_they_come_back() {
    let site = Site::with(|config| {
        let identity = Identity::load_or_create(&config.data).unwrap();
        config.app = vec![App { policy: policy(Entry::Open), ..identity.app() }];
        (config.link.life_ms_min, config.link.life_ms_max) = (1_000, 1_000);
    })
    .await;
    let (viewer, mut events) = Client::start(options(&site));
    let (first, _) = connected(&mut events).await;

    let (second, role) = connected(&mut events).await;

    assert_ne!(first, second);
    assert_eq!(role, Role::Viewer);
    assert!(matches!(say(&site, &viewer, &mut events).await, Verdict::Admit(_)));
    viewer.close();
    site.stop().await;
}

fn policy(entry: Entry) -> Policy {
    Policy { entry, ..Policy::default() }
}

fn options(site: &Site) -> Options {
    let mut options = site.options("unused", Path::Push);
    options.entry = sdk::Entry::NoTicket { app: APP, room: site.room.clone() };
    options
}

async fn connected(events: &mut Events) -> (SessionId, Role) {
    until(events, |event| match event {
        Event::Connected { session, role, .. } => Some((session, role)),
        _ => None,
    })
    .await
}

async fn say(site: &Site, client: &Client, events: &mut Events) -> Verdict {
    let cid = client.send(&site.room, "hello", Style::default(), None).unwrap();
    until(events, |event| match event {
        Event::Ack(Ack { cid: of, outcome: Outcome::Verdict(verdict) }) if of == cid => {
            Some(verdict)
        }
        _ => None,
    })
    .await
}

async fn until<T>(events: &mut Events, found: impl Fn(Event) -> Option<T>) -> T {
    let search = async {
        loop {
            let event = events.next().await.expect("the client goes on");
            if let Some(found) = found(event) {
                return found;
            }
        }
    };
    timeout(WAIT_MAX, search).await.expect("it happens in time")
}
