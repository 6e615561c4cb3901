//! The business server's word: a JWT that says who the viewer is and where they may be.
//!
//! A JWT is a JWS (RFC 7515) in its compact form, verified here as RFC 8725 advises. Each part is
//! read once. Two fields are believed before the signature, `app` and `kid`, and only to find the
//! key; the algorithm is the key's, whatever the ticket says. Nothing is fetched from where a
//! ticket points to. The clock is the caller's.

mod head;
mod jwks;
mod keys;
mod pair;
mod sign;
mod usual;

use std::borrow::Cow;
use std::time::Duration;

use base64_simd::URL_SAFE_NO_PAD;
use jsonwebtoken::Algorithm;
use proto::id::{AppId, RoomId, ViewerId};
use proto::item::Role;
use proto::limits::ROOMS_PER_SESSION_MAX;
use proto::time::Wall;
use serde::Deserialize;
use serde::de::IgnoredAny;

use self::keys::{PinnedKey, algorithm};
use self::usual::Said;
use crate::revocation::Revocations;
use crate::token::{LEEWAY_S, Rooms, cap, flag};
use crate::wire;

pub use jwks::{JWKS_BYTES_MAX, JWKS_KEYS_MAX, Jwks, JwksError, Skipped, Unusable};
pub use keys::{TicketKeyError, TicketKeys};
pub use pair::Pair;
pub use sign::{Audience, Claims, SignError, Signer};

/// Longest life of a ticket.
pub const LIFE_MAX: Duration = Duration::from_secs(24 * 60 * 60);
/// Bytes of a ticket's text.
pub const TICKET_BYTES_MAX: usize = 4096;
/// Bytes of a part of a ticket that take no allocation: usual headers, signatures and claims.
const SHORT_BYTES: usize = 192;

/// A ticket that was verified.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Ticket {
    /// Whose.
    pub app: AppId,
    /// Who.
    pub account: ViewerId,
    /// Where, at least one.
    pub rooms: Rooms,
    /// What they are there.
    pub role: Role,
    /// Whether they may send comments.
    pub may_send: bool,
    /// Bits of [`cap`], those of the role included.
    pub caps: u16,
    /// When it was issued.
    pub issued: Wall,
    /// When it ends.
    pub expires: Wall,
}

impl Ticket {
    /// The bits of [`flag`] for a token of this ticket.
    #[must_use]
    pub const fn flags(&self) -> u8 {
        let send = if self.may_send { flag::MAY_SEND } else { 0 };
        send | match self.role {
            Role::Guest => flag::GUEST,
            Role::Viewer | Role::Vip => 0,
            Role::Moderator | Role::Host => flag::MODERATOR,
        }
    }
}

/// Why a ticket is refused. The order is that of the checks.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum TicketRefusal {
    /// More than [`TICKET_BYTES_MAX`].
    #[error("the ticket has {bytes} bytes, more than {TICKET_BYTES_MAX}")]
    TooLong {
        /// Bytes found.
        bytes: usize,
    },
    /// Not a JWT, or a claim is missing or outside its grammar.
    #[error("the ticket is not a JWT with the claims it needs")]
    Malformed,
    /// Not an app of ours.
    #[error("app {app} is unknown")]
    UnknownApp {
        /// The app it names.
        app: AppId,
    },
    /// The app has no key of this name.
    #[error("app {app} has no ticket key of this name")]
    UnknownKey {
        /// The app it names.
        app: AppId,
    },
    /// It names another algorithm than the key's.
    #[error("the ticket's algorithm is not that of its key")]
    WrongAlg,
    /// Somebody without the key made or changed it.
    #[error("the ticket's signature does not match")]
    WrongSignature,
    /// Made for somebody else.
    #[error("the ticket is for another audience")]
    WrongAudience,
    /// Would live too long.
    #[error("a life of {life_s} s is longer than a day")]
    LifeTooLong {
        /// Seconds found.
        life_s: u64,
    },
    /// Issued or valid only in the future.
    #[error("the ticket is valid only in {ahead_s} s")]
    NotYetValid {
        /// Seconds until then.
        ahead_s: u64,
    },
    /// Its time is over.
    #[error("the ticket expired {ago_s} s ago")]
    Expired {
        /// Seconds since its end.
        ago_s: u64,
    },
    /// The viewer was kicked after it was issued.
    #[error("the viewer was kicked after the ticket was issued")]
    Kicked,
    /// The viewer may not enter.
    #[error("the viewer is banned")]
    Banned,
}

