//! The client over real sockets, against a link and a site that the tests play themselves.
#![expect(clippy::unwrap_used, reason = "a test's helpers may fail as the test does")]
#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "a test names what it waits for and passes over the rest"
)]

mod channels;
mod connecting;
mod encodings;
mod link;
mod polling;
mod pushing;
mod quic;
mod rooms;
mod sealed;
mod site;
mod viewer;
