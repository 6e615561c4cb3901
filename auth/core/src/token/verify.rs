//! The order in which a token is checked. No remote call, and no field is believed before its MAC.

use std::hash::{Hash, Hasher};

use proto::close::CloseCode;
use proto::id::AppId;
use proto::limits::TOKEN_BYTES_MAX;
use proto::time::Wall;

use super::layout::{LONG_BLOCKS, Parts, SHORT_BLOCKS, SHORT_TEXT_BYTES_MAX};
use super::{Claims, Selector, TTL_S_MAX, ends, flag};
use crate::derive::LinkId;
use crate::mac::{self, BLOCK_BYTES, MAC_BYTES};
use crate::policy::Policies;
use crate::replay::{NotTaken, Replays};
use crate::revocation::Revocations;
use crate::wire::Damaged;

/// Which key a token asks for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct KeyName {
    /// Epoch.
    pub epoch: u32,
    /// Master.
    pub kid: u8,
    /// App.
    pub app: AppId,
    /// Address.
    pub link: LinkId,
}

impl Hash for KeyName {
    fn hash<H: Hasher>(&self, state: &mut H) {
        // Half of a link id, which is a hash, tells links apart.
        let link = u64::from_ne_bytes(*self.link.first_chunk().expect("a link id has 16 bytes"));
        state.write_u64(u64::from(self.epoch) << 32 | u64::from(self.app.0));
        state.write_u64(link ^ u64::from(self.kid));
    }
}

/// Where keys are found: a link's own, or the masters that derive any.
pub trait KeySource {
    /// Lends the key of this name, with the algorithm that its epoch selects.
    fn with_key<T>(&self, name: &KeyName, take: impl FnOnce(&mac::Key) -> T) -> Result<T, NoKey>;

    /// Length of an epoch, seconds; never 0.
    fn interval_s(&self) -> u32;
}

/// Why there is no key.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum NoKey {
    /// Not yet here, or no longer.
    #[error("no key for epoch {epoch}")]
    Epoch {
        /// The epoch asked for.
        epoch: u32,
    },
    /// The epoch does not use this master, or this node does not hold it.
    #[error("no key of master {kid} in epoch {epoch}")]
    Master {
        /// The epoch asked for.
        epoch: u32,
        /// The master asked for.
        kid: u8,
    },
    /// Another node's address.
    #[error("no key for this address")]
    Link,
    /// Not an app of ours.
    #[error("no key for app {app}")]
    App {
        /// The app asked for.
        app: AppId,
    },
}

/// What tokens are checked against.
#[derive(Clone, Copy, Debug)]
pub struct Scope<'a, K> {
    /// Keys.
    pub keys: &'a K,
    /// Addresses that the connection may have been assigned to.
    pub links: &'a [LinkId],
    /// How far the clocks of who minted and who verifies may be apart.
    pub policies: &'a Policies,
    /// Kicks and void epochs.
    pub revocations: &'a Revocations,
}

