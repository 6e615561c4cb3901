//! Other people's implementations on the other side: OpenSSL 3 and 4 over sockets of loopback,
//! sm-crypto for Node.js and gmssl for Python over pipes. `ops/tools/install` brings them; without
//! them these tests fail.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod lean;
mod national;
mod peer;
mod pki;
mod primitives;
mod talk;
mod tls;
