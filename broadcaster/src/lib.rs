//! The broadcaster: puts admitted items in order, shows them, and serves what was shown.
//!
//! One loop, the driver, owns the rooms of its partitions of `accepted` and drives their machines
//! from `broadcaster-core`. A flush is published, fenced, to `sealed` before anything else hears of
//! it; then it goes to every unit's `downlink`; a complete slot goes to the [`store`]s. The
//! origin serves the stores' files over HTTP.

pub mod archive;
pub mod config;
pub mod store;

mod bases;
mod counts;
mod crowd;
mod display;
mod downlink;
mod driver;
mod ledger;
mod live;
mod opener;
mod origin;
mod owned;
mod parcel;
mod press;
mod purge;
mod push;
mod room_keys;
mod service;

pub use config::{Config, Mirror, Push};
pub use service::{Parts, Service};
