//! SM3 (GB/T 32905) and HMAC-SM3, as rustls calls them.

use ::hmac::{KeyInit, Mac};
use rustls::crypto::{hash, hmac};
use sm3::{Digest, Sm3};

/// Bytes of a digest and of a MAC.
const DIGEST_BYTES: usize = 32;

pub(super) struct Sm3Hash;

impl hash::Hash for Sm3Hash {
    fn start(&self) -> Box<dyn hash::Context> {
        Box::new(Context(Sm3::new()))
    }

    fn hash(&self, bytes: &[u8]) -> hash::Output {
        hash::Output::new(&Sm3::digest(bytes))
    }

    fn output_len(&self) -> usize {
        DIGEST_BYTES
    }

    /// 7, the hash half of sm2sig_sm3: TLS 1.3 does not use it.
    fn algorithm(&self) -> hash::HashAlgorithm {
        hash::HashAlgorithm::Unknown(7)
    }
}

struct Context(Sm3);

impl hash::Context for Context {
    fn fork_finish(&self) -> hash::Output {
        hash::Output::new(&self.0.clone().finalize())
    }

    fn fork(&self) -> Box<dyn hash::Context> {
        Box::new(Self(self.0.clone()))
    }

    fn finish(self: Box<Self>) -> hash::Output {
        hash::Output::new(&self.0.finalize())
    }

    fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }
}

pub(super) struct HmacSm3;

impl hmac::Hmac for HmacSm3 {
    fn with_key(&self, key: &[u8]) -> Box<dyn hmac::Key> {
        let keyed = ::hmac::Hmac::new_from_slice(key).expect("HMAC takes a key of any length");
        Box::new(Key(keyed))
    }

    fn hash_output_len(&self) -> usize {
        DIGEST_BYTES
    }
}

struct Key(::hmac::Hmac<Sm3>);

impl hmac::Key for Key {
    fn sign_concat(&self, first: &[u8], middle: &[&[u8]], last: &[u8]) -> hmac::Tag {
        let mut mac = self.0.clone();
        mac.update(first);
        for part in middle {
            mac.update(part);
        }
        mac.update(last);
        hmac::Tag::new(&mac.finalize().into_bytes())
    }

    fn tag_len(&self) -> usize {
        DIGEST_BYTES
    }
}
