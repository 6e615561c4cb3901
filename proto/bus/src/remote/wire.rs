//! What is said between the two processes, and how it becomes bytes.
//!
//! A frame is four bytes of length, big-endian, and a value in postcard's form. Both ends are of
//! one executable, so there are no versions.

use std::io::{self, ErrorKind};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::SinkExt;
use kit::quota::{Ask, Away, Shared, Taken, Use};
use proto::id::NodeId;
use proto::limits::RECORD_BYTES_MAX;
use proto::time::Wall;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio::net::unix::OwnedWriteHalf;
use tokio::sync::mpsc;
use tokio_util::codec::{FramedWrite, LengthDelimitedCodec};

use crate::{At, Offset, PartitionNo, Publish, PublishError, ReadError, Record, Topic};

/// Calls of one process that may be on their way: a link has about twenty, one for each partition
/// that it follows.
pub(super) const CALLS_MAX: usize = 1024;
/// Time for an answer, beside what a read may wait for records.
pub(super) const ANSWER_MAX: Duration = Duration::from_secs(5);
/// Records and asks of one frame are cut off beyond so many bytes.
pub(super) const LOAD_BYTES_MAX: usize = 4 * RECORD_BYTES_MAX;
/// What a record takes in a frame beside its value, at most: names, keys and numbers.
pub(super) const RECORD_OVERHEAD_BYTES: usize = 1024;
/// Bytes of a frame: a full load, and the record that filled it.
const FRAME_BYTES_MAX: usize = 2 * LOAD_BYTES_MAX;

/// Which of the two buses is meant.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(super) enum Place {
    Global,
    Unit,
}

/// What is asked for.
#[derive(Debug, Deserialize, Serialize)]
pub(super) enum Call {
    Publish {
        place: Place,
        records: Vec<Publish>,
    },
    Read {
        place: Place,
        topic: Topic,
        partition: PartitionNo,
        from: Offset,
        records_max: usize,
        wait: Duration,
    },
    Locate {
        place: Place,
        topic: Topic,
        partition: PartitionNo,
        at: At,
    },
    Commit {
        place: Place,
        group: Arc<str>,
        topic: Topic,
        partition: PartitionNo,
        next: Offset,
    },
    Take {
        asks: Vec<Ask>,
        now: Wall,
    },
    Share {
        node: NodeId,
        uses: Vec<Use>,
        now: Wall,
    },
}

/// What comes of it.
#[derive(Debug, Deserialize, Serialize)]
pub(super) enum Answer {
    Published(Vec<Result<Offset, PublishError>>),
    Read(Result<Vec<Record>, ReadError>),
    Located(Result<Offset, ReadError>),
    Committed(Result<(), ReadError>),
    Taken(Vec<Taken>),
    Shared(Result<Shared, Away>),
}

/// A call or an answer with its number: answers come in any order.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct Numbered<T> {
    pub(super) call_no: u64,
    pub(super) what: T,
}

impl Call {
    /// How long the answer may take by right.
    pub(super) const fn wait(&self) -> Duration {
        match self {
            Self::Read { wait, .. } => *wait,
            Self::Publish { .. }
            | Self::Locate { .. }
            | Self::Commit { .. }
            | Self::Take { .. }
            | Self::Share { .. } => Duration::ZERO,
        }
    }
}

/// Where frames begin and end.
pub(super) fn framing() -> LengthDelimitedCodec {
    LengthDelimitedCodec::builder().max_frame_length(FRAME_BYTES_MAX).new_codec()
}

/// The bytes of a call or an answer.
pub(super) fn encode<T: Serialize>(call_no: u64, what: T) -> Bytes {
    let bytes = postcard::to_stdvec(&Numbered { call_no, what });
    bytes.expect("every length is known, and a vector grows").into()
}

/// The call or answer in these bytes.
pub(super) fn decode<T: DeserializeOwned>(bytes: &[u8]) -> io::Result<Numbered<T>> {
    let decoded = postcard::from_bytes(bytes);
    decoded.map_err(|error| io::Error::new(ErrorKind::InvalidData, error))
}

/// Writes frames as they come, together those that wait, until nobody can give any.
pub(super) async fn say(
    mut waiting: mpsc::Receiver<Bytes>,
    write: OwnedWriteHalf,
) -> io::Result<()> {
    let mut frames = FramedWrite::new(write, framing());
    while let Some(frame) = waiting.recv().await {
        frames.feed(frame).await?;
        while let Ok(frame) = waiting.try_recv() {
            frames.feed(frame).await?;
        }
        SinkExt::<Bytes>::flush(&mut frames).await?;
    }
    Ok(())
}

/// The other process is gone: it has ended in order, or left something unread.
pub(super) fn is_end(ended: io::Result<()>) -> io::Result<()> {
    match ended {
        Err(error)
            if matches!(error.kind(), ErrorKind::ConnectionReset | ErrorKind::BrokenPipe) =>
        {
            Ok(())
        }
        ended => ended,
    }
}
