//! The three MACs a token can carry, behind one key type that is prepared once.
//!
//! All are HMAC (RFC 2104). A [`Key`] holds the two states that its key's blocks lead to, not the
//! key: signing starts from them, and a message of token size costs three blocks, not five.

mod hash;
mod padded;

use std::fmt;

use sha2::Digest as _;
use subtle::ConstantTimeEq;
use zeroize::{Zeroize, Zeroizing};

use hash::Hash;

pub use padded::{BLOCK_BYTES, PADDING_BYTES_MIN, Padded};

/// Bytes of every MAC; it is never cut.
pub const MAC_BYTES: usize = 32;

/// A hash or a MAC as words, whose bytes follow each other big-endian.
type Digest = [u32; MAC_BYTES / 4];

/// Which MAC an epoch selects for its tokens.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
#[repr(u8)]
pub enum Alg {
    /// HMAC-SHA-256.
    HmacSha256 = 1,
    /// HMAC-SM3.
    HmacSm3 = 2,
    /// HMAC-SHA-512/256.
    HmacSha512_256 = 3,
}

impl Alg {
    /// Every algorithm, in the order of its code.
    pub const ALL: &'static [Self] = &[Self::HmacSha256, Self::HmacSm3, Self::HmacSha512_256];

    /// The number in tokens and facts.
    #[must_use]
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// The algorithm with this number.
    #[must_use]
    pub fn from_code(code: u8) -> Option<Self> {
        Self::ALL.iter().copied().find(|it| it.code() == code)
    }

    /// The word in metrics, benches and the terminal.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::HmacSha256 => "hmac_sha256",
            Self::HmacSm3 => "hmac_sm3",
            Self::HmacSha512_256 => "hmac_sha512_256",
        }
    }
}

/// A key together with its algorithm. `Debug` prints nothing of it.
#[derive(Clone)]
pub struct Key(State);

#[derive(Clone)]
enum State {
    Sha256(Hmac<hash::Sha256>),
    Sm3(Hmac<hash::Sm3>),
    Sha512_256(Hmac<hash::Sha512_256>),
}

impl Key {
    /// Prepares a key.
    #[must_use]
    pub fn new(alg: Alg, key: &[u8; 32]) -> Self {
        Self(match alg {
            Alg::HmacSha256 => State::Sha256(Hmac::new(key)),
            Alg::HmacSm3 => State::Sm3(Hmac::new(key)),
            Alg::HmacSha512_256 => State::Sha512_256(Hmac::new(key)),
        })
    }

    /// Its algorithm.
    #[must_use]
    pub const fn alg(&self) -> Alg {
        match self.0 {
            State::Sha256(_) => Alg::HmacSha256,
            State::Sm3(_) => Alg::HmacSm3,
            State::Sha512_256(_) => Alg::HmacSha512_256,
        }
    }

    /// The MAC of a message.
    #[must_use]
    #[inline]
    pub fn sign(&self, message: &Padded<'_>) -> [u8; MAC_BYTES] {
        bytes(self.digest(message))
    }

    /// The MACs of several messages, each with a key of its own.
    ///
    /// A block of a hash waits for the block before, and a processor has time for another hash
    /// meanwhile: block by block three MACs of tokens take two thirds of the time of one after
    /// another.
    #[must_use]
    #[inline]
    pub fn sign_each<const N: usize>(
        keys: [&Self; N],
        messages: [Padded<'_>; N],
    ) -> [[u8; MAC_BYTES]; N] {
        // One alone takes its blocks in one go.
        let together = match N {
            1 => None,
            _ => Hmac::sign_each(keys.map(Self::sha256), &messages),
        };
        let digests =
            together.unwrap_or_else(|| std::array::from_fn(|at| keys[at].digest(&messages[at])));
        digests.map(bytes)
    }

    const fn sha256(&self) -> Option<&Hmac<hash::Sha256>> {
        match &self.0 {
            State::Sha256(it) => Some(it),
            State::Sm3(_) | State::Sha512_256(_) => None,
        }
    }

    /// Whether `mac` is the message's; the time taken does not depend on where they differ.
    #[must_use]
    #[inline]
    pub fn is_signed(&self, message: &Padded<'_>, mac: &[u8; MAC_BYTES]) -> bool {
        is_same(self.digest(message), mac)
    }

    #[inline(always)]
    fn digest(&self, message: &Padded<'_>) -> Digest {
        match &self.0 {
            State::Sha256(it) => it.sign_padded(message),
            State::Sm3(it) => it.sign_padded(message),
            State::Sha512_256(it) => it.sign(message.bytes()),
        }
    }
}

/// A secret of any length for HMAC-SHA-256, prepared as a [`Key`] is.
#[derive(Clone)]
pub(crate) struct Secret(Hmac<hash::Sha256>);

impl Secret {
    /// One that is longer than a block counts as its hash.
    pub(crate) fn new(secret: &[u8]) -> Self {
        let mut hash = Zeroizing::new([0; MAC_BYTES]);
        let secret = match secret.len() > BLOCK_BYTES {
            true => {
                hash.copy_from_slice(&sha2::Sha256::digest(secret));
                hash.as_slice()
            }
            false => secret,
        };
        Self(Hmac::new(secret))
    }

