//! The business API: rooms, gifts, notices, and who may not speak. HTTP and JSON; every "no" is an
//! RFC 9457 problem document.
//!
//! A call writes the room store, then tells `control` or `accepted`; any chatserver takes it.

mod acts;
mod audit;
mod board;
mod caller;
mod errands;
mod evidence;
mod exclusions;
mod gift;
mod items;
mod no;
mod pages;
mod people;
mod room;
mod standing;
mod words;

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use axum::Router;
use axum::extract::{DefaultBodyLimit, Request, State};
use axum::middleware::{self, Next};
use axum::response::Response;
use axum::routing::{delete, get, post, put};
use chatserver_core::sender::SenderSecret;
use chatserver_core::shard::Input;
use kit::quota::Quota;
use proto::control::{Fact, RoomFact};
use proto::id::{AppId, RoomId};

use crate::desk::Desk;
use crate::lately::Recent;
use crate::lists::Lists;
use crate::online::Online;
use crate::outside::Ledger;
use crate::site::Site;

pub(crate) use self::caller::Keys;
pub(crate) use self::errands::Errands;
use self::no::No;

/// What the handlers work with.
#[derive(Debug)]
pub(crate) struct Api {
    pub(crate) site: Arc<Site>,
    pub(crate) desk: Arc<Desk>,
    pub(crate) keys: Keys,
    pub(crate) quota: Arc<dyn Quota>,
    pub(crate) online: Arc<Online>,
    pub(crate) lists: Arc<Lists>,
    pub(crate) recent: Arc<Recent>,
    /// Whoever replaces a list holds it.
    pub(crate) words_turn: Arc<tokio::sync::Mutex<()>>,
    pub(crate) ledger: Ledger,
    pub(crate) secret: SenderSecret,
    /// Drawn at start, so that notices without a key of two runs never share an id.
    pub(crate) run: [u8; 16],
    pub(crate) notices: AtomicU64,
    pub(crate) errands: Errands,
}

/// All routes.
pub(crate) fn router(api: Arc<Api>) -> Router {
    Router::new()
        .route("/v1/rooms", post(room::create).get(room::list))
        .route("/v1/rooms/{room}", get(room::read).patch(room::update))
        .route("/v1/rooms/{room}/close", post(room::close))
        .route("/v1/rooms/{room}/online", get(room::online))
        .route("/v1/rooms/{room}/gifts", post(gift::give))
        .route("/v1/rooms/{room}/notices", post(gift::notify))
        .route("/v1/rooms/{room}/items", get(items::recent))
        .route("/v1/rooms/{room}/items/{id}", delete(items::recall))
        .merge(people())
        .merge(board())
        .route("/v1/audit", get(audit::of_app))
        .route("/v1/rooms/{room}/audit", get(audit::of_room))
        .route("/v1/rooms/{room}/words", get(words::read_room).put(words::put_room).layer(large()))
        .route("/v1/words", get(words::read_app).put(words::put_app).layer(large()))
        .route("/v1/evidence", get(evidence::export))
        .route("/v1/evidence/{account}", delete(evidence::erase))
        .fallback(async || No::Route)
        .method_not_allowed_fallback(async || No::Method)
        .layer(middleware::from_fn_with_state(Arc::clone(&api), count))
        .layer(middleware::from_fn_with_state(Arc::clone(&api), errands::finish))
        .with_state(api)
}

/// Who may not speak, not enter, not stay, and who is what.
fn people() -> Router<Arc<Api>> {
    Router::new()
        .route("/v1/rooms/{room}/mutes", post(people::mute).get(people::mutes))
        .route("/v1/rooms/{room}/mutes/{viewer}", delete(people::unmute))
        .route("/v1/rooms/{room}/bans", post(people::ban).get(people::bans))
        .route("/v1/rooms/{room}/bans/{viewer}", delete(people::unban))
        .route("/v1/rooms/{room}/kicks", post(people::kick))
        .route("/v1/rooms/{room}/exclusions", post(exclusions::exclude).get(people::exclusions))
        .route("/v1/rooms/{room}/exclusions/device/{device}", delete(exclusions::readmit_device))
        .route("/v1/rooms/{room}/exclusions/range/{range}", delete(exclusions::readmit_range))
        .route("/v1/rooms/{room}/people", post(standing::put_many).get(standing::list))
        .route(
            "/v1/rooms/{room}/people/{viewer}",
            get(standing::read).put(standing::put).delete(standing::remove),
        )
}

/// What rooms tell everyone in them.
fn board() -> Router<Arc<Api>> {
    Router::new()
        .route("/v1/rooms/{room}/notice", put(board::put_notice).delete(board::clear_notice))
        .route("/v1/rooms/{room}/attributes", get(board::list))
        .route(
            "/v1/rooms/{room}/attributes/{name}",
            get(board::read).put(board::put).delete(board::remove),
        )
        .route("/v1/rooms/{room}/counters/{name}", post(board::add))
}

/// Lists of words are larger than other bodies.
fn large() -> DefaultBodyLimit {
    DefaultBodyLimit::max(words::BODY_BYTES_MAX)
}

async fn count(State(api): State<Arc<Api>>, request: Request, next: Next) -> Response {
    let response = next.run(request).await;
    api.site.counts.request(response.status().as_u16());
    response
}

impl Api {
    /// A room of this app. Another app's room does not exist for it.
    async fn own_room(&self, app: AppId, name: &str) -> Result<RoomFact, No> {
        let room = RoomId::parse(name)
            .map_err(|error| No::Field { field: "room", why: error.to_string() })?;
        self.site.rows.room(&room).await?.filter(|it| it.app == app).ok_or(No::Room)
    }

    /// Lets a written fact bite here at once, and tells everyone, the app's webhook first.
    async fn announce(&self, fact: Fact) -> Result<(), No> {
        self.desk.announce(&fact);
        self.spread(fact).await
    }

    /// The same without a word to the app's webhook: nothing happened of which it hears.
    ///
    /// In this order: should another one have been written meanwhile, it is told, and comes back.
    async fn spread(&self, fact: Fact) -> Result<(), No> {
        self.desk.learn([Input::Fact(fact.clone())]);
        self.site.tell(vec![fact]).await.map_err(|_| No::Untold)
    }
}
