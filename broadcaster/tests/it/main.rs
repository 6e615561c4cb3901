//! A whole broadcaster over the memory bus, a directory and real HTTP.
#![expect(clippy::unwrap_used, reason = "a test's helpers may fail as the test does")]
#![expect(clippy::wildcard_enum_match_arm, reason = "a test picks the one event it waits for")]
#![expect(clippy::print_stdout, reason = "a test of real caches says how long viewers waited")]

mod archive;
mod bases;
mod disks;
mod edge;
mod erase;
mod faults;
mod flow;
mod get;
mod http2;
mod origin;
mod packing;
mod players;
mod pushes;
mod rest;
mod sealed;
mod stage;
mod stores;
mod takeover;
mod video;