/// Why a token is refused. The order is that of the checks.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum TokenRefusal {
    /// Longer than any token.
    #[error("the token has {bytes} bytes, more than {TOKEN_BYTES_MAX}")]
    TooLong {
        /// Bytes found.
        bytes: usize,
    },
    /// Does not begin with `dm1.`.
    #[error("the token does not begin with dm1.")]
    Prefix,
    /// Not base64url in its one canonical form.
    #[error("the token is not strict base64url without padding")]
    Encoding,
    /// Cut off, too long, or a name outside its grammar.
    #[error("the token's fields are damaged")]
    Malformed,
    /// A layout this code does not know.
    #[error("token version {version} is unknown")]
    Version {
        /// Version found.
        version: u8,
    },
    /// No key to check it with.
    #[error(transparent)]
    NoKey(#[from] NoKey),
    /// It names another algorithm than its epoch's.
    #[error("algorithm {alg} is not that of the epoch")]
    Alg {
        /// Number found.
        alg: u8,
    },
    /// Somebody without the key made or changed it.
    #[error("the MAC does not match")]
    Mac,
    /// Minted for another address.
    #[error("the token is for another address")]
    Elsewhere,
    /// Minted at a time outside the epoch it names.
    #[error("the token was minted in epoch {minted}, not in {named}")]
    EpochMismatch {
        /// Epoch of its `iat`.
        minted: u32,
        /// Epoch it names.
        named: u32,
    },
    /// Minted in the future by more than the leeway.
    #[error("the token was minted {ahead_s} s ahead of this clock")]
    Early {
        /// Seconds until `iat`.
        ahead_s: u64,
    },
    /// Its time is over.
    #[error("the token expired {ago_s} s ago")]
    Expired {
        /// Seconds since `iat + ttl`.
        ago_s: u64,
    },
    /// Would live too long.
    #[error("a life of {ttl_s} s is longer than {TTL_S_MAX} s")]
    TtlTooLong {
        /// Seconds found.
        ttl_s: u16,
    },
    /// Its epoch was declared void.
    #[error("epoch {epoch} of master {kid} is void")]
    Void {
        /// Epoch.
        epoch: u32,
        /// Master.
        kid: u8,
    },
    /// The viewer was kicked after it was minted.
    #[error("the viewer was kicked after the token was minted")]
    Revoked,
    /// A single-use token that was used before.
    #[error("the token was used before")]
    Replayed,
    /// No place to remember one more single-use token: refused rather than forgotten.
    #[error("too many single-use tokens are remembered")]
    ReplaysFull,
}

impl From<Damaged> for TokenRefusal {
    fn from(_: Damaged) -> Self {
        Self::Malformed
    }
}

impl TokenRefusal {
    /// What the client is told: one code for all that fails up to the MAC.
    #[must_use]
    pub const fn close_code(self) -> CloseCode {
        match self {
            Self::TooLong { .. }
            | Self::Prefix
            | Self::Encoding
            | Self::Malformed
            | Self::Version { .. }
            | Self::NoKey(_)
            | Self::Alg { .. }
            | Self::Mac
            | Self::EpochMismatch { .. }
            | Self::TtlTooLong { .. } => CloseCode::TokenInvalid,
            Self::Elsewhere => CloseCode::TokenElsewhere,
            Self::Early { .. } | Self::Expired { .. } => CloseCode::TokenExpired,
            Self::Void { .. } => CloseCode::TokenEpoch,
            Self::Revoked => CloseCode::Kicked,
            Self::Replayed => CloseCode::TokenReplayed,
            Self::ReplaysFull => CloseCode::Full,
        }
    }

    /// The word in metrics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::TooLong { .. } => "too_long",
            Self::Prefix => "prefix",
            Self::Encoding => "encoding",
            Self::Malformed => "malformed",
            Self::Version { .. } => "version",
            Self::NoKey(NoKey::Epoch { .. }) => "no_epoch",
            Self::NoKey(NoKey::Master { .. }) => "no_master",
            Self::NoKey(NoKey::Link) => "no_link",
            Self::NoKey(NoKey::App { .. }) => "no_app",
            Self::Alg { .. } => "alg",
            Self::Mac => "mac",
            Self::Elsewhere => "elsewhere",
            Self::EpochMismatch { .. } => "epoch_mismatch",
            Self::Early { .. } => "early",
            Self::Expired { .. } => "expired",
            Self::TtlTooLong { .. } => "ttl_too_long",
            Self::Void { .. } => "void",
            Self::Revoked => "revoked",
            Self::Replayed => "replayed",
            Self::ReplaysFull => "replays_full",
        }
    }
}

/// A token that passed every check; its names lie where they were decoded.
#[derive(Clone, Copy, Debug)]
pub struct Verified<'a>(&'a Parts<'a>);

impl Verified<'_> {
    /// Which key signed it.
    #[must_use]
    pub fn selector(&self) -> Selector {
        self.0.selector()
    }

    /// Copies what the token says, for whoever keeps it.
    #[must_use]
    pub fn claims(&self) -> Claims {
        self.0.claims()
    }
}

/// Checks a token and, if it is for single use, marks it as used; what it says, copied.
pub fn verify<K: KeySource>(
    text: &str,
    scope: &Scope<'_, K>,
    replays: &mut Replays,
    now: Wall,
) -> Result<Claims, TokenRefusal> {
    verify_with(text, scope, replays, now, |it| it.claims())
}

