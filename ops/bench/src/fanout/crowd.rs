//! Subscribers of somebody else's server: a process of plain sockets that count what they get.
//!
//! Whatever the protocol puts around it, an item is [`ITEM_BYTES`] of which the first is [`MARK`],
//! and no protocol here uses that byte. So subscribers count marks, and need not know where a
//! message begins. How many items are next is said by a line with their number; when all have
//! them, the process says so.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use futures_util::{StreamExt, TryStreamExt, stream};
use kit::task::Tasks;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::receiver::{HAVE_IT, IN, say};

/// Bytes of an item.
pub(super) const ITEM_BYTES: usize = 200;
/// First byte of an item, and of nothing else.
pub(super) const MARK: u8 = b'^';

/// Subscribers that come at a time.
const COMING: usize = 64;
/// One must be subscribed within this time.
const SUBSCRIBE_MAX: Duration = Duration::from_secs(20);
/// Longest answer before a subscriber is one.
const ANSWER_BYTES_MAX: usize = 4096;
/// Bytes that are read at a time.
const READ_BYTES: usize = 16 * 1024;

/// What is said to a server, and how the answer ends; empty when there is none.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct Step {
    say: Vec<u8>,
    until: Vec<u8>,
}

impl Step {
    pub(super) fn new(say: impl Into<Vec<u8>>, until: impl Into<Vec<u8>>) -> Self {
        Self { say: say.into(), until: until.into() }
    }
}

/// What the subscribers are told.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct Orders {
    pub(super) addr: SocketAddr,
    pub(super) subscribers: usize,
    /// How each subscribes.
    pub(super) steps: Vec<Step>,
}

/// What they got: the one with the fewest, and the one with the most.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub(super) struct Report {
    pub(super) items: [u64; 2],
    pub(super) bytes: [u64; 2],
}

#[derive(Default)]
struct Count {
    items: AtomicU64,
    bytes: AtomicU64,
}

/// What the subscribers have together.
struct Counts {
    /// Items that all are still to get. Below nothing while some came before their number did.
    left: AtomicI64,
    each: Vec<Count>,
}

/// Runs until the standard input ends.
pub(crate) async fn subscribe() -> anyhow::Result<()> {
    let mut input = BufReader::new(tokio::io::stdin()).lines();
    let line = input.next_line().await?.context("there are no orders")?;
    let orders: Orders = serde_json::from_str(&line).context("these are no orders")?;
    let streams: Vec<TcpStream> = stream::iter(0..orders.subscribers)
        .map(|_| come(orders.addr, &orders.steps))
        .buffer_unordered(COMING)
        .try_collect()
        .await?;
    let counts = Arc::new(Counts::new(streams.len()));
    let mut readers = Tasks::default();
    for (number, stream) in streams.into_iter().enumerate() {
        readers.spawn("subscriber", read(stream, Arc::clone(&counts), number));
    }
    say(IN)?;
    loop {
        tokio::select! {
            line = input.next_line() => match line? {
                Some(line) => counts.expect(line.parse().context("this is no number")?)?,
                None => break,
            },
            Some(ended) = readers.next() => bail!(ended.err().context("a subscriber ended")?),
        }
    }
    say(&serde_json::to_string(&counts.sum_up())?)
}

/// Connects, and says its steps.
pub(super) async fn come(addr: SocketAddr, steps: &[Step]) -> anyhow::Result<TcpStream> {
    let coming = async {
        let mut stream = TcpStream::connect(addr).await?;
        stream.set_nodelay(true)?;
        for Step { say, until } in steps {
            stream.write_all(say).await?;
            let mut answer = Vec::new();
            while !answer.ends_with(until) {
                let read = stream.read_buf(&mut answer).await?;
                ensure!(
                    read > 0 && answer.len() <= ANSWER_BYTES_MAX,
                    "the server answered {:?}",
                    String::from_utf8_lossy(&answer)
                );
            }
        }
        anyhow::Ok(stream)
    };
    timeout(SUBSCRIBE_MAX, coming).await.context("the server let nobody in")?
}

async fn read(stream: TcpStream, counts: Arc<Counts>, number: usize) -> anyhow::Result<()> {
    loop {
        stream.readable().await?;
        let mut bytes = [0; READ_BYTES];
        match stream.try_read(&mut bytes) {
            Ok(0) => bail!("the server let a subscriber go"),
            Ok(read) => counts.count(number, &bytes[..read])?,
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(error) => return Err(error.into()),
        }
    }
}

impl Counts {
    fn new(subscribers: usize) -> Self {
        let each = (0..subscribers).map(|_| Count::default()).collect();
        Self { left: AtomicI64::new(0), each }
    }

    /// So many items are next, for each.
    fn expect(&self, items: i64) -> anyhow::Result<()> {
        self.add(items * i64::try_from(self.each.len())?)
    }

    fn count(&self, number: usize, bytes: &[u8]) -> anyhow::Result<()> {
        let items = bytes.iter().filter(|it| **it == MARK).count();
        let count = &self.each[number];
        count.items.fetch_add(items as u64, Ordering::Relaxed);
        count.bytes.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        if items == 0 { Ok(()) } else { self.add(-i64::try_from(items)?) }
    }

    /// Whoever makes it nothing tells.
    fn add(&self, items: i64) -> anyhow::Result<()> {
        let before = self.left.fetch_add(items, Ordering::Relaxed);
        if before + items == 0 { say(HAVE_IT) } else { Ok(()) }
    }

    fn sum_up(&self) -> Report {
        let range = |counted: fn(&Count) -> &AtomicU64| {
            let values = self.each.iter().map(|it| counted(it).load(Ordering::Relaxed));
            [values.clone().min().unwrap_or(0), values.max().unwrap_or(0)]
        };
        Report { items: range(|it| &it.items), bytes: range(|it| &it.bytes) }
    }
}
