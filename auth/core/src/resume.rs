//! The resume ticket: a sealed proof of an earlier login, good at any link of the unit until ten
//! minutes after the token that began it. Only links can read it, and only those of the same unit.
//!
//! ```text
//! "dmr1." base64url(ver u8=1 | kid u8 | epoch u32 | nonce[12] | AES-256-GCM(claims))
//! claims = flags u8 | app u32 | iat u32 | caps u16 | kid u8 | epoch u32 | names, as in a token
//! ```

use std::fmt;

use aes_gcm::aead::{Aead, KeyInit, Payload};
use aes_gcm::{Aes256Gcm, Nonce};
use proto::close::CloseCode;
use proto::id::{AppId, DeviceId, ViewerId};
use proto::item::Role;
use proto::limits::TOKEN_BYTES_MAX;
use proto::time::Wall;

use crate::keyring::LinkKeyring;
use crate::revocation::Revocations;
use crate::token::{LEEWAY_S, Rooms, role};
use crate::wire::{self, Damaged, NAMES_BYTES_MAX, Reader};

/// Life of a resume ticket, seconds.
pub const LIFE_S: u32 = 600;
/// Bytes of the nonce that sealing takes.
pub const NONCE_BYTES: usize = 12;

const PREFIX: &str = "dmr1.";
const DOMAIN: &[u8] = b"dm-resume-v1\0";
const VERSION: u8 = 1;
const HEAD_BYTES: usize = 6;
const FIXED_BYTES: usize = 16;
const TAG_BYTES: usize = 16;
const RAW_BYTES_MAX: usize = HEAD_BYTES + NONCE_BYTES + FIXED_BYTES + NAMES_BYTES_MAX + TAG_BYTES;
const _: () = assert!(PREFIX.len() + RAW_BYTES_MAX.div_ceil(3) * 4 <= TOKEN_BYTES_MAX);

/// What a resume ticket says: what the session that got it was.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Claims {
    /// Whose.
    pub app: AppId,
    /// When the permission behind it was issued: the `iat` of the token that began the chain, handed
    /// on unchanged from ticket to ticket. The life counts from there, and kicks after it refuse;
    /// a later time would let a viewer pass who logged in just before the link heard of the kick.
    /// Seconds since 1970.
    pub iat_s: u32,
    /// Master and epoch of that token: when they are void, so is everything that came of them.
    pub kid: u8,
    /// See [`Claims::kid`].
    pub epoch: u32,
    /// Bits of [`crate::token::flag`].
    pub flags: u8,
    /// Bits of [`crate::token::cap`].
    pub caps: u16,
    /// Who.
    pub account: ViewerId,
    /// On which device.
    pub device: Option<DeviceId>,
    /// Where the viewer may be.
    pub rooms: Rooms,
}

impl Claims {
    /// What the viewer is.
    #[must_use]
    pub const fn role(&self) -> Role {
        role(self.flags, self.caps)
    }
}

/// A unit's resume key of one epoch. `Debug` prints nothing of it.
#[derive(Clone)]
pub struct Key {
    epoch: u32,
    kid: u8,
    cipher: Aes256Gcm,
}

impl Key {
    /// Prepares a key.
    #[must_use]
    pub fn new(epoch: u32, kid: u8, key: &[u8; 32]) -> Self {
        Self { epoch, kid, cipher: Aes256Gcm::new(key.into()) }
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key(epoch {}, kid {}, …)", self.epoch, self.kid)
    }
}

/// Why a resume ticket is refused. The order is that of the checks.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum ResumeRefusal {
    /// Longer than any resume ticket.
    #[error("the resume ticket has {bytes} bytes, more than {TOKEN_BYTES_MAX}")]
    TooLong {
        /// Bytes found.
        bytes: usize,
    },
    /// Not `dmr1.` and strict base64url, or cut off.
    #[error("the resume ticket is damaged")]
    Malformed,
    /// Another unit's, too old, or not yet fetched.
    #[error("no resume key of master {kid} in epoch {epoch}")]
    NoKey {
        /// Epoch.
        epoch: u32,
        /// Master.
        kid: u8,
    },
    /// Sealed with another key, or changed.
    #[error("the seal does not match")]
    Seal,
    /// Issued in the future by more than the leeway.
    #[error("the resume ticket was issued {ahead_s} s ahead of this clock")]
    Early {
        /// Seconds until `iat`.
        ahead_s: u64,
    },
    /// Its ten minutes are over.
    #[error("the resume ticket expired {ago_s} s ago")]
    Expired {
        /// Seconds since its end.
        ago_s: u64,
    },
    /// Its epoch was declared void.
    #[error("epoch {epoch} of master {kid} is void")]
    Void {
        /// Epoch.
        epoch: u32,
        /// Master.
        kid: u8,
    },
    /// The viewer was kicked after it was issued.
    #[error("the viewer was kicked after the resume ticket was issued")]
    Revoked,
}

impl ResumeRefusal {
    /// What the client is told, one code for all that fails up to the seal: with any retryable code
    /// it asks `enter` for a token.
    #[must_use]
    pub const fn close_code(self) -> CloseCode {
        match self {
            Self::TooLong { .. } | Self::Malformed | Self::NoKey { .. } | Self::Seal => {
                CloseCode::TokenInvalid
            }
            Self::Void { .. } => CloseCode::TokenEpoch,
            Self::Early { .. } | Self::Expired { .. } => CloseCode::TokenExpired,
            Self::Revoked => CloseCode::Kicked,
        }
    }

