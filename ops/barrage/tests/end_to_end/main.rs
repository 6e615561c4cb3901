//! The real binary from the outside: its commands, its sockets, its files.
#![expect(clippy::unwrap_used, reason = "a test may stop at what it did not expect")]
#![expect(clippy::wildcard_enum_match_arm, reason = "a test picks what it waits for")]

mod anonymous;
mod api;
mod attacks;
mod audit;
mod channels;
mod configuration;
mod export;
mod get;
mod keys;
mod openssl;
mod origin;
mod place;
mod process;
mod recordings;
mod recovery;
mod rooms;
mod rules;
mod sealed;
mod segments;
mod sessions;
mod site;
mod sm2;
mod terminal;
mod tickets;
mod tokens;
mod workers;
