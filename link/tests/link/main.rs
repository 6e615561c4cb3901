//! A link with real sockets: a memory bus, keys over real HTTPS, and clients over every transport.
#![expect(clippy::unwrap_used, reason = "a test may stop at what it did not expect")]
#![expect(clippy::wildcard_enum_match_arm, reason = "a test names what it expects")]

mod bases;
mod boards;
mod channels;
mod client;
mod conformance;
mod cut_off;
mod drain;
mod entry;
mod exclusions;
mod faults;
mod floods;
mod flow;
mod keys;
mod kicks;
mod life;
mod pace;
mod policies;
mod proxies;
mod quic;
mod rolling;
mod rooms;
mod sealed;
mod siege;
mod world;
