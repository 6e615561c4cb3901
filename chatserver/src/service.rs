//! The chatserver as a service: bound, then run until it is told to stop.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use auth_core::app::App;
use auth_core::policy::Policies;
use bus::Bus;
use chatserver_core::sender::SenderSecret;
use chatserver_core::shard::{Limits, Shard};
use kit::clock::Clock;
use kit::health::Health;
use kit::http;
use kit::meter::Meter;
use kit::quota::Quota;
use kit::seed;
use kit::task::Tasks;
use parking_lot::Mutex;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::api::{self, Api, Errands, Keys, Rates};
use crate::config::Config;
use crate::control::Control;
use crate::count::Counts;
use crate::desk::Desk;
use crate::devices::Devices;
use crate::flow::Flow;
use crate::hold;
use crate::keeper::Keeper;
use crate::lately::Recent;
use crate::lists::Lists;
use crate::mail::Mail;
use crate::online::Online;
use crate::outside::{self, Hands};
use crate::sealed::Sealed;
use crate::site::Site;
use crate::store::RoomStore;
use crate::store::rows::Rows;
use crate::sweep::{Memory, Sweeper};
use crate::upkeep::{self, Upkeep};
use crate::uplink::Uplink;

/// Time for the last turn when the service ends.
const DRAIN_MAX: Duration = Duration::from_secs(10);

/// What a chatserver is built from.
#[derive(Clone, Debug)]
pub struct Parts {
    /// Time.
    pub clock: Clock,
    /// Where it counts.
    pub meter: Meter,
    /// Where it says whether it can do its job: its two buses and the room store.
    pub health: Health,
    /// Where its random choices begin.
    pub seed: u64,
    /// The apps; their API keys open the business API.
    pub apps: Arc<[App]>,
    /// The bus of `accepted`, `sealed`, `gauges` and `control`.
    pub global_bus: Arc<dyn Bus>,
    /// The unit's own bus, of `uplink` and `reply`.
    pub unit_bus: Arc<dyn Bus>,
    /// What is remembered; shared by all chatservers.
    pub room_store: Arc<dyn RoomStore>,
    /// What lanes may promise and rooms may show; shared by all chatservers, and by nobody else,
    /// since those who share it are counted.
    pub quota: Arc<dyn Quota>,
}

/// A chatserver that listens and does not yet serve.
#[derive(Debug)]
pub struct Service {
    listener: TcpListener,
    addr: SocketAddr,
    site: Arc<Site>,
    desk: Arc<Desk>,
    devices: Arc<Devices>,
    online: Arc<Online>,
    lists: Arc<Lists>,
    recent: Arc<Recent>,
    flow: Arc<Flow>,
    memory: Arc<Memory>,
    api: Arc<Api>,
    hands: Hands,
    server: http::Server,
}

impl Service {
    /// Listens, and reads from the room store what it cannot begin without.
    ///
    /// # Errors
    /// When the configuration is wrong, the address is taken, or the store does not answer.
    pub async fn bind(config: Config, parts: Parts) -> anyhow::Result<Self> {
        config.check().context("the chatserver's configuration is wrong")?;
        let listener = TcpListener::bind(config.listen)
            .await
            .with_context(|| format!("cannot listen on {}", config.listen))?;
        let addr = listener.local_addr().context("cannot tell the address")?;
        let limits = http::Limits { connections_max: config.connections_max, ..Default::default() };
        let server = http::Server::new(limits, &parts.meter, "chatserver");

        let site = Arc::new(site(config, &parts));
        let Site { rows, config, .. } = &*site;
        let fresh = seed::random_bytes().context("cannot draw a secret")?;
        let secret = SenderSecret::new(rows.sender_secret(fresh).await?);
        let floor = rows.floor(config.shard).await?;
        rows.write_floor(config.shard, floor.max(parts.clock.wall()) + upkeep::PROMISE).await?;
        site.store.ok();

        let (outside, ledger, hands) =
            outside::open(config, &site.clock, &parts.meter, &parts.health, parts.seed)?;
        let shard = Shard::new(shard_limits(config), secret.clone(), floor)
            .reviewed_by(config.review.iter().map(|it| (it.app, it.rule())));
        let desk = Arc::new(Desk::new(Arc::clone(&site), shard, outside));
        let devices = Arc::new(Devices::new(Arc::clone(&site), Policies::new(&parts.apps)));
        let online = Arc::new(Online::default());
        let memory = Arc::new(Memory::new(bound(config.sweep_bytes_max)));
        let lists = Lists::new(Arc::clone(&site), Arc::clone(&desk), Arc::clone(&memory));
        let lists = Arc::new(lists);
        let recent = Recent::new(secret.clone(), bound(config.recent_items_max));
        let recent = Arc::new(recent);
        let flow = Flow::new(Arc::clone(&site), Arc::clone(&desk), Arc::clone(&parts.quota));
        let flow = Arc::new(flow);
        let api = Arc::new(Api {
            site: Arc::clone(&site),
            desk: Arc::clone(&desk),
            keys: Keys::new(&parts.apps),
            rates: Rates::new(&parts.apps, config, &site.clock),
            catalogue_rates: Rates::of_catalogues(&parts.apps, &site.clock),
            quota: parts.quota,
            online: Arc::clone(&online),
            lists: Arc::clone(&lists),
            recent: Arc::clone(&recent),
            words_turn: Arc::default(),
            ledger,
            secret,
            run: seed::random_bytes().context("cannot draw the run's number")?,
            notices: 0.into(),
            errands: Errands::default(),
            document: api::document(),
        });
        Ok(Self {
            listener,
            addr,
            site,
            desk,
            devices,
            online,
            lists,
            recent,
            flow,
            memory,
            api,
            hands,
            server,
        })
    }

