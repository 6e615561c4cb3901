//! Gifts, notices and other items of a business server: journaled before they are acknowledged, shown once however often they are
//! asked for.
//!
//! The same idempotency key with the same content is answered 200 with the first id, with other
//! content 409: the first content is what is shown. Keys are remembered for 24 hours.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use bus::topic;
use chatserver_core::{gift, shape};
use kit::quota::Ask;
use proto::control::{LaneShares, RoomFact, RoomSettings};
use proto::envelope::Accepted;
use proto::id::{ItemId, SenderRef, ViewerId};
use proto::item::{Body as ItemBody, Item, Lane, Role};
use proto::limits::TEXT_BYTES_MAX;
use serde::{Deserialize, Serialize};

use super::Api;
use super::caller::{Body, Caller, Names, header};
use super::no::No;
use super::people::viewer_of;
use crate::count::Gift as Outcome;
use crate::mail;
use crate::store::Write;
use crate::store::rows::{Entry, Wrote};

/// The header that makes a request the same as another.
const KEY: &str = "idempotency-key";

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Give {
    viewer: String,
    gift_no: u32,
    count: u32,
    #[serde(default)]
    text: String,
    lane: GiftLane,
}

/// A lane by the value of what is shown.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum GiftLane {
    High,
    Low,
}

impl From<GiftLane> for Lane {
    fn from(lane: GiftLane) -> Self {
        match lane {
            GiftLane::High => Self::HighGift,
            GiftLane::Low => Self::LowGift,
        }
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Notify {
    text: String,
}

#[derive(Debug, Serialize)]
struct Given {
    id: ItemId,
}

/// What is to be shown, and under which key it was asked for.
pub(super) struct Wish {
    pub(super) room: RoomFact,
    pub(super) key: String,
    pub(super) lane: Lane,
    pub(super) viewer: Option<ViewerId>,
    pub(super) body: ItemBody,
}

/// What an item's place is taken from.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Share {
    /// What its lane shows, of a room that is open.
    Lane,
    /// What recalls by rule have for themselves: half as much as the notices' lane shows, so that
    /// none of them takes a notice's place.
    Rule,
    /// Nothing: a moderator's word counts at once, however much there is of it, and also when the
    /// room is closed or shows no notices.
    Free,
}

/// `POST /v1/rooms/{room}/gifts`, with `Idempotency-Key`: 202 once it is durable.
pub(crate) async fn give(
    State(api): State<Arc<Api>>,
    Caller(app): Caller,
    Names(room): Names<String>,
    headers: HeaderMap,
    Body(Give { viewer, gift_no, count, text, lane }): Body<Give>,
) -> Result<Placed, No> {
    let room = api.own_room(app, &room).await?;
    let key = needed_key(&headers)?;
    if count == 0 {
        return Err(No::Field { field: "count", why: "must be at least 1".to_owned() });
    }
    if !text.is_empty() {
        check_text(&text)?;
    }
    let lane = lane.into();
    let viewer = Some(viewer_of(&viewer)?);
    let body = ItemBody::Gift { gift_no, count, text };
    api.show(Wish { room, key, lane, viewer, body }).await
}

/// `POST /v1/rooms/{room}/notices`: as a gift; the key may be left out by those who never repeat.
pub(crate) async fn notify(
    State(api): State<Arc<Api>>,
    Caller(app): Caller,
    Names(room): Names<String>,
    headers: HeaderMap,
    Body(Notify { text }): Body<Notify>,
) -> Result<Placed, No> {
    let room = api.own_room(app, &room).await?;
    check_text(&text)?;
    let key = api.key_or_fresh(&headers)?;
    let (lane, body) = (Lane::Notice, ItemBody::Notice { text });
    api.show(Wish { room, key, lane, viewer: None, body }).await
}

/// The key of a request that needs one.
pub(super) fn needed_key(headers: &HeaderMap) -> Result<String, No> {
    let key = header(headers, KEY, gift::KEY_BYTES_MAX)?;
    let missing = || No::Field { field: KEY, why: "it is needed here".to_owned() };
    key.map(str::to_owned).ok_or_else(missing)
}

/// What became of a wish.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Placed {
    /// It is durable.
    New(ItemId),
    /// It was before.
    Again(ItemId),
}

impl IntoResponse for Placed {
    fn into_response(self) -> Response {
        match self {
            Self::New(id) => (StatusCode::ACCEPTED, Json(Given { id })).into_response(),
            Self::Again(id) => (StatusCode::OK, Json(Given { id })).into_response(),
        }
    }
}

impl Api {
    /// The key of a request, or one that no other has.
    pub(super) fn key_or_fresh(&self, headers: &HeaderMap) -> Result<String, No> {
        Ok(match header(headers, KEY, gift::KEY_BYTES_MAX)? {
            Some(key) => key.to_owned(),
            // With a space, which no caller's key has.
            None => {
                let notice = self.notices.fetch_add(1, Ordering::Relaxed);
                format!("{} {notice}", hex::encode(self.run))
            }
        })
    }

    /// Has it shown, once for its key.
    pub(super) async fn show(&self, wish: Wish) -> Result<Placed, No> {
        self.place(wish, Share::Lane, Vec::new()).await
    }

