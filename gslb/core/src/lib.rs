//! Where to connect, decided: leases, loads, turns and assignments. No I/O, no clock, no
//! randomness.
//!
//! A [`fleet::Fleet`] hears load reports and holds leases. [`snapshot::plan`] turns it into an
//! immutable [`snapshot::Snapshot`] with the turns of every pool, and
//! [`snapshot::Snapshot::assign`] answers from that without looking at anything else.
//!
//! [`bases::Bases`] gives each segment base its share of the viewers, and [`bases::Rotation`] hands
//! them out in turn.
#![deny(missing_docs)]

pub mod assign;
pub mod bases;
pub mod fleet;
pub mod listener;
pub mod policy;
pub mod refuge;
pub mod region;
pub mod simulate;
pub mod snapshot;

mod seat;
mod topology;
mod turns;
