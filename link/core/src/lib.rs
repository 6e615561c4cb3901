//! The long connections, decided: sessions, rooms, rings and outboxes. No I/O, no clock.
//!
//! A [`session::Session`] is one viewer's conversation. The [`hub::Hub`] knows who is in which
//! room. A room's frames are encoded once into its [`ring::Ring`]; an [`outbox::Outbox`] is one
//! session's cursors over its rooms' rings and a small queue of its own. [`resume`] decides what a
//! returning session gets, and [`departures::Departures`] tells the others about leaves at a bounded
//! pace.
#![deny(missing_docs)]

pub mod board;
pub mod bucket;
pub mod departures;
pub mod entry;
pub mod failures;
pub mod framing;
pub mod hub;
pub mod knowledge;
pub mod moves;
pub mod outbox;
pub mod places;
pub mod quality;
pub mod resume;
pub mod ring;
pub mod session;
pub mod siege;
pub mod signs;
pub mod turnstile;

use proto::time::{Mono, Wall};

/// Both kinds of now: deadlines are kept on one clock, what viewers are told is on the other.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Now {
    /// This process's monotonic clock.
    pub mono: Mono,
    /// Time of day.
    pub wall: Wall,
}