    /// The same, with a place from this share; writes `beside` with it, or neither.
    pub(super) async fn place(
        &self,
        wish: Wish,
        share: Share,
        beside: Vec<Write>,
    ) -> Result<Placed, No> {
        let Wish { room: RoomFact { app, room, open, .. }, key, lane, viewer, body } = &wish;
        let (app, lane) = (*app, *lane);
        let id = gift::id(app, room, key);
        let digest = gift::digest(lane, viewer.as_ref(), body);
        // First: what was acknowledged stays so, and a repeated request takes nothing from the share.
        if let Some(known) = self.site.rows.digest(id).await? {
            return self.repeat(id, lane, known == digest);
        }
        let is_gift = matches!(body, ItemBody::Gift { .. });
        kit::dying::pass("key_read", || is_gift);
        match share {
            Share::Lane if !open => return Err(No::Closed),
            Share::Lane => self.take_lanes_share(&wish).await?,
            Share::Rule => self.take_rules_share(&wish).await?,
            Share::Free => {}
        }

        let Wish { room: RoomFact { room, .. }, viewer, body, .. } = wish;
        let sender = viewer.as_ref().map(|it| self.secret.room(app, &room).sender(it));
        let role = if viewer.is_some() { Role::Viewer } else { Role::Host };
        let (sender, at) = (sender.unwrap_or(SenderRef(0)), self.site.clock.wall());
        let item = Item { id, lane, sender, role, at, body };
        let partition = topic::accepted().partition_of_room(&room).0;
        let accepted = Accepted { app, room, item };
        let entry = Entry { accepted: accepted.clone(), partition, digest, written_at: at };
        match self.site.rows.journal(entry, beside).await? {
            Wrote::New => {}
            Wrote::Known(known) => return self.repeat(id, lane, known == digest),
            Wrote::Changed => return Err(No::Changed),
        }
        kit::dying::pass("journaled", || is_gift);
        self.site.counts.gift(lane, Outcome::Accepted);
        let records = mail::accepted(vec![accepted]).into_iter().map(|it| it.record);
        for unsent in
            self.site.global.send_once(records.collect()).await.into_iter().filter_map(Result::err)
        {
            // It is durable, so the journal's keeper publishes it within seconds.
            tracing::debug!(error = %unsent, "a journaled item waits for the journal");
        }
        kit::dying::pass("published", || is_gift);
        Ok(Placed::New(id))
    }

    fn repeat(&self, id: ItemId, lane: Lane, is_same: bool) -> Result<Placed, No> {
        if is_same {
            self.site.counts.gift(lane, Outcome::Repeated);
            return Ok(Placed::Again(id));
        }
        self.site.counts.gift(lane, Outcome::Reused);
        Err(No::KeyReused)
    }

    /// Takes one from what the lane shows within [`crate::Config::lane_burst_s`].
    async fn take_lanes_share(&self, wish: &Wish) -> Result<(), No> {
        let Wish { room: RoomFact { app, room, settings, .. }, lane, .. } = wish;
        let percent = self.percent(*lane, settings);
        if percent == 0 {
            return Err(No::Field {
                field: "lane",
                why: "the room shows nothing of it".to_owned(),
            });
        }
        let rate_per_s = settings.items_per_s.saturating_mul(percent) / 100;
        self.take(format!("{}:{app}:{room}", lane.name()), *lane, rate_per_s).await
    }

    /// Takes one from what rules may recall within the same time.
    async fn take_rules_share(&self, wish: &Wish) -> Result<(), No> {
        let Wish { room: RoomFact { app, room, settings, .. }, lane, .. } = wish;
        let percent = self.percent(*lane, settings);
        let rate_per_s = settings.items_per_s.saturating_mul(percent) / 200;
        self.take(format!("rule:{app}:{room}"), *lane, rate_per_s).await
    }

    /// The part of what a room shows that a lane has.
    fn percent(&self, lane: Lane, settings: &RoomSettings) -> u32 {
        let config = &self.site.config;
        let lanes = settings.lanes.unwrap_or(LaneShares {
            notice: config.notice_percent,
            high_gift: config.high_gift_percent,
            low_gift: config.low_gift_percent,
            comment: 0,
        });
        u32::from(match lane {
            Lane::Notice => lanes.notice,
            Lane::HighGift => lanes.high_gift,
            Lane::LowGift => lanes.low_gift,
            Lane::Comment => 0,
        })
    }

    async fn take(&self, key: String, lane: Lane, rate_per_s: u32) -> Result<(), No> {
        let rate_per_s = rate_per_s.max(1);
        let burst = rate_per_s.saturating_mul(self.site.config.lane_burst_s);
        let ask = Ask { key: key.into(), wanted: 1, rate_per_s, burst };
        let taken = self.quota.take(vec![ask], self.site.clock.wall()).await;
        match taken.first() {
            Some(taken) if taken.granted == 0 => {
                self.site.counts.gift(lane, Outcome::OverShare);
                Err(No::OverShare { retry_after_ms: taken.retry_after_ms })
            }
            Some(_) | None => Ok(()),
        }
    }
}

pub(super) fn check_text(text: &str) -> Result<(), No> {
    let invalid = |why: String| No::Field { field: "text", why };
    shape::graphemes(text).map_err(|error| invalid(error.to_string()))?;
    if text.len() > TEXT_BYTES_MAX {
        return Err(invalid(format!("must have at most {TEXT_BYTES_MAX} bytes")));
    }
    Ok(())
}
