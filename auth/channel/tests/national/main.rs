//! Mode G from outside: standard vectors, certificates, handshakes, and what hostile peers send.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod certs;
mod handshake;
mod hostile;
mod openssl;
mod pki;
mod vectors;
