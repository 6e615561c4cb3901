//! What a room allows.

use serde::{Deserialize, Serialize};

/// What a room allows.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RoomSettings {
    /// Longest comment, in graphemes.
    pub graphemes_max: u32,
    /// One comment per sender in this time; 0: off.
    pub slow_mode_ms: u32,
    /// Comments one viewer may send in a burst.
    pub viewer_burst: u32,
    /// Time after which one more comment of a viewer is allowed.
    pub viewer_refill_ms: u32,
    /// A sender says the same, or nearly the same, once in this time; 0: off.
    pub repeat_ms: u32,
    /// How often the room takes one text in ten seconds, from all senders together; 0: off.
    pub echo_max: u32,
    /// What is done about links.
    pub links: Action,
    /// Hosts that may be linked to, with those below them, in lower case.
    pub link_hosts: Vec<String>,
    /// What is done about e-mail addresses, telephone numbers and accounts of messengers.
    pub contacts: Action,
    /// About which comments the review hook is asked; absent: as the app's hook is configured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub review: Option<Review>,
    /// So long a comment that passed everything else waits before it is shown, and its sender for
    /// the verdict, so that moderators act first; 0: not at all.
    pub hold_ms: u32,
    /// Who may send, of those who may send at all.
    pub speakers: Speakers,
    /// Nobody but moderators and the host may send.
    pub mute_all: bool,
    /// Guests may be in the room.
    pub guests: bool,
    /// When segments are written.
    pub segments: Segments,
    /// Whether segments are encrypted, so that only who may enter the room can read them. Such a
    /// room has no JSON and no video. A change opens a new gen.
    pub sealed: bool,
    /// Whether what the room shows is kept in the broadcaster's archive; it then writes segments as
    /// with [`Segments::Always`]. Absent: as the broadcaster is configured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub archive: Option<bool>,
    /// Sessions from which the room is hot.
    pub hot_sessions: u32,
    /// Sessions below which a hot room turns cold again.
    pub cold_sessions: u32,
    /// Items the room shows a second. As many comments are taken; what the room shows in two and
    /// a half seconds may come at once, after quiet.
    pub items_per_s: u32,
    /// What is done about comments beyond that.
    pub excess: Excess,
    /// Bytes of text the room shows a second.
    pub bytes_per_s: u32,
    /// What of that is guaranteed to which lane; absent: as the broadcaster is configured.
    pub lanes: Option<LaneShares>,
    /// Comments a second that the lite tier of segments carries, beside all gifts and notices;
    /// absent: as the broadcaster is configured.
    pub lite_comments_per_s: Option<u32>,
    /// How long a small gift waits for others of its kind from the same sender, which are shown as
    /// one with their counts together; 0: every gift by itself.
    pub combo_ms: u32,
    /// Comments of viewers with the same text that wait at the same time are shown as one with
    /// their count. Those with a colour, a size or a place, and those of VIPs, moderators and the
    /// host stand by themselves. Nothing waits for it: in a quiet room every comment is shown.
    pub merge_equal: bool,
    /// Length of a slot.
    pub interval_ms: u32,
    /// Longest slot: while very many fetch the room's slots, they are longer, twice or five times
    /// `interval_ms`, but not longer than this; absent: as the broadcaster is configured. The same
    /// as `interval_ms`: they never are.
    pub interval_ms_max: Option<u32>,
}

impl Default for RoomSettings {
    fn default() -> Self {
        Self {
            graphemes_max: 100,
            slow_mode_ms: 0,
            viewer_burst: 5,
            viewer_refill_ms: 1000,
            repeat_ms: 0,
            echo_max: 0,
            links: Action::Allow,
            link_hosts: Vec::new(),
            contacts: Action::Allow,
            review: None,
            hold_ms: 0,
            speakers: Speakers::All,
            mute_all: false,
            guests: true,
            segments: Segments::Auto,
            sealed: false,
            archive: None,
            hot_sessions: 10_000,
            cold_sessions: 8_000,
            items_per_s: 50,
            excess: Excess::Wait,
            bytes_per_s: 16 * 1024,
            lanes: None,
            lite_comments_per_s: None,
            combo_ms: 0,
            merge_equal: false,
            interval_ms: 1000,
            interval_ms_max: None,
        }
    }
}

/// Who may send in a room. The host and moderators always may.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Speakers {
    /// Everybody.
    #[default]
    All,
    /// Followers of the room, VIPs, and those on its allow-list.
    Followers,
    /// Those on the room's allow-list.
    Listed,
    /// Nobody else.
    Moderators,
}

/// Percentages of a room's budget that its lanes are guaranteed; what a lane leaves goes to the
/// others. Together at most 100.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LaneShares {
    /// Notices.
    pub notice: u8,
    /// Gifts that must be seen.
    pub high_gift: u8,
    /// Small gifts.
    pub low_gift: u8,
    /// Comments.
    pub comment: u8,
}

/// What is done about a text that holds something; of several the latest one counts.
#[derive(
    Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// Nothing.
    #[default]
    Allow,
    /// It is shown with stars for what was found.
    Mask,
    /// Only the sender sees it.
    Shadow,
    /// It is shown if the review hook says so; without a hook it is refused.
    Review,
    /// It is refused.
    Refuse,
}

/// What is done about comments beyond what a room shows. Hosts, moderators and those on the
/// allow-list are heard either way.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Excess {
    /// Who comes first is heard, and every other sender is refused as
    /// [`crate::verdict::Reason::RateLimited`], with a time of their own to come back: whoever
    /// waits is heard.
    #[default]
    Wait,
    /// Lots are drawn among viewers, anew every ten seconds: so many are heard as the room can
    /// show, and the others are refused as [`crate::verdict::Reason::RoomBusy`] until the next
    /// lots. Who sends again and again gains nothing.
    Sample,
}

/// About which comments a review hook is asked, of those that passed everything else.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Review {
    /// None.
    None,
    /// Those in which a word, a link or a contact was found whose action is [`Action::Review`].
    #[default]
    Listed,
    /// All.
    All,
}

/// When a room writes segments.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Segments {
    /// From warming until 60 s after cooling.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}
