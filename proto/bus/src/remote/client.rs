//! The side that has no bus of its own.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use futures_util::{FutureExt, StreamExt};
use kit::quota::{Ask, Away, Quota, Shared, Taken, Use};
use parking_lot::Mutex;
use proto::id::NodeId;
use proto::limits::RECORD_BYTES_MAX;
use proto::time::Wall;
use tokio::net::UnixStream;
use tokio::net::unix::OwnedReadHalf;
use tokio::sync::{mpsc, oneshot};
use tokio_util::codec::FramedRead;

use super::Ports;
use super::wire::{
    ANSWER_MAX, Answer, CALLS_MAX, Call, LOAD_BYTES_MAX, Place, RECORD_OVERHEAD_BYTES, decode,
    encode, framing, is_end, say,
};
use crate::{At, Bus, Offset, PartitionNo, Publish, PublishError, ReadError, Record, Topic};

/// When to ask again for what the quota gives, once its process is gone.
const AWAY_WAIT_MS: u32 = 1_000;

/// The ports of the process at the other end, and what carries their calls: a task of the caller's,
/// which ends when the other process does, or with an error when it speaks another language.
/// From then on every port is away.
pub fn connect(
    stream: UnixStream,
) -> (Ports, impl Future<Output = io::Result<()>> + Send + 'static) {
    let (frames, waiting) = mpsc::channel(CALLS_MAX);
    let line = Arc::new(Line { frames, calls: Mutex::default() });
    let ports = Ports {
        global: Arc::new(RemoteBus { line: Arc::clone(&line), place: Place::Global }),
        unit: Arc::new(RemoteBus { line: Arc::clone(&line), place: Place::Unit }),
        quota: Arc::new(RemoteQuota { line: Arc::clone(&line) }),
    };
    let (read, write) = stream.into_split();
    let carried = async move {
        let ended = tokio::select! {
            ended = hear(&line, read) => ended,
            ended = say(waiting, write) => ended,
        };
        line.calls.lock().close();
        is_end(ended)
    };
    (ports, carried)
}

/// The one connection.
#[derive(Debug)]
struct Line {
    frames: mpsc::Sender<Bytes>,
    calls: Mutex<Calls>,
}

/// Calls that wait for their answers. One whose caller is gone stays until it is answered.
#[derive(Debug, Default)]
struct Calls {
    is_closed: bool,
    next_no: u64,
    waiting: BTreeMap<u64, oneshot::Sender<Answer>>,
}

/// There is no answer, and there will be none.
struct Unanswered;

impl Line {
    async fn ask(&self, call: Call) -> Result<Answer, Unanswered> {
        let at_most = call.wait() + ANSWER_MAX;
        let asked = async {
            let place = self.frames.reserve().await.ok()?;
            let (call_no, answer) = self.calls.lock().begin()?;
            place.send(encode(call_no, call));
            answer.await.ok()
        };
        let answer = tokio::time::timeout(at_most, asked).await;
        answer.ok().flatten().ok_or(Unanswered)
    }
}

impl Calls {
    /// None if too many wait, or nobody is there to answer.
    fn begin(&mut self) -> Option<(u64, oneshot::Receiver<Answer>)> {
        if self.is_closed || self.waiting.len() >= CALLS_MAX {
            return None;
        }
        let (sender, answer) = oneshot::channel();
        self.next_no += 1;
        self.waiting.insert(self.next_no, sender);
        Some((self.next_no, answer))
    }

    fn close(&mut self) {
        self.is_closed = true;
        self.waiting.clear();
    }
}

async fn hear(line: &Line, read: OwnedReadHalf) -> io::Result<()> {
    let mut frames = FramedRead::new(read, framing());
    while let Some(frame) = frames.next().await {
        let answered = decode::<Answer>(&frame?)?;
        let caller = line.calls.lock().waiting.remove(&answered.call_no);
        // A caller that is gone wants no answer.
        drop(caller.map(|it| it.send(answered.what)));
    }
    Ok(())
}

#[derive(Debug)]
struct RemoteBus {
    line: Arc<Line>,
    place: Place,
}

