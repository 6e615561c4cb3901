//! Tokens: how many a core mints and verifies.

use std::hint::black_box;

use auth_core::keyring::{Keyring, LinkKeyring};
use auth_core::link_id;
use auth_core::mac::Alg;
use auth_core::policy::Policies;
use auth_core::replay::Replays;
use auth_core::revocation::Revocations;
use auth_core::token::{self, Claims, Scope, flag};
use proto::control::EpochFact;
use proto::id::{AppId, DeviceId, RoomId, UnitId, ViewerId};
use proto::keys::{Master, Masters};
use proto::time::Wall;

use crate::line::Line;
use crate::timing::per_second;

const INTERVAL_S: u32 = 600;
const EPOCH: u32 = 2_975_000;
const IAT_S: u32 = EPOCH * INTERVAL_S + 30;
const ADDRESS: &str = "link-07.example:443";

/// Both algorithms, minting and verifying, with the key look-ups that a node does.
pub(crate) fn run() -> anyhow::Result<Vec<Line>> {
    let mut lines = Vec::new();
    for (alg, name) in [(Alg::HmacSha256, "hmac_sha256"), (Alg::HmacSm3, "hmac_sm3")] {
        let (keyring, keys) = keyrings(alg)?;
        let claims = claims()?;
        let token = keyring.mint(&claims)?;
        let revocations = Revocations::new(1024);
        let policies = Policies::default();
        let scope = Scope {
            keys: &keys,
            links: &[claims.link],
            policies: &policies,
            revocations: &revocations,
        };
        let mut replays = Replays::new(1024);
        let now = Wall(u64::from(IAT_S) * 1000);
        token::verify(&token, &scope, &mut replays, now)?;
        if alg == Alg::HmacSha256 {
            lines.push(Line::alone("token.bytes", token.len() as f64, "bytes"));
        }
        let verified = per_second(|| {
            let claims = token::verify(black_box(&token), &scope, &mut replays, now);
            black_box(claims.is_ok());
        });
        lines.push(Line::alone(format!("token.verify.{name}"), verified, "1/s/core"));
        let minted = per_second(|| {
            black_box(keyring.mint(black_box(&claims)).is_ok());
        });
        lines.push(Line::alone(format!("token.mint.{name}"), minted, "1/s/core"));
    }
    Ok(lines)
}

/// What gslb holds, and what the link holds.
fn keyrings(alg: Alg) -> anyhow::Result<(Keyring, LinkKeyring)> {
    let master = Master { kid: 0, key: "0b".repeat(32) };
    let mut keyring = Keyring::new(&Masters { interval_s: INTERVAL_S, masters: vec![master] })?;
    let fact = EpochFact {
        epoch: EPOCH,
        interval_s: INTERVAL_S,
        alg: alg.code(),
        random: "5e".repeat(32),
        kids: vec![0],
    };
    keyring.handle(&fact, Wall(u64::from(IAT_S) * 1000))?;
    let link = keyring.link_keys(UnitId(1), &[ADDRESS.to_owned()], &[AppId(1)]);
    Ok((keyring, LinkKeyring::new(&link)?))
}

/// As a viewer of one room has them; not for single use, so that it can be verified again.
fn claims() -> anyhow::Result<Claims> {
    Ok(Claims {
        app: AppId(1),
        link: link_id(ADDRESS),
        iat_s: IAT_S,
        ttl_s: 60,
        flags: flag::MAY_SEND,
        caps: 0,
        jti: [7; 16],
        account: ViewerId::parse("user-42")?,
        device: Some(DeviceId::parse("ios-1")?),
        rooms: RoomId::parse("room-1")?.into(),
    })
}
