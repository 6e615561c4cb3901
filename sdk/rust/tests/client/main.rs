//! The client over real sockets, against a link and a site that the tests play themselves.
#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "a test names what it waits for and passes over the rest"
)]

mod channels;
mod connecting;
mod link;
mod polling;
mod pushing;
mod quic;
mod rooms;
mod site;
mod viewer;
