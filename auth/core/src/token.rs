//! The dynamic token: short-lived permission to connect to one address.
//!
//! [`mint`] and [`verify`] are pure; the layout is in `layout.rs`, the order of checks in
//! `verify.rs`. A token grants a connection within its seconds; the session that follows has a
//! life of its own.

mod explain;
mod layout;
mod verify;

use std::ops::Deref;

use proto::id::{AppId, DeviceId, RoomId, ViewerId};
use proto::item::Role;
use proto::limits::ROOMS_PER_SESSION_MAX;
use proto::policy::SKEW_S_MAX;
use proto::time::Wall;

use crate::derive::LinkId;
use crate::mac;

pub use explain::{Explanation, explain};
pub use layout::{Own, Selector, Shared, Signed, Unverified, mint_each};
pub use verify::{KeyName, KeySource, NoKey, Scope, TokenRefusal, Verified, verify, verify_with};

/// Longest life of a token, seconds.
pub const TTL_S_MAX: u16 = 120;
/// How far two servers' clocks may be apart, seconds.
pub const LEEWAY_S: u32 = 30;

/// Bits of [`Claims::flags`].
pub mod flag {
    /// Opens one session only.
    pub const SINGLE_USE: u8 = 1;
    /// May send comments.
    pub const MAY_SEND: u8 = 2;
    /// Keeps order.
    pub const MODERATOR: u8 = 4;
    /// Not logged in with the business server.
    pub const GUEST: u8 = 8;
    /// Let in without a ticket: what it may do follows from the room's [`Entry`] of the moment.
    ///
    /// [`Entry`]: proto::policy::Entry
    pub const NO_TICKET: u8 = 16;
}

/// Bits of [`Claims::caps`].
pub mod cap {
    /// The account is verified.
    pub const VERIFIED: u16 = 1;
    /// The viewer is a minor.
    pub const MINOR: u16 = 2;
    /// Keeps the push in hot rooms.
    pub const PROMOTED: u16 = 4;
    /// On air.
    pub const HOST: u16 = 8;
    /// Paid for a badge.
    pub const VIP: u16 = 16;
}

/// What a token says.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Claims {
    /// Whose.
    pub app: AppId,
    /// For which address.
    pub link: LinkId,
    /// When it was minted, seconds since 1970.
    pub iat_s: u32,
    /// How long it lives, seconds, at most [`TTL_S_MAX`].
    pub ttl_s: u16,
    /// Bits of [`flag`].
    pub flags: u8,
    /// Bits of [`cap`].
    pub caps: u16,
    /// Random: no two tokens share it.
    pub jti: [u8; 16],
    /// Who.
    pub account: ViewerId,
    /// On which device, if the client named one.
    pub device: Option<DeviceId>,
    /// Where the viewer may be.
    pub rooms: Rooms,
}

impl Claims {
    /// Whether a bit of [`flag`] is set.
    #[must_use]
    pub const fn has_flag(&self, bit: u8) -> bool {
        self.flags & bit != 0
    }

    /// Whether a bit of [`cap`] is set.
    #[must_use]
    pub const fn has_cap(&self, bit: u16) -> bool {
        self.caps & bit != 0
    }

    /// What they share with the other tokens of the viewer.
    #[must_use]
    pub fn shared(&self) -> Shared<'_> {
        Shared {
            app: self.app,
            iat_s: self.iat_s,
            ttl_s: self.ttl_s,
            flags: self.flags,
            caps: self.caps,
            account: self.account.as_str().as_bytes(),
            device: self.device.as_ref(),
            rooms: &self.rooms,
        }
    }

    /// What the viewer is.
    #[must_use]
    pub const fn role(&self) -> Role {
        role(self.flags, self.caps)
    }

    /// Until when it must be remembered that the token was used.
    #[must_use]
    pub fn ends(&self) -> Wall {
        ends(self.iat_s, self.ttl_s)
    }
}

/// When a token passes nowhere any more, whatever the policy's skew is, or becomes while it lives.
fn ends(iat_s: u32, ttl_s: u16) -> Wall {
    Wall((u64::from(iat_s) + u64::from(ttl_s) + u64::from(SKEW_S_MAX)) * 1000)
}

