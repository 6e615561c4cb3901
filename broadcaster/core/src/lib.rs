//! What everyone sees, decided without I/O: lanes, budgets, flushes, slots, segments, heat.
//!
//! A [`Room`] is the machine a shell drives: items go in, flushes, seals and fates come out.
//! It is put together from a [`Scheduler`] (what fits), a [`Timeline`] (when, and in which slot), a
//! [`Thermostat`] (push or segments) and a [`Tempo`] (how long slots are). [`pack()`] turns a sealed
//! slot into bytes.
#![deny(missing_docs)]

pub mod archive;
pub mod budget;
pub mod erase;
pub mod export;
pub mod head;
pub mod lane;
pub mod pace;
pub mod pack;
pub mod recent;
pub mod room;
pub mod scheduler;
pub mod settings;
pub mod shelf;
pub mod takeover;
pub mod tempo;
pub mod thermostat;
pub mod timeline;
pub mod video;

use proto::time::{Mono, Wall};

pub use budget::Budget;
pub use lane::Shares;
pub use pack::{Packed, Packing, pack};
pub use room::{Input, Output, Room};
pub use scheduler::Scheduler;
pub use settings::Settings;
pub use shelf::Shelf;
pub use takeover::Found;
pub use tempo::Tempo;
pub use thermostat::Thermostat;
pub use timeline::Timeline;

/// Both kinds of time at one moment: waiting is measured by `mono`, slots by `wall`.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Now {
    /// This process's monotonic clock.
    pub mono: Mono,
    /// The server's wall clock; may be stepped.
    pub wall: Wall,
}
