//! Who may not speak, not enter, not stay.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use chatserver_core::people::SANCTIONS_MAX;
use chatserver_core::rank::Act;
use proto::control::{Excluded, Fact, Standing};
use proto::id::{AppId, RoomId, ViewerId};
use proto::time::Wall;
use serde::{Deserialize, Serialize};

use super::Api;
use super::acts::{Deed, Signed, What, person};
use super::caller::{Asked, Body, Caller, Names};
use super::no::No;
use super::pages::{Listed, Page};
use crate::store::rows::Rows;

/// Longest mute or ban with an end: a year.
pub(super) const SECONDS_MAX: u64 = 366 * 24 * 3600;
/// The end of a ban without one: the last day of the year 9999, which every reader can count to.
pub(super) const FOREVER: Wall = Wall(253_402_214_400_000);

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
    Asked(signed): Asked<Signed>,
    Body(Mute { viewer, seconds }): Body<Mute>,
) -> Result<Response, No> {
    let until = api.site.clock.wall() + seconds_of(seconds)?;
    let (deed, viewer, _) = api.subject(app, &room, signed, &viewer).await?;
    let room = deed.room.clone();
    let act = Fact::Mute { app, room: room.clone(), viewer: viewer.clone(), until };
    api.do_to(&deed, "mute", act, &viewer, Some(until)).await?;
    Ok(Json(Until { room, viewer, until }).into_response())
}

