//! Which suite protects a connection, and which one a client asks for.

use proto::suite::Suite;
use rustls::{CipherSuite, ConnectionCommon};

/// TLS_SM4_GCM_SM3 and TLS_SM4_CCM_SM3 (RFC 8998, section 2). Clients may offer both; the first is
/// spoken.
const NATIONAL: [CipherSuite; 2] = [CipherSuite::Unknown(0x00C6), CipherSuite::Unknown(0x00C7)];

/// What protects this connection.
#[must_use]
pub fn suite<Side>(connection: &ConnectionCommon<Side>) -> Suite {
    let negotiated = connection.negotiated_cipher_suite();
    match negotiated.is_some_and(|it| NATIONAL.contains(&it.suite())) {
        true => Suite::National,
        false => Suite::Tls,
    }
}

/// Whether a client offers national suites and no others.
pub(crate) fn is_national(offered: &[CipherSuite]) -> bool {
    let mut suites = offered.iter().filter(|it| !is_signal(**it)).peekable();
    suites.peek().is_some() && suites.all(|it| NATIONAL.contains(it))
}

/// Whether a number in the list of suites stands for none: renegotiation (RFC 5746, section 3.3),
/// fallback (RFC 7507, section 2), GREASE (RFC 8701, section 3.1: `0x?A?A`, both bytes alike).
fn is_signal(suite: CipherSuite) -> bool {
    let [high, low] = u16::from(suite).to_be_bytes();
    matches!((high, low), (0x00, 0xFF) | (0x56, 0x00)) || (high == low && low & 0x0F == 0x0A)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_hello_of_national_suites_alone_is_national() {
        let national = |suites: &[u16]| {
            let suites: Vec<_> = suites.iter().map(|&it| CipherSuite::from(it)).collect();
            is_national(&suites)
        };

        assert!(national(&[0x00C6]));
        assert!(national(&[0x00C7, 0x00C6]));
        assert!(national(&[0x2A2A, 0x00C6, 0x00FF, 0x5600, 0xFAFA]));
        assert!(!national(&[0x00C6, 0x1301]), "mixed");
        assert!(!national(&[0x00C6, 0xC02F]), "mixed with TLS 1.2");
        assert!(!national(&[0x1301, 0x1302, 0x1303]));
        assert!(!national(&[0x00C6, 0x2A3A]), "two bytes that differ are no GREASE");
        assert!(!national(&[0x00FF]), "nothing is offered");
        assert!(!national(&[]));
    }
}
