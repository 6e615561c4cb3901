//! A TLS 1.3 connection that costs a session a few hundred bytes.
//!
//! rustls shakes hands; after that [`Lean`] seals and opens the records itself with the keys that
//! came of it. It keeps them as bytes, and no buffers: records are sealed and opened in buffers
//! that all connections of a thread share, and only what cannot be sent or is not complete stays
//! with the connection. It does what RFC 8446 asks of a server after a handshake: changes of keys
//! in both directions, padding, alerts, and its own keys renewed before they are worn.
//!
//! It never hands out a byte that did not open, and after a [`Fault`] nothing at all.

mod fault;
mod inward;
mod keys;
mod outward;
mod records;
mod secrets;
mod shake;

use std::cell::RefCell;
use std::fmt;

use tokio::net::TcpStream;
use zeroize::Zeroizing;

pub use fault::Fault;
use inward::{Inward, SCRATCH_BYTES};
use records::{Outbound, Records};
pub(crate) use shake::shake;

use crate::server::ServerStream;

thread_local! {
    /// Where records are read and opened.
    static INWARD: RefCell<Vec<u8>> = RefCell::new(vec![0; SCRATCH_BYTES]);
    /// Where records are sealed; it grows to one record and what goes before it.
    static OUTWARD: RefCell<Outbound> = RefCell::default();
}

/// What came of a handshake.
#[derive(Debug)]
pub enum Shaken {
    /// A connection whose suite is sealed here.
    Lean(Lean<TcpStream>),
    /// A connection that stays with rustls: the national suites.
    Buffered(Box<ServerStream>),
}

/// A server's TLS 1.3 connection after its handshake.
///
/// What was said last in the handshake, the ticket, goes out with the first bytes written. A write
/// takes one record's worth at most. Bytes that were taken and not sent are at most one record;
/// flushing sends them.
pub struct Lean<S>(Box<Inner<S>>);

struct Inner<S> {
    stream: S,
    records: Records,
    inward: Inward,
    /// Whether the socket would take no more of what is unsent.
    is_blocked: bool,
    /// Whether nothing more is to be said.
    is_shut: bool,
    rest: Option<Box<Rest>>,
}

/// What a connection seldom has.
#[derive(Default)]
struct Rest {
    /// What came and was not given on: `opened` bytes of data, then records, of which the last may
    /// be incomplete.
    held: Vec<u8>,
    opened: usize,
    /// What is sealed and not sent.
    unsent: Vec<u8>,
    /// Until it is taken.
    exporter: Option<Zeroizing<[u8; 32]>>,
}

impl<S> Lean<S> {
    fn new(stream: S, records: Records, rest: Rest) -> Self {
        Self(Box::new(Inner {
            stream,
            records,
            inward: Inward::Open,
            is_blocked: false,
            is_shut: false,
            rest: Some(Box::new(rest)),
        }))
    }

    /// The same connection over another form of its socket.
    ///
    /// # Errors
    /// Those of `exchange`; then the connection is lost.
    pub fn over<T, E>(self, exchange: impl FnOnce(S) -> Result<T, E>) -> Result<Lean<T>, E> {
        let Inner { stream, records, inward, is_blocked, is_shut, rest } = *self.0;
        let stream = exchange(stream)?;
        Ok(Lean(Box::new(Inner { stream, records, inward, is_blocked, is_shut, rest })))
    }

    /// The socket.
    pub const fn get_mut(&mut self) -> &mut S {
        &mut self.0.stream
    }

    /// The connection's own secret, known to its two ends, as [`crate::exporter`] gives it. Who
    /// asks first gets it, and it is forgotten.
    pub fn take_exporter(&mut self) -> Option<[u8; 32]> {
        let exporter = self.0.rest.as_mut()?.exporter.take()?;
        self.0.tidy();
        Some(*exporter)
    }
}

impl<S> Inner<S> {
    /// Forgets the rest when there is none.
    fn tidy(&mut self) {
        let Some(Rest { held, unsent, exporter, .. }) = self.rest.as_deref() else { return };
        if held.is_empty() && unsent.is_empty() && exporter.is_none() {
            self.rest = None;
        }
    }
}

impl<S: fmt::Debug> fmt::Debug for Lean<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Lean").field(&self.0.stream).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A size that allocators have, with the eight bytes of a bare descriptor and its state.
    #[test]
    fn an_idle_connection_is_256_bytes() {
        assert_eq!(size_of::<Inner<u64>>(), 256);
    }
}
