//! What a room tells everyone in it: its notice, up to 100 attributes, counters among them.
//!
//! Every change has a version, which is the entity tag. With `If-Match: "version"` only that
//! version is changed, and `"0"` means that there is none; otherwise 412, with the version of now.
//!
//! What is added to a counter has no record, and everyone is told of it once a second at most.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use chatserver_core::rank::Act;
use chatserver_core::shape;
use proto::attribute::{ATTRIBUTES_MAX, Attribute, COUNT_MAX, NOTICE, Value};
use proto::control::Fact;
use proto::id::AttributeName;
use proto::limits::{ATTRIBUTE_BYTES_MAX, TEXT_BYTES_MAX};
use serde::Deserialize;

use super::Api;
use super::acts::{Deed, Signed, TRIES_MAX, What};
use super::caller::{Asked, Body, Caller, Names};
use super::no::No;
use super::pages::{Listed, Page};
use super::words::version;
use crate::store::Expect;

/// Whether a change is recorded and told at once, each of them.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Way {
    Loud,
    Quiet,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Put {
    value: Value,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Notice {
    text: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Add {
    add: i64,
}

/// `GET /v1/rooms/{room}/attributes`: the notice among them, counters too.
pub(crate) async fn list(
    State(api): State<Arc<Api>>,
    Caller(app): Caller,
    Names(room): Names<String>,
    Asked(page): Asked<Page>,
) -> Result<Response, No> {
    let room = api.own_room(app, &room).await?.room;
    let (facts, next) = api.page(&format!("attribute:{app}:{room}:"), page).await?;
    let rows: Vec<_> = facts.into_iter().filter_map(standing).collect();
    Ok(Json(Listed { rows, next }).into_response())
}

/// `GET /v1/rooms/{room}/attributes/{name}`.
pub(crate) async fn read(
    State(api): State<Arc<Api>>,
    Caller(app): Caller,
    Names((room, name)): Names<(String, String)>,
) -> Result<Response, No> {
    let deed = api.deed(app, &room, Signed::default()).await?;
    let (there, _) = api.find(&deed, name_of(&name)?).await?;
    there.value.is_some().then(|| answer(there)).ok_or(No::Attribute)
}

/// `PUT /v1/rooms/{room}/attributes/{name}`: a text, or a counter's number.
pub(crate) async fn put(
    State(api): State<Arc<Api>>,
    Caller(app): Caller,
    Names((room, name)): Names<(String, String)>,
    Asked(signed): Asked<Signed>,
    headers: HeaderMap,
    Body(Put { value }): Body<Put>,
) -> Result<Response, No> {
    let deed = api.deed(app, &room, signed).await?;
    let wanted = version(&headers)?;
    let change = |_: &Attribute| Ok(Some(value.clone()));
    api.write(&deed, name_of(&name)?, wanted, Way::Loud, change).await
}

/// `DELETE /v1/rooms/{room}/attributes/{name}`: 204, whether or not there was one.
pub(crate) async fn remove(
    State(api): State<Arc<Api>>,
    Caller(app): Caller,
    Names((room, name)): Names<(String, String)>,
    Asked(signed): Asked<Signed>,
    headers: HeaderMap,
) -> Result<Response, No> {
    let deed = api.deed(app, &room, signed).await?;
    api.write(&deed, name_of(&name)?, version(&headers)?, Way::Loud, |_| Ok(None)).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// `PUT /v1/rooms/{room}/notice`: the attribute `notice`, which may be longer than others.
pub(crate) async fn put_notice(
    State(api): State<Arc<Api>>,
    Caller(app): Caller,
    Names(room): Names<String>,
    Asked(signed): Asked<Signed>,
    headers: HeaderMap,
    Body(Notice { text }): Body<Notice>,
) -> Result<Response, No> {
    let deed = api.deed(app, &room, signed).await?;
    let wanted = version(&headers)?;
    let change = |_: &Attribute| Ok(Some(Value::Text(text.clone())));
    api.write(&deed, name_of(NOTICE)?, wanted, Way::Loud, change).await
}

/// `DELETE /v1/rooms/{room}/notice`: 204.
pub(crate) async fn clear_notice(
    State(api): State<Arc<Api>>,
    Caller(app): Caller,
    Names(room): Names<String>,
    Asked(signed): Asked<Signed>,
    headers: HeaderMap,
) -> Result<Response, No> {
    let deed = api.deed(app, &room, signed).await?;
    api.write(&deed, name_of(NOTICE)?, version(&headers)?, Way::Loud, |_| Ok(None)).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// `POST /v1/rooms/{room}/counters/{name}`: adds to a counter, which begins at 0. Whatever others
/// add at the same time is added, too; a request that is repeated adds again.
pub(crate) async fn add(
    State(api): State<Arc<Api>>,
    Caller(app): Caller,
    Names((room, name)): Names<(String, String)>,
    Asked(signed): Asked<Signed>,
    Body(Add { add }): Body<Add>,
) -> Result<Response, No> {
    let deed = api.deed(app, &room, signed).await?;
    let sum = |there: &Attribute| match &there.value {
        None => Ok(Some(Value::Count(add))),
        Some(Value::Count(count)) => Ok(Some(Value::Count(count.saturating_add(add)))),
        Some(Value::Text(_)) => {
            Err(No::Field { field: "name", why: "is a text, and no counter".to_owned() })
        }
    };
    api.write(&deed, name_of(&name)?, None, Way::Quiet, sum).await
}

impl Api {
    /// What stands under a name, and what must be there for it to be replaced.
    async fn find(&self, deed: &Deed, name: AttributeName) -> Result<(Attribute, Expect), No> {
        let attribute = Attribute { name, version: 0, value: None };
        let (app, room) = (deed.app, deed.room.clone());
        let fact = Fact::Attribute { app, room, attribute: attribute.clone() };
        let (found, expect) = self.site.rows.act(&fact).await?;
        let there = match found {
            Some(Fact::Attribute { attribute, .. }) => attribute,
            Some(_) | None => attribute,
        };
        Ok((there, expect))
    }

    /// Changes what stands under a name, by compare-and-set, and tells everyone.
    async fn write(
        &self,
        deed: &Deed,
        name: AttributeName,
        wanted: Option<u64>,
        way: Way,
        change: impl Fn(&Attribute) -> Result<Option<Value>, No>,
    ) -> Result<Response, No> {
        deed.allow(Act::Arrange)?;
        if !deed.open {
            return Err(No::Closed);
        }
        for _ in 0..TRIES_MAX {
            let (there, expect) = self.find(deed, name.clone()).await?;
            let present = if there.value.is_some() { there.version } else { 0 };
            if wanted.is_some_and(|it| it != present) {
                return Err(No::Moved { version: present });
            }
            let value = change(&there)?;
            // By the clock, so that it rises also over a removal, of which nothing is kept for long.
            let version = self.site.clock.wall().0.max(there.version + 1);
            let attribute = Attribute { name: name.clone(), version, value };
            check(&attribute)?;
            if present == 0 && attribute.value.is_some() && !attribute.is_notice() {
                self.check_names(deed).await?;
            }
            let (app, room) = (deed.app, deed.room.clone());
            let act = Fact::Attribute { app, room, attribute: attribute.clone() };
            let is_done = match way {
                Way::Quiet => self.act_quietly(deed.app, act, expect).await?,
                Way::Loud => {
                    let value = attribute.value.as_ref();
                    let value = value.and_then(|it| serde_json::to_value(it).ok());
                    let what = What { on: Some(name.to_string()), until: None, value };
                    self.act_if(act, expect, deed, deed.record(self, "write", what)).await?
                }
            };
            if is_done {
                return Ok(answer(attribute));
            }
            self.still(deed).await?;
        }
        Err(No::Changed)
    }

    async fn check_names(&self, deed: &Deed) -> Result<(), No> {
        let Deed { app, room, .. } = deed;
        let prefix = format!("attribute:{app}:{room}:");
        let (facts, _) = self.site.rows.acts(&prefix, None).await?;
        let others = facts.into_iter().filter_map(standing).filter(|it| !it.is_notice());
        if others.count() >= ATTRIBUTES_MAX { Err(No::TooMany) } else { Ok(()) }
    }
}

/// The attribute, if something stands there.
fn standing(fact: Fact) -> Option<Attribute> {
    let Fact::Attribute { attribute, .. } = fact else { return None };
    attribute.value.is_some().then_some(attribute)
}

fn answer(attribute: Attribute) -> Response {
    let tag = [("etag", format!("\"{}\"", attribute.version))];
    (tag, Json(attribute)).into_response()
}

fn name_of(name: &str) -> Result<AttributeName, No> {
    AttributeName::parse(name).map_err(|error| No::Field { field: "name", why: error.to_string() })
}

fn check(attribute: &Attribute) -> Result<(), No> {
    let invalid = |why: String| No::Field { field: "value", why };
    if let Some(Value::Text(text)) = &attribute.value
        && !text.is_empty()
    {
        shape::graphemes(text).map_err(|error| invalid(error.to_string()))?;
    }
    if attribute.is_notice() && matches!(attribute.value, Some(Value::Count(_))) {
        return Err(invalid("the notice is a text".to_owned()));
    }
    if attribute.fits() {
        return Ok(());
    }
    Err(invalid(format!(
        "a text has at most {ATTRIBUTE_BYTES_MAX} bytes, the notice {TEXT_BYTES_MAX}; a number is \
         within {COUNT_MAX}"
    )))
}
