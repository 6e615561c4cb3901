//! Tokens that nobody minted: refused, each with the same answer, and never a panic.

use auth_core::mac::Alg;
use auth_core::replay::Replays;
use auth_core::token::{TokenRefusal, verify};
use proptest::prelude::*;
use proto::close::CloseCode;

use crate::world::{IAT_S, World, any_claims, at, claims};

/// What a link answers to all of them: the words on the wire follow from the code.
fn check(world: &World, text: &str) -> Result<(), TokenRefusal> {
    match verify(text, &world.scope(), &mut Replays::new(1), at(IAT_S)) {
        Err(refusal) if refusal.close_code() == CloseCode::TokenInvalid => Ok(()),
        other => Err(other.err().unwrap_or(TokenRefusal::Replayed)),
    }
}

#[test]
fn a_token_with_any_one_bit_flipped_gets_the_same_answer() {
    for &alg in Alg::ALL {
        let world = World::new(alg);
        let text = world.keyring.mint(&claims()).unwrap();
        for at in 0..text.len() {
            for bit in 0..8 {
                let mut bytes = text.clone().into_bytes();
                bytes[at] ^= 1 << bit;
                let flipped = String::from_utf8_lossy(&bytes);

                assert_eq!(check(&world, &flipped), Ok(()), "byte {at}, bit {bit}");
            }
        }
    }
}

/// Flips in what the text stands for, so that every field is hit and the text stays well-formed.
#[test]
fn a_body_or_mac_with_any_one_bit_flipped_gets_the_same_answer() {
    use base64::Engine;
    let base64 = base64::engine::general_purpose::URL_SAFE_NO_PAD;
    for &alg in Alg::ALL {
        let world = World::new(alg);
        let text = world.keyring.mint(&claims()).unwrap();
        let raw = base64.decode(text.strip_prefix("dm1.").unwrap()).unwrap();
        for at in 0..raw.len() {
            for bit in 0..8 {
                let mut flipped = raw.clone();
                flipped[at] ^= 1 << bit;
                let flipped = format!("dm1.{}", base64.encode(flipped));

                assert_eq!(check(&world, &flipped), Ok(()), "byte {at}, bit {bit}");
            }
        }
    }
}

#[test]
fn every_other_byte_at_every_place_gets_the_same_answer() {
    let world = World::new(Alg::HmacSha256);
    let text = world.keyring.mint(&claims()).unwrap();

    for at in 0..text.len() {
        for byte in (0..=u8::MAX).filter(|it| *it != text.as_bytes()[at]) {
            let mut bytes = text.clone().into_bytes();
            bytes[at] = byte;

            let changed = String::from_utf8_lossy(&bytes);
            assert_eq!(check(&world, &changed), Ok(()), "byte {at} as {byte:#x}");
        }
    }
}

#[test]
fn every_prefix_and_every_longer_text_gets_the_same_answer() {
    let world = World::new(Alg::HmacSha256);
    let text = world.keyring.mint(&claims()).unwrap();

    for end in 0..text.len() {
        assert_eq!(check(&world, &text[..end]), Ok(()), "{end}");
    }
    for tail in ["A", "AA", "AAAA", "=", "==", " ", "\n", &"A".repeat(2000)] {
        assert_eq!(check(&world, &format!("{text}{tail}")), Ok(()), "{tail:?}");
    }
}

proptest! {
    #[test]
    fn any_flipped_bit_of_any_token_gets_the_same_answer(
        claims in any_claims(),
        alg in 0..3_usize,
        at in any::<prop::sample::Index>(),
        bit in 0..7_u8,
    ) {
        let world = World::new(Alg::ALL[alg]);
        let mut bytes = world.keyring.mint(&claims).unwrap().into_bytes();
        let at = at.index(bytes.len());

        bytes[at] ^= 1 << bit;
        let flipped = String::from_utf8(bytes).unwrap();

        prop_assert_eq!(check(&world, &flipped), Ok(()));
    }

    #[test]
    fn any_text_gets_the_same_answer(text in "(dm1\\.)?([A-Za-z0-9_-]{0,1100}|\\PC{0,300})") {
        prop_assert_eq!(check(&World::new(Alg::HmacSha256), &text), Ok(()));
    }
}
