//! What an app or a room asks of those who enter, and which SDK versions are served.
//!
//! Operators change both at the auth service while everything runs; they reach every process as
//! facts on `control`. Who decides by them is `auth-core`.

use serde::{Deserialize, Serialize};

use crate::id::{AppId, RoomId};

/// Rules of one list of SDK versions.
pub const SDK_RULES_MAX: usize = 64;
/// How far two servers' clocks may be allowed to be apart, seconds.
pub const SKEW_S_MAX: u16 = 60;

/// What is asked of those who enter.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Policy {
    /// Who needs a ticket.
    pub entry: Entry,
    /// Whether an account has one session in a room; a newer one closes the older.
    pub single_device: bool,
    /// Seconds within which a token must be used; at most 120, and at most half of an epoch. How
    /// long epochs are is not for a policy to say: `[auth] interval_s` is one for all.
    pub token_ttl_s: u16,
    /// Whether a token opens one session only.
    pub single_use: bool,
    /// Seconds that servers' clocks may be apart; at most [`SKEW_S_MAX`].
    pub skew_s: u16,
    /// What accounts may do whose ticket does not claim `verified`.
    pub unverified: Access,
    /// What accounts may do whose ticket claims `minor`.
    pub minors: Access,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            entry: Entry::Token,
            single_device: false,
            token_ttl_s: 60,
            single_use: true,
            skew_s: 30,
            unverified: Access::Send,
            minors: Access::Send,
        }
    }
}

/// Who needs a ticket. From the laxest to the strictest.
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Entry {
    /// Nobody: without one a viewer has a passing account and may send.
    Open,
    /// Only who sends: without one a viewer is a guest and reads.
    Guest,
    /// Everybody.
    #[default]
    Token,
}

/// What a kind of account may do. From the laxest to the strictest.
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Access {
    /// Read and send.
    #[default]
    Send,
    /// Read.
    Read,
    /// Nothing: entry is refused.
    Refuse,
}

/// The policy of an app, or of one of its rooms.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub struct PolicyFact {
    /// Whose.
    pub app: AppId,
    /// Of this room alone; absent: of all rooms of the app that have none of their own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub room: Option<RoomId>,
    /// Rises with every change.
    pub version: u64,
    /// The policy; absent: it has none of its own any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<Policy>,
}

/// Which SDK versions are served.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
pub struct SdkFact {
    /// Rises with every change.
    pub version: u64,
    /// The first that fits decides; where none does, the SDK is served. At most
    /// [`SDK_RULES_MAX`].
    pub rules: Vec<SdkRule>,
}

/// What happens to a range of versions of an SDK.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SdkRule {
    /// The SDK's name; absent: any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sdk: Option<String>,
    /// Oldest version it is about, such as `1.4.0`; absent: from the first on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// First version it is not about any more; absent: to the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub below: Option<String>,
    /// What happens.
    pub act: SdkAct,
}

/// What happens to a client for its SDK's version.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SdkAct {
    /// It is served.
    #[default]
    Allow,
    /// It is served, and told to upgrade.
    Warn,
    /// It is not: `upgrade_required`.
    Refuse,
}
