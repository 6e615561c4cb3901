//! Keys of QUIC packets and of their headers (RFC 9001, sections 5.3 and 5.4) as bytes: the
//! ciphers' own tables are made for each packet and forgotten after it.
//!
//! A connection holds two keys for headers and four for packets, those in use and the next ones.
//! With their tables they take 3.5 KB, which an idle session never looks at; making them costs a
//! packet half a microsecond, a fraction of what it costs to be sent.

use aws_lc_rs::aead::quic::HeaderProtectionKey as Header;
use aws_lc_rs::aead::{self, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use rustls::Error;
use rustls::crypto::cipher::{self, AeadKey, Iv};
use rustls::quic::{Algorithm, HeaderProtectionKey, PacketKey, Tag};

/// Bytes of the longest packet number.
const NUMBER_BYTES_MAX: usize = 4;
/// The bit of a header's first byte that says it is a long one (RFC 9000, section 17).
const LONG: u8 = 0x80;

/// TLS_AES_128_GCM_SHA256.
pub(crate) static AES_128: Cipher = Cipher {
    packets: &aead::AES_128_GCM,
    headers: &aead::quic::AES_128,
    sealed_max: 1 << 23,
    forged_max: 1 << 52,
};
/// TLS_AES_256_GCM_SHA384.
pub(crate) static AES_256: Cipher = Cipher {
    packets: &aead::AES_256_GCM,
    headers: &aead::quic::AES_256,
    sealed_max: 1 << 23,
    forged_max: 1 << 52,
};
/// TLS_CHACHA20_POLY1305_SHA256.
pub(crate) static CHACHA20: Cipher = Cipher {
    packets: &aead::CHACHA20_POLY1305,
    headers: &aead::quic::CHACHA20,
    sealed_max: u64::MAX,
    forged_max: 1 << 36,
};

/// What a suite seals packets and hides headers with, and how much one key of it may do (RFC 9001,
/// section 6.6).
#[derive(Debug)]
pub(crate) struct Cipher {
    packets: &'static aead::Algorithm,
    headers: &'static aead::quic::Algorithm,
    /// Packets that may be sealed.
    sealed_max: u64,
    /// Packets that may fail to open.
    forged_max: u64,
}

impl Algorithm for Cipher {
    fn packet_key(&self, key: AeadKey, iv: Iv) -> Box<dyn PacketKey> {
        let Self { packets, sealed_max, forged_max, .. } = *self;
        Box::new(LeanKey { key, iv, packets, sealed_max, forged_max })
    }

    fn header_protection_key(&self, key: AeadKey) -> Box<dyn HeaderProtectionKey> {
        Box::new(LeanHeaderKey { key, headers: self.headers })
    }

    fn aead_key_len(&self) -> usize {
        self.packets.key_len()
    }
}

/// The key of one direction's packets. It is wiped on drop.
struct LeanKey {
    key: AeadKey,
    iv: Iv,
    packets: &'static aead::Algorithm,
    sealed_max: u64,
    forged_max: u64,
}

impl LeanKey {
    fn cipher(&self) -> Option<LessSafeKey> {
        let key = UnboundKey::new(self.packets, self.key.as_ref()).ok()?;
        Some(LessSafeKey::new(key))
    }

    /// That of a packet's number, which QUIC uses once.
    fn nonce(&self, number: u64) -> Nonce {
        let nonce: [u8; NONCE_LEN] = cipher::Nonce::new(&self.iv, number).0;
        Nonce::assume_unique_for_key(nonce)
    }
}

impl PacketKey for LeanKey {
    fn encrypt_in_place(
        &self,
        number: u64,
        header: &[u8],
        payload: &mut [u8],
    ) -> Result<Tag, Error> {
        let cipher = self.cipher().ok_or(Error::EncryptError)?;
        let tag = cipher
            .seal_in_place_separate_tag(self.nonce(number), Aad::from(header), payload)
            .map_err(|_| Error::EncryptError)?;
        Ok(Tag::from(tag.as_ref()))
    }

    fn decrypt_in_place<'a>(
        &self,
        number: u64,
        header: &[u8],
        payload: &'a mut [u8],
    ) -> Result<&'a [u8], Error> {
        let cipher = self.cipher().ok_or(Error::DecryptError)?;
        let opened = cipher.open_in_place(self.nonce(number), Aad::from(header), payload);
        opened.map(|it| &*it).map_err(|_| Error::DecryptError)
    }

    fn tag_len(&self) -> usize {
        self.packets.tag_len()
    }

    fn confidentiality_limit(&self) -> u64 {
        self.sealed_max
    }

    fn integrity_limit(&self) -> u64 {
        self.forged_max
    }
}

/// The key of one direction's headers, which is the same for as long as the connection lasts. It
/// is wiped on drop.
struct LeanHeaderKey {
    key: AeadKey,
    headers: &'static aead::quic::Algorithm,
}

impl LeanHeaderKey {
    /// What is to be laid over the first byte and the number of a packet.
    fn mask(&self, sample: &[u8], number: &[u8]) -> Result<[u8; 1 + NUMBER_BYTES_MAX], Error> {
        if number.len() > NUMBER_BYTES_MAX {
            return Err(Error::General("a packet number of more than 4 bytes".to_owned()));
        }
        Header::new(self.headers, self.key.as_ref())
            .and_then(|it| it.new_mask(sample))
            .map_err(|_| Error::General("a sample of another length".to_owned()))
    }
}

impl HeaderProtectionKey for LeanHeaderKey {
    fn encrypt_in_place(
        &self,
        sample: &[u8],
        first: &mut u8,
        number: &mut [u8],
    ) -> Result<(), Error> {
        let mask = self.mask(sample, number)?;
        let plain = *first;
        *first ^= mask[0] & hidden_bits(plain);
        lay_over(number, plain, mask);
        Ok(())
    }

    fn decrypt_in_place(
        &self,
        sample: &[u8],
        first: &mut u8,
        number: &mut [u8],
    ) -> Result<(), Error> {
        let mask = self.mask(sample, number)?;
        *first ^= mask[0] & hidden_bits(*first);
        lay_over(number, *first, mask);
        Ok(())
    }

    fn sample_len(&self) -> usize {
        self.headers.sample_len()
    }
}

/// The bits of a header's first byte that are hidden: the first bit, which tells, is not.
const fn hidden_bits(first: u8) -> u8 {
    if first & LONG == LONG { 0x0f } else { 0x1f }
}

/// Hides a packet's number, or shows it. `plain` is the header's first byte, which says how many
/// bytes the number has.
fn lay_over(number: &mut [u8], plain: u8, mask: [u8; 1 + NUMBER_BYTES_MAX]) {
    let bytes = usize::from(plain & 0x03) + 1;
    for (byte, mask) in number.iter_mut().zip(&mask[1..]).take(bytes) {
        *byte ^= mask;
    }
}

#[cfg(test)]
mod tests;
