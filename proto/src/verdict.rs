//! What admission decided, and what became of an item: "no" as a value with a reason.

use serde::{Deserialize, Serialize};

use crate::id::{Gen, ItemId, Seq, SlotNo};

/// What admission decided about a comment.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Everyone may see it, under this id.
    Admit(ItemId),
    /// Only the sender sees it, under this id.
    Shadow(ItemId),
    /// Nobody sees it.
    Drop {
        /// Why.
        reason: Reason,
        /// When trying again makes sense; 0 if it does not.
        retry_after_ms: u32,
    },
}

macro_rules! reasons {
    ($($(#[$doc:meta])* $name:ident = $code:literal, $word:literal;)+) => {
        /// Why an item was not admitted or not shown. Codes are stable; a new reason gets a new one.
        #[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize, Deserialize)]
        #[repr(u8)]
        pub enum Reason {
            $($(#[$doc])* #[serde(rename = $word)] $name = $code,)+
        }

        impl Reason {
            /// Every reason, in the order of its code.
            pub const ALL: &'static [Self] = &[$(Self::$name,)+];

            /// The word in JSON, metrics and logs.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$name => $word,)+ }
            }

            /// The reason with this code on the wire.
            #[must_use]
            pub const fn from_code(code: u8) -> Option<Self> {
                match code { $($code => Some(Self::$name),)+ _ => None }
            }
        }
    };
}

reasons! {
    /// Not well-formed: controls, too many marks on a letter, an empty text.
    Shape = 1, "shape";
    /// Too many graphemes or bytes.
    TooLong = 2, "too_long";
    /// The room does not exist.
    NoRoom = 3, "no_room";
    /// The room is closed.
    RoomClosed = 4, "room_closed";
    /// The sender is not in the room.
    NotJoined = 5, "not_joined";
    /// The sender's token does not allow sending.
    ReadOnly = 6, "read_only";
    /// The sender is muted.
    Muted = 7, "muted";
    /// The sender is banned.
    Banned = 8, "banned";
    /// The whole room is muted.
    RoomMuted = 9, "room_muted";
    /// The sender sends too often.
    RateLimited = 10, "rate_limited";
    /// The room takes one comment per sender in this many seconds.
    SlowMode = 11, "slow_mode";
    /// The same text again.
    Repeated = 12, "repeated";
    /// A word, link or contact that this room does not take.
    Words = 13, "words";
    /// The room as a whole gets more than it can show.
    RoomBusy = 14, "room_busy";
    /// The review hook said no.
    Review = 15, "review";
    /// A queue on the way is full.
    Busy = 16, "busy";
    /// Admitted, and given up by the broadcaster because its lane was over its budget too long.
    OverBudget = 17, "over_budget";
    /// Admitted, and given up because it waited past its display time.
    Late = 18, "late";
    /// Admitted, and given up because the sender alone filled the lane.
    Unfair = 19, "unfair";
    /// Recalled by a moderator.
    Recalled = 20, "recalled";
    /// The room takes comments of its followers only.
    FollowersOnly = 21, "followers_only";
    /// The room takes comments of those on its allow-list only.
    ListedOnly = 22, "listed_only";
    /// The room takes comments of its moderators only.
    ModeratorsOnly = 23, "moderators_only";
}

/// What became of an admitted item.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fate {
    /// Shown.
    Sealed {
        /// Gen of its place.
        #[serde(rename = "gen")]
        gen_no: Gen,
        /// Its place.
        seq: Seq,
        /// The slot that carries it.
        slot: SlotNo,
    },
    /// Shown as part of another item with a count.
    Merged {
        /// The item that stands for it.
        into: ItemId,
    },
    /// Given up.
    Shed {
        /// Why.
        reason: Reason,
    },
}
