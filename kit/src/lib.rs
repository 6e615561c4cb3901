//! What every process uses: configuration, clock, logs, metrics, named tasks, health, HTTP,
//! quotas, seeds, shutdown.
#![deny(missing_docs)]

pub mod admin;
pub mod clock;
pub mod config;
pub mod dying;
pub mod health;
pub mod http;
pub mod logs;
pub mod meter;
pub mod private;
pub mod problem;
pub mod process;
pub mod proxy;
pub mod quota;
pub mod seed;
pub mod shutdown;
pub mod task;