    /// Whether `mac` is the message's; the time taken does not depend on where they differ.
    pub(crate) fn has_signed(&self, message: &[u8], mac: &[u8]) -> bool {
        mac.try_into().is_ok_and(|mac| is_same(self.0.sign(message), mac))
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({}, …)", self.alg().name())
    }
}

/// Whether they are the same; the time taken does not depend on where they differ.
#[inline(always)]
fn is_same(digest: Digest, mac: &[u8; MAC_BYTES]) -> bool {
    let pairs = digest.into_iter().zip(mac.as_chunks().0);
    let differing = pairs.fold(0, |all, (own, it)| all | (own ^ u32::from_be_bytes(*it)));
    differing.ct_eq(&0).into()
}

#[inline(always)]
fn bytes(digest: Digest) -> [u8; MAC_BYTES] {
    let mut bytes = [0; MAC_BYTES];
    for (bytes, word) in bytes.as_chunks_mut().0.iter_mut().zip(digest) {
        *bytes = word.to_be_bytes();
    }
    bytes
}

/// The states after the key's inner and outer block, wiped when dropped. What they become with a
/// message is not: it tells nothing of the key.
#[derive(Clone)]
struct Hmac<H: Zeroize> {
    inner: Zeroizing<H>,
    outer: Zeroizing<H>,
}

impl<H: Zeroize> Hmac<H> {
    /// Of a key that a block has room for.
    fn new<const BLOCK: usize>(key: &[u8]) -> Self
    where
        H: Hash<BLOCK>,
    {
        let start = |pad| {
            let mut block = Zeroizing::new([pad; BLOCK]);
            block.iter_mut().zip(key).for_each(|(byte, key)| *byte ^= key);
            let mut state = Zeroizing::new(H::start());
            state.absorb(&[*block]);
            state
        };
        Self { inner: start(0x36), outer: start(0x5c) }
    }

    #[inline(always)]
    fn sign<const BLOCK: usize>(&self, message: &[u8]) -> Digest
    where
        H: Hash<BLOCK>,
    {
        finish_hash(&*self.outer, finish(&*self.inner, message))
    }

