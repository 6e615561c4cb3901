//! What people are in a room: roles, the allow-list, its followers.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use chatserver_core::people::STANDINGS_MAX;
use chatserver_core::rank::Act;
use proto::control::{Fact, Standing};
use proto::id::ViewerId;
use proto::item::Role;
use serde::{Deserialize, Serialize};

use super::Api;
use super::acts::{Deed, Signed, TRIES_MAX, What};
use super::caller::{Asked, Body, Caller, Names};
use super::no::No;
use super::pages::{Listed, Page};
use super::people::viewer_of;
use crate::store::Expect;

/// Viewers of one request.
pub(super) const VIEWERS_MAX: usize = 500;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Many {
    viewers: Vec<String>,
    standing: Standing,
}

#[derive(Debug, Serialize)]
struct Person {
    viewer: ViewerId,
    #[serde(flatten)]
    standing: Standing,
}

/// `GET /v1/rooms/{room}/people?after=`: everyone of whom the room says something.
pub(crate) async fn list(
    State(api): State<Arc<Api>>,
    Caller(app): Caller,
    Names(room): Names<String>,
    Asked(page): Asked<Page>,
) -> Result<Response, No> {
    let room = api.own_room(app, &room).await?.room;
    let (facts, next) = api.page(&format!("person:{app}:{room}:"), page).await?;
    let person = |fact| {
        let Fact::Person { viewer, standing, .. } = fact else { return None };
        (!standing.is_none()).then_some(Person { viewer, standing })
    };
    let rows: Vec<_> = facts.into_iter().filter_map(person).collect();
    Ok(Json(Listed { rows, next }).into_response())
}

/// `GET /v1/rooms/{room}/people/{viewer}`: nothing in particular, where the room says nothing.
pub(crate) async fn read(
    State(api): State<Arc<Api>>,
    Caller(app): Caller,
    Names((room, viewer)): Names<(String, String)>,
) -> Result<Response, No> {
    let room = api.own_room(app, &room).await?.room;
    let viewer = viewer_of(&viewer)?;
    let standing = api.standing(app, &room, &viewer).await?;
    Ok(Json(Person { viewer, standing }).into_response())
}

/// `PUT /v1/rooms/{room}/people/{viewer}`: this is what the viewer is from now on.
pub(crate) async fn put(
    State(api): State<Arc<Api>>,
    Caller(app): Caller,
    Names((room, viewer)): Names<(String, String)>,
    Asked(signed): Asked<Signed>,
    Body(standing): Body<Standing>,
) -> Result<Response, No> {
    let deed = api.deed(app, &room, signed).await?;
    let viewer = viewer_of(&viewer)?;
    let mut places = api.places(&deed).await?;
    api.appoint(&deed, viewer.clone(), standing, &mut places).await?;
    Ok(Json(Person { viewer, standing }).into_response())
}

/// `DELETE /v1/rooms/{room}/people/{viewer}`: 204; the room says nothing of the viewer any more.
pub(crate) async fn remove(
    State(api): State<Arc<Api>>,
    Caller(app): Caller,
    Names((room, viewer)): Names<(String, String)>,
    Asked(signed): Asked<Signed>,
) -> Result<Response, No> {
    let deed = api.deed(app, &room, signed).await?;
    api.appoint(&deed, viewer_of(&viewer)?, Standing::default(), &mut 0).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// `POST /v1/rooms/{room}/people`: the same for up to 500 viewers, such as a list of followers. 204.
/// One that is refused ends it; those before it are done, and doing it again does no harm.
pub(crate) async fn put_many(
    State(api): State<Arc<Api>>,
    Caller(app): Caller,
    Names(room): Names<String>,
    Asked(signed): Asked<Signed>,
    Body(Many { viewers, standing }): Body<Many>,
) -> Result<Response, No> {
    if viewers.len() > VIEWERS_MAX {
        let why = format!("must be at most {VIEWERS_MAX}");
        return Err(No::Field { field: "viewers", why });
    }
    let deed = api.deed(app, &room, signed).await?;
    let viewers = viewers.iter().map(|it| viewer_of(it)).collect::<Result<Vec<_>, _>>()?;
    let mut places = api.places(&deed).await?;
    for viewer in viewers {
        api.appoint(&deed, viewer, standing, &mut places).await?;
    }
    Ok(StatusCode::NO_CONTENT.into_response())
}

impl Api {
    /// Of how many more viewers the room may say what they are.
    async fn places(&self, deed: &Deed) -> Result<usize, No> {
        let prefix = format!("person:{}:{}:", deed.app, deed.room);
        Ok(STANDINGS_MAX - self.site.rows.count_acts(prefix, STANDINGS_MAX).await?)
    }

    /// Makes a viewer this, who takes one of `places` if the room said nothing of that one before.
    async fn appoint(
        &self,
        deed: &Deed,
        viewer: ViewerId,
        standing: Standing,
        places: &mut usize,
    ) -> Result<(), No> {
        if standing.role == Some(Role::Guest) {
            let why = "a viewer is made no guest: guests have no account".to_owned();
            return Err(No::Field { field: "role", why });
        }
        let value = serde_json::to_value(standing).ok();
        let what = What { on: Some(viewer.to_string()), until: None, value };
        let record = deed.record(self, "appoint", what);
        let (app, room) = (deed.app, deed.room.clone());
        let act = Fact::Person { app, room, viewer: viewer.clone(), standing };
        for _ in 0..TRIES_MAX {
            let (before, expect) = self.stands(deed.app, &deed.room, &viewer).await?;
            if before.role == standing.role {
                deed.allow(Act::To(deed.role_of(before)))?;
            } else {
                let to = standing.role.unwrap_or_default();
                deed.allow(Act::Appoint(deed.role_of(before), to))?;
            }
            let is_new = expect == Expect::Absent && !standing.is_none();
            if is_new && *places == 0 {
                return Err(No::TooMany);
            }
            if self.act_if(act.clone(), expect, deed, record.clone()).await? {
                *places -= usize::from(is_new);
                return Ok(());
            }
            self.still(deed).await?;
        }
        Err(No::Changed)
    }
}
