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