impl TicketRefusal {
    /// The stable word in problem documents and metrics.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::TooLong { .. } => "ticket_too_long",
            Self::Malformed => "ticket_malformed",
            Self::UnknownApp { .. } => "ticket_unknown_app",
            Self::UnknownKey { .. } => "ticket_unknown_key",
            Self::WrongAlg => "ticket_wrong_alg",
            Self::WrongSignature => "ticket_wrong_signature",
            Self::WrongAudience => "ticket_wrong_audience",
            Self::LifeTooLong { .. } => "ticket_life_too_long",
            Self::NotYetValid { .. } => "ticket_not_yet_valid",
            Self::Expired { .. } => "ticket_expired",
            Self::Kicked => "kicked",
            Self::Banned => "banned",
        }
    }

    /// The HTTP status that fits.
    #[must_use]
    pub const fn status(&self) -> u16 {
        match self {
            Self::TooLong { .. } | Self::Malformed => 400,
            Self::UnknownApp { .. }
            | Self::UnknownKey { .. }
            | Self::WrongAlg
            | Self::WrongSignature
            | Self::WrongAudience
            | Self::LifeTooLong { .. }
            | Self::NotYetValid { .. }
            | Self::Expired { .. } => 401,
            Self::Kicked | Self::Banned => 403,
        }
    }
}

/// Checks a ticket.
pub fn verify(
    text: &str,
    keys: &TicketKeys,
    revocations: &Revocations,
    now: Wall,
) -> Result<Ticket, TicketRefusal> {
    if text.len() > TICKET_BYTES_MAX {
        return Err(TicketRefusal::TooLong { bytes: text.len() });
    }
    let (message, signature) = text.rsplit_once('.').ok_or(TicketRefusal::Malformed)?;
    let (head, payload) = message.rsplit_once('.').ok_or(TicketRefusal::Malformed)?;
    let (mut decoder, mut kept) = (Decoder::default(), None);
    let payload = decoder.decode(payload)?;
    let claims = claims(payload, &mut kept);
    let app = claims.as_ref().map_or_else(|_| claimed_app(payload), |it| Ok(it.app))?;
    let key = match keys.of_usual(app, head) {
        Some(key) => key,
        None => {
            let mut decoder = Decoder::default();
            let header = header(decoder.decode(head)?)?;
            let key = keys.find(app, header.kid.as_deref().unwrap_or(""))?;
            header.check(key)?;
            key
        }
    };
    if !key.has_signed(message.as_bytes(), Decoder::default().decode(signature)?) {
        return Err(TicketRefusal::WrongSignature);
    }
    let claims = claims?;
    if !keys.is_audience(claims.aud) {
        return Err(TicketRefusal::WrongAudience);
    }
    check_times(&claims, now)?;
    let ticket = ticket(&claims)?;
    if revocations.is_kicked(app, &ticket.rooms, &ticket.account, ticket.issued) {
        return Err(TicketRefusal::Kicked);
    }
    if revocations.is_banned(app, &ticket.rooms, &ticket.account, now) {
        return Err(TicketRefusal::Banned);
    }
    Ok(ticket)
}

/// What matters of a header; a ticket may bring other members, which nobody looks at.
#[derive(Debug, Deserialize, PartialEq)]
struct Header<'a> {
    alg: Algorithm,
    kid: Option<Cow<'a, str>>,
    crit: Option<IgnoredAny>,
    #[serde(default = "yes")]
    b64: bool,
}

const fn yes() -> bool {
    true
}

impl Header<'_> {
    fn check(&self, key: &PinnedKey) -> Result<(), TicketRefusal> {
        // RFC 7515 4.1.11: nothing that could be critical is understood here, RFC 7797 included.
        if self.crit.is_some() || !self.b64 {
            return Err(TicketRefusal::Malformed);
        }
        if self.alg != algorithm(key.alg()) {
            return Err(TicketRefusal::WrongAlg);
        }
        Ok(())
    }
}

