//! Who did what: read only, the newest first.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use proto::id::RoomId;

use super::Api;
use super::caller::{Asked, Caller, Names};
use super::no::No;
use super::pages::{Listed, Page};

/// `GET /v1/rooms/{room}/audit?after=`.
pub(crate) async fn of_room(
    State(api): State<Arc<Api>>,
    Caller(app): Caller,
    Names(room): Names<String>,
    Asked(page): Asked<Page>,
) -> Result<Response, No> {
    let room = api.own_room(app, &room).await?.room;
    api.records(app, Some(&room), page).await
}

/// `GET /v1/audit?after=`: what was done to the app as a whole.
pub(crate) async fn of_app(
    State(api): State<Arc<Api>>,
    Caller(app): Caller,
    Asked(page): Asked<Page>,
) -> Result<Response, No> {
    api.records(app, None, page).await
}

impl Api {
    async fn records(
        &self,
        app: proto::id::AppId,
        room: Option<&RoomId>,
        Page { after }: Page,
    ) -> Result<Response, No> {
        let (rows, next) = self.site.rows.records(app, room, after.as_deref()).await?;
        Ok(Json(Listed { rows, next }).into_response())
    }
}
