//! Checking SM2 signatures (GB/T 32918.2 with SM3), in certificates and in handshakes.
//!
//! The two differ in the identity that is hashed in front of what is signed: certificates use
//! the default of GB/T 35276, a handshake its own (RFC 8998, section 3.2.1). A signature of one
//! kind therefore never passes as the other.

use rustls::SignatureScheme;
use rustls::crypto::WebPkiSupportedAlgorithms;
use rustls::pki_types::{AlgorithmIdentifier, InvalidSignature, SignatureVerificationAlgorithm};
use sm2::dsa::signature::Verifier;
use sm2::dsa::{Signature, VerifyingKey};

use super::SCHEME;
use super::key::public_from_point;

/// Identity in signatures of certificates and of requests for one.
pub(super) const CERTIFICATE_IDENTITY: &str = "1234567812345678";
/// Identity in CertificateVerify.
pub(super) const HANDSHAKE_IDENTITY: &str = "TLSv1.3+GM+Cipher+Suite";

/// id-ecPublicKey on the SM2 curve, 1.2.156.10197.1.301; DER without the outer SEQUENCE.
const KEY_ALGORITHM: AlgorithmIdentifier = AlgorithmIdentifier::from_slice(&[
    0x06, 0x07, 0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x02, 0x01, // id-ecPublicKey
    0x06, 0x08, 0x2A, 0x81, 0x1C, 0xCF, 0x55, 0x01, 0x82, 0x2D, // the curve
]);

/// SM2 with SM3, 1.2.156.10197.1.501; DER without the outer SEQUENCE.
const SIGNATURE_ALGORITHM: AlgorithmIdentifier =
    AlgorithmIdentifier::from_slice(&[0x06, 0x08, 0x2A, 0x81, 0x1C, 0xCF, 0x55, 0x01, 0x83, 0x75]);

/// Certificates are checked with all of the first, handshakes with what the scheme names.
pub(super) const ALGORITHMS: WebPkiSupportedAlgorithms = WebPkiSupportedAlgorithms {
    all: &[&Sm2Sm3 { identity: CERTIFICATE_IDENTITY }],
    mapping: HANDSHAKE,
};

const HANDSHAKE: &[(SignatureScheme, &[&dyn SignatureVerificationAlgorithm])] =
    &[(SCHEME, &[&Sm2Sm3 { identity: HANDSHAKE_IDENTITY }])];

#[derive(Debug)]
struct Sm2Sm3 {
    identity: &'static str,
}

impl SignatureVerificationAlgorithm for Sm2Sm3 {
    fn verify_signature(
        &self,
        point: &[u8],
        message: &[u8],
        signature: &[u8],
    ) -> Result<(), InvalidSignature> {
        verify(self.identity, point, message, signature).ok_or(InvalidSignature)
    }

    fn public_key_alg_id(&self) -> AlgorithmIdentifier {
        KEY_ALGORITHM
    }

    fn signature_alg_id(&self) -> AlgorithmIdentifier {
        SIGNATURE_ALGORITHM
    }
}

/// Whether `signature` (DER, canonical, nothing after it) is that of `point`'s owner.
pub(super) fn verify(identity: &str, point: &[u8], message: &[u8], signature: &[u8]) -> Option<()> {
    let public = public_from_point(point)?;
    let key = VerifyingKey::new(identity, public).ok()?;
    let signature = Signature::from_der(signature).ok()?;
    key.verify(message, &signature).ok()
}

#[cfg(test)]
mod tests {
    use sm3::{Digest, Sm3};

    use super::*;

    /// GB/T 32918.5, appendix A.2: the recommended curve, this key, identity and message.
    const PUBLIC: &str = "04\
        09F9DF311E5421A150DD7D161E4BC5C672179FAD1833FC076BB08FF356F35020\
        CCEA490CE26775A52DC6EA718CC1AA600AED05FBF35E084A6632F6072DA9AD13";
    const R: &str = "F5A03B0648D2C4630EEAC513E1BB81A15944DA3827D5B74143AC7EACEEE720B3";
    const S: &str = "B1B6AA29DF212FD8763182BC0D421CA1BB9038FD1F7F42D4840B69C485BBC1AA";
    const MESSAGE: &[u8] = b"message digest";

    /// The order of the curve (GB/T 32918.5, clause 3), and one more.
    const ORDER: &str = "FFFFFFFEFFFFFFFFFFFFFFFFFFFFFFFF7203DF6B21C6052B53BBF40939D54123";
    const ORDER_AND_ONE: &str = "FFFFFFFEFFFFFFFFFFFFFFFFFFFFFFFF7203DF6B21C6052B53BBF40939D54124";

    #[test]
    fn the_signature_of_the_standard_is_accepted() {
        assert_eq!(check(&integer(R), &integer(S)), Some(()));
    }

