//! `POST /v1/keys/link`, `POST /v1/keys/masters` and `POST /v1/keys/rooms`.

use std::sync::Arc;

use auth_core::keyring::TOKEN_KEYS_MAX;
use auth_core::node::NodeRole;
use axum::extract::State;
use axum::extract::rejection::JsonRejection;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::{Json, Router};
use kit::meter::list;
use kit::problem::Problem;
use proto::id::Gen;
use proto::keys::{
    LinkKeys, LinkKeysRequest, Masters, ROOM_GENS_MAX, ROOMS_MAX, RoomGens, RoomKeys,
    RoomKeysAnswer, RoomKeysRequest,
};

use crate::site::Site;

/// Addresses of one link.
const ADDRESSES_MAX: usize = 64;
/// Bytes of one address: a host name of 253 bytes and a port.
const ADDRESS_BYTES_MAX: usize = 260;
/// When a node should ask again that came before what it needs was known.
const NOT_READY_RETRY_MS: u32 = 500;

/// The routes.
pub(crate) fn router(site: Arc<Site>) -> Router {
    Router::new()
        .route("/v1/keys/link", post(link))
        .route("/v1/keys/masters", post(masters))
        .route("/v1/keys/rooms", post(rooms))
        .with_state(site)
}

async fn link(
    State(site): State<Arc<Site>>,
    headers: HeaderMap,
    body: Result<Json<LinkKeysRequest>, JsonRejection>,
) -> Response {
    respond(&site, "link", link_keys(&site, &headers, body))
}

async fn masters(State(site): State<Arc<Site>>, headers: HeaderMap) -> Response {
    let answer = site.nodes.authorize(&headers, NodeRole::Gslb);
    let answer = answer
        .and_then(|_| check_masters(&site))
        .map(|()| Masters { interval_s: site.interval_s, masters: site.masters.read().clone() });
    respond(&site, "masters", answer)
}

async fn rooms(
    State(site): State<Arc<Site>>,
    headers: HeaderMap,
    body: Result<Json<RoomKeysRequest>, JsonRejection>,
) -> Response {
    respond(&site, "rooms", room_keys(&site, &headers, body))
}

/// Both kinds of nodes see what is said in every room anyway: they get the keys of any.
fn room_keys(
    site: &Site,
    headers: &HeaderMap,
    body: Result<Json<RoomKeysRequest>, JsonRejection>,
) -> Result<RoomKeysAnswer, Box<Problem>> {
    let node = site.nodes.authorize(headers, NodeRole::Broadcaster);
    node.or_else(|_| site.nodes.authorize(headers, NodeRole::Link))?;
    let Json(request) = body.map_err(|it| bad(it.body_text()))?;
    if request.rooms.len() > ROOMS_MAX {
        return Err(bad(format!("more than {ROOMS_MAX} rooms")));
    }
    if request.rooms.iter().any(|it| it.gens.len() > ROOM_GENS_MAX) {
        return Err(bad(format!("a room with more than {ROOM_GENS_MAX} gens")));
    }
    let apps = site.app_ids();
    check_masters(site)?;
    let (now, keyring) = (site.clock.wall(), site.keyring.read());
    let room = |RoomGens { app, room, gens }| {
        // A room of an app that is not known here has no keys; the others of the question have.
        let gens = if apps.contains(&app) { gens } else { Vec::new() };
        let of_gen = |it: Gen| keyring.room_keys(app, &room, it, now);
        let keys = gens.into_iter().flat_map(of_gen).map(|it| it.tell()).collect();
        RoomKeys { room, keys }
    };
    Ok(RoomKeysAnswer { rooms: request.rooms.into_iter().map(room).collect() })
}

fn link_keys(
    site: &Site,
    headers: &HeaderMap,
    body: Result<Json<LinkKeysRequest>, JsonRejection>,
) -> Result<LinkKeys, Box<Problem>> {
    let node = site.nodes.authorize(headers, NodeRole::Link)?;
    let Json(request) = body.map_err(|it| bad(it.body_text()))?;
    if request.node != node.node {
        return Err(forbidden("other_node", "a node fetches its own keys only".to_owned()));
    }
    if request.unit != node.unit {
        let title = format!("node {} is configured for unit {}", node.node, node.unit);
        return Err(forbidden("other_unit", title));
    }
    if request.addresses.len() > ADDRESSES_MAX {
        return Err(bad(format!("more than {ADDRESSES_MAX} addresses")));
    }
    if request.addresses.iter().any(|it| it.len() > ADDRESS_BYTES_MAX) {
        return Err(bad(format!("an address of more than {ADDRESS_BYTES_MAX} bytes")));
    }
    if let Some(other) = request.addresses.iter().find(|it| !node.has_address(it)) {
        let title = format!("{other} is on none of the hosts that node {} has", node.node);
        return Err(forbidden("other_address", title));
    }
    check_masters(site)?;
    let now = site.clock.wall();
    let keyring = site.keyring.read().needed_at(now);
    if keyring.horizon(now).is_zero() {
        return Err(not_ready("no_epoch", "the running epoch is not known yet"));
    }
    let apps = site.app_ids();
    let keys = keyring.link_keys_max(request.addresses.len(), apps.len());
    if keys > TOKEN_KEYS_MAX {
        return Err(bad(format!("more than {TOKEN_KEYS_MAX} keys: name fewer addresses")));
    }
    Ok(keyring.link_keys(request.unit, &request.addresses, &apps))
}

/// Half of the keys would do harm: gslb mints with the new master, and the link that was answered
/// here would not know it. Another service, or this one a little later, has them all.
fn check_masters(site: &Site) -> Result<(), Box<Problem>> {
    if !site.is_current() {
        return Err(not_ready("behind", "what was published last is not known here yet"));
    }
    let missing = site.keyring.read().missing_masters(site.clock.wall());
    match missing.is_empty() {
        true => Ok(()),
        false => Err(not_ready("no_master", "a master in use is not known here yet")),
    }
}

/// Keys are never stored on the way.
fn respond<T: serde::Serialize>(
    site: &Site,
    kind: &str,
    answer: Result<T, Box<Problem>>,
) -> Response {
    let outcome = answer.as_ref().map_or_else(|it| it.0.code.as_str(), |_| "ok");
    site.count(list::AUTH_KEY_ANSWERS_TOTAL, &[kind, outcome]);
    match answer {
        Ok(keys) => ([(header::CACHE_CONTROL, "no-store")], Json(keys)).into_response(),
        Err(problem) => problem.server_ms(site.clock.wall()).into_response(),
    }
}

fn not_ready(code: &str, title: &str) -> Box<Problem> {
    let problem = Problem::new(StatusCode::SERVICE_UNAVAILABLE, code, title);
    Box::new(problem.retry_after_ms(NOT_READY_RETRY_MS))
}

fn forbidden(code: &str, title: String) -> Box<Problem> {
    Box::new(Problem::new(StatusCode::FORBIDDEN, code, title))
}

fn bad(title: impl Into<String>) -> Box<Problem> {
    Box::new(Problem::new(StatusCode::BAD_REQUEST, "bad_request", title))
}
