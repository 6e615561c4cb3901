//! Policies of apps and rooms, and SDK rules.

use std::sync::Arc;

use auth_core::policy::{self, SdkPolicy};
use axum::Json;
use axum::extract::rejection::{JsonRejection, PathRejection};
use axum::extract::{Path, State};
use axum::http::StatusCode;
use proto::control::Fact;
use proto::id::{AppId, RoomId};
use proto::limits::FACT_BYTES_MAX;
use proto::policy::{Policy, PolicyFact, SdkFact, SdkRule};
use serde::Deserialize;

use super::{No, say};
use crate::site::Site;
use crate::state::{PolicyState, SdkState};

/// Names in the path, not yet checked.
#[derive(Debug, Deserialize)]
pub(super) struct Names {
    app: String,
    room: Option<String>,
}

type Asked = Result<Path<Names>, PathRejection>;

pub(super) async fn get(
    State(site): State<Arc<Site>>,
    names: Asked,
) -> Result<Json<PolicyState>, No> {
    let (app, room) = parse(&site, names)?;
    Ok(Json(state(&site, app, room)))
}

pub(super) async fn put(
    State(site): State<Arc<Site>>,
    names: Asked,
    body: Result<Json<Policy>, JsonRejection>,
) -> Result<Json<PolicyState>, No> {
    let (app, room) = parse(&site, names)?;
    let Json(policy) = body.map_err(|it| No::bad(it.body_text()))?;
    policy::check(&policy, site.interval_s)
        .map_err(|it| No::new(StatusCode::BAD_REQUEST, "bad_policy", it.to_string()))?;
    say(&site, |it| it.set_policy(app, room.clone(), Some(policy))).await?;
    Ok(Json(state(&site, app, room)))
}

pub(super) async fn delete(
    State(site): State<Arc<Site>>,
    names: Asked,
) -> Result<Json<PolicyState>, No> {
    let (app, room) = parse(&site, names)?;
    say(&site, |it| it.set_policy(app, room.clone(), None)).await?;
    Ok(Json(state(&site, app, room)))
}

pub(super) async fn get_sdk(State(site): State<Arc<Site>>) -> Json<SdkState> {
    let known = site.ledger.known.lock();
    let mut state = SdkState::default();
    for fact in known.facts() {
        if let Fact::Sdk(SdkFact { version, rules }) = fact {
            state = SdkState { version: *version, rules: rules.clone() };
        }
    }
    Json(state)
}

pub(super) async fn put_sdk(
    State(site): State<Arc<Site>>,
    body: Result<Json<Vec<SdkRule>>, JsonRejection>,
) -> Result<Json<SdkState>, No> {
    let Json(rules) = body.map_err(|it| No::bad(it.body_text()))?;
    let bad = |title: String| No::new(StatusCode::BAD_REQUEST, "bad_rules", title);
    SdkPolicy::check(&rules).map_err(|it| bad(it.to_string()))?;
    let bytes = Fact::Sdk(SdkFact { version: u64::MAX, rules: rules.clone() }).encode().len();
    if bytes > FACT_BYTES_MAX {
        return Err(bad(format!("rules of {bytes} bytes are longer than {FACT_BYTES_MAX}")));
    }
    say(&site, |it| Ok(it.set_sdk(rules))).await?;
    Ok(get_sdk(State(site)).await)
}

/// A name of an app that is none is an unknown app.
fn parse(site: &Site, names: Asked) -> Result<(AppId, Option<RoomId>), No> {
    let Path(Names { app, room }) = names.map_err(|it| No::bad(it.body_text()))?;
    let known = app.parse().ok().map(AppId).filter(|app| site.apps.iter().any(|it| it.id == *app));
    let app = known.ok_or_else(|| {
        No::new(StatusCode::NOT_FOUND, "unknown_app", "there is no app with this number")
    })?;
    let room = room.map(|it| RoomId::parse(&it)).transpose();
    let room = room.map_err(|it| No::new(StatusCode::BAD_REQUEST, "bad_room", it.to_string()))?;
    Ok((app, room))
}

fn state(site: &Site, app: AppId, room: Option<RoomId>) -> PolicyState {
    let mut state = PolicyState {
        app,
        version: 0,
        own: None,
        policy: match &room {
            Some(room) => site.policies.read().of_room(app, room),
            None => site.policies.read().of_app(app),
        },
        rooms: Vec::new(),
        room,
    };
    for fact in site.ledger.known.lock().facts() {
        let Fact::Policy(PolicyFact { app: its_app, room, version, policy }) = fact else {
            continue;
        };
        if *its_app != app {
            continue;
        }
        if *room == state.room {
            state.version = *version;
            state.own = *policy;
        } else if state.room.is_none() && policy.is_some() {
            state.rooms.extend(room.clone());
        }
    }
    state
}
