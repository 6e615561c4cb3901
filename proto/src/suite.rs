//! What protects a connection, as Hello and Welcome name it.

use serde::{Deserialize, Serialize};

/// What protects a connection.
///
/// The words in Hello are a list of text, so that a client may offer what this code does not know.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize, Deserialize)]
pub enum Suite {
    /// TLS 1.3 with the suites of RFC 8446.
    #[serde(rename = "T")]
    Tls,
    /// TLS 1.3 with the national suites of RFC 8998.
    #[serde(rename = "G")]
    National,
    /// Nothing: loopback, or a terminator in front that this end does not see.
    #[serde(rename = "P")]
    Plain,
}

impl Suite {
    /// The word in Hello, Welcome and metrics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Tls => "T",
            Self::National => "G",
            Self::Plain => "P",
        }
    }
}
