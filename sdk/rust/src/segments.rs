//! Heads, segments, dictionaries and catalogues, one at a time.

use std::time::Duration;

use proto::control::catalogue_path;
use proto::decode::DecodeError;
use proto::dictionary::{Dictionary, DictionaryId, DictionaryInfo, dictionary_path};
use proto::encoding::{Encoding, expand};
use proto::head::{Head, Tier, head_path, segment_path};
use proto::id::{Gen, RoomId, SlotNo};
use proto::limits::{CATALOGUE_BYTES_MAX, DICTIONARY_BYTES_MAX, SEGMENT_BYTES_MAX};
use proto::sealed::is_sealed;
use proto::segment::Segment;
use reqwest::StatusCode;
use reqwest::header::{ACCEPT_ENCODING, CONTENT_ENCODING, HeaderValue};
use sdk_core::poll::Miss;

use crate::http::{HttpError, body};
use crate::sealed::{Keys, Locked};

/// What is understood: a house writes one of them and asks nobody, but what stands between may
/// change it for those who do not say this.
const ENCODINGS: HeaderValue = HeaderValue::from_static("gzip, br, zstd");
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
    /// It is sealed, and does not open.
    #[error("the sealed segment cannot be opened")]
    Locked(#[from] Locked),
    /// It is compressed in a way that nobody was told of.
    #[error("its Content-Encoding is unknown")]
    Encoding,
    /// Intact, and another one than was asked for.
    #[error("it is another file")]
    Other,
}

impl FetchError {
    /// What it means for the schedule.
    #[must_use]
    pub const fn miss(&self) -> Miss {
        match self {
            // The key may still come: it is told beside the gen.
            Self::NotYet | Self::Locked(Locked::NoKey) => Miss::NotYet,
            Self::Gone => Miss::Gone,
            Self::Status(_)
            | Self::Http(_)
            | Self::Segment(_)
            | Self::Head(_)
            | Self::Encoding
            | Self::Locked(Locked::Closed | Locked::Damaged(_))
            | Self::Other => Miss::Failed,
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
    fetch_sealed(http, base, name, &Keys::default(), deadline).await
}

/// The same where the room may be sealed: `keys` are its own.
///
/// # Errors
/// [`FetchError`]; nothing is tried again.
pub async fn fetch_sealed(
    http: &reqwest::Client,
    base: &str,
    name: &Name,
    keys: &Keys,
    deadline: Duration,
) -> Result<Segment, FetchError> {
    let path = name.path("bin");
    let bytes = get(http, &format!("{base}/{path}"), SEGMENT_BYTES_MAX, deadline).await?;
    if is_sealed(&bytes) {
        let packed = keys.open(name.gen_no, &path, &bytes)?;
        return read(&expand(&packed)?, name);
    }
    read(&bytes, name)
}

/// The same in the form that only those read who have the dictionary: smaller, and not there where
/// the room's head names no dictionary, or another one.
///
/// # Errors
/// [`FetchError`]; then [`fetch`] may still find the segment.
pub async fn fetch_with(
    http: &reqwest::Client,
    base: &str,
    name: &Name,
    dictionary: &Dictionary,
    deadline: Duration,
) -> Result<Segment, FetchError> {
    let url = format!("{base}/{}", name.path("zbin"));
    let bytes = get(http, &url, SEGMENT_BYTES_MAX, deadline).await?;
    read(&dictionary.expand(&bytes)?, name)
}

/// Fetches the dictionary that a head names, and checks that it is that one.
///
/// # Errors
/// [`FetchError`]; nothing is tried again.
pub async fn dictionary(
    http: &reqwest::Client,
    base: &str,
    named: DictionaryInfo,
    deadline: Duration,
) -> Result<Dictionary, FetchError> {
    let url = format!("{base}/{}", dictionary_path(named.id));
    let bytes = get(http, &url, DICTIONARY_BYTES_MAX, deadline).await?;
    if DictionaryId::of(&bytes) != named.id {
        return Err(FetchError::Other);
    }
    Ok(Dictionary::new(bytes.into())?)
}

/// Fetches the gift catalogue that a head names: the app's own JSON. `None` if it names none.
///
/// # Errors
/// [`FetchError`]; nothing is tried again.
pub async fn catalogue(
    http: &reqwest::Client,
    base: &str,
    head: &Head,
    deadline: Duration,
) -> Result<Option<Vec<u8>>, FetchError> {
    let Some(app) = head.app.filter(|_| head.catalogue > 0) else {
        return Ok(None);
    };
    let url = format!("{base}/{}", catalogue_path(app, head.catalogue));
    Ok(Some(get(http, &url, CATALOGUE_BYTES_MAX, deadline).await?))
}

impl Name {
    fn path(&self, ext: &str) -> String {
        segment_path(&self.room, self.gen_no, self.tier, self.slot, ext)
    }
}

/// Reads a segment, and checks that it is the one that was meant.
fn read(bytes: &[u8], name: &Name) -> Result<Segment, FetchError> {
    let segment = Segment::decode(bytes)?;
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
    let request = http.get(url).timeout(deadline).header(ACCEPT_ENCODING, ENCODINGS);
    let response = request.send().await.map_err(HttpError::from)?;
    match response.status() {
        StatusCode::OK => {}
        StatusCode::NOT_FOUND => return Err(FetchError::NotYet),
        StatusCode::GONE => return Err(FetchError::Gone),
        status => return Err(FetchError::Status(status)),
    }
    // gzip is undone below this, and not named any more.
    let named = response.headers().get(CONTENT_ENCODING).cloned();
    let bytes = body(response, bytes_max).await?;
    let Some(named) = named else {
        return Ok(bytes);
    };
    let encoding = named.to_str().ok().and_then(Encoding::named).ok_or(FetchError::Encoding)?;
    let bytes = encoding.expand(&bytes)?;
    if bytes.len() > bytes_max {
        return Err(HttpError::TooLarge { max: bytes_max }.into());
    }
    Ok(bytes)
}
