//! The long connections: accepts viewers, verifies them, pushes, acknowledges and passes on.
//!
//! The core decides ([`link_core`]); this package owns sockets, clocks and the bus. A room's flush
//! is encoded once and the same bytes go to every session, in one write per session and flush. One
//! session never slows another: it skips forward, and in the end it is closed.
#![deny(missing_docs)]

mod accept;
mod config;
mod converse;
mod counts;
mod door;
mod drain;
mod entry;
mod follow;
mod io;
mod kept;
mod keys;
mod line;
mod node;
mod poller;
mod pulse;
mod pump;
mod report;
mod room_keys;
mod rooms;
mod socket;
mod uplink;
mod used;
mod wire;
pub mod workers;

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::num::NonZero;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use auth_core::policy::Policies;
use bus::Bus;
use channel::{ClientTls, ServerTls};
use kit::clock::Clock;
use kit::health::Health;
use kit::meter::Meter;
use kit::quota::Quota;
use kit::task::Tasks;
use proto::address::Address;
use tokio_util::sync::CancellationToken;

use crate::accept::{Bound, Entrance, Gate, Listener};
use crate::counts::Counts;
use crate::drain::{GOODBYES_MAX, LAST_WORDS_MAX};
use crate::kept::Kept;
use crate::node::Node;

pub use config::{Binder, Config, Entry, ListenerConfig, Siege};

/// Time for reaching the auth service.
const CONNECT_MAX: Duration = Duration::from_secs(3);

/// What a link is built from.
#[derive(Debug)]
pub struct Parts {
    /// Clock.
    pub clock: Clock,
    /// Metrics.
    pub meter: Meter,
    /// Health of the process.
    pub health: Health,
    /// For session lives and jitter; never for keys.
    pub seed: u64,
    /// The bus that all units share.
    pub global_bus: Arc<dyn Bus>,
    /// The unit's own bus.
    pub unit_bus: Arc<dyn Bus>,
    /// What all link nodes share of the rooms' limits.
    pub quota: Arc<dyn Quota>,
    /// What the apps ask of those who enter, until `control` says something else.
    pub policies: Policies,
    /// Whom to believe when fetching keys.
    pub auth_tls: ClientTls,
    /// Certificate of the listeners with TLS.
    pub tls: Option<ServerTls>,
    /// Certificate of the national listeners, and of the others with TLS for clients that offer
    /// national suites only.
    pub national: Option<ServerTls>,
}

/// A link, bound and not yet serving.
#[derive(Debug)]
pub struct Service {
    node: Arc<Node>,
    listeners: Vec<(Bound, Arc<Listener>)>,
    kept: Arc<Kept>,
    parts: Parts,
}

impl Service {
    /// Binds the listeners.
    ///
    /// # Errors
    /// When the configuration cannot work, an address cannot be bound, others can read the keys
    /// that were kept, or used tokens cannot be kept.
    #[expect(clippy::unused_async, reason = "every service is bound in the same way")]
    pub async fn bind(config: Config, parts: Parts) -> anyhow::Result<Self> {
        config.check()?;
        let mut listeners = Vec::new();
        for listener in &config.listeners {
            listeners.push(accept::bind(&config, listener, &parts)?);
        }
        let counts = Counts::new(parts.meter.clone());
        let kept = Arc::new(Kept::new(&config.data, config.secret.clone()));
        let policies = parts.policies.clone();
        let node = Node::open(config, parts.clock.clone(), counts, policies, parts.seed)?;
        let node = Arc::new(node);
        if let Some(answer) = kept.read()? {
            // As good as none: the auth service has others.
            if let Err(error) = node.door.take_keys(&answer) {
                tracing::warn!(%error, "the kept keys are not usable");
            }
        }
        Ok(Self { node, listeners, kept, parts })
    }

    /// Where the first listener listens.
    ///
    /// # Panics
    /// When there is no listener.
    #[must_use]
    pub fn addr(&self) -> SocketAddr {
        let (bound, _) = self.listeners.first().expect("asked for the address of a listener");
        bound.local_addr().expect("a bound listener has an address")
    }

    /// Where viewers connect, as advertised; in the order of the configuration.
    #[must_use]
    pub fn addrs(&self) -> Vec<Address> {
        self.addresses(|it| !it.reserve)
    }

    /// Where viewers of other nodes connect that are attacked, in the order of the configuration.
    #[must_use]
    pub fn reserve(&self) -> Vec<Address> {
        self.addresses(|it| it.reserve)
    }

    /// The ports of the listeners, in the order of the configuration.
    ///
    /// # Panics
    /// Never: a bound socket has an address.
    #[must_use]
    pub fn ports(&self) -> Vec<u16> {
        let port = |bound: &Bound| bound.local_addr().expect("a bound listener has an address");
        self.listeners.iter().map(|(bound, _)| port(bound).port()).collect()
    }

    fn addresses(&self, choose: impl Fn(&ListenerConfig) -> bool) -> Vec<Address> {
        let configured = self.node.config.listeners.iter().zip(&self.listeners);
        let chosen = configured.filter(|(config, _)| choose(config));
        chosen.map(|(_, (_, listener))| listener.address.clone()).collect()
    }

