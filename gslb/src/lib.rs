//! Where viewers connect: hears the loads of all link nodes, answers `POST /v1/enter`.
//!
//! Tasks keep what is known up to date: the collector packs load reports into the load table, the
//! sync plans a snapshot from it every few milliseconds, others follow `control`, fetch the master
//! keys and read files of ticket keys. An answer reads what is known and waits for nobody.
//!
//! A gslb that hears nothing from `control` does not know the latest kicks. Its tokens count from
//! the moment up to which it knows them, so links refuse whom a later kick concerns. When half of the
//! time for which links take a token would be over, it mints none and says when to ask again.
#![deny(missing_docs)]

pub mod config;
pub mod enter;
pub mod place;
pub mod table;

mod bases;
mod collector;
mod control;
mod jwks;
mod known;
mod lead;
mod masters;
mod moves;
mod nodes;
mod rate;
mod returns;
mod service;
mod sync;
mod watch;

use std::time::Duration;

use tokio::time::{Interval, MissedTickBehavior, interval};

pub use config::Config;
pub use service::{Parts, Service};
pub use table::{LoadTable, MemoryTable};

/// A timer that leaves out the ticks it was too late for. 0 counts as 1.
fn every(ms: u32) -> Interval {
    let mut timer = interval(Duration::from_millis(ms.max(1).into()));
    timer.set_missed_tick_behavior(MissedTickBehavior::Delay);
    timer
}
