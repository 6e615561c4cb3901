//! How an answer is written: as JSON or as lines of text, straight into the bytes that are sent.

use std::io::Write;

use gslb_core::bases::Listed;
use gslb_core::listener::Listener;
use proto::enter::{Class, Delivery as Path, Retry};
use proto::head::Base;
use proto::keys::{RoomKey, RoomKeys};
use proto::time::Wall;
use serde::Serialize;

use super::listing::Listing;
use crate::config;

/// In which form.
#[derive(Debug)]
pub(super) enum Form<'f> {
    Json,
    Text,
    /// JSON that names addresses by their place in a list.
    Listed(&'f mut Listing),
}

/// What is the same in many answers, written once.
#[derive(Debug)]
pub(super) struct Written {
    retry_json: String,
    /// What stands in place of bases and `retry` where there are no bases.
    no_bases_json: String,
    retry_text: String,
    /// By class, then by [`Paths::index`].
    delivery: [[Order; 4]; Class::ALL.len()],
}

/// The ways in order, in both forms.
#[derive(Debug, Default)]
struct Order {
    json: String,
    text: String,
}

/// What there is for a viewer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Paths {
    pub(super) class: Class,
    pub(super) has_addresses: bool,
    pub(super) has_segments: bool,
}

impl Written {
    pub(super) fn new(retry: &Retry, delivery: &config::Delivery) -> Self {
        let Retry { base_ms, max_ms, factor, jitter } = retry;
        let retry_json = format!(",\"retry\":{}", json(retry));
        Self {
            no_bases_json: format!(",\"segments\":[]{retry_json}"),
            retry_json,
            retry_text: format!("retry {base_ms} {max_ms} {factor} {jitter}\n"),
            delivery: Class::ALL.map(|class| {
                [(false, false), (false, true), (true, false), (true, true)].map(
                    |(has_addresses, has_segments)| {
                        Order::of(Paths { class, has_addresses, has_segments }, delivery)
                    },
                )
            }),
        }
    }

    /// `,"segments":[…],"retry":{…}`
    pub(super) fn common_json(&self, segments: Option<&Listed>, out: &mut Vec<u8>) {
        let Some(segments) = segments else {
            return out.extend_from_slice(self.no_bases_json.as_bytes());
        };
        out.extend_from_slice(b",\"segments\":");
        out.extend_from_slice(segments.json().as_bytes());
        out.extend_from_slice(self.retry_json.as_bytes());
    }

    /// A line for each base, and one that says how to try again.
    pub(super) fn common_text(&self, segments: Option<&Listed>, out: &mut Vec<u8>) {
        for Base { base, weight } in segments.map_or(&[][..], Listed::bases) {
            put_text(out, format_args!("segments {base} {weight}\n"));
        }
        out.extend_from_slice(self.retry_text.as_bytes());
    }

    /// `,"delivery":[…]`, or a line.
    pub(super) fn delivery(&self, form: &Form<'_>, paths: Paths, out: &mut Vec<u8>) {
        let order = &self.delivery[paths.class as usize][paths.index()];
        let written = match form {
            Form::Json | Form::Listed(_) => &order.json,
            Form::Text => &order.text,
        };
        out.extend_from_slice(written.as_bytes());
    }
}

impl Paths {
    const fn index(self) -> usize {
        (self.has_addresses as usize) << 1 | self.has_segments as usize
    }
}

impl Order {
    fn of(paths: Paths, delivery: &config::Delivery) -> Self {
        let is_there = |path: &Path| match path {
            Path::Push => paths.has_addresses,
            Path::Segments | Path::LiteSegments => paths.has_segments,
        };
        let order = delivery.of(paths.class).iter().copied();
        let order: Vec<Path> = order.filter(is_there).collect();
        let mut text = "delivery".to_owned();
        for path in &order {
            text.push(' ');
            text.push_str(path.name());
        }
        text.push('\n');
        Self { json: format!(",\"delivery\":{}", json(&order)), text }
    }
}

/// What stands before all addresses.
pub(super) fn put_offers_start(form: &Form<'_>, out: &mut Vec<u8>) {
    let start: &[u8] = match form {
        Form::Json => b"\"addresses\":[",
        Form::Text => b"",
        Form::Listed(_) => b"\"offers\":[",
    };
    out.extend_from_slice(start);
}

/// What stands between two of them.
pub(super) fn put_between(form: &Form<'_>, out: &mut Vec<u8>) {
    match form {
        Form::Json | Form::Listed(_) => out.push(b','),
        Form::Text => {}
    }
}

/// What stands behind all addresses.
pub(super) fn put_offers_end(form: &Form<'_>, out: &mut Vec<u8>) {
    match form {
        Form::Json | Form::Listed(_) => out.push(b']'),
        Form::Text => {}
    }
}

/// An address, up to where its token begins.
pub(super) fn put_address(form: &mut Form<'_>, listener: &Listener, out: &mut Vec<u8>) {
    match form {
        Form::Json => out.extend_from_slice(listener.json().as_bytes()),
        Form::Text => {
            let transport = listener.address().transport.name();
            for part in [listener.authority(), " ", transport, " "] {
                out.extend_from_slice(part.as_bytes());
            }
        }
        Form::Listed(listing) => listing.put_start(listener, out),
    }
}

/// What stands behind the token.
pub(super) fn put_offer_end(form: &Form<'_>, out: &mut Vec<u8>) {
    let end: &[u8] = match form {
        Form::Json | Form::Listed(_) => b"\"}",
        Form::Text => b"\n",
    };
    out.extend_from_slice(end);
}

/// What opens sealed rooms, if any is: `,"keys":[…]`, or a line for each key.
pub(super) fn put_keys(form: &Form<'_>, keys: &[RoomKeys], out: &mut Vec<u8>) {
    if keys.is_empty() {
        return;
    }
    match form {
        Form::Json | Form::Listed(_) => {
            out.extend_from_slice(b",\"keys\":");
            put_json(keys, out);
        }
        Form::Text => {
            for RoomKeys { room, keys } in keys {
                for RoomKey { gen_no, kid, key } in keys {
                    put_text(out, format_args!("key {room} {gen_no} {kid} {key}\n"));
                }
            }
        }
    }
}

/// When to ask again, if that is said: `,"retry_after_ms":…`, or a line.
pub(super) fn put_retry_after(form: &Form<'_>, retry_after_ms: u32, out: &mut Vec<u8>) {
    if retry_after_ms > 0 {
        match form {
            Form::Json | Form::Listed(_) => {
                put_text(out, format_args!(",\"retry_after_ms\":{retry_after_ms}"));
            }
            Form::Text => put_text(out, format_args!("retry_after_ms {retry_after_ms}\n")),
        }
    }
}

/// The server's time, at the beginning of an answer.
pub(super) fn put_server(form: &Form<'_>, now: Wall, out: &mut Vec<u8>) {
    match form {
        Form::Json | Form::Listed(_) => {
            out.extend_from_slice(b"{\"server_ms\":");
            put_json(&now, out);
        }
        Form::Text => put_text(out, format_args!("server_ms {}\n", now.0)),
    }
}

/// Anything as JSON.
pub(super) fn put_json<T: Serialize + ?Sized>(value: &T, out: &mut Vec<u8>) {
    serde_json::to_writer(out, value).expect("what answers say is JSON, and a Vec takes it");
}

fn put_text(out: &mut Vec<u8>, text: std::fmt::Arguments<'_>) {
    out.write_fmt(text).expect("a Vec takes what is written");
}

fn json<T: Serialize + ?Sized>(value: &T) -> String {
    serde_json::to_string(value).expect("lists of words and numbers are JSON")
}
