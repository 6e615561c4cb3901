//! The one door to the `sm-crypto` crate: a second opinion on SM2, SM3 and SM4, for trusted local
//! data only.
//!
//! It panics on what it cannot read and takes a time that depends on its values, so bytes that
//! anybody else may have sent never come here; tokens and the channel use RustCrypto
//! (`ops/docs/decisions/0007-sm-crypto-behind-one-door.md`).

use sm_crypto::sm3;

/// SM3 of bytes that are our own, such as a local file's.
#[must_use]
pub fn sm3_of_trusted(bytes: &[u8]) -> [u8; 32] {
    sm3::sm3_hash_raw(bytes).try_into().expect("an SM3 hash has 32 bytes")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use sm_crypto::{sm2 as their_sm2, sm4 as their_sm4};
    use sm2::dsa::signature::{Signer, Verifier};
    use sm2::dsa::{Signature, SigningKey};
    use sm3::{Digest, Sm3};
    use sm4::Sm4;
    use sm4::cipher::{BlockCipherEncrypt, KeyInit};

    use super::sm3_of_trusted;

    /// The default identity of GB/T 35276, which the crate uses by itself.
    const IDENTITY: &str = "1234567812345678";

    fn bytes() -> impl Strategy<Value = Vec<u8>> {
        proptest::collection::vec(any::<u8>(), 0..300)
    }

    /// As a secret below the curve's order, which begins with 32 bits that are nearly all ones.
    fn secret() -> impl Strategy<Value = [u8; 32]> {
        any::<[u8; 32]>().prop_filter("a secret is below the order", |it| {
            it[0] != 0xff && it.iter().any(|byte| *byte != 0)
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]

        #[test]
        fn both_have_the_same_sm3(message in bytes()) {
            prop_assert_eq!(sm3_of_trusted(&message), <[u8; 32]>::from(Sm3::digest(&message)));
        }

        #[test]
        fn both_have_the_same_sm4(key: [u8; 16], message in bytes()) {
            let theirs = their_sm4::CryptSM4ECB::new(&key).encrypt_ecb(&message);

            let padding = 16 - message.len() % 16;
            let mut ours = [message, vec![u8::try_from(padding).unwrap(); padding]].concat();
            let cipher = Sm4::new(&key.into());
            for block in ours.chunks_mut(16) {
                cipher.encrypt_block(block.try_into().unwrap());
            }
            prop_assert_eq!(theirs, ours);
        }

        #[test]
        fn each_believes_the_other_s_sm2_signatures(secret in secret(), message in bytes()) {
            let key = SigningKey::from_slice(IDENTITY, &secret).unwrap();
            let public = hex::encode(&key.verifying_key().to_sec1_bytes()[1..]);
            let another = [&message[..], &[0]].concat();

            let ours: Signature = key.sign(&message);
            let theirs = their_sm2::Sign::new(&hex::encode(secret)).sign_der(&message, true);

            prop_assert_eq!(&their_sm2::pk_from_sk(&hex::encode(secret)), &public);
            let their_verdict = |message: &[u8]| {
                their_sm2::Verify::new(&public).verify_der(message, ours.to_der().as_bytes(), true)
            };
            prop_assert!(their_verdict(&message) && !their_verdict(&another));
            let theirs = Signature::from_der(&theirs).unwrap();
            prop_assert!(key.verifying_key().verify(&message, &theirs).is_ok());
            prop_assert!(key.verifying_key().verify(&another, &theirs).is_err());
        }
    }
}
