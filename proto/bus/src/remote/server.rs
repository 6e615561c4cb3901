//! The side that has the buses and the quota.

use std::io;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::StreamExt;
use kit::quota::{Away, Taken};
use kit::task::Tasks;
use tokio::net::UnixStream;
use tokio::net::unix::OwnedReadHalf;
use tokio::sync::{Semaphore, mpsc};
use tokio_util::codec::FramedRead;

use super::Ports;
use super::wire::{
    ANSWER_MAX, Answer, CALLS_MAX, Call, LOAD_BYTES_MAX, Place, RECORD_OVERHEAD_BYTES, decode,
    encode, framing, is_end, say,
};
use crate::{Bus, PublishError, ReadError, Record};

/// Answers the process at the other end until it ends. Dropping it ends what is being done for it.
///
/// # Errors
/// When the other process speaks another language, or the connection fails.
pub async fn serve(stream: UnixStream, ports: Ports) -> io::Result<()> {
    let (read, write) = stream.into_split();
    let (answers, waiting) = mpsc::channel(CALLS_MAX);
    is_end(tokio::select! {
        ended = hear(ports, read, answers) => ended,
        ended = say(waiting, write) => ended,
    })
}

/// Takes no more calls than may be answered at a time: whoever asks for more waits.
async fn hear(ports: Ports, read: OwnedReadHalf, answers: mpsc::Sender<Bytes>) -> io::Result<()> {
    let places = Arc::new(Semaphore::new(CALLS_MAX));
    let mut frames = FramedRead::new(read, framing());
    let mut tasks = Tasks::default();
    while let Some(frame) = frames.next().await {
        let called = decode::<Call>(&frame?)?;
        let Ok(place) = Arc::clone(&places).acquire_owned().await else { break };
        let (ports, answers) = (ports.clone(), answers.clone());
        tasks.spawn("remote call", async move {
            let answer = ports.answer(called.what).await;
            // Nobody listens any more when this cannot be sent.
            drop(answers.send(encode(called.call_no, answer)).await);
            drop(place);
            Ok(())
        });
        tasks.reap().map_err(io::Error::other)?;
    }
    Ok(())
}

impl Ports {
    async fn answer(&self, call: Call) -> Answer {
        let at_most = call.wait() + ANSWER_MAX;
        match call {
            Call::Publish { place, records } => {
                let count = records.len();
                let published = self.bus(place).publish(records);
                let published = tokio::time::timeout(at_most, published).await;
                let away = |_| vec![Err(PublishError::Away); count];
                Answer::Published(published.unwrap_or_else(away))
            }
            Call::Read { place, topic, partition, from, records_max, wait } => {
                let read = self.bus(place).read(topic, partition, from, records_max, wait);
                let read = tokio::time::timeout(at_most, read).await;
                let read = read.unwrap_or(Err(ReadError::Away));
                Answer::Read(read.map(cut_off))
            }
            Call::Locate { place, topic, partition, at } => {
                let located = self.bus(place).locate(topic, partition, at);
                let located = tokio::time::timeout(at_most, located).await;
                Answer::Located(located.unwrap_or(Err(ReadError::Away)))
            }
            Call::Commit { place, group, topic, partition, next } => {
                let committed = self.bus(place).commit(group, topic, partition, next);
                let committed = tokio::time::timeout(at_most, committed).await;
                Answer::Committed(committed.unwrap_or(Err(ReadError::Away)))
            }
            Call::Take { asks, now } => {
                let nothing = Taken { granted: 0, retry_after_ms: 0 };
                let nothing = vec![nothing; asks.len()];
                let taken = tokio::time::timeout(at_most, self.quota.take(asks, now)).await;
                Answer::Taken(taken.unwrap_or(nothing))
            }
            Call::Share { node, uses, now } => {
                let shared = self.quota.share(node, uses, now);
                let shared = tokio::time::timeout(at_most, shared).await;
                Answer::Shared(shared.unwrap_or(Err(Away)))
            }
        }
    }

    fn bus(&self, place: Place) -> &dyn Bus {
        match place {
            Place::Global => self.global.as_ref(),
            Place::Unit => self.unit.as_ref(),
        }
    }
}

/// As many of the records as one frame carries, at least one: the reader asks for the rest.
fn cut_off(mut records: Vec<Record>) -> Vec<Record> {
    let mut bytes = 0;
    let fit = records.iter().take_while(|it| {
        bytes += it.value.len() + RECORD_OVERHEAD_BYTES;
        bytes <= LOAD_BYTES_MAX
    });
    let fit = fit.count().max(1);
    records.truncate(fit);
    records
}
