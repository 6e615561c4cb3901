//! What a business server shows besides gifts and notices: system messages, entry effects, and
//! items of a kind of its own. All are journaled and shown once for their key, as gifts are.

use std::sync::Arc;

use axum::extract::State;
use axum::http::HeaderMap;
use proto::id::KindName;
use proto::item::{Body as ItemBody, Lane};
use proto::limits::TEXT_BYTES_MAX;
use serde::Deserialize;

use super::Api;
use super::caller::{Body, Caller, Names};
use super::gift::{GiftLane, Placed, Wish, check_text, needed_key};
use super::no::No;
use super::people::viewer_of;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Message {
    text: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Effect {
    viewer: String,
    effect_no: u32,
    #[serde(default)]
    text: String,
    lane: GiftLane,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Custom {
    name: String,
    #[serde(default)]
    text: String,
    viewer: Option<String>,
    lane: CustomLane,
}

/// A lane for anything.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum CustomLane {
    Notice,
    High,
    Low,
}

impl From<CustomLane> for Lane {
    fn from(lane: CustomLane) -> Self {
        match lane {
            CustomLane::Notice => Self::Notice,
            CustomLane::High => Self::HighGift,
            CustomLane::Low => Self::LowGift,
        }
    }
}

/// `POST /v1/rooms/{room}/system-messages`: as a notice, in the stream of items.
pub(crate) async fn message(
    State(api): State<Arc<Api>>,
    Caller(app): Caller,
    Names(room): Names<String>,
    headers: HeaderMap,
    Body(Message { text }): Body<Message>,
) -> Result<Placed, No> {
    let room = api.own_room(app, &room).await?;
    check_text(&text)?;
    let key = api.key_or_fresh(&headers)?;
    let (lane, body) = (Lane::Notice, ItemBody::System { text });
    api.show(Wish { room, key, lane, viewer: None, body }).await
}

/// `POST /v1/rooms/{room}/entry-effects`, with `Idempotency-Key`: a viewer comes in with an effect.
pub(crate) async fn effect(
    State(api): State<Arc<Api>>,
    Caller(app): Caller,
    Names(room): Names<String>,
    headers: HeaderMap,
    Body(Effect { viewer, effect_no, text, lane }): Body<Effect>,
) -> Result<Placed, No> {
    let room = api.own_room(app, &room).await?;
    let key = needed_key(&headers)?;
    if !text.is_empty() {
        check_text(&text)?;
    }
    let viewer = Some(viewer_of(&viewer)?);
    let body = ItemBody::Effect { effect_no, text };
    api.show(Wish { room, key, lane: lane.into(), viewer, body }).await
}

/// `POST /v1/rooms/{room}/custom-items`, with `Idempotency-Key`: what the app's own clients show.
pub(crate) async fn custom(
    State(api): State<Arc<Api>>,
    Caller(app): Caller,
    Names(room): Names<String>,
    headers: HeaderMap,
    Body(Custom { name, text, viewer, lane }): Body<Custom>,
) -> Result<Placed, No> {
    let room = api.own_room(app, &room).await?;
    let key = needed_key(&headers)?;
    let name = KindName::parse(&name)
        .map_err(|error| No::Field { field: "name", why: error.to_string() })?;
    // Programs read it, so that any character may be in it.
    if text.len() > TEXT_BYTES_MAX {
        let why = format!("must have at most {TEXT_BYTES_MAX} bytes");
        return Err(No::Field { field: "text", why });
    }
    let viewer = viewer.as_deref().map(viewer_of).transpose()?;
    let body = ItemBody::Custom { name, text };
    api.show(Wish { room, key, lane: lane.into(), viewer, body }).await
}
