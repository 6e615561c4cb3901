//! Close and refusal codes: one table for Rust, TypeScript and the docs.
//!
//! 3000–3499 come back (with jitter and the given delay), 3500–3999 do not.

use serde::{Deserialize, Serialize};

macro_rules! close_codes {
    ($($(#[$doc:meta])* $name:ident = $code:literal, $word:literal;)+) => {
        /// Why a session ended or was not begun.
        #[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize, Deserialize)]
        #[repr(u16)]
        pub enum CloseCode {
            $($(#[$doc])* #[serde(rename = $word)] $name = $code,)+
        }

        impl CloseCode {
            /// Every code, ascending.
            pub const ALL: &'static [Self] = &[$(Self::$name,)+];

            /// The word in JSON, metrics and logs.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$name => $word,)+ }
            }

            /// The code with this number.
            #[must_use]
            pub const fn from_code(code: u16) -> Option<Self> {
                match code { $($code => Some(Self::$name),)+ _ => None }
            }
        }
    };
}

close_codes! {
    /// The node drains: come back elsewhere.
    Draining = 3000, "draining";
    /// Nothing was heard for too long.
    Silent = 3001, "silent";
    /// The session read too slowly and its outbox filled.
    Slow = 3002, "slow";
    /// The session's life is over: come back with a new token.
    Expired = 3003, "expired";
    /// The node is full, or the room is.
    Full = 3004, "full";
    /// Too many attempts from this address or account, or too many viewers at once into a room.
    RateLimited = 3005, "rate_limited";
    /// The login took too long.
    LoginTimeout = 3006, "login_timeout";
    /// Something inside is away: try again.
    Unavailable = 3007, "unavailable";
    /// The token is over; the answer carries the server's time.
    TokenExpired = 3008, "token_expired";
    /// The epoch of the token was declared void: a new token is of another key.
    TokenEpoch = 3009, "token_epoch";
    /// The token is for another address of this node.
    TokenElsewhere = 3010, "token_elsewhere";
    /// The single-use token was used before.
    TokenReplayed = 3011, "token_replayed";
    /// Moved to another node by an operator.
    Moved = 3012, "moved";
    /// Not a token of ours, or none that can be checked here and now: ask for a new one. The one
    /// answer to everything that fails before the MAC is known to be right, so that a forger learns
    /// nothing from it.
    TokenInvalid = 3013, "token_invalid";
    /// The viewer was kicked, and the permission was issued so shortly afterwards that servers'
    /// clocks cannot tell which came first: ask for a new one after the given delay.
    KickedLately = 3014, "kicked_lately";

    /// Kicked by a moderator.
    Kicked = 3501, "kicked";
    /// The same viewer came in with another device.
    OtherDevice = 3502, "other_device";
    /// Banned.
    Banned = 3503, "banned";
    /// A frame that is not one of ours.
    BadFrame = 3504, "bad_frame";
    /// A frame longer than the limit.
    FrameTooLarge = 3505, "frame_too_large";
    /// A well-formed frame at the wrong time.
    Unexpected = 3506, "unexpected";
    /// This SDK version is not served any more.
    UpgradeRequired = 3507, "upgrade_required";
    /// No common protocol version or suite.
    NoCommonVersion = 3508, "no_common_version";
    /// The room does not exist or the token does not allow it.
    NoRoom = 3509, "no_room";
    /// The binder or the offer does not match the channel.
    BadBinder = 3510, "bad_binder";
    /// The client said goodbye.
    Bye = 3511, "bye";
    /// The session began without a ticket, and no room of it takes that any more.
    TicketRequired = 3512, "ticket_required";
    /// The room is closed.
    RoomClosed = 3513, "room_closed";
}

impl CloseCode {
    /// The number on the wire, and the code of a WebSocket close frame
    /// (RFC 6455 7.4.2 leaves 3000–3999 to frameworks and applications).
    #[must_use]
    pub const fn code(self) -> u16 {
        self as u16
    }

    /// Whether a client should try again by itself.
    #[must_use]
    pub const fn comes_back(self) -> bool {
        self.code() < 3500
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_and_words_are_unique_and_in_range() {
        let mut words = std::collections::BTreeSet::new();
        for pair in CloseCode::ALL.windows(2) {
            assert!(pair[0] < pair[1]);
        }
        for &code in CloseCode::ALL {
            assert!((3000..4000).contains(&code.code()));
            assert!(words.insert(code.name()));
            assert_eq!(CloseCode::from_code(code.code()), Some(code));
        }
    }
}
