//! What a link holds: the keys of its own addresses, and its unit's resume keys. A stolen node
//! cannot mint for others.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

use foldhash::HashMap;
use proto::id::AppId;
use proto::keys::{LinkKeys, ResumeKey, TokenKey};
use proto::time::Wall;

use super::{KeyError, epoch_of, horizon};
use crate::derive::{LinkId, from_hex, link_id};
use crate::mac::{self, Alg};
use crate::resume;
use crate::token::{self, Claims, KeyName, KeySource, NoKey};

/// Token keys of one link: 9 epochs × 2 masters × 20 addresses × 180 apps, about 250 bytes each.
pub const TOKEN_KEYS_MAX: usize = 65_536;
/// Resume keys of one link.
const RESUME_KEYS_MAX: usize = 1024;

/// One answer of the auth service, ready for lookups; replace it whole by the next answer.
///
/// `Debug` prints no key.
#[derive(Clone)]
pub struct LinkKeyring {
    interval_s: u32,
    tokens: HashMap<KeyName, mac::Key>,
    resumes: BTreeMap<(u32, u8), resume::Key>,
    /// The master that mints in an epoch: every link of the unit can open what it sealed.
    sealing: BTreeMap<u32, u8>,
    links: BTreeSet<LinkId>,
    apps: BTreeSet<AppId>,
    epochs: BTreeSet<u32>,
}

impl LinkKeyring {
    /// Prepares the keys of an answer.
    pub fn new(keys: &LinkKeys) -> Result<Self, KeyError> {
        if keys.interval_s == 0 {
            return Err(KeyError::NoInterval);
        }
        check_count(keys.tokens.len(), TOKEN_KEYS_MAX)?;
        check_count(keys.resumes.len(), RESUME_KEYS_MAX)?;
        let tokens =
            keys.tokens.iter().map(token_key).collect::<Result<HashMap<_, _>, KeyError>>()?;
        let resumes =
            keys.resumes.iter().map(resume_key).collect::<Result<BTreeMap<_, _>, KeyError>>()?;
        let mut sealing = BTreeMap::new();
        for key in &keys.resumes {
            sealing.entry(key.epoch).or_insert(key.kid);
        }
        Ok(Self {
            interval_s: keys.interval_s,
            sealing,
            links: tokens.keys().map(|it| it.link).collect(),
            apps: tokens.keys().map(|it| it.app).collect(),
            epochs: tokens.keys().map(|it| it.epoch).collect(),
            tokens,
            resumes,
        })
    }

    /// How long logins survive without the auth service; zero when they do not now.
    #[must_use]
    pub fn horizon(&self, now: Wall) -> Duration {
        horizon(now, self.interval_s, |epoch| self.epochs.contains(&epoch))
    }

    /// Writes a token for one of this link's own addresses: for tools, and for tests of links.
    pub fn mint(&self, claims: &Claims) -> Result<String, NoKey> {
        let epoch = claims.iat_s / self.interval_s;
        let name = |kid| KeyName { epoch, kid, app: claims.app, link: claims.link };
        let (kid, mac) = (0..=u8::MAX)
            .find_map(|kid| Some((kid, self.tokens.get(&name(kid))?)))
            .ok_or_else(|| self.why_none(&name(0)))?;
        Ok(token::mint(claims, &token::Key { epoch, kid, mac: mac.clone() }))
    }

    /// The key that seals resume tickets now, if there is one.
    #[must_use]
    pub fn sealing_key(&self, now: Wall) -> Option<&resume::Key> {
        let epoch = epoch_of(now, self.interval_s);
        self.resumes.get(&(epoch, *self.sealing.get(&epoch)?))
    }

    /// The key that opens a resume ticket of this epoch and master.
    #[must_use]
    pub fn opening_key(&self, epoch: u32, kid: u8) -> Option<&resume::Key> {
        self.resumes.get(&(epoch, kid))
    }

    fn why_none(&self, name: &KeyName) -> NoKey {
        if !self.links.contains(&name.link) {
            NoKey::Link
        } else if !self.apps.contains(&name.app) {
            NoKey::App { app: name.app }
        } else if !self.epochs.contains(&name.epoch) {
            NoKey::Epoch { epoch: name.epoch }
        } else {
            NoKey::Master { epoch: name.epoch, kid: name.kid }
        }
    }
}

impl KeySource for LinkKeyring {
    #[inline]
    fn with_key<T>(&self, name: &KeyName, take: impl FnOnce(&mac::Key) -> T) -> Result<T, NoKey> {
        self.tokens.get(name).map(take).ok_or_else(|| self.why_none(name))
    }

    fn interval_s(&self) -> u32 {
        self.interval_s
    }
}

impl fmt::Debug for LinkKeyring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LinkKeyring")
            .field("interval_s", &self.interval_s)
            .field("epochs", &self.epochs)
            .finish_non_exhaustive()
    }
}

fn check_count(keys: usize, max: usize) -> Result<(), KeyError> {
    if keys > max {
        return Err(KeyError::TooManyKeys { keys, max });
    }
    Ok(())
}

fn token_key(key: &TokenKey) -> Result<(KeyName, mac::Key), KeyError> {
    let alg = Alg::from_code(key.alg).ok_or(KeyError::Alg { alg: key.alg })?;
    let secret = from_hex(&key.key).ok_or(KeyError::Hex)?;
    let name =
        KeyName { epoch: key.epoch, kid: key.kid, app: key.app, link: link_id(&key.address) };
    Ok((name, mac::Key::new(alg, &secret)))
}

fn resume_key(key: &ResumeKey) -> Result<((u32, u8), resume::Key), KeyError> {
    let secret = from_hex(&key.key).ok_or(KeyError::Hex)?;
    Ok(((key.epoch, key.kid), resume::Key::new(key.epoch, key.kid, &secret)))
}
