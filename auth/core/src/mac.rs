//! The three MACs a token can carry, behind one key type that is prepared once.
//!
//! A [`Key`] holds the two compression states of HMAC, not the key bytes: signing and checking
//! start from them, which saves a third of the work for a body of token size.

use std::fmt;

use hmac::{Hmac, KeyInit, Mac};
use sha2::{Sha256, Sha512_256};
use sm3::Sm3;
use subtle::ConstantTimeEq;

/// Bytes of every MAC; it is never cut.
pub const MAC_BYTES: usize = 32;

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
    Sha256(Hmac<Sha256>),
    Sm3(Hmac<Sm3>),
    Sha512_256(Hmac<Sha512_256>),
}

impl Key {
    /// Prepares a key.
    #[must_use]
    pub fn new(alg: Alg, key: &[u8; 32]) -> Self {
        const ANY_LENGTH: &str = "HMAC takes a key of any length";
        Self(match alg {
            Alg::HmacSha256 => State::Sha256(Hmac::new_from_slice(key).expect(ANY_LENGTH)),
            Alg::HmacSm3 => State::Sm3(Hmac::new_from_slice(key).expect(ANY_LENGTH)),
            Alg::HmacSha512_256 => State::Sha512_256(Hmac::new_from_slice(key).expect(ANY_LENGTH)),
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

    /// The MAC of `domain || message`.
    #[must_use]
    pub fn sign(&self, domain: &[u8], message: &[u8]) -> [u8; MAC_BYTES] {
        match &self.0 {
            State::Sha256(it) => chain(it.clone(), domain, message),
            State::Sm3(it) => chain(it.clone(), domain, message),
            State::Sha512_256(it) => chain(it.clone(), domain, message),
        }
    }

    /// Whether `mac` is the MAC of `domain || message`; the time taken does not depend on where
    /// they differ.
    #[must_use]
    pub fn is_signed(&self, domain: &[u8], message: &[u8], mac: &[u8; MAC_BYTES]) -> bool {
        self.sign(domain, message).ct_eq(mac).into()
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({}, …)", self.alg().name())
    }
}

fn chain<M>(mut mac: M, domain: &[u8], message: &[u8]) -> [u8; MAC_BYTES]
where
    M: Mac<OutputSize = sha2::digest::consts::U32>,
{
    mac.update(domain);
    mac.update(message);
    mac.finalize().into_bytes().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_the_protocols() {
        assert_eq!(Alg::ALL.iter().map(|it| it.code()).collect::<Vec<_>>(), [1, 2, 3]);
        assert_eq!(Alg::from_code(0), None);
        assert_eq!(Alg::from_code(4), None);
    }

    #[test]
    fn a_mac_holds_for_its_key_alg_domain_and_message_only() {
        for &alg in Alg::ALL {
            let key = Key::new(alg, &[7; 32]);
            let mac = key.sign(b"domain\0", b"message");

            assert!(key.is_signed(b"domain\0", b"message", &mac));
            assert!(!key.is_signed(b"domain\0", b"messagf", &mac));
            assert!(!key.is_signed(b"other\0", b"message", &mac));
            assert!(!Key::new(alg, &[8; 32]).is_signed(b"domain\0", b"message", &mac));
            for &other in Alg::ALL.iter().filter(|&&it| it != alg) {
                assert!(!Key::new(other, &[7; 32]).is_signed(b"domain\0", b"message", &mac));
            }
        }
    }
}