/// The app of a ticket whose other claims are damaged: its signature is looked at before they are.
fn claimed_app(payload: &[u8]) -> Result<AppId, TicketRefusal> {
    #[derive(Deserialize)]
    struct Claimed {
        app: AppId,
    }
    parse(payload).map(|it: Claimed| it.app)
}

fn header(json: &[u8]) -> Result<Header<'_>, TicketRefusal> {
    usual::header(json).map_or_else(|| parse(json), Ok)
}

/// The claims; what is not as usual is kept in `kept`.
fn claims<'a>(json: &'a [u8], kept: &'a mut Option<Claims>) -> Result<Said<'a>, TicketRefusal> {
    match usual::claims(json) {
        Some(said) => Ok(said),
        None => Ok(Said::of(kept.insert(parse(json)?))),
    }
}

/// Room for what a part of a ticket says.
struct Decoder {
    short: [u8; SHORT_BYTES],
    long: Vec<u8>,
}

impl Default for Decoder {
    fn default() -> Self {
        Self { short: [0; SHORT_BYTES], long: Vec::new() }
    }
}

impl Decoder {
    /// Strict base64url without padding, as RFC 7515 2 has it.
    fn decode(&mut self, part: &str) -> Result<&[u8], TicketRefusal> {
        if part.len() <= SHORT_BYTES / 3 * 4 {
            return wire::decode(part, &mut self.short).map_err(|_| TicketRefusal::Malformed);
        }
        self.long = URL_SAFE_NO_PAD.decode_to_vec(part).map_err(|_| TicketRefusal::Malformed)?;
        Ok(&self.long)
    }
}

fn parse<'a, T: Deserialize<'a>>(json: &'a [u8]) -> Result<T, TicketRefusal> {
    serde_json::from_slice(json).map_err(|_| TicketRefusal::Malformed)
}

fn check_times(claims: &Said<'_>, now: Wall) -> Result<(), TicketRefusal> {
    let now_s = now.unix_s();
    let leeway_s = u64::from(LEEWAY_S);
    let life_s = claims.exp.checked_sub(claims.iat).ok_or(TicketRefusal::Malformed)?;
    if life_s > LIFE_MAX.as_secs() {
        return Err(TicketRefusal::LifeTooLong { life_s });
    }
    let from_s = claims.nbf.unwrap_or(0).max(claims.iat);
    if from_s > now_s.saturating_add(leeway_s) {
        return Err(TicketRefusal::NotYetValid { ahead_s: from_s - now_s });
    }
    if now_s > claims.exp.saturating_add(leeway_s) {
        return Err(TicketRefusal::Expired { ago_s: now_s - claims.exp });
    }
    Ok(())
}

fn ticket(claims: &Said<'_>) -> Result<Ticket, TicketRefusal> {
    let account = ViewerId::parse(claims.sub).map_err(|_| TicketRefusal::Malformed)?;
    let rooms = rooms(claims.room, claims.rooms)?;
    let role = claims.role;
    let caps = [
        (claims.verified, cap::VERIFIED),
        (claims.minor, cap::MINOR),
        (claims.push, cap::PROMOTED),
        (role == Role::Host, cap::HOST),
        (role == Role::Vip, cap::VIP),
    ];
    Ok(Ticket {
        app: claims.app,
        account,
        rooms,
        role,
        may_send: claims.send.unwrap_or(role != Role::Guest),
        caps: caps.iter().filter(|(on, _)| *on).fold(0, |caps, (_, bit)| caps | bit),
        issued: Wall(claims.iat.saturating_mul(1000)),
        expires: Wall(claims.exp.saturating_mul(1000)),
    })
}

/// One room or a list of them, not both and not none.
fn rooms(room: Option<&str>, rooms: &[String]) -> Result<Rooms, TicketRefusal> {
    let parse = |name: &str| RoomId::parse(name).map_err(|_| TicketRefusal::Malformed);
    match room {
        Some(room) if rooms.is_empty() => Ok(parse(room)?.into()),
        None if (1..=ROOMS_PER_SESSION_MAX).contains(&rooms.len()) => {
            let rooms: Vec<RoomId> = rooms.iter().map(|it| parse(it)).collect::<Result<_, _>>()?;
            Rooms::try_from(rooms).map_err(|_| TicketRefusal::Malformed)
        }
        Some(_) | None => Err(TicketRefusal::Malformed),
    }
}
