//! Somebody else's server with subscribers of its own, who all get the same items.
//!
//! What is counted is the CPU time of the server's process, all threads, from publication until
//! every subscriber has everything. The publisher is this process, and writes all items of a round
//! to the server at once, so that a server that can gather them does.

mod bare;
mod brokers;
mod sockets;

use std::time::Duration;

use anyhow::{Context, bail, ensure};
use kit::clock::Clock;
use kit::task::Tasks;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::process::Command;
use tokio::time::timeout;

use super::crowd::{ITEM_BYTES, MARK, Orders, Report, Step, come};
use super::receiver::{HAVE_IT, IN};
use crate::aside::Aside;
use crate::peer::{Peer, free_addr};

pub(crate) use bare::serve;

/// The name under which this executable is started as subscribers.
pub(crate) const SUBSCRIBERS: &str = "fanout-subscribers";
/// The name under which this executable is started as the server that only writes.
pub(crate) const BARE: &str = "fanout-bare";
/// Words to a server leave within this time.
const PUBLISH_MAX: Duration = Duration::from_secs(20);
/// Bytes that are read of answers to a publisher at a time.
const ANSWERS_BYTES: usize = 4096;

/// How a server is started and spoken to.
struct Ways {
    command: Command,
    /// How a subscriber comes.
    subscribe: Vec<Step>,
    /// How the publisher comes.
    enter: Vec<Step>,
    /// What it says to have so many items sent to everybody.
    publish: fn(usize) -> Vec<u8>,
}

/// Who they are.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Kind {
    /// `write(2)` and nothing else.
    Bare,
    Mosquitto,
    Redis,
    Nats,
    Nchan,
    Uws,
    Centrifugo,
}

impl Kind {
    /// Those that are somebody's product.
    pub(super) const PRODUCTS: [Self; 6] =
        [Self::Mosquitto, Self::Redis, Self::Nats, Self::Nchan, Self::Uws, Self::Centrifugo];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Bare => "write(2)",
            Self::Mosquitto => "mosquitto",
            Self::Redis => "redis",
            Self::Nats => "nats",
            Self::Nchan => "nchan",
            Self::Uws => "uws",
            Self::Centrifugo => "centrifugo",
        }
    }
}

/// A running server with its subscribers; all end when this is dropped.
pub(super) struct Rival {
    pub(super) kind: Kind,
    server: Peer,
    crowd: Aside,
    publisher: OwnedWriteHalf,
    /// Reads what the server answers to the publisher.
    answers: Tasks,
    publish: fn(usize) -> Vec<u8>,
    items: u64,
    _folder: TempDir,
}

impl Rival {
    /// Starts the server, and lets so many subscribe.
    pub(super) async fn start(
        kind: Kind,
        subscribers: usize,
        clock: &Clock,
    ) -> anyhow::Result<Self> {
        let (folder, addr) = (tempfile::tempdir()?, free_addr()?);
        let ways = match kind {
            Kind::Bare => bare::ways(addr)?,
            Kind::Mosquitto => brokers::mosquitto(folder.path(), addr)?,
            Kind::Redis => brokers::redis(addr),
            Kind::Nats => brokers::nats(folder.path(), addr)?,
            Kind::Nchan => sockets::nchan(folder.path(), addr)?,
            Kind::Uws => sockets::uws(folder.path(), addr)?,
            Kind::Centrifugo => sockets::centrifugo(folder.path(), addr)?,
        };
        let Ways { command, subscribe, enter, publish } = ways;
        let server = Peer::start(kind.name(), command, addr, folder.path(), clock).await?;
        let Some(server) = server else {
            bail!("there is no {}: run ops/tools/peers", kind.name())
        };
        let orders = Orders { addr, subscribers, steps: subscribe };
        let mut crowd = Aside::start(SUBSCRIBERS, &orders).await?;
        crowd.expect(IN).await.with_context(|| format!("nobody subscribed to {}", kind.name()))?;
        let (answers, publisher) = come(addr, &enter).await?.into_split();
        let mut rival = Self {
            kind,
            server,
            crowd,
            publisher,
            answers: Tasks::default(),
            publish,
            items: 0,
            _folder: folder,
        };
        rival.answers.spawn("answers", ignore(answers));
        Ok(rival)
    }

    /// Items delivered for a second of the server's CPU time.
    pub(super) async fn round(
        &mut self,
        items: usize,
        round: Duration,
        clock: &Clock,
    ) -> anyhow::Result<f64> {
        let until = clock.mono() + round;
        let (start, items_before) = (self.server.cpu()?, self.items);
        while clock.mono() < until {
            self.deliver(items).await.with_context(|| format!("of {}", self.kind.name()))?;
        }
        let used = self.server.cpu()? - start;
        Ok((self.items - items_before) as f64 / used.as_secs_f64())
    }

    async fn deliver(&mut self, items: usize) -> anyhow::Result<()> {
        self.crowd.tell(&items.to_string()).await?;
        let words = (self.publish)(items);
        let publishing = self.publisher.write_all(&words);
        timeout(PUBLISH_MAX, publishing).await.context("it hears no publisher")??;
        self.crowd.expect(HAVE_IT).await?;
        self.items += items as u64;
        self.answers.reap()
    }

    /// Whether every subscriber got everything.
    pub(super) async fn leave(self) -> anyhow::Result<()> {
        let Self { kind, crowd, items, .. } = self;
        let report: Report = serde_json::from_str(&crowd.leave().await?)?;
        ensure!(
            report.items == [items; 2] && report.bytes[0] >= items * ITEM_BYTES as u64,
            "each subscriber of {} should have {items} items, but they have {report:?}",
            kind.name()
        );
        Ok(())
    }
}

/// Until the server closes.
async fn ignore(mut answers: OwnedReadHalf) -> anyhow::Result<()> {
    let mut bytes = [0; ANSWERS_BYTES];
    loop {
        ensure!(answers.read(&mut bytes).await? > 0, "the server let the publisher go");
    }
}

/// The bytes of one item.
fn item() -> [u8; ITEM_BYTES] {
    let mut item = [b'x'; ITEM_BYTES];
    item[0] = MARK;
    item
}
