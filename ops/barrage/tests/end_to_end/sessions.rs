//! How sessions end and how they go on: kicks, another device, renewal. Through the whole system.

use std::time::Duration;

use kit::meter::list;
use proto::address::Transport;
use proto::close::CloseCode;
use proto::enter::Offer;
use proto::frame::{Ack, Credential, Downlink, Join, LoginOk, Outcome, Path, Uplink};
use proto::id::ViewerId;
use proto::item::Style;
use proto::policy::Policy;
use proto::verdict::Verdict;
use sdk::enter::EnterError;
use sdk::raw::{self, Raw};
use sdk::{Client, End, Event, Events};
use tokio::time::timeout;

use crate::process::WAIT_MAX;
use crate::site::{STEP_MAX, Site};

/// What a kick and another device have to be everywhere within.
const BITES_MAX: Duration = Duration::from_secs(1);

#[tokio::test(flavor = "multi_thread")]
async fn a_kick_ends_every_session_and_refuses_what_was_issued_before_within_a_second() {
    let site = Site::with_policy(Policy { skew_s: 2, ..Policy::default() }).await;
    let (mut over_tcp, login) = knock(&site, &site.offer("mallory", Transport::Tcp).await).await;
    let (mut over_tls, _) = knock(&site, &site.offer("mallory", Transport::Tls).await).await;
    let (mut bystander, _) = knock(&site, &site.offer("alice", Transport::Ws).await).await;
    let (resume, ticket) = (login.unwrap().resume_ticket, site.ticket("mallory"));
    let unused = site.offer("mallory", Transport::Ws).await;

    let start = site.clock.mono();
    site.business.kick(&site.room, &ViewerId::parse("mallory").unwrap()).await.unwrap();
    assert_eq!(closed(&mut over_tcp).await, CloseCode::Kicked);
    assert_eq!(closed(&mut over_tls).await, CloseCode::Kicked);
    let (_, with_token) = knock(&site, &unused).await;
    let resumed = Credential::ResumeTicket(resume);
    let (_, with_resume_ticket) = log_in(&site, &unused, resumed).await;
    let with_ticket = refusal(&site, &ticket).await;
    let bites = site.clock.mono().since(start);

    assert_eq!(with_token.unwrap_err(), CloseCode::Kicked);
    assert_eq!(with_resume_ticket.unwrap_err(), CloseCode::Kicked);
    assert_eq!(with_ticket.as_deref(), Some("kicked"));
    assert!(bites < BITES_MAX, "it took {bites:?}");
    lives(&mut bystander).await;

    // A ticket that the business server issues later is good again, with a token that bears a time
    // later by more than clocks may be apart: the policy's skew.
    let again = async {
        while knock(&site, &site.offer("mallory", Transport::Tcp).await).await.1.is_err() {}
    };
    timeout(WAIT_MAX, again).await.expect("a later ticket is good");
    site.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_device_ends_the_first_which_does_not_come_back() {
    let policy = Policy { single_device: true, ..Policy::default() };
    let site = Site::with_policy(policy).await;
    let (_first, mut first_events) = site.viewer("ann", Path::Push);
    connected(&mut first_events).await;

    let (second, mut second_events) = site.viewer("ann", Path::Push);
    connected(&mut second_events).await;
    let start = site.clock.mono();
    let end = until(&mut first_events, |event| match event {
        Event::Ended(end) => Some(end),
        _ => None,
    });
    assert_eq!(end.await, End::Code(CloseCode::OtherDevice));
    let bites = site.clock.mono().since(start);
    assert!(bites < BITES_MAX, "it took {bites:?}");

    assert!(first_events.next().await.is_none(), "it does not come back");
    admitted(&site, &second, &mut second_events).await;
    let closed = site.meter.counter(list::CHATSERVER_DEVICES_CLOSED_TOTAL, &[]).get();
    assert_eq!(closed, 1, "they do not close each other for ever");
    site.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_is_renewed_beyond_its_life() {
    const LIFE_MS: u32 = 3000;
    let site = Site::with(|config| {
        config.link.life_ms_min = LIFE_MS;
        config.link.life_ms_max = LIFE_MS;
    })
    .await;
    let mut options = site.options("ann", Path::Push);
    options.waits.renew_min = Duration::from_millis(500);
    let (client, mut events) = Client::start(options);
    connected(&mut events).await;
    let start = site.clock.mono();

    while site.clock.mono().since(start) < 2 * Duration::from_millis(LIFE_MS.into()) {
        admitted(&site, &client, &mut events).await;
        site.clock.sleep(Duration::from_millis(50)).await;
    }

    let logins = |outcome| site.meter.counter(list::LINK_LOGINS_TOTAL, &[outcome]).get();
    assert_eq!(logins("ok"), 1, "one session all the time");
    assert!(logins("refreshed") >= 2, "{} renewals", logins("refreshed"));
    site.stop().await;
}

async fn knock(site: &Site, offer: &Offer) -> (Raw, Result<LoginOk, CloseCode>) {
    log_in(site, offer, Credential::Token(offer.token.clone())).await
}

async fn log_in(
    site: &Site,
    offer: &Offer,
    credential: Credential,
) -> (Raw, Result<LoginOk, CloseCode>) {
    let mut raw = raw::connect(&offer.address, Some(&site.trust.tls), STEP_MAX).await.unwrap();
    let join = Join { room: site.room.clone(), path: Path::Push, resume: None };
    raw.login(credential, None, vec![join]).await.unwrap();
    loop {
        match raw.recv().await.unwrap() {
            Downlink::Welcome(_) => {}
            Downlink::LoginOk(login_ok) => return (raw, Ok(login_ok)),
            Downlink::Refused(refused) => return (raw, Err(refused.code)),
            other => panic!("{other:?}"),
        }
    }
}

async fn closed(raw: &mut Raw) -> CloseCode {
    loop {
        if let Downlink::Close(close) = raw.recv().await.unwrap() {
            return close.code;
        }
    }
}

async fn lives(raw: &mut Raw) {
    raw.send(&Uplink::Ping { nonce: 11 }).await.unwrap();
    while !matches!(raw.recv().await.unwrap(), Downlink::Pong { nonce: 11, .. }) {}
}

/// The word with which `enter` refuses a ticket, if it does.
async fn refusal(site: &Site, ticket: &str) -> Option<String> {
    match site.ask(ticket, Transport::Tcp).await {
        Ok(_) => None,
        Err(EnterError::Refused(problem)) => Some(problem.code),
        Err(error) => panic!("{error:?}"),
    }
}

pub(crate) async fn connected(events: &mut Events) {
    until(events, |event| matches!(event, Event::Connected { .. }).then_some(())).await;
}

/// Says something, and waits until it is admitted.
async fn admitted(site: &Site, client: &Client, events: &mut Events) {
    let verdict = verdict(site, client, events).await;
    assert!(matches!(verdict, Verdict::Admit(_)), "{verdict:?}");
}

/// Says something; gives the verdict.
pub(crate) async fn verdict(site: &Site, client: &Client, events: &mut Events) -> Verdict {
    let text = format!("still here at {}", site.clock.mono().0);
    let said = client.send(&site.room, &text, Style::default(), None).unwrap();
    let verdict = until(events, |event| match event {
        Event::Ack(Ack { cid, outcome: Outcome::Verdict(it) }) if cid == said => Some(it),
        Event::Disconnected { .. } | Event::Ended(_) => panic!("{event:?}"),
        _ => None,
    });
    verdict.await
}

pub(crate) async fn until<T>(events: &mut Events, mut pick: impl FnMut(Event) -> Option<T>) -> T {
    let picked = async {
        loop {
            let event = events.next().await.expect("the viewer has ended");
            if let Some(picked) = pick(event) {
                return picked;
            }
        }
    };
    timeout(WAIT_MAX, picked).await.expect("in time")
}
