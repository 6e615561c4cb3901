//! Taking back what was shown, or is about to be: a tombstone follows on every path.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use proto::id::ItemId;
use proto::item::{Body, Lane};

use super::Api;
use super::caller::{Caller, Names};
use super::gift::Wish;
use super::no::No;

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
