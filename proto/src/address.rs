//! Where a viewer connects.

use serde::{Deserialize, Serialize};

/// One listener of a link node.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Address {
    /// Name or IP address, as clients use it.
    pub host: String,
    /// Port, as clients use it.
    pub port: u16,
    /// How to speak there.
    pub transport: Transport,
    /// Whose network it is on.
    #[serde(default)]
    pub carrier: Carrier,
    /// Machine room; addresses of one answer come from two where there are two.
    #[serde(default)]
    pub machine_room: String,
}

impl Address {
    /// `host:port`, as tokens name it; IPv6 in brackets.
    #[must_use]
    pub fn authority(&self) -> String {
        if self.host.contains(':') {
            format!("[{}]:{}", self.host, self.port)
        } else {
            format!("{}:{}", self.host, self.port)
        }
    }

    /// How far out of the way this is for a viewer who came by `other`: 0 on the same carrier's
    /// network, 1 on one that is reached well from every network, 2 on another carrier's. None if
    /// one speaks in another way here.
    #[must_use]
    pub fn detour(&self, other: &Self) -> Option<u8> {
        if self.transport != other.transport {
            return None;
        }
        let is_anyones = self.carrier == Carrier::Bgp;
        Some(if self.carrier == other.carrier {
            0
        } else if is_anyones {
            1
        } else {
            2
        })
    }
}

/// How to speak to a listener.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
pub enum Transport {
    /// Length-prefixed frames over plain TCP (loopback, or behind a terminator).
    Tcp = 0,
    /// Length-prefixed frames over TLS 1.3.
    Tls = 1,
    /// WebSocket over plain TCP (loopback, or behind a terminator).
    Ws = 2,
    /// WebSocket over TLS 1.3.
    Wss = 3,
    /// QUIC.
    Quic = 4,
    /// Length-prefixed frames over TLS 1.3 with the national suites.
    National = 5,
}

impl Transport {
    /// The word in JSON and metrics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Tcp => "tcp",
            Self::Tls => "tls",
            Self::Ws => "ws",
            Self::Wss => "wss",
            Self::Quic => "quic",
            Self::National => "national",
        }
    }
}

/// Whose network an address is on.
///
/// Four have names of their own; twelve more are numbered, and configuration says whose they are.
#[derive(
    Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
pub enum Carrier {
    /// Reached well from every network.
    #[default]
    Bgp = 0,
    /// China Telecom.
    Telecom = 1,
    /// China Unicom.
    Unicom = 2,
    /// China Mobile.
    Mobile = 3,
    /// The carrier that configuration gives number 4.
    C4 = 4,
    /// The carrier that configuration gives number 5.
    C5 = 5,
    /// The carrier that configuration gives number 6.
    C6 = 6,
    /// The carrier that configuration gives number 7.
    C7 = 7,
    /// The carrier that configuration gives number 8.
    C8 = 8,
    /// The carrier that configuration gives number 9.
    C9 = 9,
    /// The carrier that configuration gives number 10.
    C10 = 10,
    /// The carrier that configuration gives number 11.
    C11 = 11,
    /// The carrier that configuration gives number 12.
    C12 = 12,
    /// The carrier that configuration gives number 13.
    C13 = 13,
    /// The carrier that configuration gives number 14.
    C14 = 14,
    /// The carrier that configuration gives number 15.
    C15 = 15,
}

impl Carrier {
    /// All of them, by code.
    pub const ALL: [Self; 16] = [
        Self::Bgp,
        Self::Telecom,
        Self::Unicom,
        Self::Mobile,
        Self::C4,
        Self::C5,
        Self::C6,
        Self::C7,
        Self::C8,
        Self::C9,
        Self::C10,
        Self::C11,
        Self::C12,
        Self::C13,
        Self::C14,
        Self::C15,
    ];

    /// The word in JSON and in the configuration.
    #[must_use]
    pub const fn name(self) -> &'static str {
        const WORDS: [&str; Carrier::ALL.len()] = [
            "bgp", "telecom", "unicom", "mobile", "c4", "c5", "c6", "c7", "c8", "c9", "c10", "c11",
            "c12", "c13", "c14", "c15",
        ];
        WORDS[self as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_carrier_has_one_word_everywhere() {
        for carrier in Carrier::ALL {
            let json = serde_json::to_value(carrier).unwrap();
            assert_eq!(json.as_str(), Some(carrier.name()));
        }
    }
}
