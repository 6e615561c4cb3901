//! What gslb and auth hold: the masters and the public facts of the epochs, and every key that
//! follows from both.
//!
//! A [`Keyring`] is fed masters and facts; it answers at once and has nothing to put out. What a
//! link holds, its own keys only, is a [`LinkKeyring`].

mod link;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::RangeInclusive;
use std::time::Duration;

use proto::control::EpochFact;
use proto::id::{AppId, Gen, RoomId, UnitId};
use proto::keys::{LinkKeys, Masters, ResumeKey, TokenKey};
use proto::time::Wall;

use crate::derive::{EpochKey, LinkId, SecretBytes, from_hex, link_id, to_hex};
use crate::mac::{self, Alg};
use crate::resume;
use crate::revocation::Voids;
use crate::room_key::RoomKey;
use crate::token::{self, Claims, KeyName, KeySource, NoKey};

pub use link::{LinkKeyring, TOKEN_KEYS_MAX};

/// Farthest epoch ahead that anybody plans or needs.
pub const AHEAD_MAX: u32 = 16;
/// Epochs kept. More than are needed at a time, so that a clock that jumps and comes back, or a
/// fact from such a time, does no harm.
pub const EPOCHS_MAX: usize = 64;
/// Masters that can be in use at once: the newest, and those whose epochs still run.
pub const MASTERS_MAX: usize = 8;

/// Why something could not be taken in.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum KeyError {
    /// An epoch must last.
    #[error("an epoch of 0 s is none")]
    NoInterval,
    /// Epoch numbers mean other times there.
    #[error("epochs of {found} s do not fit into epochs of {expected} s")]
    Interval {
        /// Seconds here.
        expected: u32,
        /// Seconds found.
        found: u32,
    },
    /// Not 64 hexadecimal digits.
    #[error("a key is not 32 bytes in hexadecimal")]
    Hex,
    /// An algorithm this code does not know.
    #[error("token algorithm {alg} is unknown")]
    Alg {
        /// Number found.
        alg: u8,
    },
    /// Farther from now than the [`EPOCHS_MAX`] that are kept.
    #[error("epoch {epoch} is too far from epoch {current} to be kept")]
    Outside {
        /// Epoch found.
        epoch: u32,
        /// The running one.
        current: u32,
    },
    /// An epoch's random and algorithm never change, and its masters only become more.
    #[error("epoch {epoch} is known with another random, another algorithm or more masters")]
    Changed {
        /// Epoch found.
        epoch: u32,
    },
    /// More than [`MASTERS_MAX`].
    #[error("{masters} masters are more than {MASTERS_MAX}")]
    TooManyMasters {
        /// Masters found.
        masters: usize,
    },
    /// More keys than a link can need.
    #[error("{keys} keys are more than {max}")]
    TooManyKeys {
        /// Keys found.
        keys: usize,
        /// Keys allowed.
        max: usize,
    },
}

/// The epoch of a moment.
///
/// Saturates in the year 2106, when seconds no longer fit a token.
#[must_use]
pub fn epoch_of(now: Wall, interval_s: u32) -> u32 {
    let epoch = now.unix_s() / u64::from(interval_s.max(1));
    u32::try_from(epoch).unwrap_or(u32::MAX)
}

/// Epochs before the running one that are still needed: at least one, for tokens minted at its
/// end, and as many as a resume ticket outlives.
#[must_use]
pub fn epochs_back(interval_s: u32) -> u32 {
    resume::LIFE_S.div_ceil(interval_s.max(1)).max(1)
}

/// Epochs whose keys can be needed at `now`.
pub(crate) fn needed(now: Wall, interval_s: u32) -> RangeInclusive<u32> {
    let current = epoch_of(now, interval_s);
    current.saturating_sub(epochs_back(interval_s))..=current.saturating_add(AHEAD_MAX)
}

