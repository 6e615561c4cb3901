//! The client's side of the protocol, decided: which item is shown when, which slot is asked for
//! when, what time it is at the server, how long to wait before coming back.
//!
//! No I/O, no clock, no randomness: times and draws come in as arguments.
#![deny(missing_docs)]

pub mod backoff;
pub mod bases;
pub mod merge;
pub mod pacer;
pub mod poll;
pub mod room;
pub mod server_clock;
