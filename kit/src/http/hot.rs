//! Requests that are answered before a router sees them: there are so many of them that the
//! router's own cost counts, and hyper's.
//!
//! They come by one of two ways with the same answers. Plain HTTP/1.1 is read here, on the
//! [short] way; HTTP/2 and whatever is unusual takes the [long] way through hyper.

mod head;
pub(super) mod long;
pub(super) mod short;
mod spare;
mod speech;

use std::fmt;
use std::net::SocketAddr;

use axum::http::{HeaderMap, HeaderName, HeaderValue, Response};

/// Answers some requests at once, without waiting for anything but their body.
pub trait Hot: fmt::Debug + Send + Sync + 'static {
    /// If a request with this method, path and header fields is one of those: bytes of its body at
    /// most. It must say the same each time it is asked.
    fn body_bytes_max(&self, method: &str, path: &str, fields: Fields<'_>) -> Option<usize>;

    /// The head of usual answers.
    fn heading(&self) -> &Heading;

    /// Writes the body of a usual answer behind what `answer` holds.
    ///
    /// # Errors
    /// Any other answer. Whatever was written then is forgotten.
    fn answer(&self, asked: &Asked<'_>, answer: &mut Vec<u8>)
    -> Result<(), Box<Response<Vec<u8>>>>;
}

/// A request, its method apart.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    /// Its path.
    pub path: &'a str,
    /// Its header fields.
    pub fields: Fields<'a>,
    /// Its body.
    pub body: Result<&'a [u8], Unread>,
    /// Who asks: the other end of the connection, behind a trusted proxy the proxy's client.
    pub peer: SocketAddr,
}

/// Why there is no body.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Unread {
    /// It has more bytes than it may.
    TooLarge,
    /// It ended before its end.
    Broken,
    /// It did not come in time.
    Late,
}

/// Header fields, in their order as far as they have one name.
#[derive(Clone, Copy, Debug)]
pub struct Fields<'a>(&'a [httparse::Header<'a>]);

impl<'a> Fields<'a> {
    /// The values of all fields with this name, whatever the case of its letters.
    pub fn all(self, name: &str) -> impl DoubleEndedIterator<Item = &'a [u8]> {
        let is_named = move |it: &&httparse::Header<'_>| it.name.eq_ignore_ascii_case(name);
        self.0.iter().filter(is_named).map(|it| it.value)
    }

    /// The first of them.
    #[must_use]
    pub fn first(self, name: &str) -> Option<&'a [u8]> {
        self.all(name).next()
    }
}

/// Status 200 and the header fields that all usual answers have.
#[derive(Clone, Debug)]
pub struct Heading {
    headers: HeaderMap,
    /// The beginning of an HTTP/1.1 answer.
    text: Vec<u8>,
}

impl Heading {
    /// These fields; length and date are added to each answer.
    #[must_use]
    pub fn new(headers: impl IntoIterator<Item = (HeaderName, HeaderValue)>) -> Self {
        let headers: HeaderMap = headers.into_iter().collect();
        let mut text = b"HTTP/1.1 200 OK\r\n".to_vec();
        put_fields(&headers, &mut text);
        Self { headers, text }
    }
}

fn put_fields(headers: &HeaderMap, out: &mut Vec<u8>) {
    for (name, value) in headers {
        for part in [name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"] {
            out.extend_from_slice(part);
        }
    }
}

#[cfg(test)]
pub(super) mod tests;
