//! Ties a login to the TLS connection it came over, so that neither a stolen token on another
//! connection nor a changed offer passes.
//!
//! Frame bytes are `kind | flags | FlatBuffer`, without the length, as
//! [`proto::frame::Uplink::encode`] and [`proto::frame::Downlink::encode`] give them.

use hmac::{Hmac, KeyInit, Mac};
use rustls::ConnectionCommon;
use sha2::{Digest, Sha256};

/// Label of the exporter.
pub const EXPORTER_LABEL: &[u8] = b"EXPORTER-dmk-auth";

/// The connection's own secret, known to its two ends.
///
/// # Errors
/// When the handshake is not complete.
pub fn exporter<Side>(connection: &ConnectionCommon<Side>) -> Result<[u8; 32], rustls::Error> {
    connection.export_keying_material([0; 32], EXPORTER_LABEL, Some(&[]))
}

/// `HMAC-SHA-256(exporter, SHA-256(Hello frame) || credential)`: what a client puts in its Login.
///
/// Compare it in constant time.
#[must_use]
pub fn binder(exporter: &[u8; 32], hello: &[u8], credential: &[u8]) -> [u8; 32] {
    let mut mac = keyed(exporter);
    mac.update(&Sha256::digest(hello));
    mac.update(credential);
    mac.finalize().into_bytes().into()
}

/// `HMAC-SHA-256(exporter, SHA-256(Hello frame || Welcome frame))`: what a server puts in its
/// LoginOk.
#[must_use]
pub fn confirm(exporter: &[u8; 32], hello: &[u8], welcome: &[u8]) -> [u8; 32] {
    let mut hash = Sha256::new();
    hash.update(hello);
    hash.update(welcome);
    let mut mac = keyed(exporter);
    mac.update(&hash.finalize());
    mac.finalize().into_bytes().into()
}

fn keyed(exporter: &[u8; 32]) -> Hmac<Sha256> {
    Hmac::new_from_slice(exporter).expect("HMAC takes a key of any length")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn any_changed_byte_of_an_offer_an_answer_or_a_credential_is_noticed(
            hello in prop::collection::vec(any::<u8>(), 1..300),
            welcome in prop::collection::vec(any::<u8>(), 1..300),
            credential in prop::collection::vec(any::<u8>(), 1..300),
            place: prop::sample::Index,
            change in 1_u8..,
        ) {
            let exporter = [7; 32];
            let changed = |bytes: &[u8]| {
                let mut bytes = bytes.to_vec();
                let at = place.index(bytes.len());
                bytes[at] ^= change;
                bytes
            };
            let binder = |hello: &[u8], credential: &[u8]| binder(&exporter, hello, credential);
            let confirm = |hello: &[u8], welcome: &[u8]| confirm(&exporter, hello, welcome);

            prop_assert_ne!(binder(&changed(&hello), &credential), binder(&hello, &credential));
            prop_assert_ne!(binder(&hello, &changed(&credential)), binder(&hello, &credential));
            prop_assert_ne!(confirm(&changed(&hello), &welcome), confirm(&hello, &welcome));
            prop_assert_ne!(confirm(&hello, &changed(&welcome)), confirm(&hello, &welcome));
        }
    }

    /// Values computed with Python's `hmac` and `hashlib`.
    #[test]
    fn binder_and_confirm_have_these_values() {
        let exporter = std::array::from_fn(|it| u8::try_from(it).unwrap());

        let binder = binder(&exporter, b"hello frame", b"dm1.token");
        let confirm = confirm(&exporter, b"hello frame", b"welcome frame");

        assert_eq!(
            hex::encode(binder),
            "a0dc29ce2faee072404ba3261d66e1c53ba555611342d2bde9c1cf77fe2c208c"
        );
        assert_eq!(
            hex::encode(confirm),
            "d847fa764873130933907587919a9ec5187178470ec827bb5c53814fd6500914"
        );
    }
}
