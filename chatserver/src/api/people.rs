//! Who may not speak, not enter, not stay.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use chatserver_core::room::SANCTIONS_MAX;
use proto::control::{Fact, RoomFact};
use proto::id::{AppId, RoomId, ViewerId};
use proto::time::Wall;
use serde::{Deserialize, Serialize};

use super::Api;
use super::caller::{Body, Caller, Names};
use super::no::No;

/// Longest mute or ban with an end: a year.
const SECONDS_MAX: u64 = 366 * 24 * 3600;
/// The end of a ban without one: the last day of the year 9999, which every reader can count to.
const FOREVER: Wall = Wall(253_402_214_400_000);

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Mute {
    viewer: String,
    seconds: u64,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Ban {
    viewer: String,
    seconds: Option<u64>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Kick {
    viewer: String,
}

#[derive(Debug, Serialize)]
struct Until {
    room: RoomId,
    viewer: ViewerId,
    until: Wall,
}

/// `POST /v1/rooms/{room}/mutes`: the viewer's comments are refused for so many seconds.
pub(crate) async fn mute(
    State(api): State<Arc<Api>>,
    Caller(app): Caller,
    Names(room): Names<String>,
    Body(Mute { viewer, seconds }): Body<Mute>,
) -> Result<Response, No> {
    let until = api.site.clock.wall() + seconds_of(seconds)?;
    let (room, viewer) = api.subject(app, &room, &viewer).await?;
    let act = Fact::Mute { app, room: room.clone(), viewer: viewer.clone(), until };
    api.sanction(app, &room, "mute", act).await?;
    Ok(Json(Until { room, viewer, until }).into_response())
}

/// `DELETE /v1/rooms/{room}/mutes/{viewer}`: 204, whether or not there was one.
pub(crate) async fn unmute(
    State(api): State<Arc<Api>>,
    Caller(app): Caller,
    Names((room, viewer)): Names<(String, String)>,
) -> Result<Response, No> {
    let (room, viewer) = api.subject(app, &room, &viewer).await?;
    api.act(Fact::Mute { app, room, viewer, until: Wall(0) }).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// `POST /v1/rooms/{room}/bans`: the viewer may not enter, for so many seconds or for ever.
pub(crate) async fn ban(
    State(api): State<Arc<Api>>,
    Caller(app): Caller,
    Names(room): Names<String>,
    Body(Ban { viewer, seconds }): Body<Ban>,
) -> Result<Response, No> {
    let until = match seconds {
        Some(seconds) => api.site.clock.wall() + seconds_of(seconds)?,
        None => FOREVER,
    };
    let (room, viewer) = api.subject(app, &room, &viewer).await?;
    let act = Fact::Ban { app, room: room.clone(), viewer: viewer.clone(), until };
    api.sanction(app, &room, "ban", act).await?;
    Ok(Json(Until { room, viewer, until }).into_response())
}

/// `DELETE /v1/rooms/{room}/bans/{viewer}`: 204, whether or not there was one.
pub(crate) async fn unban(
    State(api): State<Arc<Api>>,
    Caller(app): Caller,
    Names((room, viewer)): Names<(String, String)>,
) -> Result<Response, No> {
    let (room, viewer) = api.subject(app, &room, &viewer).await?;
    api.act(Fact::Ban { app, room, viewer, until: Wall(0) }).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// `POST /v1/rooms/{room}/kicks`: the viewer's sessions end, and what was issued for new ones
/// before now is refused. 204.
pub(crate) async fn kick(
    State(api): State<Arc<Api>>,
    Caller(app): Caller,
    Names(room): Names<String>,
    Body(Kick { viewer }): Body<Kick>,
) -> Result<Response, No> {
    let (room, viewer) = api.subject(app, &room, &viewer).await?;
    api.act(Fact::Kick { app, room, viewer, not_before: api.site.clock.wall() }).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

impl Api {
    async fn subject(
        &self,
        app: AppId,
        room: &str,
        viewer: &str,
    ) -> Result<(RoomId, ViewerId), No> {
        let RoomFact { room, .. } = self.own_room(app, room).await?;
        Ok((room, viewer_of(viewer)?))
    }

    /// As [`Api::act`], unless the room has too many of the kind.
    async fn sanction(&self, app: AppId, room: &RoomId, kind: &str, act: Fact) -> Result<(), No> {
        let prefix = format!("{kind}:{app}:{room}:");
        let others = self.site.rows.count_acts(prefix, SANCTIONS_MAX).await?;
        if others >= SANCTIONS_MAX {
            return Err(No::TooMany);
        }
        self.act(act).await
    }

    async fn act(&self, act: Fact) -> Result<(), No> {
        self.site.rows.write_act(&act).await?;
        self.announce(act).await
    }
}

/// Parses a viewer's name.
pub(super) fn viewer_of(viewer: &str) -> Result<ViewerId, No> {
    ViewerId::parse(viewer).map_err(|error| No::Field { field: "viewer", why: error.to_string() })
}

fn seconds_of(seconds: u64) -> Result<Duration, No> {
    if (1..=SECONDS_MAX).contains(&seconds) {
        return Ok(Duration::from_secs(seconds));
    }
    Err(No::Field { field: "seconds", why: format!("must be 1 to {SECONDS_MAX}") })
}
