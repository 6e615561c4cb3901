//! What the origin answers, header by header.

use axum::body::Body;
use axum::http::header::{
    ACCEPT_RANGES, ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_EXPOSE_HEADERS, ALLOW,
    CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, ETAG, RETRY_AFTER,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::Response;
use bytes::Bytes;
use proto::encoding::Encoding;

use super::is_known;
use crate::store::{Ext, File};

const TIMING_ALLOW_ORIGIN: HeaderName = HeaderName::from_static("timing-allow-origin");

/// A sealed slot never changes.
const SEALED: &str = "public, max-age=30, s-maxage=600, immutable";
/// What is named by its content or a version never changes.
const FOR_GOOD: &str = "public, max-age=86400, immutable";
/// Which recording is the newest may change at any time, and what it names stays.
const NEWEST: &str = "public, max-age=10, s-maxage=10, stale-if-error=60";
/// A head is stale after a second, and better than nothing for a minute.
const HEAD: &str = "public, max-age=1, s-maxage=1, stale-while-revalidate=4, stale-if-error=60";
/// As RFC 8216, section 4 names it.
const PLAYLIST_TYPE: &str = "application/vnd.apple.mpegurl";
/// Not there yet: ask again in a second. Without a lifetime, caches keep a 404 for minutes.
const NOT_YET: &str = "public, max-age=1, s-maxage=1";
/// The gen ended: the head says what follows.
const ENDED: &str = "public, max-age=1";
/// A stream is everyone's own.
const STREAM: &str = "no-store";
/// Gone, or never to be.
const GONE: &str = "public, max-age=60";

/// An answer.
#[derive(Debug)]
pub(super) enum Answer {
    /// A room's head.
    Head(Bytes),
    /// A room's HLS playlist.
    Playlist(Bytes),
    /// What comes before HLS fragments.
    Init(Bytes),
    /// A sealed slot, a dictionary or a catalogue.
    Written(File, Bytes),
    /// Not there, perhaps soon.
    NotYet,
    /// Older than what is kept.
    Expired,
    /// After the end of its gen.
    Ended,
    /// No such path can be.
    Grammar,
    /// Only GET and HEAD are served.
    Method,
    /// There are as many viewers of streams as may be.
    Full,
}

impl Answer {
    /// The response; 304 if the client has the bytes already.
    pub(super) fn respond(self, request: &HeaderMap) -> Response {
        match self {
            Self::Head(bytes) => respond_file(request, bytes, HEAD, "application/json", None),
            Self::Playlist(bytes) => respond_file(request, bytes, HEAD, PLAYLIST_TYPE, None),
            Self::Init(bytes) => respond_file(request, bytes, SEALED, "video/mp4", None),
            Self::Written(file, bytes) => {
                let (kind, encoding) = looks(&file, &bytes);
                respond_file(request, bytes, lifetime(&file), kind, encoding)
            }
            Self::NotYet => refuse(StatusCode::NOT_FOUND, NOT_YET),
            Self::Expired => refuse(StatusCode::GONE, GONE),
            Self::Ended => refuse(StatusCode::GONE, ENDED),
            Self::Grammar => refuse(StatusCode::BAD_REQUEST, GONE),
            Self::Method => {
                let mut response = refuse(StatusCode::METHOD_NOT_ALLOWED, GONE);
                response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
                response
            }
            Self::Full => {
                let mut response = refuse(StatusCode::SERVICE_UNAVAILABLE, STREAM);
                response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("5"));
                response
            }
        }
    }
}

/// The type and the encoding of a file. The bytes themselves say the encoding: what was written
/// before a change of the configuration is told as it is.
fn looks(file: &File, bytes: &[u8]) -> (&'static str, Option<&'static str>) {
    let encoding = || Encoding::of(bytes).map(Encoding::name);
    match file {
        File::Segment { ext: Ext::M4s, .. } | File::Init(_) => ("video/mp4", None),
        File::Segment { ext: Ext::Bin, .. } | File::Minute { ext: Ext::Bin, .. } => {
            ("application/octet-stream", encoding())
        }
        // Only who has the dictionary can undo it, so it is no encoding of HTTP's.
        File::Segment { ext: Ext::Zbin, .. } | File::Dictionary(_) => {
            ("application/octet-stream", None)
        }
        File::Segment { ext: Ext::Json, .. }
        | File::Minute { .. }
        | File::Recording { .. }
        | File::Catalogue(..)
        | File::Head(_)
        | File::Gen(..) => ("application/json", encoding()),
        File::Playlist(_) => (PLAYLIST_TYPE, None),
    }
}

/// How long a file is what it is.
const fn lifetime(file: &File) -> &'static str {
    match file {
        File::Dictionary(_) | File::Catalogue(..) => FOR_GOOD,
        File::Recording { version: None, .. } => NEWEST,
        File::Head(_) | File::Playlist(_) => HEAD,
        File::Recording { .. }
        | File::Minute { .. }
        | File::Segment { .. }
        | File::Init(_)
        | File::Gen(..) => SEALED,
    }
}

/// A stream that no cache may keep.
pub(super) fn stream(body: Body) -> Response {
    let mut response = respond(StatusCode::OK, STREAM, body);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("video/x-flv"));
    response
}

fn respond_file(
    request: &HeaderMap,
    bytes: Bytes,
    lifetime: &'static str,
    kind: &'static str,
    encoding: Option<&'static str>,
) -> Response {
    let etag = format!("\"{:08x}-{:x}\"", crc32fast::hash(&bytes), bytes.len());
    let is_known = is_known(request, &etag);
    let (status, body) = if is_known {
        (StatusCode::NOT_MODIFIED, Body::empty())
    } else {
        (StatusCode::OK, Body::from(bytes))
    };
    let mut response = respond(status, lifetime, body);
    let headers = response.headers_mut();
    if let Ok(etag) = HeaderValue::from_str(&etag) {
        headers.insert(ETAG, etag);
    }
    if !is_known {
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
        headers.insert(ACCEPT_RANGES, HeaderValue::from_static("none"));
        if let Some(encoding) = encoding {
            headers.insert(CONTENT_ENCODING, HeaderValue::from_static(encoding));
        }
    }
    response
}

fn refuse(status: StatusCode, lifetime: &'static str) -> Response {
    respond(status, lifetime, Body::empty())
}

fn respond(status: StatusCode, lifetime: &'static str, body: Body) -> Response {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let headers = response.headers_mut();
    for (name, value) in [
        (CACHE_CONTROL, lifetime),
        (ACCESS_CONTROL_ALLOW_ORIGIN, "*"),
        (ACCESS_CONTROL_EXPOSE_HEADERS, "Date, Age"),
        (TIMING_ALLOW_ORIGIN, "*"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}
