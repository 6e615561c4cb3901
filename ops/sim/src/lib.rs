//! A small world in which the cores meet: one link, one chatserver, one broadcaster that is now and
//! then replaced, a business server, and viewers.
//!
//! Time is virtual, every delay, loss and repetition is drawn from one seed, and nothing else is:
//! the same seed gives the same run, byte for byte, which its hash shows.
#![deny(missing_docs)]

mod broadcaster;
mod business;
mod chance;
mod chatserver;
mod check;
pub mod frames;
mod link;
pub mod model;
mod network;
mod store;
mod turn;
mod viewer;
mod world;

pub use check::Broken;
pub use world::{Outcome, Plan, run};
