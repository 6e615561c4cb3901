//! The traffic secrets of one handshake, from which a connection's keys follow, the later ones too.
//!
//! rustls gives away keys, but not what the next keys are made from, except to a log of keys. This
//! is such a log: it belongs to one connection, is written by its handshake and read once.

use std::fmt;
use std::sync::OnceLock;

use rustls::KeyLog;
use zeroize::Zeroizing;

const CLIENT: &str = "CLIENT_TRAFFIC_SECRET_0";
const SERVER: &str = "SERVER_TRAFFIC_SECRET_0";

/// What both ends seal with after the handshake. It is wiped on drop.
#[derive(Default)]
pub(super) struct Secrets {
    client: OnceLock<Zeroizing<Vec<u8>>>,
    server: OnceLock<Zeroizing<Vec<u8>>>,
}

impl Secrets {
    /// What the client seals with.
    pub(super) fn client(&self) -> Option<&[u8]> {
        self.client.get().map(|it| &it[..])
    }

    /// What the server seals with.
    pub(super) fn server(&self) -> Option<&[u8]> {
        self.server.get().map(|it| &it[..])
    }
}

impl KeyLog for Secrets {
    fn log(&self, label: &str, _: &[u8], secret: &[u8]) {
        let place = match label {
            CLIENT => &self.client,
            SERVER => &self.server,
            _ => return,
        };
        place.get_or_init(|| Zeroizing::new(secret.to_vec()));
    }

    fn will_log(&self, label: &str) -> bool {
        matches!(label, CLIENT | SERVER)
    }
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secrets(..)")
    }
}
