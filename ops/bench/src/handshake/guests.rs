//! The guests: a process that fetches tokens, logs in with them, and asks the peer as often.

use std::io::Write;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use channel::ClientTls;
use futures_util::{StreamExt, TryStreamExt, stream};
use kit::clock::Clock;
use kit::task::Tasks;
use proto::enter::{Client, EnterRequest, Offer};
use proto::frame::{Credential, Downlink};
use sdk::enter::enter;
use sdk::raw;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::certificate::Kind;

/// At a time: more than a server works on at once, so that it always finds another.
const GUESTS: usize = 64;
/// Tokens fetched at a time.
const OFFERS: usize = 16;
/// Longest time for one of them.
const STEP_MAX: Duration = Duration::from_secs(20);
/// Between two attempts of the first one.
const RETRY: Duration = Duration::from_millis(100);

/// Fetch a token for each login.
pub(super) const PREPARE: &str = "prepare";
/// Log in with all of them.
pub(super) const LOG_IN: &str = "log in";
/// Connect to the peer as often.
pub(super) const ASK_PEER: &str = "ask the peer";
/// What was asked for is done.
pub(super) const DONE: &str = "done";

/// What the guests are told.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct Orders {
    /// How to connect.
    pub(super) kind: Kind,
    /// Whom to believe.
    pub(super) ca_pem: String,
    /// Where to enter.
    pub(super) enter_url: String,
    /// With what.
    pub(super) ticket: String,
    /// How often.
    pub(super) logins: u32,
    /// The other server.
    pub(super) peer: Option<SocketAddr>,
}

/// Somebody who comes again and again.
#[derive(Clone)]
struct Guest {
    orders: Arc<Orders>,
    tls: ClientTls,
    http: reqwest::Client,
}

/// Does what it is told until the standard input ends.
pub(crate) async fn serve() -> anyhow::Result<()> {
    let mut words = BufReader::new(tokio::io::stdin()).lines();
    let orders = words.next_line().await?.context("there are no orders")?;
    let orders: Orders = serde_json::from_str(&orders).context("these are no orders")?;
    let tls = orders.kind.client(&orders.ca_pem)?.afresh();
    let guest = Guest { http: sdk::http::client(&tls)?, tls, orders: Arc::new(orders) };
    guest.come_in().await?;
    say(DONE)?;

    let mut offers = Vec::new();
    while let Some(word) = words.next_line().await? {
        match word.as_str() {
            PREPARE => offers = guest.offers().await?,
            LOG_IN => guest.log_in_all(std::mem::take(&mut offers)).await?,
            ASK_PEER => guest.ask_peer_often().await?,
            other => bail!("there is no order {other:?}"),
        }
        say(DONE)?;
    }
    say(DONE)
}

/// Has `visit` called for each number below `visits`, by all guests side by side.
async fn share_out<F>(
    visits: usize,
    visit: impl Fn(usize) -> F + Clone + Send + 'static,
) -> anyhow::Result<()>
where
    F: Future<Output = anyhow::Result<()>> + Send,
{
    let next = Arc::new(AtomicUsize::new(0));
    let mut guests = Tasks::default();
    for _ in 0..GUESTS {
        let (next, visit) = (Arc::clone(&next), visit.clone());
        guests.spawn("guest", async move {
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= visits {
                    return Ok(());
                }
                visit(number).await?;
            }
        });
    }
    guests.join().await
}

impl Guest {
    /// Tries until it is in: the link becomes known only after a moment.
    async fn come_in(&self) -> anyhow::Result<()> {
        let clock = Clock::system();
        let deadline = clock.mono() + STEP_MAX;
        loop {
            let tried = async { self.log_in(&self.offer().await?).await };
            match tried.await {
                Ok(()) => return Ok(()),
                Err(error) if clock.mono() >= deadline => return Err(error),
                Err(_) => clock.sleep(RETRY).await,
            }
        }
    }

    async fn offers(&self) -> anyhow::Result<Vec<Offer>> {
        let asking = stream::iter(0..self.orders.logins).map(|_| self.offer());
        asking.buffer_unordered(OFFERS).try_collect().await
    }

    async fn log_in_all(&self, offers: Vec<Offer>) -> anyhow::Result<()> {
        let logins = self.orders.logins as usize;
        ensure!(offers.len() == logins, "there are {} tokens", offers.len());
        let (guest, offers) = (self.clone(), Arc::new(offers));
        let visit = move |number: usize| {
            let (guest, offers) = (guest.clone(), Arc::clone(&offers));
            async move { guest.log_in(&offers[number]).await }
        };
        share_out(logins, visit).await
    }

    async fn ask_peer_often(&self) -> anyhow::Result<()> {
        let addr = self.orders.peer.context("there is no peer")?;
        let guest = self.clone();
        let visit = move |_| {
            let guest = guest.clone();
            async move {
                let asking = timeout(STEP_MAX, guest.ask_peer(addr));
                asking.await.context("the peer does not answer")?
            }
        };
        share_out(self.orders.logins as usize, visit).await
    }

    async fn offer(&self) -> anyhow::Result<Offer> {
        let Orders { kind, enter_url, ticket, .. } = &*self.orders;
        let client = Client { transports: vec![kind.transport()], ..Client::default() };
        let request = EnterRequest { ticket: ticket.clone(), client, ..EnterRequest::default() };
        let entered = enter(&self.http, enter_url, &request, STEP_MAX).await?;
        entered.addresses.into_iter().next().context("there is no address")
    }

    async fn log_in(&self, offer: &Offer) -> anyhow::Result<()> {
        let mut session = raw::connect(&offer.address, Some(&self.tls), STEP_MAX).await?;
        session.login(Credential::Token(offer.token.clone()), None, Vec::new()).await?;
        session.recv().await?;
        let answer = session.recv().await?;
        ensure!(matches!(answer, Downlink::LoginOk(_)), "not logged in: {answer:?}");
        Ok(())
    }

    /// One connection, one question, one answer.
    async fn ask_peer(&self, addr: SocketAddr) -> anyhow::Result<()> {
        let tcp = TcpStream::connect(addr).await?;
        tcp.set_nodelay(true)?;
        let mut stream = self.tls.connector().connect("127.0.0.1".try_into()?, tcp).await?;
        if self.orders.kind == Kind::Sm2 {
            stream.write_all(b"ab\n").await?;
            stream.flush().await?;
            let mut answer = [0; 3];
            stream.read_exact(&mut answer).await?;
            ensure!(&answer == b"ba\n", "the peer said {answer:?}");
        } else {
            stream.write_all(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").await?;
            stream.flush().await?;
            let mut answer = Vec::new();
            stream.read_to_end(&mut answer).await?;
            ensure!(answer.starts_with(b"HTTP/1.1 204"), "the peer said {answer:?}");
        }
        Ok(())
    }
}

fn say(line: &str) -> anyhow::Result<()> {
    let mut output = std::io::stdout().lock();
    writeln!(output, "{line}")?;
    Ok(output.flush()?)
}