    /// The word in metrics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::TooLong { .. } => "resume_too_long",
            Self::Malformed => "resume_malformed",
            Self::NoKey { .. } => "resume_no_key",
            Self::Seal => "resume_seal",
            Self::Early { .. } => "resume_early",
            Self::Expired { .. } => "resume_expired",
            Self::Void { .. } => "resume_void",
            Self::Revoked => "resume_revoked",
        }
    }
}

impl From<Damaged> for ResumeRefusal {
    fn from(_: Damaged) -> Self {
        Self::Malformed
    }
}

/// Seals claims. `nonce` must be random: it may never come twice with one key.
#[must_use]
pub fn seal(claims: &Claims, key: &Key, nonce: [u8; NONCE_BYTES]) -> String {
    let mut plain = Vec::with_capacity(FIXED_BYTES + NAMES_BYTES_MAX);
    plain.push(claims.flags);
    plain.extend_from_slice(&claims.app.0.to_be_bytes());
    plain.extend_from_slice(&claims.iat_s.to_be_bytes());
    plain.extend_from_slice(&claims.caps.to_be_bytes());
    plain.push(claims.kid);
    plain.extend_from_slice(&claims.epoch.to_be_bytes());
    let put = |bytes: &[u8]| plain.extend_from_slice(bytes);
    wire::put_names(claims.account.as_str().as_bytes(), claims.device.as_ref(), &claims.rooms, put);

    let mut raw = Vec::with_capacity(RAW_BYTES_MAX);
    raw.extend_from_slice(&[VERSION, key.kid]);
    raw.extend_from_slice(&key.epoch.to_be_bytes());
    let aad = [DOMAIN, &raw].concat();
    raw.extend_from_slice(&nonce);
    let sealed = key
        .cipher
        .encrypt(&Nonce::from(nonce), Payload { msg: &plain, aad: &aad })
        .expect("GCM seals anything shorter than 64 GiB");
    raw.extend_from_slice(&sealed);
    wire::encode(PREFIX, &raw)
}

/// Opens a resume ticket and checks it.
pub fn open(
    text: &str,
    keys: &LinkKeyring,
    revocations: &Revocations,
    now: Wall,
) -> Result<Claims, ResumeRefusal> {
    let (claims, epoch, kid) = unseal(text, keys)?;
    let now_s = now.unix_s();
    let iat_s = u64::from(claims.iat_s);
    if iat_s > now_s + u64::from(LEEWAY_S) {
        return Err(ResumeRefusal::Early { ahead_s: iat_s - now_s });
    }
    let end_s = iat_s + u64::from(LIFE_S);
    if now_s > end_s {
        return Err(ResumeRefusal::Expired { ago_s: now_s - end_s });
    }
    for (kid, epoch) in [(kid, epoch), (claims.kid, claims.epoch)] {
        if revocations.is_void(kid, epoch) {
            return Err(ResumeRefusal::Void { epoch, kid });
        }
    }
    let issued = Wall(iat_s * 1000);
    if revocations.is_kicked(claims.app, &claims.rooms, &claims.account, issued) {
        return Err(ResumeRefusal::Revoked);
    }
    Ok(claims)
}

fn unseal(text: &str, keys: &LinkKeyring) -> Result<(Claims, u32, u8), ResumeRefusal> {
    if text.len() > TOKEN_BYTES_MAX {
        return Err(ResumeRefusal::TooLong { bytes: text.len() });
    }
    let encoded = text.strip_prefix(PREFIX).ok_or(ResumeRefusal::Malformed)?;
    let mut bytes = [0; RAW_BYTES_MAX];
    let raw = wire::decode(encoded, &mut bytes)?;
    let mut reader = Reader::new(raw);
    let [version, kid] = *reader.array()?;
    let epoch = u32::from_be_bytes(*reader.array()?);
    let nonce: [u8; NONCE_BYTES] = *reader.array()?;
    if version != VERSION {
        return Err(ResumeRefusal::Malformed);
    }
    let key = keys.opening_key(epoch, kid).ok_or(ResumeRefusal::NoKey { epoch, kid })?;
    let aad = [DOMAIN, &raw[..HEAD_BYTES]].concat();
    let msg = &raw[HEAD_BYTES + NONCE_BYTES..];
    let plain = key
        .cipher
        .decrypt(&Nonce::from(nonce), Payload { msg, aad: &aad })
        .map_err(|_| ResumeRefusal::Seal)?;
    Ok((parse(&plain)?, epoch, kid))
}

fn parse(plain: &[u8]) -> Result<Claims, Damaged> {
    let mut reader = Reader::new(plain);
    let [flags] = *reader.array()?;
    let app = AppId(u32::from_be_bytes(*reader.array()?));
    let iat_s = u32::from_be_bytes(*reader.array()?);
    let caps = u16::from_be_bytes(*reader.array()?);
    let [kid] = *reader.array()?;
    let epoch = u32::from_be_bytes(*reader.array()?);
    let names = reader.names()?;
    Ok(Claims {
        app,
        iat_s,
        kid,
        epoch,
        flags,
        caps,
        account: names.account(),
        device: names.device(),
        rooms: names.rooms(),
    })
}
