//! The business API: rooms, gifts, notices, and who may not speak. HTTP and JSON; every "no" is an
//! RFC 9457 problem document.
//!
//! A call writes the room store, then tells `control` or `accepted`; any chatserver takes it.

mod acts;
mod audit;
mod board;
mod call;
mod caller;
mod calls;
mod catalogue;
mod errands;
mod evidence;
mod exclusions;
mod gift;
mod items;
mod no;
mod openapi;
mod pages;
mod people;
mod quota;
mod rate;
mod room;
mod shown;
mod standing;
mod words;

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use axum::Router;
use axum::extract::{DefaultBodyLimit, Request, State};
use axum::middleware::{self, Next};
use axum::response::Response;
use bytes::Bytes;
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
pub(crate) use self::items::Recalled;
use self::no::No;
pub(crate) use self::rate::Rates;

/// What the handlers work with.
#[derive(Debug)]
pub(crate) struct Api {
    pub(crate) site: Arc<Site>,
    pub(crate) desk: Arc<Desk>,
    pub(crate) keys: Keys,
    pub(crate) rates: Rates,
    /// Of catalogues that are set.
    pub(crate) catalogue_rates: Rates,
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
    /// The OpenAPI document.
    pub(crate) document: Bytes,
}

/// All routes.
pub(crate) fn router(api: Arc<Api>) -> Router {
    calls::all()
        .into_iter()
        .fold(Router::new(), |router, call| router.route(call.path, call.route))
        .fallback(async || No::Route)
        .method_not_allowed_fallback(async || No::Method)
        .layer(middleware::from_fn_with_state(Arc::clone(&api), count))
        .layer(middleware::from_fn_with_state(Arc::clone(&api), errands::finish))
        .with_state(api)
}

/// What the API says of itself.
pub(crate) fn document() -> Bytes {
    openapi::document(&calls::all()).to_string().into()
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