    /// Serves until `shutdown`, then drains: the load reports say so first, sessions are told to
    /// come back elsewhere, and what they did last goes out.
    ///
    /// # Errors
    /// When a task that serves all sessions failed.
    pub async fn run(self, shutdown: CancellationToken) -> anyhow::Result<()> {
        let (published, reserve) = (self.addrs(), self.reserve());
        let addresses = [published.as_slice(), &reserve].concat();
        let Self { node, listeners, kept, parts } = self;
        let sessions = Sessions(Arc::clone(&node));
        let done = CancellationToken::new();
        let mut last = Tasks::default();
        last.spawn(
            "uplink",
            uplink::run(Arc::clone(&node), Arc::clone(&parts.unit_bus), done.clone()),
        );
        last.spawn("report", report::run(Arc::clone(&node), published, reserve, done.clone()));
        let mut tasks = spawn_readers(&node, &parts, kept, &addresses)?;
        let shut = CancellationToken::new();
        let mut entrances = spawn_entrances(&node, listeners, &shut);

        let ended = tokio::select! {
            () = shutdown.cancelled() => Ok(()),
            Some(ended) = tasks.next() => ended.context("the link cannot go on"),
            Some(ended) = last.next() => ended.context("the link cannot go on"),
            Some(ended) = entrances.next() => ended.context("the link cannot go on"),
        };

        drain::announce(&node).await;
        shut.cancel();
        drain::send_all_away(&node).await;
        // Together, as they wait for the same: QUIC's entrance holds its sessions' connections.
        let (entered, ()) = tokio::join!(entrances.join(), sessions.end());
        entered?;
        drain::tell_leaves(&node).await;
        done.cancel();
        kit::shutdown::drain(last, LAST_WORDS_MAX).await?;
        ended
    }
}

/// All sessions: they own themselves, and end when this does.
struct Sessions(Arc<Node>);

impl Sessions {
    /// Waits for all that were told to end.
    async fn end(&self) {
        let end = tokio::time::timeout(GOODBYES_MAX, self.0.lines.deserted());
        if end.await.is_err() {
            let sessions = self.0.lines.cut_off();
            tracing::warn!(sessions, "sessions were cut off");
        }
    }
}

impl Drop for Sessions {
    fn drop(&mut self) {
        self.0.lines.cut_off();
    }
}

/// Tasks that serve all sessions and end with the process only.
fn spawn_readers(
    node: &Arc<Node>,
    parts: &Parts,
    kept: Arc<Kept>,
    addresses: &[Address],
) -> anyhow::Result<Tasks> {
    let Parts { health, global_bus, unit_bus, auth_tls, .. } = parts;
    let client = reqwest::Client::builder()
        .tls_backend_preconfigured(auth_tls.config())
        .connect_timeout(CONNECT_MAX)
        .build()
        .context("the client of the auth service could not be made")?;
    // TCP and QUIC may share a number, and then a key.
    let addresses: BTreeSet<String> = addresses.iter().map(Address::authority).collect();
    let addresses = addresses.into_iter().collect();
    let source = keys::Source { client: client.clone(), addresses, kept };
    let node = || Arc::clone(node);
    let unit = || Arc::clone(unit_bus);
    let global = || Arc::clone(global_bus);
    let mut tasks = Tasks::default();
    tasks.spawn("keys", keys::run(node(), source));
    tasks.spawn("room keys", room_keys::run(node(), client));
    tasks.spawn("horizon", keys::watch(node(), health.part("link keys")));
    tasks.spawn("control", follow::control(node(), global(), health.part("link control")));
    tasks.spawn("downlink", follow::downlink(node(), unit(), health.part("link downlink")));
    tasks.spawn("reply", follow::reply(node(), unit(), health.part("link reply")));
    tasks.spawn("pulse", pulse::run(node(), global()));
    tasks.spawn("leaves", pulse::leaves(node()));
    tasks.spawn("entry", entry::run(node(), Arc::clone(&parts.quota)));
    tasks.spawn("poller", poller::run(node()));
    tasks.spawn("sweep", line::sweep(node()));
    for _ in 0..std::thread::available_parallelism().map_or(1, NonZero::get) {
        tasks.spawn("turns", pump::run(Arc::clone(&node().pump)));
    }
    Ok(tasks)
}

fn spawn_entrances(
    node: &Arc<Node>,
    listeners: Vec<(Bound, Arc<Listener>)>,
    shut: &CancellationToken,
) -> Tasks {
    let config = &node.config;
    let gate = Gate::new(
        config.address_handshakes_per_s,
        config.address_handshakes_burst,
        config.addresses_max,
        &node.clock,
    )
    .taking(config.entry.connections_per_s, &node.clock);
    let public = Entrance {
        node: Arc::clone(node),
        gate: Arc::new(gate),
        places: Arc::clone(&node.places),
        shut: shut.clone(),
    };
    let reserve = Entrance { places: Arc::clone(&node.reserve_places), ..public.clone() };
    let mut tasks = Tasks::default();
    for ((bound, listener), configured) in listeners.into_iter().zip(&config.listeners) {
        let entrance = if configured.reserve { &reserve } else { &public };
        tracing::info!(address = listener.address.authority(), "a link listens");
        tasks.spawn("entrance", accept::serve(bound, listener, entrance.clone()));
    }
    tasks
}
