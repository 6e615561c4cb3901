//! What mints: a keyring, and the keys of its addresses once they were asked for.

use std::ops::Deref;
use std::sync::OnceLock;

use auth_core::derive::LinkId;
use auth_core::keyring::Keyring;
use auth_core::token::{self, KeySource, NoKey};
use proto::id::AppId;

/// Keys that are kept, as a power of two. 5,000 nodes of three addresses come to 30,000 for each
/// app while two epochs meet; a key that finds no place is made anew for each token, which triples
/// its cost.
const KEYS_BITS: u32 = 16;
/// Places where a key may be.
const WAYS: usize = 4;

/// A keyring with the keys that were made from it. When the keyring changes the keys go with it, so
/// none of a master that is void stays behind.
#[derive(Debug)]
pub(crate) struct Minter {
    keyring: Keyring,
    /// Once a place is taken it stays so: the keyring changes with every epoch.
    kept: Box<[OnceLock<Box<Kept>>]>,
}

#[derive(Debug)]
struct Kept {
    app: AppId,
    link: LinkId,
    key: token::Key,
}

/// A key to mint with.
#[derive(Debug)]
pub(crate) enum Lent<'a> {
    Kept(&'a token::Key),
    /// There was no place for it, or it is the first time.
    Made(Box<token::Key>),
}

impl Deref for Lent<'_> {
    type Target = token::Key;

    fn deref(&self) -> &token::Key {
        match self {
            Self::Kept(key) => key,
            Self::Made(key) => key,
        }
    }
}

impl Minter {
    pub(super) fn new(keyring: Keyring) -> Self {
        let kept = (0..1_usize << KEYS_BITS).map(|_| OnceLock::new()).collect();
        Self { keyring, kept }
    }

    pub(crate) const fn keyring(&self) -> &Keyring {
        &self.keyring
    }

    /// The epoch of a token that counts from `iat_s`.
    pub(crate) fn epoch(&self, iat_s: u32) -> u32 {
        iat_s / self.keyring.interval_s()
    }

    /// Lends the key that mints tokens of this app and address in this epoch.
    pub(crate) fn key(&self, app: AppId, link: &LinkId, epoch: u32) -> Result<Lent<'_>, NoKey> {
        for place in self.places(app, link, epoch) {
            if let Some(kept) = place.get() {
                if kept.link == *link && kept.app == app && kept.key.epoch == epoch {
                    return Ok(Lent::Kept(&kept.key));
                }
                continue;
            }
            let key = self.keyring.minting_key(app, link, epoch)?;
            let made = key.clone();
            // Another thread may have been faster; then the key is made again some day.
            place.get_or_init(|| Box::new(Kept { app, link: *link, key }));
            return Ok(Lent::Made(made.into()));
        }
        Ok(Lent::Made(self.keyring.minting_key(app, link, epoch)?.into()))
    }

    fn places(&self, app: AppId, link: &LinkId, epoch: u32) -> &[OnceLock<Box<Kept>>] {
        // The link id is a hash already; which addresses there are is up to the operators.
        let [a, b, c, d, e, f, g, h, ..] = *link;
        let name = u64::from(app.0) << 32 | u64::from(epoch);
        let hash = u64::from_le_bytes([a, b, c, d, e, f, g, h]) ^ name;
        let hash = hash.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (u64::BITS - KEYS_BITS);
        let at = usize::try_from(hash).unwrap_or(0) / WAYS * WAYS;
        &self.kept[at..at + WAYS]
    }
}

#[cfg(test)]
mod tests {
    use auth_core::token::{Claims, Unverified};
    use proto::control::EpochFact;
    use proto::id::{RoomId, ViewerId};
    use proto::keys::{Master, Masters};
    use proto::time::Wall;

    use super::*;

    const EPOCH: u32 = 2_975_000;

    fn minter() -> Minter {
        let masters = vec![Master { kid: 3, key: "0b".repeat(32) }];
        let mut keyring = Keyring::new(&Masters { interval_s: 600, masters }).unwrap();
        for epoch in EPOCH..EPOCH + 2 {
            let random = "5e".repeat(32);
            let fact = EpochFact { epoch, interval_s: 600, alg: 1, random, kids: vec![3] };
            keyring.handle(&fact, Wall(u64::from(EPOCH) * 600_000)).unwrap();
        }
        Minter::new(keyring)
    }

    fn claims(app: u32, link: LinkId, epoch: u32) -> Claims {
        Claims {
            app: AppId(app),
            link,
            iat_s: epoch * 600,
            ttl_s: 60,
            flags: 0,
            caps: 0,
            jti: [7; 16],
            account: ViewerId::parse("viewer").unwrap(),
            device: None,
            rooms: RoomId::parse("lobby").unwrap().into(),
        }
    }

    fn mint(minter: &Minter, claims: &Claims) -> Result<String, NoKey> {
        let epoch = minter.epoch(claims.iat_s);
        minter.key(claims.app, &claims.link, epoch).map(|key| token::mint(claims, &key))
    }

    #[test]
    fn a_kept_key_mints_what_a_new_one_mints() {
        let minter = minter();
        for round in 0..2 {
            for app in 1..4 {
                for link in 0..50 {
                    for epoch in EPOCH..EPOCH + 2 {
                        let claims = claims(app, [link; 16], epoch);

                        let token = mint(&minter, &claims);

                        assert_eq!(token, minter.keyring.mint(&claims), "{round}");
                    }
                }
            }
        }
        assert_eq!(minter.kept.iter().filter(|it| it.get().is_some()).count(), 3 * 50 * 2);
    }

    /// As long as their first bytes are alike, links share their places.
    #[test]
    fn a_key_without_a_place_is_made_each_time() {
        let minter = minter();
        let link = |it: u8| [0, 0, 0, 0, 0, 0, 0, 0, it, 0, 0, 0, 0, 0, 0, 0];
        for _ in 0..2 {
            for it in 0..10 {
                let claims = claims(1, link(it), EPOCH);

                let token = mint(&minter, &claims).unwrap();

                assert_eq!(Ok(&token), minter.keyring.mint(&claims).as_ref());
                assert_eq!(Unverified::read(&token).unwrap().claims, claims);
            }
        }
        assert_eq!(minter.kept.iter().filter(|it| it.get().is_some()).count(), WAYS);
    }

    #[test]
    fn an_epoch_that_is_not_known_mints_nothing() {
        let unknown = mint(&minter(), &claims(1, [0; 16], EPOCH + 2));

        assert_eq!(unknown, Err(NoKey::Epoch { epoch: EPOCH + 2 }));
    }
}
