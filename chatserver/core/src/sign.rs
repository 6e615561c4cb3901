//! What makes a request to a business server believable: a signature over its time and body.
//!
//! HMAC-SHA-256 (RFC 2104) with the secret that both know, over the time in decimal digits, a full
//! stop, and the body as it is sent. Whoever receives one compares it in constant time, and refuses
//! a time that is more than [`REPLAY_WINDOW`] away from its own.

use std::time::Duration;

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// Header of the time: seconds since 1970, in decimal digits.
pub const TIME_HEADER: &str = "barrage-time";
/// Header of the signature: [`SCHEME`], `=`, and 64 hexadecimal digits.
pub const SIGNATURE_HEADER: &str = "barrage-signature";
/// Name of the signature's scheme; another one would have another name.
pub const SCHEME: &str = "v1";
/// How old a request may be before it counts as sent again by somebody else.
pub const REPLAY_WINDOW: Duration = Duration::from_mins(5);
/// Shortest secret, in bytes: as hard to guess as a key of 128 bits, if it is random.
pub const SECRET_BYTES_MIN: usize = 16;

/// The signature of a request that is sent at `at_s`, as bytes.
#[must_use]
pub fn sign(secret: &str, at_s: u64, body: &[u8]) -> [u8; 32] {
    let mut mac =
        Hmac::<Sha256>::new_from_slice(secret.as_bytes()).expect("HMAC takes keys of any length");
    mac.update(at_s.to_string().as_bytes());
    mac.update(b".");
    mac.update(body);
    mac.finalize().into_bytes().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_signature_is_what_any_other_hmac_gives() {
        // printf '1800000000.{"a":1}' | openssl dgst -sha256 -hmac 0123456789abcdef
        let expected = "d3e17924cac4a72ca2ee9e5700df170fdb5733eaf69ecd909fb0c18a962b03a5";

        let signature = sign("0123456789abcdef", 1_800_000_000, br#"{"a":1}"#);

        let hex: String = signature.iter().map(|it| format!("{it:02x}")).collect();
        assert_eq!(hex, expected);
    }

    #[test]
    fn secret_time_and_body_all_count() {
        let first = sign("secret", 1, b"body");

        assert_ne!(sign("Secret", 1, b"body"), first);
        assert_ne!(sign("secret", 2, b"body"), first);
        assert_ne!(sign("secret", 1, b"bodz"), first);
        // The stop between them keeps digits of the time out of the body.
        assert_ne!(sign("secret", 11, b""), sign("secret", 1, b"1"));
    }
}