/// Time from `now` to the end of the last epoch for which `is_known` holds without a hole.
fn horizon(now: Wall, interval_s: u32, is_known: impl Fn(u32) -> bool) -> Duration {
    let current = epoch_of(now, interval_s);
    let known = (0..=AHEAD_MAX).take_while(|it| is_known(current.saturating_add(*it))).count();
    let end_epoch = u64::from(current) + u64::try_from(known).unwrap_or(0);
    match known {
        0 => Duration::ZERO,
        _ => Wall(end_epoch * u64::from(interval_s) * 1000).since(now),
    }
}

/// Masters, epochs, and the keys that follow. `Debug` prints no key.
#[derive(Clone)]
pub struct Keyring {
    interval_s: u32,
    masters: Vec<(u8, SecretBytes)>,
    epochs: BTreeMap<u32, Epoch>,
    voids: Voids,
}

#[derive(Clone)]
struct Epoch {
    alg: Alg,
    random: [u8; 32],
    /// The epoch's masters, the one that mints first.
    kids: Vec<u8>,
    /// Those of them that are held, in the same order.
    keys: Vec<(u8, EpochKey)>,
}

impl Keyring {
    /// A keyring with masters and no epochs.
    pub fn new(masters: &Masters) -> Result<Self, KeyError> {
        if masters.interval_s == 0 {
            return Err(KeyError::NoInterval);
        }
        let mut keyring = Self {
            interval_s: masters.interval_s,
            masters: Vec::new(),
            epochs: BTreeMap::new(),
            voids: Voids::default(),
        };
        keyring.replace_masters(masters)?;
        Ok(keyring)
    }

    /// Takes other masters; epochs stay, their keys are derived anew.
    pub fn replace_masters(&mut self, masters: &Masters) -> Result<(), KeyError> {
        self.check_interval(masters.interval_s)?;
        if masters.masters.len() > MASTERS_MAX {
            return Err(KeyError::TooManyMasters { masters: masters.masters.len() });
        }
        self.masters = masters
            .masters
            .iter()
            .map(|it| Ok((it.kid, from_hex(&it.key).ok_or(KeyError::Hex)?)))
            .collect::<Result<_, KeyError>>()?;
        for epoch in self.epochs.values_mut() {
            epoch.keys = derive(&self.masters, &epoch.random, &epoch.kids);
        }
        Ok(())
    }

    /// Takes the public fact of an epoch. A later fact of the same epoch may add masters and change
    /// nothing else: tokens and links live on what was published first.
    ///
    /// Beyond [`EPOCHS_MAX`] the epoch that is farthest from `now` gives way.
    pub fn handle(&mut self, fact: &EpochFact, now: Wall) -> Result<(), KeyError> {
        self.check_interval(fact.interval_s)?;
        let alg = Alg::from_code(fact.alg).ok_or(KeyError::Alg { alg: fact.alg })?;
        let random = *from_hex(&fact.random).ok_or(KeyError::Hex)?;
        if fact.kids.len() > MASTERS_MAX {
            return Err(KeyError::TooManyMasters { masters: fact.kids.len() });
        }
        if self.epochs.get(&fact.epoch).is_some_and(|it| !it.becomes(alg, &random, &fact.kids)) {
            return Err(KeyError::Changed { epoch: fact.epoch });
        }
        let keys = derive(&self.masters, &random, &fact.kids);
        self.epochs.insert(fact.epoch, Epoch { alg, random, kids: fact.kids.clone(), keys });
        let current = epoch_of(now, self.interval_s);
        if self.epochs.len() > EPOCHS_MAX && self.forget_farthest(current) == Some(fact.epoch) {
            return Err(KeyError::Outside { epoch: fact.epoch, current });
        }
        Ok(())
    }

    /// Declares epochs of a master void: they mint nothing more, and links get no keys of them.
    pub fn revoke(&mut self, kid: u8, from_epoch: u32, to_epoch: u32) {
        self.voids.add(kid, from_epoch, to_epoch);
    }

