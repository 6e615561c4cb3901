//! Keys of one direction (RFC 8446, sections 5.2, 5.3, 7.2 and 7.3), as bytes: the cipher's own
//! tables are made for each record and forgotten after it. They would cost a session ten times
//! what the bytes do, and making them costs a record less than its system call.

use aws_lc_rs::aead::{
    AES_128_GCM, AES_256_GCM, Aad, Algorithm, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce,
    UnboundKey,
};
use rustls::crypto::tls13::{HkdfExpander, OkmBlock};
use rustls::{CipherSuite, SupportedCipherSuite, Tls13CipherSuite};
use zeroize::Zeroizing;

use super::Fault;

/// Bytes of the longest traffic secret, SHA-384's.
const SECRET_BYTES_MAX: usize = 48;
/// Bytes of the longest key.
const KEY_BYTES_MAX: usize = 32;
/// Bytes of a record's header: `type | version | length`.
pub(super) const HEADER_BYTES: usize = 5;

/// What a connection's records are sealed with, in both directions.
#[derive(Clone, Copy)]
pub(super) struct Cipher {
    suite: &'static Tls13CipherSuite,
    algorithm: &'static Algorithm,
}

impl Cipher {
    /// None for a suite that is not sealed here.
    pub(super) fn of(suite: SupportedCipherSuite) -> Option<Self> {
        // Numbers and not variants alone: rustls may come to know more suites.
        let algorithm = [
            (CipherSuite::TLS13_AES_128_GCM_SHA256, &AES_128_GCM),
            (CipherSuite::TLS13_AES_256_GCM_SHA384, &AES_256_GCM),
            (CipherSuite::TLS13_CHACHA20_POLY1305_SHA256, &CHACHA20_POLY1305),
        ]
        .into_iter()
        .find_map(|(it, algorithm)| (it == suite.suite()).then_some(algorithm))?;
        Some(Self { suite: suite.tls13()?, algorithm })
    }

    /// Records that one key may seal.
    pub(super) const fn records_max(self) -> u64 {
        self.suite.common.confidentiality_limit
    }

    fn secret_bytes(self) -> usize {
        self.suite.common.hash_provider.output_len()
    }

    fn expander(self, secret: &[u8]) -> Box<dyn HkdfExpander> {
        self.suite.hkdf_provider.expander_for_okm(&OkmBlock::new(secret))
    }
}

/// Keys of one direction, and how many records they were used for. The secret and the key are wiped
/// on drop; the IV opens nothing without them.
pub(super) struct Keys {
    secret: Zeroizing<[u8; SECRET_BYTES_MAX]>,
    key: Zeroizing<[u8; KEY_BYTES_MAX]>,
    iv: [u8; NONCE_LEN],
    seq: u64,
}

impl Keys {
    /// Keys that follow from a traffic secret, after `seq` records. None when it is not as long as
    /// the cipher's secrets are.
    pub(super) fn new(cipher: Cipher, secret: &[u8], seq: u64) -> Option<Self> {
        if secret.len() != cipher.secret_bytes() {
            return None;
        }
        let mut keys = Self {
            secret: Zeroizing::new([0; SECRET_BYTES_MAX]),
            key: Zeroizing::new([0; KEY_BYTES_MAX]),
            iv: [0; NONCE_LEN],
            seq,
        };
        keys.secret[..secret.len()].copy_from_slice(secret);
        keys.expand(cipher);
        Some(keys)
    }

    /// Goes on to the next secret, for which counting begins anew (RFC 8446, section 7.2).
    pub(super) fn renew(&mut self, cipher: Cipher) {
        let secret_bytes = cipher.secret_bytes();
        let mut next = Zeroizing::new([0; SECRET_BYTES_MAX]);
        let expander = cipher.expander(&self.secret[..secret_bytes]);
        expand_label(&*expander, b"traffic upd", &mut next[..secret_bytes]);
        self.secret = next;
        self.seq = 0;
        self.expand(cipher);
    }

    fn expand(&mut self, cipher: Cipher) {
        let expander = cipher.expander(&self.secret[..cipher.secret_bytes()]);
        expand_label(&*expander, b"key", &mut self.key[..cipher.algorithm.key_len()]);
        expand_label(&*expander, b"iv", &mut self.iv);
    }

    /// Records that they were used for.
    pub(super) const fn seq(&self) -> u64 {
        self.seq
    }

    /// Seals `text` and the type of its record behind it: into `sealed`, which is as long, and
    /// `end`, which takes the type and the tag.
    pub(super) fn seal(
        &mut self,
        cipher: Cipher,
        header: [u8; HEADER_BYTES],
        (text, kind): (&[u8], u8),
        (sealed, end): (&mut [u8], &mut [u8]),
    ) -> Result<(), Fault> {
        let (key, nonce) = self.next(cipher).ok_or(Fault::Sealing)?;
        key.seal_out_of_place_scatter(nonce, Aad::from(header), text, sealed, &[kind], end)
            .map_err(|_| Fault::Sealing)
    }

    /// Opens a sealed text with its tag, in its place.
    pub(super) fn open<'text>(
        &mut self,
        cipher: Cipher,
        header: [u8; HEADER_BYTES],
        sealed: &'text mut [u8],
    ) -> Result<&'text mut [u8], Fault> {
        let (key, nonce) = self.next(cipher).ok_or(Fault::Seal)?;
        key.open_in_place(nonce, Aad::from(header), sealed).map_err(|_| Fault::Seal)
    }

    /// The cipher for the next record, and its nonce, which no other record has.
    fn next(&mut self, cipher: Cipher) -> Option<(LessSafeKey, Nonce)> {
        let seq = self.seq;
        // Before anything else, so that no number is used twice, whatever fails.
        self.seq = seq.checked_add(1)?;
        let key = &self.key[..cipher.algorithm.key_len()];
        let key = LessSafeKey::new(UnboundKey::new(cipher.algorithm, key).ok()?);
        let mut nonce = self.iv;
        let [_, _, _, _, places @ ..] = &mut nonce;
        *places = (u64::from_be_bytes(*places) ^ seq).to_be_bytes();
        Some((key, Nonce::assume_unique_for_key(nonce)))
    }
}

/// HKDF-Expand-Label with no context (RFC 8446, section 7.1).
fn expand_label(expander: &dyn HkdfExpander, label: &[u8], okm: &mut [u8]) {
    const PREFIX: &[u8] = b"tls13 ";
    let length = u16::try_from(okm.len()).expect("a secret, key or nonce is at most 48 bytes");
    let label_bytes = u8::try_from(PREFIX.len() + label.len()).expect("labels here are short");
    let info = [&length.to_be_bytes()[..], &[label_bytes], PREFIX, label, &[0]];
    expander.expand_slice(&info, okm).expect("what is wanted is no longer than two hashes");
}
