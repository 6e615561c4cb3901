//! The operators' calls: the state of the epochs, rotation, revocation, policies, SDK rules.
//!
//! Any auth service takes any call, except rotation: only the one that leads may add a master,
//! since it is the one that publishes it.

mod policies;

use std::collections::BTreeSet;
use std::sync::Arc;

use auth_core::keyring::{epoch_of, epochs_back};
use auth_core::ledger::{Ledger, LedgerError};
use axum::extract::rejection::JsonRejection;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use kit::meter::list;
use kit::problem::Problem;
use proto::control::Fact;

use crate::masters::TooMany;
use crate::site::Site;
use crate::state::{self, Revoked, Rotated};

/// When to call again while the bus or the disk does not take it.
const RETRY_MS: u32 = 1_000;

/// The routes; each asks for an operator's key.
pub(crate) fn router(site: Arc<Site>) -> Router {
    let app = get(policies::get).put(policies::put).delete(policies::delete);
    let room = app.clone();
    Router::new()
        .route("/v1/epochs", get(epochs))
        .route("/v1/masters/rotate", post(rotate))
        .route("/v1/revocations", post(revoke))
        .route("/v1/policies/{app}", app)
        .route("/v1/policies/{app}/{room}", room)
        .route("/v1/sdk", get(policies::get_sdk).put(policies::put_sdk))
        .layer(middleware::from_fn_with_state(Arc::clone(&site), guard))
        .with_state(site)
}

/// Lets operators in, counts, and tells the time with every "no".
async fn guard(State(site): State<Arc<Site>>, request: Request, next: Next) -> Response {
    let response = match site.operators.authorize(request.headers()) {
        Ok(()) => next.run(request).await,
        Err(problem) => No(*problem).into_response(),
    };
    site.count(list::AUTH_OPERATOR_CALLS_TOTAL, &[response.status().as_str()]);
    response
}

async fn epochs(State(site): State<Arc<Site>>) -> Json<state::State> {
    let now = site.clock.wall();
    let revoked = site.ledger.known.lock().facts().filter_map(revoked).collect();
    let keyring = site.keyring.read().needed_at(now);
    Json(state::State {
        server_ms: now,
        leads: site.lead.borrow().is_some(),
        interval_s: site.interval_s,
        horizon_s: keyring.horizon(now).as_secs(),
        horizon_s_min: site.horizon_min.as_secs(),
        masters: site.kids(),
        missing_masters: keyring.missing_masters(now).into_iter().collect(),
        epochs: keyring.facts(),
        revoked,
    })
}

async fn rotate(State(site): State<Arc<Site>>) -> Result<Json<Rotated>, No> {
    if site.lead.borrow().is_none() {
        let title = "another auth service draws the epochs, or none does: call that one";
        return Err(No::new(StatusCode::CONFLICT, "not_leading", title));
    }
    let (missing, named) = {
        let keyring = site.keyring.read();
        let named: BTreeSet<u8> = keyring.facts().into_iter().flat_map(|it| it.kids).collect();
        (keyring.missing_masters(site.clock.wall()), named)
    };
    if !missing.is_empty() {
        // Another service's rotation whose file is not here: a second key under its number would
        // split the fleet.
        let title = format!("masters in use are not here: {missing:?}; copy their file first");
        return Err(No::new(StatusCode::CONFLICT, "missing_masters", title));
    }
    site.take_masters(move |file| file.rotate(&named)).await.map_err(|error| {
        match error.downcast_ref::<TooMany>() {
            Some(full) => No::new(StatusCode::CONFLICT, "too_many_masters", full.to_string()),
            None => No::disk(&error, "the disk does not take it: look at the masters first"),
        }
    })?;
    let masters = site.kids();
    site.count(list::AUTH_ROTATIONS_TOTAL, &[]);
    tracing::info!(kids = ?masters, "the masters were rotated");
    Ok(Json(Rotated { kid: masters.first().copied().unwrap_or_default(), masters }))
}

async fn revoke(
    State(site): State<Arc<Site>>,
    body: Result<Json<Revoked>, JsonRejection>,
) -> Result<Json<Revoked>, No> {
    let Json(Revoked { kid, from_epoch, to_epoch }) = body.map_err(|it| No::bad(it.body_text()))?;
    if to_epoch < from_epoch {
        return Err(No::bad(format!("epoch {to_epoch} is before epoch {from_epoch}")));
    }
    let current = epoch_of(site.clock.wall(), site.interval_s);
    let oldest = current.saturating_sub(epochs_back(site.interval_s));
    let fact = say(&site, |it| it.revoke(kid, from_epoch, to_epoch, oldest)).await?;
    tracing::warn!(kid, from_epoch, to_epoch, "epochs of a master are void");
    revoked(&fact).map(Json).ok_or_else(|| No::bad("no range of epochs"))
}

/// Notes what an operator says, on disk and on `control`, and acts by it.
async fn say(
    site: &Arc<Site>,
    say: impl FnOnce(&mut Ledger) -> Result<Fact, LedgerError>,
) -> Result<Fact, No> {
    if !site.is_current() {
        let title = "what was said last is not known here yet: nothing was changed";
        return Err(No::later("behind", title));
    }
    let said = say(&mut site.ledger.known.lock());
    let fact =
        said.map_err(|it| No::new(StatusCode::CONFLICT, "too_many_facts", it.to_string()))?;
    site.apply(&fact);
    site.keep_ledger()
        .await
        .map_err(|it| No::disk(&it, "it holds until a restart: the disk does not take it"))?;
    site.publish(std::slice::from_ref(&fact), None).await.map_err(|error| {
        let title = format!("it is noted, and said again until everybody has heard it: {error}");
        No::later("bus_away", title)
    })?;
    Ok(fact)
}

fn revoked(fact: &Fact) -> Option<Revoked> {
    if let Fact::Revoked { kid, from_epoch, to_epoch } = *fact {
        Some(Revoked { kid, from_epoch, to_epoch })
    } else {
        None
    }
}

/// Why a call was not obeyed.
#[derive(Debug)]
struct No(Problem);

impl No {
    fn new(status: StatusCode, code: &str, title: impl Into<String>) -> Self {
        Self(Problem::new(status, code, title))
    }

    fn bad(title: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "bad_request", title)
    }

    fn later(code: &str, title: impl Into<String>) -> Self {
        let problem = Problem::new(StatusCode::SERVICE_UNAVAILABLE, code, title);
        Self(problem.retry_after_ms(RETRY_MS))
    }

    fn disk(error: &anyhow::Error, title: &str) -> Self {
        tracing::error!(error = format!("{error:#}"), "the disk did not take it");
        Self::later("disk", title)
    }
}

impl IntoResponse for No {
    fn into_response(self) -> Response {
        self.0.into_response()
    }
}
