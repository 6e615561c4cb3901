//! A viewer's client: enters, connects, sends, and gives each item once and in order, from pushes
//! and from segments.
//!
//! [`Client::start`] gives a handle to act with and [`Events`] to read. One task drives a client;
//! hundreds fit into one process. [`enter`], [`segments`] and [`raw`] are the single steps, for
//! tools and tests.
//!
//! Nothing here grows without a bound: see [`options::Bounds`]. Nothing waits for the network
//! without a deadline: see [`options::Waits`]. A viewer who does not read its [`Events`] is not read
//! for either, and the link closes it as slow.
#![deny(missing_docs)]

pub mod client;
mod connect;
mod driver;
pub mod enter;
pub mod event;
pub mod hello;
pub mod http;
pub mod options;
pub mod raw;
pub mod sealed;
pub mod segments;
mod session;
pub mod wire;

pub use channel::{ClientTls, Pin, Pins};
pub use client::{Client, Events, SendRefusal};
pub use event::{End, Event};
pub use options::{Entry, Options, TicketSource};
pub use sdk_core as core;
pub use wire::Udp;
