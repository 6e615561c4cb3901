//! A business server's hand on the API: rooms, notices, gifts, kicks. By real HTTP.

use std::time::Duration;

use anyhow::{Context, bail};
use proto::control::RoomSettings;
use proto::id::{ItemId, RoomId, ViewerId};
use reqwest::{RequestBuilder, StatusCode};
use serde_json::{Value, json};

/// Longest wait for an answer.
const ANSWER_MAX: Duration = Duration::from_secs(10);

/// The business API with one app's key.
#[derive(Clone)]
pub struct Business {
    http: reqwest::Client,
    api: String,
    key: String,
}

impl std::fmt::Debug for Business {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Business").field("api", &self.api).finish_non_exhaustive()
    }
}

/// A gift.
#[derive(Clone, Debug)]
pub struct Gift<'a> {
    /// Who gives.
    pub viewer: &'a str,
    /// Number in the catalogue.
    pub gift_no: u32,
    /// How many.
    pub count: u32,
    /// `high` or `low`.
    pub lane: &'a str,
}

/// The lane cannot show a gift soon enough, so that it was not taken.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("the lane cannot show the gift soon enough")]
pub struct OverShare;

impl Business {
    /// `api` is the base of the business API.
    #[must_use]
    pub const fn new(http: reqwest::Client, api: String, key: String) -> Self {
        Self { http, api, key }
    }

    /// Creates a room; one that is there already keeps its settings.
    ///
    /// # Errors
    /// What the API said, if it said no.
    pub async fn create_room(&self, room: &RoomId, settings: &RoomSettings) -> anyhow::Result<()> {
        let body = json!({ "room": room, "settings": settings });
        self.send(self.http.post(format!("{}/v1/rooms", self.api)).json(&body)).await?;
        Ok(())
    }

    /// Gives a gift; the same `key` again is the same gift.
    ///
    /// # Errors
    /// As [`Business::create_room`].
    pub async fn gift(&self, room: &RoomId, key: &str, gift: Gift<'_>) -> anyhow::Result<ItemId> {
        self.try_gift(room, key, gift).await?.map_err(Into::into)
    }

    /// As [`Business::gift`]; that its lane cannot show it soon enough is an answer.
    ///
    /// # Errors
    /// As [`Business::create_room`].
    pub async fn try_gift(
        &self,
        room: &RoomId,
        key: &str,
        gift: Gift<'_>,
    ) -> anyhow::Result<Result<ItemId, OverShare>> {
        let Gift { viewer, gift_no, count, lane } = gift;
        let body = json!({ "viewer": viewer, "gift_no": gift_no, "count": count, "lane": lane });
        let url = format!("{}/v1/rooms/{room}/gifts", self.api);
        let (status, answer) =
            self.ask(self.http.post(url).header("Idempotency-Key", key).json(&body)).await?;
        if status == StatusCode::TOO_MANY_REQUESTS {
            return Ok(Err(OverShare));
        }
        Ok(Ok(item(&said(status, answer)?)?))
    }

    /// Says something in the name of the house.
    ///
    /// # Errors
    /// As [`Business::create_room`].
    pub async fn notice(&self, room: &RoomId, key: &str, text: &str) -> anyhow::Result<ItemId> {
        let url = format!("{}/v1/rooms/{room}/notices", self.api);
        let request = self.http.post(url).header("Idempotency-Key", key);
        item(&self.send(request.json(&json!({ "text": text }))).await?)
    }

    /// Ends a viewer's sessions in a room, and refuses what was issued for new ones before.
    ///
    /// # Errors
    /// As [`Business::create_room`].
    pub async fn kick(&self, room: &RoomId, viewer: &ViewerId) -> anyhow::Result<()> {
        let url = format!("{}/v1/rooms/{room}/kicks", self.api);
        self.send(self.http.post(url).json(&json!({ "viewer": viewer }))).await?;
        Ok(())
    }

    /// How many people are in a room.
    ///
    /// # Errors
    /// As [`Business::create_room`].
    pub async fn people(&self, room: &RoomId) -> anyhow::Result<u64> {
        let url = format!("{}/v1/rooms/{room}/online", self.api);
        let answer = self.send(self.http.get(url)).await?;
        answer["people"].as_u64().context("the answer names no people")
    }

    async fn send(&self, request: RequestBuilder) -> anyhow::Result<Value> {
        let (status, answer) = self.ask(request).await?;
        said(status, answer)
    }

    async fn ask(&self, request: RequestBuilder) -> anyhow::Result<(StatusCode, Value)> {
        let answer = request.bearer_auth(&self.key).timeout(ANSWER_MAX).send().await?;
        Ok((answer.status(), answer.json().await.unwrap_or_default()))
    }
}

fn said(status: StatusCode, answer: Value) -> anyhow::Result<Value> {
    if status.is_success() || status == StatusCode::NOT_MODIFIED {
        return Ok(answer);
    }
    bail!("the business API answered {status}: {}", answer["title"].as_str().unwrap_or("no reason"))
}

fn item(answer: &Value) -> anyhow::Result<ItemId> {
    serde_json::from_value(answer["id"].clone()).context("the answer names no item")
}
