//! Items of a room: what it showed last, and what is taken back.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use proto::control::RoomFact;
use proto::id::{ItemId, RoomId};
use proto::item::{Body, Lane};
use proto::segment::Line;
use serde::Serialize;

use super::Api;
use super::caller::{Caller, Names};
use super::gift::Wish;
use super::no::No;

#[derive(Serialize)]
struct Items<'a> {
    room: RoomId,
    /// The oldest first, each as it stands in a segment's JSON.
    items: Vec<Line<'a>>,
}

/// `GET /v1/rooms/{room}/items`: what the room showed last, for those who come late.
pub(crate) async fn recent(
    State(api): State<Arc<Api>>,
    Caller(app): Caller,
    Names(room): Names<String>,
) -> Result<Response, No> {
    let RoomFact { room, .. } = api.own_room(app, &room).await?;
    let shown = api.recent.of(app, &room);
    let items = shown.iter().map(Line::of).collect();
    Ok(Json(Items { room, items }).into_response())
}

/// `DELETE /v1/rooms/{room}/items/{id}`: 202 with the tombstone's id once it is durable, 200 with
/// the same one when the item was recalled before. An id that nobody has seen is recalled too: its
/// item may be on its way.
pub(crate) async fn recall(
    State(api): State<Arc<Api>>,
    Caller(app): Caller,
    Names((room, id)): Names<(String, String)>,
) -> Result<Response, No> {
    let room = api.own_room(app, &room).await?;
    let of = id.parse().map(ItemId).map_err(|_| No::Field {
        field: "id",
        why: "must be an item's id, a number of 64 bits".to_owned(),
    })?;
    // With a space, which no caller's key has.
    let key = format!("recall {of}");
    let (lane, body) = (Lane::Notice, Body::Tombstone { of });
    api.show(Wish { room, key, lane, viewer: None, body }).await
}
