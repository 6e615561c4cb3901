//! The whole system in the test's own process: for what needs its keys.

use std::sync::Arc;
use std::time::Duration;

use auth_core::app::App;
use auth_core::keyring::Keyring;
use auth_core::link_id;
use auth_core::node::NodeRole;
use auth_core::token::{Claims, Rooms, flag};
use bus::{At, Tail, Tailed, topic};
use kit::clock::Clock;
use kit::meter::Meter;
use kit::task::Tasks;
use proto::address::{Address, Transport};
use proto::control::{Fact, RoomSettings, Segments};
use proto::enter::{EnterRequest, Offer};
use proto::frame::Path;
use proto::id::{AppId, RoomId, ViewerId};
use proto::keys::Masters;
use proto::policy::Policy;
use sdk::enter::EnterError;
use sdk::{Client, Events, Options};
use serde_json::Value;
use stack::crowd::{signer, ticket_source};
use stack::{Addrs, Business, Config, Identity, Shared, Stack, Trust};
use tempfile::TempDir;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::process::WAIT_MAX;

/// Longest wait of a step of a connection by hand.
pub(crate) const STEP_MAX: Duration = Duration::from_secs(20);

/// A running stack with an open room.
pub(crate) struct Site {
    pub(crate) addrs: Addrs,
    pub(crate) trust: Trust,
    pub(crate) room: RoomId,
    pub(crate) clock: Clock,
    pub(crate) business: Business,
    pub(crate) meter: Meter,
    identity: Identity,
    keyring: Keyring,
    services: Tasks,
    shutdown: CancellationToken,
    _data: TempDir,
}

impl Site {
    /// Starts everything, with a login time of `login_ms`.
    pub(crate) async fn start(login_ms: u32) -> Self {
        Self::with(|config| config.link.login_ms_max = login_ms).await
    }

    /// Starts everything whose app has this policy.
    pub(crate) async fn with_policy(policy: Policy) -> Self {
        Self::with(|config| {
            let identity = Identity::load_or_create(&config.data).unwrap();
            config.app = vec![App { policy, ..identity.app() }];
        })
        .await
    }

    /// Starts everything with a change.
    pub(crate) async fn with(change: impl FnOnce(&mut Config)) -> Self {
        let data = tempfile::tempdir().unwrap();
        let clock = Clock::system();
        let mut config = Config::demo(data.path());
        change(&mut config);
        let stack = Stack::bind(config, clock.clone(), 7).await.unwrap();
        let (addrs, trust) = (stack.addrs().clone(), stack.trust().clone());
        let (identity, shared) = (stack.identity().clone(), stack.shared().clone());
        let mut services = Tasks::default();
        let shutdown = CancellationToken::new();
        services.spawn("stack", Box::pin(stack.run(shutdown.clone())));

        let room = RoomId::parse("demo").unwrap();
        let settings = RoomSettings {
            segments: Segments::Always,
            viewer_burst: 1000,
            ..RoomSettings::default()
        };
        let http = sdk::http::client(&trust.tls).unwrap();
        let masters = masters(&http, &addrs.auth, &identity).await;
        let business = Business::new(http, addrs.api.clone(), identity.api_key.clone());
        business.create_room(&room, &settings).await.unwrap();
        let keyring = keyring(masters, &shared).await;
        Self {
            addrs,
            trust,
            room,
            clock,
            business,
            meter: shared.meter,
            identity,
            keyring,
            services,
            shutdown,
            _data: data,
        }
    }

    /// The listener that speaks `transport`.
    pub(crate) fn address(&self, transport: Transport) -> &Address {
        self.addrs.link.iter().find(|it| it.transport == transport).unwrap()
    }

    /// A token for `authority`, minted `ago_s` seconds ago with the system's own keys.
    pub(crate) fn token(&self, authority: &str, account: &str, ago_s: u32) -> String {
        let now_s = u32::try_from(self.clock.wall().unix_s()).unwrap();
        let claims = Claims {
            app: AppId(1),
            link: link_id(authority),
            iat_s: now_s - ago_s,
            ttl_s: 60,
            flags: flag::SINGLE_USE | flag::MAY_SEND,
            caps: 0,
            jti: kit::seed::random_bytes().unwrap(),
            account: ViewerId::parse(account).unwrap(),
            device: None,
            rooms: Rooms::from(self.room.clone()),
        };
        self.keyring.mint(&claims).unwrap()
    }

    /// A ticket, issued now.
    pub(crate) fn ticket(&self, account: &str) -> String {
        self.tickets(account)()
    }