    #[inline(always)]
    fn sign_padded(&self, message: &Padded<'_>) -> Digest
    where
        H: Hash<BLOCK_BYTES>,
    {
        let mut inner = H::clone(&self.inner);
        inner.absorb(message.blocks);
        finish_hash(&*self.outer, inner.digest())
    }

    /// A block of each in turn; nothing if a key is missing.
    #[inline(always)]
    fn sign_each<const N: usize>(
        keys: [Option<&Self>; N],
        messages: &[Padded<'_>; N],
    ) -> Option<[Digest; N]>
    where
        H: Hash<BLOCK_BYTES>,
    {
        let mut inner = std::array::from_fn::<H, N, _>(|_| H::start());
        for (state, key) in inner.iter_mut().zip(keys) {
            *state = H::clone(&key?.inner);
        }
        let blocks = messages.iter().map(|it| it.blocks.len()).max()?;
        for at in 0..blocks {
            for (state, message) in inner.iter_mut().zip(messages) {
                state.absorb(message.blocks.get(at..=at).unwrap_or_default());
            }
        }
        let mut digests = [Digest::default(); N];
        for ((digest, state), key) in digests.iter_mut().zip(&inner).zip(keys) {
            *digest = finish_hash(&*key?.outer, state.digest());
        }
        Some(digests)
    }
}

/// The hash of the one block behind `state`, and then a hash.
#[inline(always)]
fn finish_hash<H: Hash<BLOCK>, const BLOCK: usize>(state: &H, digest: Digest) -> Digest {
    // Constant but for the hash: a hash function takes sixteen bytes at a time, and would have to
    // wait for what was put down in smaller pieces just before.
    let mut block = const {
        let mut block = [0; BLOCK];
        block[MAC_BYTES] = 0x80;
        let [.., high, low] = ((BLOCK + MAC_BYTES) as u64 * 8).to_be_bytes();
        (block[BLOCK - 2], block[BLOCK - 1]) = (high, low);
        block
    };
    block[..MAC_BYTES].copy_from_slice(&bytes(digest));
    let mut state = state.clone();
    state.absorb(&[block]);
    state.digest()
}

/// The hash of the one block behind `state`, and then `message`.
#[inline(always)]
fn finish<H: Hash<BLOCK>, const BLOCK: usize>(state: &H, message: &[u8]) -> Digest {
    let mut state = state.clone();
    let (blocks, tail) = message.as_chunks();
    if !blocks.is_empty() {
        state.absorb(blocks);
    }
    // What is left, one bit, zeros, and the length in bits, whose field is an eighth of a block.
    let mut last = [0; BLOCK];
    last[..tail.len()].copy_from_slice(tail);
    last[tail.len()] = 0x80;
    if tail.len() >= BLOCK - BLOCK / 8 {
        state.absorb(&[last]);
        last = [0; BLOCK];
    }
    if let Some(length) = last.last_chunk_mut() {
        *length = ((BLOCK + message.len()) as u64 * 8).to_be_bytes();
    }
    state.absorb(&[last]);
    state.digest()
}

#[cfg(test)]
mod tests {
    use hmac::{KeyInit, Mac};

    use super::*;

    #[test]
    fn codes_are_the_protocols() {
        assert_eq!(Alg::ALL.iter().map(|it| it.code()).collect::<Vec<_>>(), [1, 2, 3]);
        assert_eq!(Alg::from_code(0), None);
        assert_eq!(Alg::from_code(4), None);
    }

    #[test]
    fn a_mac_holds_for_its_key_alg_and_message_only() {
        let mut rooms = [[[0; BLOCK_BYTES]; 1]; 2];
        let [message, other] = &mut rooms;
        let message = padded(message, b"message");
        let other = padded(other, b"messagf");
        for &alg in Alg::ALL {
            let key = Key::new(alg, &[7; 32]);
            let mac = key.sign(&message);

            assert!(key.is_signed(&message, &mac));
            assert!(!key.is_signed(&other, &mac));
            assert!(!Key::new(alg, &[8; 32]).is_signed(&message, &mac));
            for &other in Alg::ALL.iter().filter(|&&it| it != alg) {
                assert!(!Key::new(other, &[7; 32]).is_signed(&message, &mac));
            }
        }
    }

    #[test]
    fn a_mac_with_any_bit_changed_is_none() {
        let mut room = [[0; BLOCK_BYTES]; 1];
        let message = padded(&mut room, b"message");
        let key = Key::new(Alg::HmacSha256, &[7; 32]);
        let mac = key.sign(&message);
        for bit in 0..8 * MAC_BYTES {
            let mut changed = mac;
            changed[bit / 8] ^= 1 << (bit % 8);

            assert!(!key.is_signed(&message, &changed), "{bit}");
        }
    }

    /// Every length up to a few blocks, so that each way to pad comes up.
    #[test]
    fn macs_are_those_of_another_implementation() {
        fn reference<M: KeyInit + Mac>(key: &[u8; 32], message: &[u8]) -> Vec<u8> {
            let mut mac = <M as KeyInit>::new_from_slice(key).unwrap();
            mac.update(message);
            mac.finalize().into_bytes().to_vec()
        }
        let message: Vec<u8> = (0..=255).chain(0..100).collect();
        for length in 0..message.len() {
            let (key, message) = ([u8::try_from(length % 256).unwrap(); 32], &message[..length]);
            let mut room = [[0xff; BLOCK_BYTES]; 6];
            let padded = padded(&mut room, message);
            let sign = |alg| Key::new(alg, &key).sign(&padded).to_vec();

            let sha256 = reference::<hmac::Hmac<sha2::Sha256>>(&key, message);
            let sm3 = reference::<hmac::Hmac<sm3::Sm3>>(&key, message);
            let sha512_256 = reference::<hmac::Hmac<sha2::Sha512_256>>(&key, message);

            assert_eq!(sign(Alg::HmacSha256), sha256, "{length}");
            assert_eq!(sign(Alg::HmacSm3), sm3, "{length}");
            assert_eq!(sign(Alg::HmacSha512_256), sha512_256, "{length}");
        }
    }

    #[test]
    fn a_secret_has_any_length() {
        for length in (0..200).step_by(3).chain([63, 64, 65]) {
            let secret: Vec<u8> = (0..length).collect();
            let mut reference = hmac::Hmac::<sha2::Sha256>::new_from_slice(&secret).unwrap();
            reference.update(&[7; 150]);
            let mac = reference.finalize().into_bytes();

            let prepared = Secret::new(&secret);

            assert!(prepared.has_signed(&[7; 150], &mac), "{length}");
            assert!(!prepared.has_signed(&[7; 149], &mac), "{length}");
            assert!(!prepared.has_signed(&[7; 150], &mac[..31]), "{length}");
        }
    }

    fn padded<'a>(room: &'a mut [[u8; BLOCK_BYTES]], message: &[u8]) -> Padded<'a> {
        room.as_flattened_mut()[..message.len()].copy_from_slice(message);
        Padded::new(room, message.len())
    }
}
