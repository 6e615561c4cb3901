//! Many sessions that log in.

use std::net::Ipv4Addr;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use channel::ClientTls;
use futures_util::{StreamExt, TryStreamExt, stream};
use kit::clock::Clock;
use proto::enter::{Client, EnterRequest};
use proto::frame::{Credential, Downlink, Join, JoinOutcome};
use sdk::Udp;
use sdk::enter::enter;
use sdk::raw::{self, Raw};

use super::Orders;
use super::receiver::SILENCE_MAX;

/// Logins at a time.
const LOGINS: usize = 32;
/// UDP sockets that sessions share: one alone would lose datagrams that come at once.
const UDPS: usize = 32;
/// A session must be in within this time.
const LOGIN_MAX: Duration = Duration::from_secs(20);
/// Between two attempts.
const RETRY: Duration = Duration::from_millis(100);

/// What a session goes through.
#[derive(Clone, Copy)]
struct Way<'a> {
    http: &'a reqwest::Client,
    tls: &'a ClientTls,
    udp: &'a Udp,
}

/// Logs in as many sessions as are ordered, each into these rooms.
pub(crate) async fn log_all_in(orders: &Orders, joins: &[Join]) -> anyhow::Result<Vec<Raw>> {
    let clock = Clock::system();
    let tls = ClientTls::trusting(&orders.ca_pem)?;
    let http = sdk::http::client(&tls)?;
    let bind = |_| Udp::bind((Ipv4Addr::UNSPECIFIED, 0).into());
    let udps = (0..UDPS).map(bind).collect::<Result<Vec<_>, _>>()?;
    let tickets = orders.tickets.iter().cycle().take(orders.sessions);
    let sessions = stream::iter(tickets.zip(udps.iter().cycle()))
        .map(|(ticket, udp)| {
            let way = Way { http: &http, tls: &tls, udp };
            session(orders, ticket, joins, way, &clock)
        })
        .buffer_unordered(LOGINS);
    sessions.try_collect().await
}

/// Tries until it is in: the link, and then its room, become known only after a moment.
async fn session(
    orders: &Orders,
    ticket: &str,
    joins: &[Join],
    way: Way<'_>,
    clock: &Clock,
) -> anyhow::Result<Raw> {
    let deadline = clock.mono() + LOGIN_MAX;
    loop {
        match log_in(orders, ticket, joins, way).await {
            Ok(session) => return Ok(session),
            Err(error) if clock.mono() >= deadline => return Err(error),
            Err(_) => clock.sleep(RETRY).await,
        }
    }
}

async fn log_in(
    orders: &Orders,
    ticket: &str,
    joins: &[Join],
    way: Way<'_>,
) -> anyhow::Result<Raw> {
    let Way { http, tls, udp } = way;
    let client = Client { transports: vec![orders.transport], ..Client::default() };
    let request = EnterRequest { ticket: ticket.to_owned(), client, ..EnterRequest::default() };
    let entered = enter(http, &orders.enter_url, &request, LOGIN_MAX).await?;
    let offer = entered.addresses.into_iter().next().context("there is no address")?;
    let address = &offer.address;
    let mut session = raw::connect_over(Some(udp), address, Some(tls), SILENCE_MAX).await?;
    session.login(Credential::Token(offer.token), None, joins.to_vec()).await?;
    session.recv().await?;
    let answer = session.recv().await?;
    let Downlink::LoginOk(login_ok) = answer else {
        bail!("not logged in: {answer:?}");
    };
    for (join, joined) in joins.iter().zip(&login_ok.rooms) {
        let outcome = &joined.outcome;
        ensure!(
            matches!(outcome, JoinOutcome::In { path, .. } if *path == join.path),
            "not in the room: {outcome:?}"
        );
    }
    Ok(session)
}
