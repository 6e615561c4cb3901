//! Heads and segments, one at a time.

use std::time::Duration;

use proto::decode::DecodeError;
use proto::head::{Head, Tier, head_path, segment_path};
use proto::id::{Gen, RoomId, SlotNo};
use proto::limits::SEGMENT_BYTES_MAX;
use proto::segment::Segment;
use reqwest::StatusCode;
use sdk_core::poll::Miss;

use crate::http::{HttpError, body};

/// Bytes of a head: a thousand recalled ids are 24 KiB.
const HEAD_BYTES_MAX: usize = 128 * 1024;

/// Which segment.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Name {
    /// Where.
    pub room: RoomId,
    /// Gen.
    pub gen_no: Gen,
    /// How much of it.
    pub tier: Tier,
    /// Slot.
    pub slot: SlotNo,
}

/// Why there is no file.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    /// 404.
    #[error("it is not there yet, or not any more")]
    NotYet,
    /// 410.
    #[error("it is gone")]
    Gone,
    /// Any other answer but 200.
    #[error("the server answered {0}")]
    Status(StatusCode),
    /// There was no answer.
    #[error("it could not be fetched")]
    Http(#[from] HttpError),
    /// The bytes are not a segment, or not intact.
    #[error("the segment cannot be read")]
    Segment(#[from] DecodeError),
    /// The bytes are not a head.
    #[error("the head cannot be read")]
    Head(#[from] serde_json::Error),
    /// Intact, and another one than was asked for.
    #[error("it is another segment")]
    Other,
}

impl FetchError {
    /// What it means for the schedule.
    #[must_use]
    pub const fn miss(&self) -> Miss {
        match self {
            Self::NotYet => Miss::NotYet,
            Self::Gone => Miss::Gone,
            Self::Status(_) | Self::Http(_) | Self::Segment(_) | Self::Head(_) | Self::Other => {
                Miss::Failed
            }
        }
    }
}

/// Reads a room's head below `base` (everything before `/dm/1/…`).
///
/// # Errors
/// [`FetchError`]; nothing is tried again.
pub async fn head(
    http: &reqwest::Client,
    base: &str,
    room: &RoomId,
    deadline: Duration,
) -> Result<Head, FetchError> {
    let url = format!("{base}/{}", head_path(room));
    let bytes = get(http, &url, HEAD_BYTES_MAX, deadline).await?;
    Ok(serde_json::from_slice(&bytes)?)
}

/// Fetches a segment below `base`, and checks that it is intact and the one that was meant.
///
/// # Errors
/// [`FetchError`]; nothing is tried again.
pub async fn fetch(
    http: &reqwest::Client,
    base: &str,
    name: &Name,
    deadline: Duration,
) -> Result<Segment, FetchError> {
    let path = segment_path(&name.room, name.gen_no, name.tier, name.slot, "bin");
    let bytes = get(http, &format!("{base}/{path}"), SEGMENT_BYTES_MAX, deadline).await?;
    let segment = Segment::decode(&bytes)?;
    let header = &segment.header;
    let is_meant = header.room == name.room
        && header.gen_no == name.gen_no
        && header.slot == name.slot
        && header.tier == name.tier;
    if is_meant { Ok(segment) } else { Err(FetchError::Other) }
}

async fn get(
    http: &reqwest::Client,
    url: &str,
    bytes_max: usize,
    deadline: Duration,
) -> Result<Vec<u8>, FetchError> {
    let response = http.get(url).timeout(deadline).send().await.map_err(HttpError::from)?;
    match response.status() {
        StatusCode::OK => Ok(body(response, bytes_max).await?),
        StatusCode::NOT_FOUND => Err(FetchError::NotYet),
        StatusCode::GONE => Err(FetchError::Gone),
        status => Err(FetchError::Status(status)),
    }
}
