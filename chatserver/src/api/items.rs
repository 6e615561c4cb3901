//! Items of a room: what it showed last, and what is taken back.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use chatserver_core::hold::Waiting;
use chatserver_core::rank::Act;
use proto::control::RoomFact;
use proto::envelope::Accepted;
use proto::id::{AppId, ItemId, RoomId, ViewerId};
use proto::item::{Body, Lane, Role};
use proto::segment::Line;
use proto::time::Wall;
use serde::Serialize;

use super::Api;
use super::acts::{Signed, What};
use super::caller::{Asked, Caller, Names};
use super::gift::{Placed, Share, Wish};
use super::no::No;
use super::pages::{Listed, Page};

/// Held comments of one page: the shard waits while they are copied.
const HELD_PAGE_MAX: usize = 100;

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
    Asked(signed): Asked<Signed>,
) -> Result<Placed, No> {
    api.take_back(app, (&room, &id), signed, Reach::Screens).await
}

/// `POST /v1/rooms/{room}/items/{id}/erase`: as a recall, and the item is taken out of files too.
pub(crate) async fn erase(
    State(api): State<Arc<Api>>,
    Caller(app): Caller,
    Names((room, id)): Names<(String, String)>,
    Asked(signed): Asked<Signed>,
) -> Result<Placed, No> {
    api.take_back(app, (&room, &id), signed, Reach::Files).await
}

/// How far an item is taken back.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Reach {
    /// Nobody sees it any more.
    Screens,
    /// It is in no file either.
    Files,
}

impl Reach {
    const fn name(self) -> &'static str {
        match self {
            Self::Screens => "recall",
            Self::Files => "erase",
        }
    }
}

/// A comment that is held back.
#[derive(Debug, Serialize)]
struct Held {
    id: ItemId,
    account: ViewerId,
    role: Role,
    at_ms: Wall,
    /// When it goes on.
    until_ms: Wall,
    text: String,
}

impl Held {
    fn of(waiting: Waiting, hold_ms: u32) -> Self {
        let Waiting { viewer, accepted: Accepted { item, .. }, .. } = waiting;
        Self {
            id: item.id,
            account: viewer,
            role: item.role,
            at_ms: item.at,
            until_ms: item.at + Duration::from_millis(hold_ms.into()),
            text: item.body.text().unwrap_or_default().to_owned(),
        }
    }
}

/// `GET /v1/rooms/{room}/held?after=`: what the room holds back at this chatserver, the oldest
/// first.
pub(crate) async fn held(
    State(api): State<Arc<Api>>,
    Caller(app): Caller,
    Names(room): Names<String>,
    Asked(Page { after }): Asked<Page>,
) -> Result<Response, No> {
    let RoomFact { room, .. } = api.own_room(app, &room).await?;
    let after = after.map_or(Ok(0), |it| it.parse()).map_err(|_| No::Field {
        field: "after",
        why: "must be what a page before gave as next".to_owned(),
    })?;
    let (held, hold_ms) = api.desk.held((app, &room), after, HELD_PAGE_MAX);
    let last = held.last().filter(|_| held.len() == HELD_PAGE_MAX);
    let next = last.map(|(no, _)| no.to_string());
    let rows: Vec<_> = held.into_iter().map(|(_, it)| Held::of(it, hold_ms)).collect();
    Ok(Json(Listed { rows, next }).into_response())
}

fn tombstone(room: RoomFact, of: ItemId, reach: Reach) -> Wish {
    // With a space, which no caller's key has.
    let key = format!("{} {of}", reach.name());
    let body = match reach {
        Reach::Screens => Body::Tombstone { of },
        Reach::Files => Body::Erasure { of },
    };
    Wish { room, key, lane: Lane::Notice, viewer: None, body }
}

/// What became of a recall by rule.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Recalled {
    /// It is durable.
    Now,
    /// It was before.
    Before,
    /// The room has no place for it now.
    Later { after_ms: u32 },
    /// Store or bus are away.
    Away,
    /// The room shows nothing any more.
    Never,
}

impl Api {
    async fn take_back(
        &self,
        app: AppId,
        (room, id): (&str, &str),
        signed: Signed,
        reach: Reach,
    ) -> Result<Placed, No> {
        let deed = self.deed(app, room, signed).await?;
        deed.allow(Act::Arrange)?;
        let room = self.own_room(app, room).await?;
        let of = id.parse().map(ItemId).map_err(|_| No::Field {
            field: "id",
            why: "must be an item's id, a number of 64 bits".to_owned(),
        })?;
        let what = What { on: Some(of.to_string()), ..What::default() };
        let record = deed.record(self, reach.name(), what).write(app, Some(&deed.room))?;
        let beside = [deed.guards, vec![record]].concat();
        self.place(tombstone(room, of, reach), Share::Free, beside).await
    }

    /// Recalls an item because a rule says so.
    pub(crate) async fn recall_by_rule(&self, app: AppId, room: &RoomId, of: ItemId) -> Recalled {
        let placed = match self.own_room(app, room.as_str()).await {
            Ok(room) => {
                let wish = tombstone(room, of, Reach::Screens);
                self.place(wish, Share::Rule, Vec::new()).await
            }
            Err(no) => Err(no),
        };
        match placed {
            Ok(Placed::New(_)) => Recalled::Now,
            Ok(Placed::Again(_)) => Recalled::Before,
            Err(No::OverShare { retry_after_ms }) => Recalled::Later { after_ms: retry_after_ms },
            Err(No::Store(_)) => Recalled::Away,
            Err(_) => Recalled::Never,
        }
    }
}
