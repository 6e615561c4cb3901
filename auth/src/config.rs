//! What an operator can set.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use kit::http::Limits;
use serde::{Deserialize, Serialize};

/// `[auth]`.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields, rename_all = "snake_case")]
pub struct Config {
    /// Where nodes fetch their keys. Anything but loopback needs TLS.
    pub listen: SocketAddr,
    /// Folder of `masters.json`, readable by its owner only. Whoever reads it can mint tokens for
    /// every link.
    pub data: PathBuf,
    /// Length of an epoch, in seconds: at least twice the longest `token_ttl_s` of any app, and the
    /// same in all processes. Shorter epochs limit what a stolen link key is good for and cost one
    /// record and one key fetch each. Changing it voids all tokens.
    pub interval_s: u32,
    /// Token algorithms, of which each epoch takes one by chance: 1 HMAC-SHA-256, 2 HMAC-SM3,
    /// 3 HMAC-SHA-512/256. Verifying with 2 costs about five times as much as with 1.
    pub algs: Vec<u8>,
    /// Epochs known ahead, 1 to 16: logins survive that long without this service. A longer
    /// horizon makes a stolen link's keys good for longer.
    pub ahead: u32,
    /// Longest wait for an answer of the bus, in milliseconds; then it counts as away and is asked again.
    pub bus_ms_max: u32,
    /// The HTTP server's bounds.
    pub http: Limits,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 8003)),
            data: PathBuf::from("data/auth"),
            interval_s: 600,
            algs: vec![1],
            ahead: 6,
            bus_ms_max: 5_000,
            http: Limits::default(),
        }
    }
}