/// As [`verify`], but what the token says is lent: nothing is allocated or copied.
pub fn verify_with<K: KeySource, T>(
    text: &str,
    scope: &Scope<'_, K>,
    replays: &mut Replays,
    now: Wall,
    take: impl FnOnce(Verified<'_>) -> T,
) -> Result<T, TokenRefusal> {
    let (mut short, mut long);
    let room: &mut [[u8; BLOCK_BYTES]] = if text.len() <= SHORT_TEXT_BYTES_MAX {
        short = [[0; BLOCK_BYTES]; SHORT_BLOCKS];
        &mut short
    } else {
        long = [[0; BLOCK_BYTES]; LONG_BLOCKS];
        &mut long
    };
    let mut mac = [0; MAC_BYTES];
    let token = Parts::read(text, room, &mut mac)?;
    check(&token, scope, replays, now)?;
    Ok(take(Verified(&token)))
}

#[inline(always)]
fn check<K: KeySource>(
    token: &Parts<'_>,
    scope: &Scope<'_, K>,
    replays: &mut Replays,
    now: Wall,
) -> Result<(), TokenRefusal> {
    let Selector { alg, kid, epoch } = token.selector();
    let name = KeyName { epoch, kid, app: token.app(), link: *token.link() };
    scope.keys.with_key(&name, |key| {
        if key.alg().code() != alg {
            Err(TokenRefusal::Alg { alg })
        } else if !key.is_signed(&token.message, token.mac) {
            Err(TokenRefusal::Mac)
        } else {
            Ok(())
        }
    })??;
    check_fields(token, scope, now)?;
    check_revocations(token, scope.revocations)?;
    if token.flags() & flag::SINGLE_USE != 0 {
        let end = ends(token.iat_s(), token.ttl_s());
        replays.take(*token.jti(), end, now).map_err(|it| match it {
            NotTaken::Seen => TokenRefusal::Replayed,
            NotTaken::Full => TokenRefusal::ReplaysFull,
        })?;
    }
    Ok(())
}

#[inline(always)]
fn check_fields<K: KeySource>(
    token: &Parts<'_>,
    scope: &Scope<'_, K>,
    now: Wall,
) -> Result<(), TokenRefusal> {
    if !scope.links.contains(token.link()) {
        return Err(TokenRefusal::Elsewhere);
    }
    let minted = token.iat_s() / scope.keys.interval_s();
    if minted != token.selector().epoch {
        return Err(TokenRefusal::EpochMismatch { minted, named: token.selector().epoch });
    }
    let policy = if scope.policies.has_rooms() {
        scope.policies.of(token.app(), &token.names.rooms())
    } else {
        scope.policies.of_app(token.app())
    };
    let skew_s = u64::from(policy.skew_s);
    let now_s = now.unix_s();
    let iat_s = u64::from(token.iat_s());
    if iat_s > now_s + skew_s {
        return Err(TokenRefusal::Early { ahead_s: iat_s - now_s });
    }
    let expires_s = iat_s + u64::from(token.ttl_s());
    if now_s > expires_s + skew_s {
        return Err(TokenRefusal::Expired { ago_s: now_s - expires_s });
    }
    if token.ttl_s() > TTL_S_MAX {
        return Err(TokenRefusal::TtlTooLong { ttl_s: token.ttl_s() });
    }
    Ok(())
}

#[inline(always)]
fn check_revocations(token: &Parts<'_>, revocations: &Revocations) -> Result<(), TokenRefusal> {
    let Selector { kid, epoch, .. } = token.selector();
    if revocations.is_void(kid, epoch) {
        return Err(TokenRefusal::Void { epoch, kid });
    }
    let issued = Wall(u64::from(token.iat_s()) * 1000);
    if !revocations.is_any_kicked(issued) {
        return Ok(());
    }
    let names = token.names;
    if revocations.is_kicked(token.app(), &names.rooms(), &names.account(), issued) {
        return Err(TokenRefusal::Revoked);
    }
    Ok(())
}
