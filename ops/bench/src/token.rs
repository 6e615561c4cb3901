//! Tokens: how many a core mints and verifies.
//!
//! `token.verify.…` is every check that a link makes but for the set of used tokens: from the text
//! over base64, names and MAC to fields, the policy's skew and revocations; `token.claims.…` is the
//! same and the owned claims that a session is made of. The link holds the keys of eight epochs,
//! two masters, four addresses and four apps, and has heard of a thousand kicks of the last hour.
//! `token.replay.take` is the set of used tokens, filled with 20,000 a second.
//!
//! `token.mint.…` is what gslb does for each address: derives the key and writes the text;
//! `token.mint_kept.…` writes it with a key that was kept.
//!
//! The peer is the bare MAC of the same bytes: RustCrypto's `hmac` with a prepared key.

mod scene;

use std::hint::black_box;

use auth_core::mac::Alg;
use auth_core::replay::Replays;
use auth_core::token::{self, Verified};
use hmac::{Hmac, KeyInit, Mac};
use kit::seed::derive;
use proto::time::Wall;
use sha2::{Sha256, Sha512_256};
use sm3::Sm3;

use crate::line::Line;
use crate::timing::{interleaved, per_second};
use scene::{NOW, Scene};

/// Bytes that a MAC of the token covers: its domain and its body.
const MESSAGE_BYTES: usize = 12 + 74;
/// Tokens used in each second of `token.replay.take`.
const TAKES_PER_S: u64 = 20_000;
/// Seconds until a used token is forgotten, as with the usual policy.
const KEPT_S: u64 = 120;

const PEER: &str = "the bare MAC of the same bytes";

/// Every algorithm, with the key look-ups that a node does.
pub(crate) fn run() -> anyhow::Result<Vec<Line>> {
    let mut lines = Vec::new();
    for &alg in Alg::ALL {
        let scene = Scene::new(alg)?;
        if lines.is_empty() {
            lines.push(Line::alone("token.bytes", scene.token.len() as f64, "bytes"));
        }
        let mut replays = [Replays::new(1), Replays::new(1)];
        let [lent, owned] = &mut replays;
        let mut verify = || {
            let text = black_box(&scene.token);
            let look = |it: Verified<'_>| {
                black_box(it);
            };
            black_box(token::verify_with(text, &scene.scope(), lent, NOW, look).is_ok());
        };
        let mut claims = || {
            let claims = token::verify(black_box(&scene.token), &scene.scope(), owned, NOW);
            black_box(claims.is_ok());
        };
        let mut mint = || {
            black_box(scene.keyring.mint(black_box(&scene.claims)).is_ok());
        };
        let mut mint_kept = || {
            black_box(token::mint(black_box(&scene.claims), &scene.key));
        };
        let mut bare = bare(alg)?;
        let rates =
            interleaved(&mut [&mut verify, &mut claims, &mut mint, &mut mint_kept, &mut bare]);
        let peer = rates[4];
        for (verb, rate) in ["verify", "claims", "mint", "mint_kept"].into_iter().zip(rates) {
            lines.push(Line {
                name: format!("token.{verb}.{}", alg.name()),
                value: rate,
                unit: "1/s/core",
                peer: Some(PEER),
                ratio: Some(rate / peer),
            });
        }
        lines.push(Line::alone(format!("token.mac.{}", alg.name()), peer, "1/s/core"));
    }
    lines.push(Line::alone("token.replay.take", takes(), "1/s/core"));
    Ok(lines)
}

/// The MAC alone, made by another implementation.
fn bare(alg: Alg) -> anyhow::Result<Box<dyn FnMut()>> {
    fn sign<M: Mac + Clone + 'static>(key: M) -> Box<dyn FnMut()> {
        let message = [7; MESSAGE_BYTES];
        Box::new(move || {
            let mut mac = key.clone();
            mac.update(black_box(&message));
            black_box(mac.finalize().into_bytes());
        })
    }
    let key = [7; 32];
    Ok(match alg {
        Alg::HmacSha256 => sign(Hmac::<Sha256>::new_from_slice(&key)?),
        Alg::HmacSm3 => sign(Hmac::<Sm3>::new_from_slice(&key)?),
        Alg::HmacSha512_256 => sign(Hmac::<Sha512_256>::new_from_slice(&key)?),
    })
}

/// Used tokens a second that a set takes which has run for long.
fn takes() -> f64 {
    let mut replays = Replays::new(usize::MAX);
    let mut taken = 0;
    let mut take = || {
        let now_s = taken / TAKES_PER_S;
        let mut jti = [0; 16];
        jti[..8].copy_from_slice(&derive(taken, "").to_ne_bytes());
        jti[8..].copy_from_slice(&taken.to_ne_bytes());
        let taken_now = replays.take(jti, Wall((now_s + KEPT_S) * 1000), Wall(now_s * 1000));
        black_box(taken_now.is_ok());
        taken += 1;
    };
    (0..TAKES_PER_S * KEPT_S).for_each(|_| take());
    per_second(take)
}
