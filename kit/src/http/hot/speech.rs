//! The bytes of a connection on the short way: requests in, answers out, without I/O.

use std::io::Write;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use axum::http::Response;
use httpdate::HttpDate;

use super::head::{self, Head, Next};
use super::spare;
use super::{Asked, Fields, Hot, Unread, put_fields};
use crate::clock::Clock;

/// Bytes of a buffer that is kept for the next requests. With so many to be sent, no request is
/// answered before they are.
pub(super) const KEPT_BYTES_MAX: usize = 16 * 1024;

/// What has come and is not answered, and what is to be sent.
#[derive(Debug)]
pub(super) struct Speech {
    hot: Arc<dyn Hot>,
    peer: SocketAddr,
    voice: Voice,
    /// What has come.
    pub(super) input: Vec<u8>,
    /// What is to be sent.
    pub(super) output: Vec<u8>,
}

/// What came of the input.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Turn {
    /// All of it is answered.
    Answered,
    /// There is enough to be sent; then there may be more to answer.
    More,
    /// It begins with a hot request, and must grow to so many bytes.
    Body { bytes: usize },
    /// It begins with something for hyper.
    Other,
}

/// What answers say after their fields.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Then {
    /// More may be asked.
    Stay,
    /// The connection ends.
    Close,
}

/// What the heads of answers have besides their fields.
#[derive(Debug)]
struct Voice {
    date: Date,
    /// The length of the last body, as it is written: the next one has mostly as many digits.
    length: Vec<u8>,
}

/// The date, as it is written, of a second.
#[derive(Debug)]
struct Date {
    clock: Clock,
    unix_s: u64,
    text: String,
}

impl Speech {
    pub(super) fn new(hot: Arc<dyn Hot>, peer: SocketAddr, clock: Clock) -> Self {
        let (input, output) = (Vec::new(), Vec::new());
        Self { hot, peer, voice: Voice::new(clock), input, output }
    }

    /// Answers what can be answered. `then` is what the last answer says.
    pub(super) fn turn(&mut self, then: Then) -> Turn {
        let mut answered = 0;
        let turn = loop {
            let bytes = &self.input[answered..];
            if bytes.is_empty() {
                break Turn::Answered;
            }
            if self.output.len() >= KEPT_BYTES_MAX {
                break Turn::More;
            }
            let mut space = head::space();
            let Next::Hot(head) = head::next(bytes, &mut space, &*self.hot) else {
                break Turn::Other;
            };
            let Head { path, fields, head_bytes, body_bytes, body_bytes_max } = head;
            let request_bytes = head_bytes + body_bytes;
            let Some(body) = bytes.get(head_bytes..request_bytes) else {
                break Turn::Body { bytes: request_bytes };
            };
            if self.output.is_empty() && body_bytes_max > KEPT_BYTES_MAX {
                self.output = spare::take(std::mem::take(&mut self.output));
            }
            let asked = Asked { path, fields: Fields(fields), body: Ok(body), peer: self.peer };
            let then = if request_bytes == bytes.len() { then } else { Then::Stay };
            self.voice.put_answer(&*self.hot, &asked, then, &mut self.output);
            answered += request_bytes;
        };
        self.input.drain(..answered);
        // A connection that once had much to say does not keep the memory.
        if self.input.is_empty() && self.input.capacity() > KEPT_BYTES_MAX {
            self.input = Vec::new();
        }
        turn
    }

    /// Answers a hot request whose body does not come.
    pub(super) fn give_up(&mut self) {
        let mut space = head::space();
        if let Next::Hot(head) = head::next(&self.input, &mut space, &*self.hot) {
            let (path, fields) = (head.path, Fields(head.fields));
            let asked = Asked { path, fields, body: Err(Unread::Late), peer: self.peer };
            self.voice.put_answer(&*self.hot, &asked, Then::Close, &mut self.output);
        }
    }

    /// The output is sent.
    pub(super) fn sent(&mut self) {
        self.output.clear();
        if self.output.capacity() > KEPT_BYTES_MAX {
            spare::give(std::mem::take(&mut self.output));
        }
    }
}

impl Voice {
    fn new(clock: Clock) -> Self {
        Self { date: Date::new(clock), length: Vec::new() }
    }

    /// Writes an answer with its head.
    fn put_answer(&mut self, hot: &dyn Hot, asked: &Asked<'_>, then: Then, out: &mut Vec<u8>) {
        self.date.renew();
        let start = out.len();
        out.extend_from_slice(&hot.heading().text);
        let length_at = self.put_rest(then, out);
        let body_at = out.len();
        let Err(other) = hot.answer(asked, out) else {
            let digits = self.length.len();
            self.set_length(out.len() - body_at);
            let place = length_at..length_at + digits;
            if digits == self.length.len() {
                out[place].copy_from_slice(&self.length);
            } else {
                out.splice(place, self.length.iter().copied());
            }
            return;
        };
        out.truncate(start);
        put_heading(&other, out);
        self.set_length(other.body().len());
        self.put_rest(then, out);
        out.extend_from_slice(other.body());
    }

    /// Writes a head from its fields on, and where in it the length stands.
    fn put_rest(&self, then: Then, out: &mut Vec<u8>) -> usize {
        if let Then::Close = then {
            out.extend_from_slice(b"connection: close\r\n");
        }
        out.extend_from_slice(b"content-length: ");
        let length_at = out.len();
        out.extend_from_slice(&self.length);
        for part in ["\r\ndate: ", &self.date.text, "\r\n\r\n"] {
            out.extend_from_slice(part.as_bytes());
        }
        length_at
    }

    /// Writes a number: for every answer, so without the machinery of formats.
    fn set_length(&mut self, mut bytes: usize) {
        self.length.clear();
        loop {
            self.length.push(b"0123456789"[bytes % 10]);
            bytes /= 10;
            if bytes == 0 {
                break;
            }
        }
        self.length.reverse();
    }
}

/// Writes the beginning of an answer that is not the usual one.
fn put_heading(other: &Response<Vec<u8>>, out: &mut Vec<u8>) {
    let status = other.status();
    let reason = status.canonical_reason().unwrap_or_default();
    write!(out, "HTTP/1.1 {} {reason}\r\n", status.as_str()).expect("a Vec takes all");
    put_fields(other.headers(), out);
}

impl Date {
    fn new(clock: Clock) -> Self {
        Self { clock, unix_s: 0, text: String::new() }
    }

    fn renew(&mut self) {
        let unix_s = self.clock.wall_lately().unix_s();
        if self.unix_s != unix_s || self.text.is_empty() {
            self.unix_s = unix_s;
            self.text = HttpDate::from(UNIX_EPOCH + Duration::from_secs(unix_s)).to_string();
        }
    }
}