    /// The same masters with only the epochs that a link can need at `now`.
    #[must_use]
    pub fn needed_at(&self, now: Wall) -> Self {
        let epochs = needed(now, self.interval_s);
        Self {
            interval_s: self.interval_s,
            masters: self.masters.clone(),
            epochs: self.epochs.range(epochs).map(|(epoch, it)| (*epoch, it.clone())).collect(),
            voids: self.voids.clone(),
        }
    }

    /// Masters that are not held although an epoch that is needed at `now` names them: somebody
    /// has rotated them, and they are to be fetched.
    #[must_use]
    pub fn missing_masters(&self, now: Wall) -> BTreeSet<u8> {
        let epochs = self.epochs.range(needed(now, self.interval_s));
        let kids = epochs.flat_map(|(_, it)| it.kids.iter().copied());
        kids.filter(|kid| self.masters.iter().all(|(it, _)| it != kid)).collect()
    }

    /// The public facts of the epochs kept, the oldest first.
    #[must_use]
    pub fn facts(&self) -> Vec<EpochFact> {
        let fact = |(&epoch, it): (&u32, &Epoch)| EpochFact {
            epoch,
            interval_s: self.interval_s,
            alg: it.alg.code(),
            random: to_hex(&it.random),
            kids: it.kids.clone(),
        };
        self.epochs.iter().map(fact).collect()
    }

    /// How long tokens can be minted without another fact; zero when they cannot be now.
    #[must_use]
    pub fn horizon(&self, now: Wall) -> Duration {
        horizon(now, self.interval_s, |epoch| {
            self.epochs.get(&epoch).is_some_and(|it| it.valid(epoch, &self.voids).next().is_some())
        })
    }

    /// The key that mints for an app and an address in an epoch: that of the first of its masters
    /// that is held and not void.
    ///
    /// Costs a few hundred nanoseconds; keep it for as long as the epoch runs.
    pub fn minting_key(&self, app: AppId, link: &LinkId, epoch: u32) -> Result<token::Key, NoKey> {
        let found = self.epochs.get(&epoch).ok_or(NoKey::Epoch { epoch })?;
        let (kid, key) = found.valid(epoch, &self.voids).next().ok_or(NoKey::Epoch { epoch })?;
        let secret = key.token_key(app, found.alg, epoch, link);
        Ok(token::Key { epoch, kid: *kid, mac: mac::Key::new(found.alg, &secret) })
    }

    /// Writes a token with the key of its app, address and time.
    pub fn mint(&self, claims: &Claims) -> Result<String, NoKey> {
        let epoch = claims.iat_s / self.interval_s;
        let key = self.minting_key(claims.app, &claims.link, epoch)?;
        Ok(token::mint(claims, &key))
    }

    /// Everything a link may hold: its own addresses' keys for `apps`, and its unit's resume keys, of
    /// every epoch kept; see [`Keyring::needed_at`]. Of each epoch, the master that mints comes
    /// first.
    #[must_use]
    pub fn link_keys(&self, unit: UnitId, addresses: &[String], apps: &[AppId]) -> LinkKeys {
        let mut tokens = Vec::new();
        let mut resumes = Vec::new();
        for (&epoch, found) in &self.epochs {
            for (kid, key) in found.valid(epoch, &self.voids) {
                let resume = key.resume_key(unit);
                resumes.push(ResumeKey { epoch, kid: *kid, key: to_hex(&resume) });
                for address in addresses {
                    let link = link_id(address);
                    tokens.extend(apps.iter().map(|&app| TokenKey {
                        app,
                        epoch,
                        kid: *kid,
                        alg: found.alg.code(),
                        address: address.clone(),
                        key: to_hex(&key.token_key(app, found.alg, epoch, &link)),
                    }));
                }
            }
        }
        LinkKeys { interval_s: self.interval_s, tokens, resumes }
    }

