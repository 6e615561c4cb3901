//! The guests: a process that fetches tokens, logs in with them, and asks the peer as often.

use std::io::Write;
use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use futures_util::{StreamExt, TryStreamExt, stream};
use kit::clock::Clock;
use proto::enter::{Client, EnterRequest, Offer};
use proto::frame::{Credential, Downlink};
use sdk::enter::enter;
use sdk::raw;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::certificate::Kind;

/// At a time.
const GUESTS: usize = 16;
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

/// Does what it is told until the standard input ends.
pub(crate) async fn serve() -> anyhow::Result<()> {
    let mut words = BufReader::new(tokio::io::stdin()).lines();
    let orders = words.next_line().await?.context("there are no orders")?;
    let orders: Orders = serde_json::from_str(&orders).context("these are no orders")?;
    let http = sdk::http::client(&orders.kind.client(&orders.ca_pem)?)?;
    orders.come_in(&http).await?;
    say(DONE)?;

    let mut offers = Vec::new();
    while let Some(word) = words.next_line().await? {
        match word.as_str() {
            PREPARE => offers = orders.offers(&http).await?,
            LOG_IN => orders.log_in_all(std::mem::take(&mut offers)).await?,
            ASK_PEER => orders.ask_peer_often().await?,
            other => bail!("there is no order {other:?}"),
        }
        say(DONE)?;
    }
    say(DONE)
}

impl Orders {
    /// Tries until it is in: the link becomes known only after a moment.
    async fn come_in(&self, http: &reqwest::Client) -> anyhow::Result<()> {
        let clock = Clock::system();
        let deadline = clock.mono() + STEP_MAX;
        loop {
            let tried = async { self.log_in(&self.offer(http).await?).await };
            match tried.await {
                Ok(()) => return Ok(()),
                Err(error) if clock.mono() >= deadline => return Err(error),
                Err(_) => clock.sleep(RETRY).await,
            }
        }
    }

    async fn offers(&self, http: &reqwest::Client) -> anyhow::Result<Vec<Offer>> {
        let asking = stream::iter(0..self.logins).map(|_| self.offer(http));
        asking.buffer_unordered(GUESTS).try_collect().await
    }

    async fn log_in_all(&self, offers: Vec<Offer>) -> anyhow::Result<()> {
        ensure!(offers.len() == self.logins as usize, "there are {} tokens", offers.len());
        let logins = stream::iter(&offers).map(|it| self.log_in(it));
        logins.buffer_unordered(GUESTS).try_collect().await
    }

    async fn ask_peer_often(&self) -> anyhow::Result<()> {
        let addr = self.peer.context("there is no peer")?;
        let asking = stream::iter(0..self.logins).map(|_| async move {
            timeout(STEP_MAX, self.ask_peer(addr)).await.context("the peer does not answer")?
        });
        asking.buffer_unordered(GUESTS).try_collect().await
    }

    async fn offer(&self, http: &reqwest::Client) -> anyhow::Result<Offer> {
        let transports = vec![self.kind.transport()];
        let client = Client { transports, ..Client::default() };
        let ticket = self.ticket.clone();
        let request = EnterRequest { ticket, client, ..EnterRequest::default() };
        let entered = enter(http, &self.enter_url, &request, STEP_MAX).await?;
        entered.addresses.into_iter().next().context("there is no address")
    }

    async fn log_in(&self, offer: &Offer) -> anyhow::Result<()> {
        let tls = self.kind.client(&self.ca_pem)?;
        let mut session = raw::connect(&offer.address, Some(&tls), STEP_MAX).await?;
        session.login(Credential::Token(offer.token.clone()), None, Vec::new()).await?;
        session.recv().await?;
        let answer = session.recv().await?;
        ensure!(matches!(answer, Downlink::LoginOk(_)), "not logged in: {answer:?}");
        Ok(())
    }

    /// One connection, one question, one answer.
    async fn ask_peer(&self, addr: SocketAddr) -> anyhow::Result<()> {
        let tls = self.kind.client(&self.ca_pem)?;
        let tcp = TcpStream::connect(addr).await?;
        tcp.set_nodelay(true)?;
        let mut stream = tls.connector().connect("127.0.0.1".try_into()?, tcp).await?;
        if self.kind == Kind::Sm2 {
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