    /// Where the business API listens.
    #[must_use]
    pub const fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Serves until `shutdown`, then finishes the turn and the requests in progress.
    ///
    /// # Errors
    /// When a task fails, or does not end in time.
    pub async fn run(self, shutdown: CancellationToken) -> anyhow::Result<()> {
        // One task that fails ends them all.
        let shutdown = shutdown.child_token();
        let mut tasks = self.start(&shutdown);
        let ended = tasks.next().await.unwrap_or(Ok(()));
        shutdown.cancel();
        ended.and(kit::shutdown::drain(tasks, DRAIN_MAX).await)
    }

    fn start(self, shutdown: &CancellationToken) -> Tasks {
        let Self { listener, site, desk, devices, online, lists, flow, hands, .. } = self;
        let Self { recent, memory, api, server, .. } = self;
        let ready = CancellationToken::new();
        let keeper = Arc::new(Keeper::new(Arc::clone(&site)));
        let control = Control {
            site: Arc::clone(&site),
            desk: Arc::clone(&desk),
            devices: Arc::clone(&devices),
            lists: Arc::clone(&lists),
            recent: Arc::clone(&recent),
        };
        let uplink = Uplink { site: Arc::clone(&site), desk: Arc::clone(&desk), devices };
        let sealed = Sealed {
            site: Arc::clone(&site),
            desk: Arc::clone(&desk),
            keeper: Arc::clone(&keeper),
            recent,
            memory: Arc::clone(&memory),
        };
        let upkeep = Upkeep {
            site: Arc::clone(&site),
            desk: Arc::clone(&desk),
            online: Arc::clone(&online),
            memory: Arc::clone(&memory),
        };
        let sweeper = Sweeper {
            site: Arc::clone(&site),
            desk: Arc::clone(&desk),
            memory,
            api: Arc::clone(&api),
        };
        let mut tasks = Tasks::default();
        tasks.spawn("chatserver control", control.run(ready.clone(), shutdown.clone()));
        let judged = CancellationToken::new();
        hands.start(Arc::clone(&desk), &mut tasks, judged.clone(), shutdown.clone());
        let held = hold::run(Arc::clone(&site), Arc::clone(&desk), judged.clone());
        tasks.spawn("chatserver hold", held);
        let uplink = uplink.run(ready, shutdown.clone());
        tasks.spawn("chatserver uplink", async move {
            let judged = judged.drop_guard();
            let ended = uplink.await;
            drop(judged);
            ended
        });
        tasks.spawn("chatserver sealed", sealed.run(shutdown.clone()));
        tasks.spawn("chatserver journal", keeper.run(shutdown.clone()));
        tasks.spawn("chatserver gauges", online.run(site, desk, shutdown.clone()));
        tasks.spawn("chatserver flow", Arc::clone(&flow).run(shutdown.clone()));
        tasks.spawn("chatserver keep", flow.own(shutdown.clone()));
        tasks.spawn("chatserver words", lists.run(shutdown.clone()));
        tasks.spawn("chatserver upkeep", upkeep.run(shutdown.clone()));
        tasks.spawn("chatserver sweep", sweeper.run(shutdown.clone()));
        let router = api::router(api);
        let api = server.serve(listener, http::Plain, router, shutdown.clone());
        tasks.spawn("chatserver api", api);
        tasks
    }
}

fn site(config: Config, parts: &Parts) -> Site {
    let Parts { clock, meter, health, global_bus, unit_bus, room_store, .. } = parts;
    let counts = Counts::new(meter.clone());
    let mail = |bus: &Arc<dyn Bus>, part| {
        Mail::new(Arc::clone(bus), clock.clone(), health.part(part), counts.away.clone())
    };
    Site {
        global: mail(global_bus, "chatserver_global_bus"),
        local: mail(unit_bus, "chatserver_unit_bus"),
        rows: Rows::new(Arc::clone(room_store)),
        store: health.part("chatserver_store"),
        untold: Mutex::default(),
        told: health.part("chatserver_control"),
        clock: clock.clone(),
        counts,
        config,
    }
}

fn shard_limits(config: &Config) -> Limits {
    Limits {
        shard: config.shard,
        rooms_max: bound(config.rooms_max),
        senders_max: bound(config.senders_max),
        asked_max: bound(config.asked_max),
        nodes_min: config.nodes_min,
    }
}

/// On the machines this runs on, every u32 is a usize.
fn bound(max: u32) -> usize {
    usize::try_from(max).unwrap_or(usize::MAX)
}
