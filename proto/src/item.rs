//! What can be shown in a room.

use serde::{Deserialize, Serialize};

use crate::id::{Gen, ItemId, KindName, SenderRef, Seq};
use crate::time::Wall;

/// A comment's text. Up to 23 bytes stand in place and longer ones are shared, so neither reading
/// nor copying most comments takes memory.
pub type Text = smol_str::SmolStr;

/// Anything that can be shown in a room.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub struct Item {
    /// Never used twice; a gift's id is a hash of app, room and idempotency key.
    pub id: ItemId,
    /// Priority class inside the broadcaster.
    pub lane: Lane,
    /// Who sent it, as others see it.
    pub sender: SenderRef,
    /// What the sender is in this room.
    pub role: Role,
    /// When it was admitted.
    pub at: Wall,
    /// What is shown.
    pub body: Body,
}

/// What an item shows.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Body {
    /// Text a viewer sent.
    Comment {
        /// The text, as it was sent.
        text: Text,
        /// How it looks.
        style: Style,
        /// Position in the picture that the sender saw, if the sender said it.
        media_ms: Option<u64>,
        /// How many said it: 1, or more where a room shows equal comments as one.
        #[serde(default = "one", skip_serializing_if = "is_one")]
        count: u32,
    },
    /// A gift; name and picture are in the room's catalogue.
    Gift {
        /// Number in the catalogue.
        gift_no: u32,
        /// How many at once.
        count: u32,
        /// Words that go with it; may be empty.
        text: String,
    },
    /// Applause.
    Like {
        /// How many at once.
        count: u32,
    },
    /// Somebody came in.
    Entry,
    /// Words of the house.
    Notice {
        /// The text.
        text: String,
    },
    /// The item `of` is recalled: remove it from the screen.
    Tombstone {
        /// The recalled item.
        of: ItemId,
    },
    /// What the business server tells everyone, in the stream of items.
    System {
        /// The text.
        text: String,
    },
    /// The sender comes in with an effect; its picture is in the room's catalogue.
    Effect {
        /// Number in the catalogue.
        effect_no: u32,
        /// Words that go with it; may be empty.
        text: String,
    },
    /// A kind of the app's own, which its clients know how to show.
    Custom {
        /// Which kind.
        name: KindName,
        /// What is shown, in the app's own words, such as JSON; may be empty.
        text: String,
    },
    /// The item `of` is recalled, and taken out of what is written too. Broadcasters take it for
    /// that; viewers see a tombstone.
    Erasure {
        /// The erased item.
        of: ItemId,
    },
}

const fn one() -> u32 {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_one(count: &u32) -> bool {
    *count == 1
}

impl Body {
    /// The text of this body, if its kind has one.
    #[must_use]
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::Comment { text, .. } => Some(text),
            Self::Gift { text, .. }
            | Self::Notice { text }
            | Self::System { text }
            | Self::Effect { text, .. }
            | Self::Custom { text, .. } => Some(text),
            Self::Like { .. } | Self::Entry | Self::Tombstone { .. } | Self::Erasure { .. } => None,
        }
    }

    /// The item that this one recalls, if it does.
    #[must_use]
    pub const fn recalls(&self) -> Option<ItemId> {
        match self {
            Self::Tombstone { of } | Self::Erasure { of } => Some(*of),
            Self::Comment { .. }
            | Self::Gift { .. }
            | Self::Like { .. }
            | Self::Entry
            | Self::Notice { .. }
            | Self::System { .. }
            | Self::Effect { .. }
            | Self::Custom { .. } => None,
        }
    }
}

/// How a comment looks.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Style {
    /// 0xRRGGBB; a larger number is refused.
    pub color: u32,
    /// Where it goes.
    pub mode: Mode,
    /// Font size.
    pub size: Size,
}

/// Where a comment goes.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
pub enum Mode {
    /// From right to left.
    #[default]
    Scroll = 0,
    /// Fixed at the top.
    Top = 1,
    /// Fixed at the bottom.
    Bottom = 2,
    /// From left to right.
    Reverse = 3,
}

/// Font size of a comment.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
pub enum Size {
    /// The player's normal size.
    #[default]
    Normal = 0,
    /// Smaller.
    Small = 1,
    /// Larger.
    Large = 2,
}

/// Priority class inside the broadcaster; a lower number goes first and is shed last.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
pub enum Lane {
    /// Words of the house, recalls.
    Notice = 0,
    /// Gifts that must be seen.
    HighGift = 1,
    /// Small gifts.
    LowGift = 2,
    /// Comments, likes, entries.
    Comment = 3,
}

impl Lane {
    /// All lanes, first served first.
    pub const ALL: [Self; 4] = [Self::Notice, Self::HighGift, Self::LowGift, Self::Comment];

    /// Whether its items are never shed once acknowledged, and are repeated in the next segment.
    #[must_use]
    pub const fn is_protected(self) -> bool {
        match self {
            Self::Notice | Self::HighGift | Self::LowGift => true,
            Self::Comment => false,
        }
    }

    /// The lane's word in metrics and JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Notice => "notice",
            Self::HighGift => "high_gift",
            Self::LowGift => "low_gift",
            Self::Comment => "comment",
        }
    }
}

/// What a person is in a room.
#[derive(
    Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
pub enum Role {
    /// Not logged in: reads.
    Guest = 0,
    /// Logged in.
    #[default]
    Viewer = 1,
    /// Paid for a badge.
    Vip = 2,
    /// Keeps order.
    Moderator = 3,
    /// On air.
    Host = 4,
}

impl Role {
    /// The role's word in JSON and in text for people.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Guest => "guest",
            Self::Viewer => "viewer",
            Self::Vip => "vip",
            Self::Moderator => "moderator",
            Self::Host => "host",
        }
    }
}

/// An item with its place in a gen's order.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub struct Placed {
    /// Position within the gen.
    pub seq: Seq,
    /// The item.
    pub item: Item,
}

/// An item shown again, with the place it first had.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub struct Repeat {
    /// Gen of its first showing.
    #[serde(rename = "gen")]
    pub gen_no: Gen,
    /// Its place there.
    pub placed: Placed,
}
