//! The receivers: a process that logs sessions in and counts what they get.
//!
//! It is told what to do by one line of JSON on its standard input, and answers on its standard
//! output: a line when all are in, one each time all have the next frame, and the [`Report`] when
//! the input ends.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use kit::task::Tasks;
use proto::address::Transport;
use proto::frame::{Batch, Downlink, Join, Path};
use proto::id::{Gen, RoomId, SlotNo};
use sdk::raw::Raw;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt, BufReader};

use super::log_all_in;

/// Longest wait for one frame: other measurements and all logins lie between two of them.
pub(super) const SILENCE_MAX: Duration = Duration::from_secs(300);

/// Everyone is in.
pub(super) const IN: &str = "in";
/// Everyone has the next frame.
pub(super) const HAVE_IT: &str = "have it";

/// What the receivers are told.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Orders {
    /// How many.
    pub(super) sessions: usize,
    /// Over what.
    pub(super) transport: Transport,
    /// Where to enter.
    pub(super) enter_url: String,
    /// Whom to believe.
    pub(super) ca_pem: String,
    /// Where to go.
    pub(super) room: RoomId,
    /// A ticket for each account.
    pub(crate) tickets: Vec<String>,
}

impl Orders {
    /// The room.
    pub(crate) const fn room(&self) -> &RoomId {
        &self.room
    }

    /// The same for a session with each of these tickets.
    pub(crate) fn only(&self, tickets: &[String]) -> Self {
        Self { sessions: tickets.len(), tickets: tickets.to_vec(), ..self.clone() }
    }
}

/// What they got.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(crate) struct Report {
    /// Frames with items: of the session with the fewest, and with the most.
    pub(super) frames: [u64; 2],
    /// Bytes of these frames, likewise.
    pub(super) bytes: [u64; 2],
    /// Items, as the first session decoded them. Others do not decode.
    pub(super) items: u64,
}

/// What is counted.
struct Counts {
    /// First byte of a frame with items.
    kind: u8,
    all: AtomicU64,
    items: AtomicU64,
    sessions: Vec<Count>,
}

#[derive(Default)]
struct Count {
    frames: AtomicU64,
    bytes: AtomicU64,
}

/// Runs until the standard input ends.
pub(crate) async fn receive() -> anyhow::Result<()> {
    let mut input = BufReader::new(tokio::io::stdin());
    let mut line = String::new();
    input.read_line(&mut line).await?;
    let orders: Orders = serde_json::from_str(&line).context("these are no orders")?;
    let join = Join { room: orders.room.clone(), path: Path::Push, resume: None };
    let sessions = log_all_in(&orders, &[join]).await?;
    say(IN)?;

    let mut readers = Tasks::default();
    let counts = read_all(&mut readers, sessions, &orders.room);
    line.clear();
    tokio::select! {
        ended = input.read_line(&mut line) => ensure!(ended? == 0, "there are no more orders"),
        Some(ended) = readers.next() => bail!(ended.err().context("a reader ended")?),
    }
    say(&serde_json::to_string(&counts.sum_up())?)
}

/// One task a session.
fn read_all(readers: &mut Tasks, sessions: Vec<Raw>, room: &RoomId) -> Arc<Counts> {
    let counts = Arc::new(Counts::new(sessions.len(), room));
    for (number, session) in sessions.into_iter().enumerate() {
        readers.spawn("reader", read(number, session, Arc::clone(&counts)));
    }
    counts
}

async fn read(number: usize, mut session: Raw, counts: Arc<Counts>) -> anyhow::Result<()> {
    loop {
        let frame = session.recv_bytes().await?;
        counts.count(number, &frame)?;
    }
}

impl Counts {
    fn new(sessions: usize, room: &RoomId) -> Self {
        let batch = Batch {
            room: room.clone(),
            gen_no: Gen(0),
            slot: SlotNo(0),
            part: 0,
            items: Vec::new(),
        };
        Self {
            kind: Downlink::Batch(batch).encode()[0],
            all: AtomicU64::new(0),
            items: AtomicU64::new(0),
            sessions: (0..sessions).map(|_| Count::default()).collect(),
        }
    }

    /// Counts a frame, and tells when it was the last one of a flush.
    fn count(&self, number: usize, frame: &[u8]) -> anyhow::Result<()> {
        if frame.first() != Some(&self.kind) {
            return Ok(());
        }
        let count = &self.sessions[number];
        count.frames.fetch_add(1, Ordering::Relaxed);
        count.bytes.fetch_add(frame.len() as u64, Ordering::Relaxed);
        if number == 0
            && let Downlink::Batch(batch) = Downlink::decode(frame)?
        {
            self.items.fetch_add(batch.items.len() as u64, Ordering::Relaxed);
        }
        let all = self.all.fetch_add(1, Ordering::Relaxed) + 1;
        if all.is_multiple_of(self.sessions.len() as u64) { say(HAVE_IT) } else { Ok(()) }
    }

    fn sum_up(&self) -> Report {
        let range = |counted: fn(&Count) -> &AtomicU64| {
            let values = self.sessions.iter().map(|it| counted(it).load(Ordering::Relaxed));
            [values.clone().min().unwrap_or(0), values.max().unwrap_or(0)]
        };
        Report {
            frames: range(|it| &it.frames),
            bytes: range(|it| &it.bytes),
            items: self.items.load(Ordering::Relaxed),
        }
    }
}

pub(crate) fn say(line: &str) -> anyhow::Result<()> {
    let mut output = std::io::stdout().lock();
    writeln!(output, "{line}")?;
    Ok(output.flush()?)
}