/// `DELETE /v1/rooms/{room}/mutes/{viewer}`: 204, whether or not there was one.
pub(crate) async fn unmute(
    State(api): State<Arc<Api>>,
    Caller(app): Caller,
    Names((room, viewer)): Names<(String, String)>,
    Asked(signed): Asked<Signed>,
) -> Result<Response, No> {
    let (deed, viewer, _) = api.subject(app, &room, signed, &viewer).await?;
    let (room, until) = (deed.room.clone(), Wall(0));
    let act = Fact::Mute { app, room, viewer: viewer.clone(), until };
    api.do_to(&deed, "unmute", act, &viewer, None).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// `POST /v1/rooms/{room}/bans`: the viewer may not enter, for so many seconds or for ever.
pub(crate) async fn ban(
    State(api): State<Arc<Api>>,
    Caller(app): Caller,
    Names(room): Names<String>,
    Asked(signed): Asked<Signed>,
    Body(Ban { viewer, seconds }): Body<Ban>,
) -> Result<Response, No> {
    let until = api.end_of(seconds)?;
    let (deed, viewer, standing) = api.subject(app, &room, signed, &viewer).await?;
    spare(standing)?;
    let room = deed.room.clone();
    let act = Fact::Ban { app, room: room.clone(), viewer: viewer.clone(), until };
    api.do_to(&deed, "ban", act, &viewer, Some(until)).await?;
    Ok(Json(Until { room, viewer, until }).into_response())
}

/// `DELETE /v1/rooms/{room}/bans/{viewer}`: 204, whether or not there was one.
pub(crate) async fn unban(
    State(api): State<Arc<Api>>,
    Caller(app): Caller,
    Names((room, viewer)): Names<(String, String)>,
    Asked(signed): Asked<Signed>,
) -> Result<Response, No> {
    let (deed, viewer, _) = api.subject(app, &room, signed, &viewer).await?;
    let (room, until) = (deed.room.clone(), Wall(0));
    let act = Fact::Ban { app, room, viewer: viewer.clone(), until };
    api.do_to(&deed, "unban", act, &viewer, None).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// `POST /v1/rooms/{room}/kicks`: the viewer's sessions end, and what was issued for new ones
/// before now is refused. 204.
pub(crate) async fn kick(
    State(api): State<Arc<Api>>,
    Caller(app): Caller,
    Names(room): Names<String>,
    Asked(signed): Asked<Signed>,
    Body(Kick { viewer }): Body<Kick>,
) -> Result<Response, No> {
    let (deed, viewer, standing) = api.subject(app, &room, signed, &viewer).await?;
    spare(standing)?;
    let (room, not_before) = (deed.room.clone(), api.site.clock.wall());
    let act = Fact::Kick { app, room, viewer: viewer.clone(), not_before };
    api.do_to(&deed, "kick", act, &viewer, None).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// `GET /v1/rooms/{room}/mutes?after=`, of those that are not over.
pub(crate) async fn mutes(
    State(api): State<Arc<Api>>,
    Caller(app): Caller,
    Names(room): Names<String>,
    Asked(page): Asked<Page>,
) -> Result<Response, No> {
    api.sanctions(app, &room, "mute", page).await
}

/// `GET /v1/rooms/{room}/bans?after=`, of those that are not over.
pub(crate) async fn bans(
    State(api): State<Arc<Api>>,
    Caller(app): Caller,
    Names(room): Names<String>,
    Asked(page): Asked<Page>,
) -> Result<Response, No> {
    api.sanctions(app, &room, "ban", page).await
}

/// `GET /v1/rooms/{room}/exclusions?after=`: devices and ranges, of those that are not over.
pub(crate) async fn exclusions(
    State(api): State<Arc<Api>>,
    Caller(app): Caller,
    Names(room): Names<String>,
    Asked(page): Asked<Page>,
) -> Result<Response, No> {
    api.sanctions(app, &room, "exclude", page).await
}

/// A viewer, device or range, and until when.
#[derive(Debug, Serialize)]
struct Sanction {
    #[serde(skip_serializing_if = "Option::is_none")]
    viewer: Option<ViewerId>,
    #[serde(flatten)]
    what: Option<Excluded>,
    until: Wall,
}

impl Sanction {
    fn of(fact: Fact) -> Option<Self> {
        if let Fact::Mute { viewer, until, .. } | Fact::Ban { viewer, until, .. } = fact {
            return Some(Self { viewer: Some(viewer), what: None, until });
        }
        let Fact::Exclude { what, until, .. } = fact else { return None };
        Some(Self { viewer: None, what: Some(what), until })
    }
}

impl Api {
    /// Who does something, to whom, and what that one is by the room's word.
    async fn subject(
        &self,
        app: AppId,
        room: &str,
        signed: Signed,
        viewer: &str,
    ) -> Result<(Deed, ViewerId, Standing), No> {
        let mut deed = self.deed(app, room, signed).await?;
        let viewer = viewer_of(viewer)?;
        let (standing, expect) = self.stands(app, &deed.room, &viewer).await?;
        deed.guards.push(Rows::guard(&person(app, &deed.room, &viewer), expect));
        deed.allow(Act::To(deed.role_of(standing)))?;
        Ok((deed, viewer, standing))
    }

    async fn do_to(
        &self,
        deed: &Deed,
        name: &str,
        act: Fact,
        viewer: &ViewerId,
        until: Option<Wall>,
    ) -> Result<(), No> {
        // What ends something is never one too many.
        let acts_max = until.map(|_| SANCTIONS_MAX);
        let what = What { on: Some(viewer.to_string()), until, value: None };
        self.act(act, acts_max, deed, deed.record(self, name, what)).await
    }

    async fn sanctions(
        &self,
        app: AppId,
        room: &str,
        kind: &str,
        page: Page,
    ) -> Result<Response, No> {
        let room = self.own_room(app, room).await?.room;
        let prefix = format!("{kind}:{app}:{room}:");
        let (facts, next) = self.page(&prefix, page).await?;
        let now = self.site.clock.wall();
        let rows = facts.into_iter().filter_map(Sanction::of).filter(|it| it.until > now);
        Ok(Json(Listed { rows: rows.collect::<Vec<_>>(), next }).into_response())
    }

    /// When a ban of so many seconds ends, or one without an end.
    pub(super) fn end_of(&self, seconds: Option<u64>) -> Result<Wall, No> {
        match seconds {
            Some(seconds) => Ok(self.site.clock.wall() + seconds_of(seconds)?),
            None => Ok(FOREVER),
        }
    }
}

/// Whoever is on the allow-list is neither kicked nor banned.
fn spare(standing: Standing) -> Result<(), No> {
    if standing.listed { Err(No::Protected) } else { Ok(()) }
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
