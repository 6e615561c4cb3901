//! What every process uses: configuration, clock, metrics, named tasks, health, quotas.
#![deny(missing_docs)]

pub mod clock;
pub mod health;
pub mod meter;
pub mod task;