impl RemoteBus {
    /// Publishes in loads that fit a frame, one after the other, so that order is kept.
    async fn publish_all(&self, records: Vec<Publish>) -> Vec<Result<Offset, PublishError>> {
        let mut results = Vec::with_capacity(records.len());
        let mut records = records.into_iter().peekable();
        while let Some(first) = records.next() {
            let bytes = first.value.len();
            if bytes > RECORD_BYTES_MAX {
                results.push(Err(PublishError::TooLarge { bytes }));
                continue;
            }
            let mut load_bytes = bytes + RECORD_OVERHEAD_BYTES;
            let mut load = vec![first];
            while let Some(next) = records.next_if(|it| {
                let bytes = it.value.len();
                load_bytes += bytes + RECORD_OVERHEAD_BYTES;
                bytes <= RECORD_BYTES_MAX && load_bytes <= LOAD_BYTES_MAX
            }) {
                load.push(next);
            }
            results.extend(self.publish_load(load).await);
        }
        results
    }

    async fn publish_load(&self, records: Vec<Publish>) -> Vec<Result<Offset, PublishError>> {
        let count = records.len();
        match self.line.ask(Call::Publish { place: self.place, records }).await {
            Ok(Answer::Published(results)) if results.len() == count => results,
            Ok(_) | Err(Unanswered) => vec![Err(PublishError::Away); count],
        }
    }
}

impl Bus for RemoteBus {
    fn publish(&self, records: Vec<Publish>) -> BoxFuture<'_, Vec<Result<Offset, PublishError>>> {
        self.publish_all(records).boxed()
    }

    fn read(
        &self,
        topic: Topic,
        partition: PartitionNo,
        from: Offset,
        records_max: usize,
        wait: Duration,
    ) -> BoxFuture<'_, Result<Vec<Record>, ReadError>> {
        let place = self.place;
        let call = Call::Read { place, topic, partition, from, records_max, wait };
        let read = self.line.ask(call).map(|answer| match answer {
            Ok(Answer::Read(read)) => read,
            Ok(_) | Err(Unanswered) => Err(ReadError::Away),
        });
        read.boxed()
    }

    fn locate(
        &self,
        topic: Topic,
        partition: PartitionNo,
        at: At,
    ) -> BoxFuture<'_, Result<Offset, ReadError>> {
        let call = Call::Locate { place: self.place, topic, partition, at };
        let located = self.line.ask(call).map(|answer| match answer {
            Ok(Answer::Located(located)) => located,
            Ok(_) | Err(Unanswered) => Err(ReadError::Away),
        });
        located.boxed()
    }

    fn commit(
        &self,
        group: Arc<str>,
        topic: Topic,
        partition: PartitionNo,
        next: Offset,
    ) -> BoxFuture<'_, Result<(), ReadError>> {
        let call = Call::Commit { place: self.place, group, topic, partition, next };
        let committed = self.line.ask(call).map(|answer| match answer {
            Ok(Answer::Committed(committed)) => committed,
            Ok(_) | Err(Unanswered) => Err(ReadError::Away),
        });
        committed.boxed()
    }
}

#[derive(Debug)]
struct RemoteQuota {
    line: Arc<Line>,
}

impl Quota for RemoteQuota {
    /// Gives nothing while the other process does not answer: this one ends with it.
    fn take(&self, asks: Vec<Ask>, now: Wall) -> BoxFuture<'_, Vec<Taken>> {
        let count = asks.len();
        let taken = self.line.ask(Call::Take { asks, now }).map(move |answer| match answer {
            Ok(Answer::Taken(taken)) if taken.len() == count => taken,
            Ok(_) | Err(Unanswered) => {
                vec![Taken { granted: 0, retry_after_ms: AWAY_WAIT_MS }; count]
            }
        });
        taken.boxed()
    }

    fn share(
        &self,
        node: NodeId,
        uses: Vec<Use>,
        now: Wall,
    ) -> BoxFuture<'_, Result<Shared, Away>> {
        let shared = self.line.ask(Call::Share { node, uses, now }).map(|answer| match answer {
            Ok(Answer::Shared(shared)) => shared,
            Ok(_) | Err(Unanswered) => Err(Away),
        });
        shared.boxed()
    }
}
