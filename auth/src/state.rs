//! What operators are told, as JSON; `barrage keys` reads the same types.

use proto::control::EpochFact;
use proto::id::{AppId, RoomId};
use proto::policy::{Policy, SdkRule};
use proto::time::Wall;
use serde::{Deserialize, Serialize};

/// `GET /v1/epochs`: the public parts of everything that tokens live on.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct State {
    /// Now.
    pub server_ms: Wall,
    /// Whether the service that answers draws the epochs; otherwise another does.
    pub leads: bool,
    /// Length of an epoch.
    pub interval_s: u32,
    /// How long logins go on without another epoch.
    pub horizon_s: u64,
    /// Below it an operator is warned.
    pub horizon_s_min: u64,
    /// Numbers of the masters held, newest first.
    pub masters: Vec<u8>,
    /// Numbers of masters that epochs name and that are not held here.
    pub missing_masters: Vec<u8>,
    /// The epochs known, oldest first.
    pub epochs: Vec<EpochFact>,
    /// What was declared void.
    pub revoked: Vec<Revoked>,
}

/// Void epochs of a master: `POST /v1/revocations`.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Revoked {
    /// Master.
    pub kid: u8,
    /// First void epoch.
    pub from_epoch: u32,
    /// Last void epoch.
    pub to_epoch: u32,
}

/// `POST /v1/masters/rotate`.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Rotated {
    /// The new master.
    pub kid: u8,
    /// All that are held, newest first.
    pub masters: Vec<u8>,
}

/// `GET`, `PUT` and `DELETE /v1/policies/{app}` and `/v1/policies/{app}/{room}`.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct PolicyState {
    /// Whose.
    pub app: AppId,
    /// Of this room; absent: of the app.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub room: Option<RoomId>,
    /// Version of the last change; 0 if there was none.
    pub version: u64,
    /// Its own policy; absent: it goes by its app's, or by the configured one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own: Option<Policy>,
    /// What holds.
    pub policy: Policy,
    /// Of an app: the rooms with a policy of their own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rooms: Vec<RoomId>,
}

/// `GET` and `PUT /v1/sdk`.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct SdkState {
    /// Version of the last change; 0 if there was none.
    pub version: u64,
    /// The first that fits decides.
    pub rules: Vec<SdkRule>,
}
