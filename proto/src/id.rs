//! Names of things: a type for every id, so that none can stand in for another.
//!
//! Ids that come from outside are parsed once, here, against a grammar with a
//! length; behind this border nobody checks them again. A name of up to 23 bytes
//! lies in the value itself, a longer one is shared: cloning allocates nothing.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use smol_str::SmolStr;

use crate::limits;

/// Why a name was not accepted.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum NameError {
    /// Empty, or longer than its limit.
    #[error("a name has 1 to {max} bytes, this one has {bytes}")]
    Length {
        /// Bytes found.
        bytes: usize,
        /// Bytes allowed.
        max: usize,
    },
    /// A character outside the grammar.
    #[error("a name may not hold the character {0:?}")]
    Character(char),
}

macro_rules! numeric_id {
    ($(#[$doc:meta])* $name:ident($inner:ty)) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub $inner);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

macro_rules! name_id {
    ($(#[$doc:meta])* $name:ident, $max:expr, $ascii:path, $allowed:expr) => {
        $(#[$doc])*
        #[derive(Clone, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(SmolStr);

        impl $name {
            const ASCII: Table = {
                let mut table = [false; 256];
                let mut byte = 0;
                while byte < 128 {
                    table[byte as usize] = $ascii(&byte);
                    byte += 1;
                }
                table
            };

            /// Checks `text` against the grammar of this name.
            #[inline]
            pub fn parse(text: &str) -> Result<Self, NameError> {
                check(text, $max, &Self::ASCII, $allowed)?;
                Ok(Self(SmolStr::new(text)))
            }

            /// Whether `bytes` are a text within the grammar of this name.
            #[must_use]
            #[inline]
            pub fn is_valid(bytes: &[u8]) -> bool {
                is_plain(bytes, $max, &Self::ASCII)
                    || std::str::from_utf8(bytes).is_ok_and(|it| Self::parse(it).is_ok())
            }

            /// The name as text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl FromStr for $name {
            type Err = NameError;
            fn from_str(text: &str) -> Result<Self, NameError> {
                Self::parse(text)
            }
        }

        impl TryFrom<String> for $name {
            type Error = NameError;
            fn try_from(text: String) -> Result<Self, NameError> {
                Self::parse(&text)
            }
        }

        impl From<$name> for String {
            fn from(name: $name) -> Self {
                name.as_str().to_owned()
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}({:?})", stringify!($name), self.as_str())
            }
        }
    };
}

numeric_id!(
    /// A customer's application; apps share nothing but the machines.
    AppId(u32)
);
numeric_id!(
    /// One process of a service.
    NodeId(u32)
);
numeric_id!(
    /// A self-sufficient slice: its own link nodes, chatservers and unit bus.
    UnitId(u16)
);
numeric_id!(
    /// One conversation of a viewer with a link node; unique within the node's life.
    SessionId(u64)
);
numeric_id!(
    /// The sender's own number for a comment: the same `Cid` twice is one comment.
    Cid(u64)
);
numeric_id!(
    /// Who sent an item, as other viewers see it: a keyed hash per room, never an account.
    SenderRef(u64)
);
numeric_id!(
    /// Generation of a room's numbering; changes when interval, layout or history changes.
    Gen(u32)
);
numeric_id!(
    /// Numbered slice of a room's timeline within a gen.
    SlotNo(u64)
);
numeric_id!(
    /// Position of an item within a gen; compare `(gen, seq)`.
    Seq(u64)
);
numeric_id!(
    /// Fencing number of a lease: a higher one is newer.
    Term(u64)
);

/// An item's identity: 64 bits, never used twice.
///
/// In JSON it is a string of decimal digits, because readers there keep only 53 bits.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct ItemId(pub u64);

impl ItemId {
    /// Puts an id together from the wall clock, the chatserver's shard and a counter.
    ///
    /// 42 bits of milliseconds since 2020 (until 2159), 10 bits of shard, 12 bits of counter:
    /// 4,096 items a millisecond and shard before the caller must move its clock on.
    #[must_use]
    pub const fn compose(wall_ms: u64, shard: u16, counter: u16) -> Self {
        const SINCE_MS: u64 = 1_577_836_800_000;
        let ms = wall_ms.saturating_sub(SINCE_MS) & ((1 << 42) - 1);
        Self((ms << 22) | ((shard as u64 & 0x3ff) << 12) | (counter as u64 & 0xfff))
    }
}

impl fmt::Display for ItemId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Serialize for ItemId {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for ItemId {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map(Self).map_err(serde::de::Error::custom)
    }
}

name_id!(
    /// One live broadcast's chat: `[A-Za-z0-9_-]{1,64}`, unique across apps.
    RoomId,
    limits::ROOM_BYTES_MAX,
    is_word,
    |_| false
);
name_id!(
    /// One person, stable across reconnects; the business server's account name.
    ViewerId,
    limits::ACCOUNT_BYTES_MAX,
    is_text,
    |it: char| !it.is_control()
);
name_id!(
    /// One of a viewer's devices, named by the client.
    DeviceId,
    limits::DEVICE_BYTES_MAX,
    u8::is_ascii_graphic,
    |_| false
);
name_id!(
    /// The name of something that a room tells everyone in it: `[A-Za-z0-9_-]{1,32}`.
    AttributeName,
    limits::ATTRIBUTE_NAME_BYTES_MAX,
    is_word,
    |_| false
);

name_id!(
    /// The name of a kind of item that an app has of its own: `[A-Za-z0-9_-]{1,32}`.
    KindName,
    limits::KIND_NAME_BYTES_MAX,
    is_word,
    |_| false
);

/// Which bytes are ASCII and allowed: looked up, since a token's names are checked at every login.
type Table = [bool; 256];

const fn is_word(byte: &u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(*byte, b'_' | b'-')
}

const fn is_text(byte: &u8) -> bool {
    !byte.is_ascii_control()
}

/// Nearly every name is ASCII, where a byte is a character. Without an early end, which would cost
/// more than it saves.
#[inline]
fn is_plain(bytes: &[u8], max: usize, ascii: &Table) -> bool {
    let is_plain = |all, byte: &u8| all & ascii[usize::from(*byte)];
    (1..=max).contains(&bytes.len()) && bytes.iter().fold(true, is_plain)
}

/// `other` says which characters beyond ASCII are allowed.
#[inline]
fn check(
    text: &str,
    max: usize,
    ascii: &Table,
    other: impl Fn(char) -> bool,
) -> Result<(), NameError> {
    if text.is_empty() || text.len() > max {
        return Err(NameError::Length { bytes: text.len(), max });
    }
    if is_plain(text.as_bytes(), max, ascii) {
        return Ok(());
    }
    let is_bad = |it: &char| match u8::try_from(*it) {
        Ok(byte) if byte.is_ascii() => !ascii[usize::from(byte)],
        Ok(_) | Err(_) => !other(*it),
    };
    text.chars().find(is_bad).map_or(Ok(()), |bad| Err(NameError::Character(bad)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_room_name_is_short_and_plain() {
        assert!(RoomId::parse("Room_1-a").is_ok());
        assert!(RoomId::parse(&"r".repeat(64)).is_ok());
        assert_eq!(RoomId::parse(&"r".repeat(65)), Err(NameError::Length { bytes: 65, max: 64 }));
        assert_eq!(RoomId::parse(""), Err(NameError::Length { bytes: 0, max: 64 }));
        for bad in ["../x", "a%2fb", "a b", "a\0", "a/b", "ü"] {
            assert!(matches!(RoomId::parse(bad), Err(NameError::Character(_))), "{bad:?}");
        }
    }

    #[test]
    fn an_item_id_is_a_string_in_json() {
        let id = ItemId(u64::MAX);

        let json = serde_json::to_string(&id).unwrap();

        assert_eq!(json, "\"18446744073709551615\"");
        assert_eq!(serde_json::from_str::<ItemId>(&json).unwrap(), id);
    }

    #[test]
    fn item_ids_rise_with_time_then_counter() {
        let earlier = ItemId::compose(1_800_000_000_000, 1023, 4095);
        let later = ItemId::compose(1_800_000_000_001, 0, 0);

        assert!(earlier < later);
        assert!(
            ItemId::compose(1_800_000_000_000, 7, 1) < ItemId::compose(1_800_000_000_000, 7, 2)
        );
    }
}
