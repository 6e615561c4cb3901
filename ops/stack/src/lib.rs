//! All services in one process, and a crowd of viewers to fill them.
//!
//! [`Stack`] wires the services together with the embedded adapters; the command, the drills and
//! the end-to-end tests all start it. [`crowd`] plays recorded comments ([`replay`]) through real
//! SDKs and sockets, and keeps books on every item.
#![deny(missing_docs)]

mod apart;
pub mod beside;
mod business;
mod config;
pub mod crowd;
pub mod identity;
mod links;
pub mod page;
pub mod replay;
mod stack;
mod tls;
pub mod workers;

pub use apart::{AuthSwitch, Clocks, Power};
pub use bus::{Bus, Fault as BusFault, FaultyBus};
pub use business::{Business, Gift, OverShare};
pub use config::{ARCHIVE, Admin, Config, DATA, Log, Page, ROOMS, SEGMENTS};
pub use identity::Identity;
pub use stack::{Addrs, Shared, Stack};
pub use tls::{Tls, Trust};
