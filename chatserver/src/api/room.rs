//! Rooms: made, listed, changed, closed.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use chatserver_core::rank::Act;
use chatserver_core::settings;
use proto::control::{Fact, RoomFact, RoomSettings};
use proto::id::RoomId;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::Api;
use super::acts::{Deed, Signed, What};
use super::caller::{Asked, Body, Caller, Names};
use super::no::No;
use super::pages::Page;
use super::words::version;
use crate::online::Count;
use crate::store::rows::{Created, Record};

/// How often a change is tried again because another one came between.
const TRIES_MAX: usize = 20;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Create {
    room: String,
    #[serde(default)]
    settings: RoomSettings,
}

#[derive(Debug, Serialize)]
struct Rooms {
    rooms: Vec<RoomFact>,
    /// Give it as `after` for what follows; absent at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

#[derive(Debug, Serialize)]
struct RoomOnline {
    room: RoomId,
    #[serde(flatten)]
    count: Count,
}

/// `POST /v1/rooms`: 201 with the new room, 200 with the one this app has already.
pub(crate) async fn create(
    State(api): State<Arc<Api>>,
    Caller(app): Caller,
    Body(Create { room, settings }): Body<Create>,
) -> Result<Response, No> {
    let room = RoomId::parse(&room)
        .map_err(|error| No::Field { field: "room", why: error.to_string() })?;
    check(&settings)?;
    let made = RoomFact { app, room: room.clone(), version: 1, open: true, settings };
    let record = Record::new(api.site.clock.wall(), "create");
    let quota = api.site.config.quota_of(app).rooms_max;
    for _ in 0..TRIES_MAX {
        let status = match api.site.rows.room(&room).await? {
            Some(there) if there.app != app => return Err(No::Taken),
            // Told again, so that a repeated request makes up for a first one that was cut short.
            Some(there) => (StatusCode::OK, there),
            None if api.desk.is_full() => return Err(No::TooMany),
            None => match api.site.rows.create_room(made.clone(), &record, quota).await? {
                Created::Done(made) => (StatusCode::CREATED, made),
                Created::Changed => continue,
                Created::TooMany => return Err(No::TooMany),
            },
        };
        api.spread(Fact::Room(status.1.clone())).await?;
        return Ok(answer(status.0, status.1));
    }
    Err(No::Changed)
}

/// `GET /v1/rooms?after=`: the app's rooms by name, in pages.
pub(crate) async fn list(
    State(api): State<Arc<Api>>,
    Caller(app): Caller,
    Asked(Page { after }): Asked<Page>,
) -> Result<Response, No> {
    let (mut rooms, mut after) = (Vec::new(), after);
    // Until there is something: a page of others' rooms alone would tell their names.
    loop {
        let (page, next) = api.site.rows.rooms(after).await?;
        let last = page.iter().rev().find(|it| it.app == app).map(|it| it.room.to_string());
        rooms.extend(page.into_iter().filter(|it| it.app == app));
        if next.is_none() || last.is_some() {
            let next = next.and(last);
            return Ok(Json(Rooms { rooms, next }).into_response());
        }
        after = next;
    }
}

/// `GET /v1/rooms/{room}`.
pub(crate) async fn read(
    State(api): State<Arc<Api>>,
    Caller(app): Caller,
    Names(room): Names<String>,
) -> Result<Response, No> {
    Ok(answer(StatusCode::OK, api.own_room(app, &room).await?))
}

/// `PATCH /v1/rooms/{room}`: changes the settings that the body names. With `If-Match: "version"`
/// only that version is changed; 412 otherwise.
pub(crate) async fn update(
    State(api): State<Arc<Api>>,
    Caller(app): Caller,
    Names(room): Names<String>,
    Asked(signed): Asked<Signed>,
    headers: HeaderMap,
    Body(changes): Body<Map<String, Value>>,
) -> Result<Response, No> {
    let version = version(&headers)?;
    let change = |there: &mut RoomFact| {
        if version.is_some_and(|it| it != there.version) {
            return Err(No::Moved { version: there.version });
        }
        there.settings = merge(&there.settings, &changes)?;
        check(&there.settings)
    };
    let deed = api.deed(app, &room, signed).await?;
    deed.allow(Act::Arrange)?;
    let what = What { value: Some(Value::Object(changes.clone())), ..What::default() };
    let record = deed.record(&api, "update", what);
    Ok(answer(StatusCode::OK, api.change(&deed, change, &record).await?))
}

/// `POST /v1/rooms/{room}/close`: takes and shows nothing more. Closing twice is closing once.
pub(crate) async fn close(
    State(api): State<Arc<Api>>,
    Caller(app): Caller,
    Names(room): Names<String>,
    Asked(signed): Asked<Signed>,
) -> Result<Response, No> {
    let deed = api.deed(app, &room, signed).await?;
    deed.allow(Act::Close)?;
    let record = deed.record(&api, "close", What::default());
    let close = |there: &mut RoomFact| {
        there.open = false;
        Ok(())
    };
    Ok(answer(StatusCode::OK, api.change(&deed, close, &record).await?))
}

/// `GET /v1/rooms/{room}/online`.
pub(crate) async fn online(
    State(api): State<Arc<Api>>,
    Caller(app): Caller,
    Names(room): Names<String>,
) -> Result<Response, No> {
    let RoomFact { room, .. } = api.own_room(app, &room).await?;
    let count = api.online.count(app, &room, api.site.clock.mono());
    Ok(Json(RoomOnline { room, count }).into_response())
}

impl Api {
    /// Changes a room by compare-and-set, and tells everyone.
    async fn change(
        &self,
        deed: &Deed,
        change: impl Fn(&mut RoomFact) -> Result<(), No>,
        record: &Record,
    ) -> Result<RoomFact, No> {
        for _ in 0..TRIES_MAX {
            let before = self.own_room(deed.app, deed.room.as_str()).await?;
            let mut after = before.clone();
            change(&mut after)?;
            if after != before {
                after.version += 1;
                if !self.site.rows.write_room(&after, record, deed.guards.clone()).await? {
                    self.still(deed).await?;
                    continue;
                }
            }
            let fact = Fact::Room(after.clone());
            if before.open && !after.open {
                self.announce(fact).await?;
            } else {
                self.spread(fact).await?;
            }
            return Ok(after);
        }
        Err(No::Changed)
    }
}

fn answer(status: StatusCode, room: RoomFact) -> Response {
    let tag = [("etag", format!("\"{}\"", room.version))];
    (status, tag, Json(room)).into_response()
}

fn check(settings: &RoomSettings) -> Result<(), No> {
    settings::check(settings)
        .map_err(|error| No::Field { field: error.field(), why: error.to_string() })
}

fn merge(settings: &RoomSettings, changes: &Map<String, Value>) -> Result<RoomSettings, No> {
    let invalid =
        |error: serde_json::Error| No::Field { field: "settings", why: error.to_string() };
    let mut merged = serde_json::to_value(settings).map_err(invalid)?;
    if let Some(fields) = merged.as_object_mut() {
        fields.extend(changes.clone());
    }
    serde_json::from_value(merged).map_err(invalid)
}
