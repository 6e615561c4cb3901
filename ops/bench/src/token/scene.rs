//! A gslb that mints, and a link that holds what links hold.

use auth_core::derive::LinkId;
use auth_core::keyring::{Keyring, LinkKeyring};
use auth_core::link_id;
use auth_core::mac::Alg;
use auth_core::policy::Policies;
use auth_core::replay::Replays;
use auth_core::revocation::Revocations;
use auth_core::token::{self, Claims, Key, Scope, flag};
use proto::control::{EpochFact, Fact};
use proto::id::{AppId, DeviceId, RoomId, UnitId, ViewerId};
use proto::keys::{Master, Masters};
use proto::time::Wall;

const INTERVAL_S: u32 = 600;
const EPOCH: u32 = 2_975_000;
const IAT_S: u32 = EPOCH * INTERVAL_S + 30;
/// When the token is verified.
pub(super) const NOW: Wall = Wall(IAT_S as u64 * 1000);
const APPS: u32 = 4;
const ADDRESSES: usize = 4;
const KICKS: u64 = 1000;

/// Both, and a token between them.
#[derive(Debug)]
pub(super) struct Scene {
    pub(super) keyring: Keyring,
    /// The token's, kept.
    pub(super) key: Key,
    pub(super) claims: Claims,
    pub(super) token: String,
    keys: LinkKeyring,
    links: [LinkId; 1],
    policies: Policies,
    revocations: Revocations,
}

impl Scene {
    /// A scene whose epochs have this algorithm.
    pub(super) fn new(alg: Alg) -> anyhow::Result<Self> {
        let addresses: Vec<String> =
            (0..ADDRESSES).map(|it| format!("link-{:02}.example:443", it + 7)).collect();
        let claims = claims(link_id(&addresses[0]))?;
        let keyring = keyring(alg)?;
        let apps: Vec<AppId> = (1..=APPS).map(AppId).collect();
        let scene = Self {
            key: keyring.minting_key(claims.app, &claims.link, EPOCH)?,
            token: keyring.mint(&claims)?,
            keys: LinkKeyring::new(&keyring.link_keys(UnitId(1), &addresses, &apps))?,
            links: [claims.link],
            policies: Policies::default(),
            revocations: revocations()?,
            keyring,
            claims,
        };
        token::verify(&scene.token, &scene.scope(), &mut Replays::new(1), NOW)?;
        Ok(scene)
    }

    /// What the link checks against.
    pub(super) const fn scope(&self) -> Scope<'_, LinkKeyring> {
        Scope {
            keys: &self.keys,
            links: &self.links,
            policies: &self.policies,
            revocations: &self.revocations,
        }
    }
}

fn keyring(alg: Alg) -> anyhow::Result<Keyring> {
    let master = |kid, byte: &str| Master { kid, key: byte.repeat(32) };
    let masters = vec![master(1, "0b"), master(0, "0c")];
    let mut keyring = Keyring::new(&Masters { interval_s: INTERVAL_S, masters })?;
    for epoch in EPOCH - 1..EPOCH + 7 {
        let fact = EpochFact {
            epoch,
            interval_s: INTERVAL_S,
            alg: alg.code(),
            random: "5e".repeat(32),
            kids: vec![1, 0],
        };
        keyring.handle(&fact, NOW)?;
    }
    Ok(keyring)
}

/// A thousand viewers were kicked from as many rooms, one every 3.6 s.
fn revocations() -> anyhow::Result<Revocations> {
    let mut revocations = Revocations::new(100_000);
    for number in 0..KICKS {
        let room = RoomId::parse(&format!("room-{number}"))?;
        let viewer = ViewerId::parse(&format!("user-{}", 1000 + number))?;
        let not_before = Wall(NOW.0 - number * 3_600);
        revocations.handle(&Fact::Kick { app: AppId(1), room, viewer, not_before }, NOW);
    }
    Ok(revocations)
}

/// As a viewer of one room has them; not for single use, so that it can be verified again.
fn claims(link: LinkId) -> anyhow::Result<Claims> {
    Ok(Claims {
        app: AppId(1),
        link,
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