/// The role that flags and caps spell, the highest first.
#[must_use]
pub const fn role(flags: u8, caps: u16) -> Role {
    if caps & cap::HOST != 0 {
        Role::Host
    } else if flags & flag::MODERATOR != 0 {
        Role::Moderator
    } else if caps & cap::VIP != 0 {
        Role::Vip
    } else if flags & flag::GUEST != 0 {
        Role::Guest
    } else {
        Role::Viewer
    }
}

/// At most [`ROOMS_PER_SESSION_MAX`] rooms; one, as usual, without an allocation.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Rooms(Held);

#[derive(Clone, Debug, Eq, PartialEq)]
enum Held {
    One(RoomId),
    /// None, or two and more: equal rooms are held in the same way.
    Other(Vec<RoomId>),
}

/// More than [`ROOMS_PER_SESSION_MAX`] rooms.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("{rooms} rooms are more than {ROOMS_PER_SESSION_MAX}")]
pub struct TooManyRooms {
    /// Rooms given.
    pub rooms: usize,
}

impl TryFrom<Vec<RoomId>> for Rooms {
    type Error = TooManyRooms;

    fn try_from(mut rooms: Vec<RoomId>) -> Result<Self, TooManyRooms> {
        match rooms.len() {
            1 => Ok(rooms.remove(0).into()),
            0 | 2..=ROOMS_PER_SESSION_MAX => Ok(Self(Held::Other(rooms))),
            rooms => Err(TooManyRooms { rooms }),
        }
    }
}

impl From<RoomId> for Rooms {
    fn from(room: RoomId) -> Self {
        Self(Held::One(room))
    }
}

impl Default for Rooms {
    fn default() -> Self {
        Self(Held::Other(Vec::new()))
    }
}

impl Deref for Rooms {
    type Target = [RoomId];

    fn deref(&self) -> &[RoomId] {
        match &self.0 {
            Held::One(room) => std::slice::from_ref(room),
            Held::Other(rooms) => rooms,
        }
    }
}

/// A key that can mint: which epoch and master it is of, and its MAC.
#[derive(Clone, Debug)]
pub struct Key {
    /// Epoch.
    pub epoch: u32,
    /// Master.
    pub kid: u8,
    /// Algorithm and key.
    pub mac: mac::Key,
}

/// Writes a token.
///
/// `key` must be that of the claims' app, link and epoch: [`crate::keyring::Keyring::mint`] finds
/// it; a token minted with another is refused everywhere.
#[must_use]
pub fn mint(claims: &Claims, key: &Key) -> String {
    let own = Own { link: &claims.link, jti: &claims.jti, key };
    let mut text = String::new();
    mint_each(&claims.shared(), [own], |_, token| text = token.text());
    text
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// The claims of the protocol page's vector.
    pub(crate) fn vector_claims() -> Claims {
        Claims {
            app: AppId(1),
            link: crate::link_id("link-07.example:443"),
            iat_s: 2_975_000 * 600 + 30,
            ttl_s: 60,
            flags: flag::SINGLE_USE | flag::MAY_SEND,
            caps: cap::VERIFIED | cap::MINOR,
            jti: std::array::from_fn(|it| 0x10 + u8::try_from(it).unwrap()),
            account: ViewerId::parse("user-42").unwrap(),
            device: Some(DeviceId::parse("ios-1").unwrap()),
            rooms: RoomId::parse("room-1").unwrap().into(),
        }
    }

    #[test]
    fn the_highest_role_counts() {
        assert_eq!(role(flag::GUEST, 0), Role::Guest);
        assert_eq!(role(0, 0), Role::Viewer);
        assert_eq!(role(0, cap::VIP), Role::Vip);
        assert_eq!(role(flag::MODERATOR, cap::VIP), Role::Moderator);
        assert_eq!(role(flag::MODERATOR, cap::HOST), Role::Host);
    }

    #[test]
    fn eight_rooms_are_the_most() {
        let rooms = |count| vec![RoomId::parse("r").unwrap(); count];

        assert!(Rooms::try_from(rooms(8)).is_ok());
        assert_eq!(Rooms::try_from(rooms(9)), Err(TooManyRooms { rooms: 9 }));
    }
}