    fn tickets(&self, account: &str) -> impl Fn() -> String + Send + Sync + use<> {
        let app = self.identity.app();
        let account = ViewerId::parse(account).unwrap();
        let signer = Arc::new(signer(&app).unwrap());
        ticket_source(&signer, &app, &account, &self.room, &self.clock)
    }

    /// What `enter` says about a ticket: an address of this transport with a token, or a problem.
    pub(crate) async fn ask(
        &self,
        ticket: &str,
        transport: Transport,
    ) -> Result<Option<Offer>, EnterError> {
        let http = sdk::http::client(&self.trust.tls).unwrap();
        let client = proto::enter::Client { transports: vec![transport], ..Default::default() };
        let ticket = ticket.to_owned();
        let request = EnterRequest { ticket, client, ..EnterRequest::default() };
        let answer = sdk::enter::enter(&http, &self.addrs.enter, &request, STEP_MAX).await?;
        Ok(answer.addresses.into_iter().find(|it| it.address.transport == transport))
    }

    /// An address of this transport with a token; the link's first report may be under way.
    pub(crate) async fn offer(&self, account: &str, transport: Transport) -> Offer {
        let start = self.clock.mono();
        loop {
            if let Ok(Some(offer)) = self.ask(&self.ticket(account), transport).await {
                return offer;
            }
            assert!(self.clock.mono().since(start) < WAIT_MAX, "enter gives no address");
            self.clock.sleep(Duration::from_millis(20)).await;
        }
    }

    /// A viewer with the real SDK.
    pub(crate) fn viewer(&self, account: &str, path: Path) -> (Client, Events) {
        Client::start(self.options(account, path))
    }

    /// What a viewer with the real SDK is told at its start.
    pub(crate) fn options(&self, account: &str, path: Path) -> Options {
        let ticket = self.tickets(account);
        let mut options = Options::new(
            self.addrs.enter.clone(),
            Arc::new(ticket),
            sdk::http::client(&self.trust.tls).unwrap(),
            self.clock.clone(),
            kit::seed::fresh().unwrap(),
        );
        options.rooms = vec![(self.room.clone(), path)];
        options.tls = Some(self.trust.tls.clone());
        options
    }

    /// Tells the auth service something, as an operator.
    pub(crate) async fn operate(&self, method: reqwest::Method, path: &str, body: &Value) {
        let http = sdk::http::client(&self.trust.tls).unwrap();
        let request = http.request(method, format!("{}{path}", self.addrs.auth));
        let request = request.bearer_auth(&self.identity.operator_key).json(body);
        request.send().await.unwrap().error_for_status().unwrap();
    }

    /// Calls the business API.
    pub(crate) async fn call(&self, method: reqwest::Method, url: &str, body: &Value) {
        let http = sdk::http::client(&self.trust.tls).unwrap();
        let request = http.request(method, url).bearer_auth(&self.identity.api_key).json(body);
        request.send().await.unwrap().error_for_status().unwrap();
    }

    /// Ends everything well.
    pub(crate) async fn stop(self) {
        self.shutdown.cancel();
        timeout(WAIT_MAX, self.services.join()).await.unwrap().unwrap();
    }
}

/// The masters, as gslb gets them.
async fn masters(http: &reqwest::Client, auth: &str, identity: &Identity) -> Masters {
    let node = identity.nodes().into_iter().find(|it| it.role == NodeRole::Gslb).unwrap();
    let request = http.post(format!("{auth}/v1/keys/masters")).bearer_auth(node.secret.expose());
    let answer = request.header("x-barrage-node", node.node.to_string()).send().await.unwrap();
    answer.error_for_status().unwrap().json().await.unwrap()
}

/// The keys that gslb has: masters, and epochs from `control`.
async fn keyring(masters: Masters, shared: &Shared) -> Keyring {
    let mut keyring = Keyring::new(&masters).unwrap();
    let (bus, control) = (Arc::clone(&shared.bus), topic::control());
    let partitions = Tail::all(&control);
    let mut tail = Tail::open(bus, control, partitions, At::Oldest).await.unwrap();
    let now = shared.clock.wall();
    let current = auth_core::keyring::epoch_of(now, masters.interval_s);
    let mut needed = vec![current - 1, current];
    while !needed.is_empty() {
        let tailed = timeout(WAIT_MAX, tail.next(100)).await.expect("epochs in time").unwrap();
        let Tailed::Records(records) = tailed else { continue };
        for record in records {
            if let Ok(Fact::Epoch(fact)) = Fact::decode(&record.value) {
                keyring.handle(&fact, now).unwrap();
                needed.retain(|it| *it != fact.epoch);
            }
        }
    }
    keyring
}