    /// The keys of one gen of a sealed room: the first one seals, the others opened what was sealed
    /// before a rotation. Masters are held before an epoch names them, so whoever asks around a
    /// rotation holds the key that will seal next; one that is void now does not come at all.
    #[must_use]
    pub fn room_keys(&self, app: AppId, room: &RoomId, gen_no: Gen, now: Wall) -> Vec<RoomKey> {
        let epoch = epoch_of(now, self.interval_s);
        let minting = self.epochs.get(&epoch).and_then(|it| it.valid(epoch, &self.voids).next());
        let sealing = minting.map(|(kid, _)| *kid);
        let valid = self.masters.iter().filter(|(kid, _)| !self.voids.is_void(*kid, epoch));
        let mut keys: Vec<_> =
            valid.map(|(kid, master)| RoomKey::derive(master, *kid, app, room, gen_no)).collect();
        keys.sort_by_key(|it| Some(it.kid()) != sealing);
        keys
    }

    /// How many token keys [`Keyring::link_keys`] gives at most, with two masters in each epoch:
    /// what fits fits during a rotation, too.
    #[must_use]
    pub fn link_keys_max(&self, addresses: usize, apps: usize) -> usize {
        let keys = self.epochs.iter().map(|(&epoch, it)| it.valid(epoch, &self.voids).count());
        let keys: usize = keys.map(|it| it.max(2)).sum();
        keys.saturating_mul(addresses).saturating_mul(apps)
    }

    fn check_interval(&self, found: u32) -> Result<(), KeyError> {
        if found != self.interval_s {
            return Err(KeyError::Interval { expected: self.interval_s, found });
        }
        Ok(())
    }

    fn forget_farthest(&mut self, current: u32) -> Option<u32> {
        let (oldest, _) = self.epochs.first_key_value()?;
        let (newest, _) = self.epochs.last_key_value()?;
        let is_oldest = oldest.abs_diff(current) > newest.abs_diff(current);
        let (epoch, _) =
            if is_oldest { self.epochs.pop_first()? } else { self.epochs.pop_last()? };
        Some(epoch)
    }
}

impl Epoch {
    /// Its keys, without those of masters that are void in it.
    fn valid(&self, epoch: u32, voids: &Voids) -> impl Iterator<Item = &(u8, EpochKey)> {
        self.keys.iter().filter(move |(kid, _)| !voids.is_void(*kid, epoch))
    }

    /// Whether it may become this: the same, with more masters at most.
    fn becomes(&self, alg: Alg, random: &[u8; 32], kids: &[u8]) -> bool {
        self.alg == alg && self.random == *random && self.kids.iter().all(|it| kids.contains(it))
    }
}

impl KeySource for Keyring {
    fn with_key<T>(&self, name: &KeyName, take: impl FnOnce(&mac::Key) -> T) -> Result<T, NoKey> {
        let KeyName { epoch, kid, app, link } = *name;
        let found = self.epochs.get(&epoch).ok_or(NoKey::Epoch { epoch })?;
        let (_, key) =
            found.keys.iter().find(|(it, _)| *it == kid).ok_or(NoKey::Master { epoch, kid })?;
        let secret = key.token_key(app, found.alg, epoch, &link);
        Ok(take(&mac::Key::new(found.alg, &secret)))
    }

    fn interval_s(&self) -> u32 {
        self.interval_s
    }
}

impl fmt::Debug for Keyring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keyring")
            .field("interval_s", &self.interval_s)
            .field("epochs", &self.epochs.keys())
            .finish_non_exhaustive()
    }
}

fn derive(masters: &[(u8, SecretBytes)], random: &[u8; 32], kids: &[u8]) -> Vec<(u8, EpochKey)> {
    kids.iter()
        .filter_map(|kid| masters.iter().find(|(it, _)| it == kid))
        .map(|(kid, master)| (*kid, EpochKey::extract(random, master)))
        .collect()
}