    /// Curve and identity enter as the standard lists them, so a wrong constant shows here.
    #[test]
    fn identity_hash_and_digest_are_those_of_the_standard() {
        let curve = "FFFFFFFEFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF00000000FFFFFFFFFFFFFFFC\
            28E9FA9E9D9F5E344D5A9E4BCF6509A7F39789F515AB8F92DDBCBD414D940E93\
            32C4AE2C1F1981195F9904466A39C9948FE30BBFF2660BE1715A4589334C74C7\
            BC3736A2F4F6779C59BDCEE36B692153D0A9877CC62A474002DF32E52139F0A0";
        let identity_bits = u16::try_from(CERTIFICATE_IDENTITY.len() * 8).unwrap();

        let z = Sm3::new()
            .chain_update(identity_bits.to_be_bytes())
            .chain_update(CERTIFICATE_IDENTITY)
            .chain_update(hex::decode(curve).unwrap())
            .chain_update(&point()[1..])
            .finalize();
        let e = Sm3::new().chain_update(z).chain_update(MESSAGE).finalize();

        assert_eq!(
            hex::encode_upper(z),
            "B2E14C5C79C6DF5B85F4FE7ED8DB7A262B9DA7E07CCB0EA9F4747B8CCDA8A4F3"
        );
        assert_eq!(
            hex::encode_upper(e),
            "F0B43E94BA45ACCAACE692ED534382EB17E6AB5A19CE7B31F4486FDFC0D28640"
        );
    }

    #[test]
    fn another_identity_message_or_order_of_the_numbers_is_refused() {
        let signature = sequence(&integer(R), &integer(S));
        let swapped = sequence(&integer(S), &integer(R));

        assert_eq!(verify(HANDSHAKE_IDENTITY, &point(), MESSAGE, &signature), None);
        assert_eq!(verify(CERTIFICATE_IDENTITY, &point(), b"Message digest", &signature), None);
        assert_eq!(verify(CERTIFICATE_IDENTITY, &point(), MESSAGE, &swapped), None);
    }

    #[test]
    fn numbers_out_of_range_are_refused() {
        for wrong in ["00", ORDER, ORDER_AND_ONE, &"FF".repeat(32)] {
            assert_eq!(check(&integer(wrong), &integer(S)), None, "r = {wrong}");
            assert_eq!(check(&integer(R), &integer(wrong)), None, "s = {wrong}");
        }
    }

    #[test]
    fn numbers_that_add_up_to_the_order_are_refused() {
        let order_less_r = "0A5FC4F8B72D3B9CF1153AEC1E447E5E18BF0532F9F04DEA100F755C4AEE2070";

        assert_eq!(check(&integer(R), &integer(order_less_r)), None);
    }

    #[test]
    fn anything_but_the_one_encoding_is_refused() {
        let (r, s) = (integer(R), integer(S));
        let good = sequence(&r, &s);
        let refused = |signature: &[u8]| {
            assert_eq!(verify(CERTIFICATE_IDENTITY, &point(), MESSAGE, signature), None);
        };

        refused(&[good.clone(), vec![0]].concat());
        refused(&good[..good.len() - 1]);
        refused(&[]);
        // A length in more bytes than it needs, and one that is left open.
        refused(&[&[0x30, 0x81, good[1]][..], &good[2..]].concat());
        refused(&[&[0x30, 0x80][..], &good[2..], &[0, 0]].concat());
        // A zero in front that is not needed, a missing one (the number is then negative).
        refused(&sequence(&[&[0x02, 34, 0][..], &r[2..]].concat(), &s));
        refused(&sequence(&[&[0x02, 32][..], &r[3..]].concat(), &s));
        // A third number, and none at all.
        refused(&sequence(&r, &[&s[..], &[0x02, 1, 1]].concat()));
        refused(&sequence(&r, &[]));
        // The two numbers without any structure, as other protocols send them.
        refused(&[hex::decode(R).unwrap(), hex::decode(S).unwrap()].concat());
    }

    #[test]
    fn every_flipped_bit_of_a_signature_is_refused() {
        let good = sequence(&integer(R), &integer(S));

        for bit in 0..good.len() * 8 {
            let mut flipped = good.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            let verified = verify(CERTIFICATE_IDENTITY, &point(), MESSAGE, &flipped);
            assert_eq!(verified, None, "bit {bit}");
        }
    }

    fn point() -> Vec<u8> {
        hex::decode(PUBLIC).unwrap()
    }

    fn check(r: &[u8], s: &[u8]) -> Option<()> {
        verify(CERTIFICATE_IDENTITY, &point(), MESSAGE, &sequence(r, s))
    }

    /// INTEGER in DER, of numbers that need at most 127 bytes.
    fn integer(hex: &str) -> Vec<u8> {
        let mut number = hex::decode(hex).unwrap();
        if number[0] >= 0x80 {
            number.insert(0, 0);
        }
        [vec![0x02, u8::try_from(number.len()).unwrap()], number].concat()
    }

    fn sequence(r: &[u8], s: &[u8]) -> Vec<u8> {
        let length = u8::try_from(r.len() + s.len()).unwrap();
        [&[0x30, length][..], r, s].concat()
    }
}
