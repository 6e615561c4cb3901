//! The buses and the quota of one process, used by another on the same machine.
//!
//! A process that has them [`serve`]s one end of a pair of Unix sockets; a process that it started
//! with the other end [`connect`]s. The pair lives as long as both processes do, so there is no
//! name, nobody else can speak there, and nothing connects anew: when the pair is gone, every call
//! says that the bus is away, and the process that was started has nothing left to do.
//!
//! What is published, read or asked for is the served adapter's own: order, terms, places and
//! bounds are as there. Calls that run at the same time have no order among each other.

mod client;
mod server;
mod wire;

use std::sync::Arc;

use kit::quota::Quota;

use crate::Bus;

pub use client::connect;
pub use server::serve;

/// What is served, and what a process that connects has in its place.
#[derive(Clone, Debug)]
pub struct Ports {
    /// The bus that all units share.
    pub global: Arc<dyn Bus>,
    /// The unit's own bus.
    pub unit: Arc<dyn Bus>,
    /// What all link nodes share of the rooms' limits.
    pub quota: Arc<dyn Quota>,
}

#[cfg(test)]
mod tests;
