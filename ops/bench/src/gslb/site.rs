//! The measured side: an auth service and a gslb in this process, and nodes that report.

mod ask;
mod setup;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use auth_core::app::TicketAlg;
use bus::{Bus, Limits, MemoryBus};
use channel::{ClientTls, DevCerts};
use gslb::enter::Answerer;
use gslb::table::Value;
use gslb::{LoadTable, MemoryTable};
use kit::clock::Clock;
use kit::health::Health;
use kit::meter::{Meter, list};
use kit::task::Tasks;
use proto::address::{Address, Transport};
use proto::load::{LoadReport, RegionLoads};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use super::fleet::{region, report};

pub(super) use ask::{ADDRESSES, Who};
pub(super) use setup::SECRET;

/// Nodes of the one region.
const NODES: u32 = 100;
/// How often all of them report, as nodes at rest do.
const REPORT: Duration = Duration::from_millis(100);
/// Everything must be there within this time.
const START_MAX: Duration = Duration::from_secs(30);
/// Between two looks.
const LOOK: Duration = Duration::from_millis(20);
/// One node of all speaks it.
const SELDOM: Transport = Transport::Quic;

/// The measured side.
pub(super) struct Site {
    /// Where to ask.
    pub(super) addr: SocketAddr,
    /// Whom to ask without HTTP.
    pub(super) answerer: Arc<Answerer>,
    /// Where nodes report, if they do so by datagram.
    pub(super) collector: Option<SocketAddr>,
    table: Arc<dyn LoadTable>,
    meter: Meter,
    clock: Clock,
    auth_url: String,
    client: reqwest::Client,
    tasks: Tasks,
    stop: CancellationToken,
    _data: TempDir,
}

impl Site {
    /// Starts both with nodes that report, and waits until answers have addresses.
    pub(super) async fn open(
        clock: &Clock,
        change: impl FnOnce(&mut gslb::Config),
    ) -> anyhow::Result<Self> {
        let mut site = Self::start(clock, NODES, change).await?;
        let reporting = report_all(Arc::clone(&site.table), clock.clone(), site.stop.clone());
        site.tasks.spawn("nodes", reporting);
        site.ready().await?;
        Ok(site)
    }

    /// Starts both, for so many nodes, of which none reports yet.
    pub(super) async fn start(
        clock: &Clock,
        nodes: u32,
        change: impl FnOnce(&mut gslb::Config),
    ) -> anyhow::Result<Self> {
        let data = tempfile::tempdir()?;
        let certs = DevCerts::load_or_create(data.path(), &[])?;
        let bus: Arc<dyn Bus> = MemoryBus::new(clock.clone(), Limits::default());
        let (meter, health) = (Meter::new(), Health::default());
        let parts = auth::Parts {
            clock: clock.clone(),
            meter: meter.clone(),
            health: health.clone(),
            global_bus: Arc::clone(&bus),
            nodes: setup::nodes(nodes),
            apps: setup::apps(),
            tls: Some(certs.server(&[b"h2", b"http/1.1"])?),
        };
        let auth = auth::Service::bind(setup::auth(data.path()), parts).await?;
        let auth_url = format!("https://{}", auth.addr());

        let table: Arc<dyn LoadTable> = MemoryTable::new();
        let mut config = setup::gslb(data.path(), &auth_url);
        change(&mut config);
        let parts = gslb::Parts {
            clock: clock.clone(),
            meter: meter.clone(),
            health,
            seed: 1,
            apps: setup::apps(),
            nodes: setup::nodes(nodes),
            global_bus: bus,
            load_table: Arc::clone(&table),
            auth_tls: certs.client()?,
            tls: None,
        };
        let gslb = gslb::Service::bind(config, parts).await?;
        let (addr, answerer, collector) = (gslb.addr(), gslb.answerer(), gslb.collector_addr());
        let (mut tasks, stop) = (Tasks::default(), CancellationToken::new());
        tasks.spawn("auth", Box::pin(auth.run(stop.clone())));
        tasks.spawn("gslb", Box::pin(gslb.run(stop.clone())));
        let (clock, client) = (clock.clone(), client(&certs.client()?)?);
        let _data = data;
        Ok(Self {
            addr,
            answerer,
            collector,
            table,
            meter,
            clock,
            auth_url,
            client,
            tasks,
            stop,
            _data,
        })
    }

    /// Datagrams of known nodes so far.
    pub(super) fn heard(&self) -> u64 {
        self.meter.counter(list::GSLB_DATAGRAMS_TOTAL, &["renewed"]).get()
    }

    /// Ends both.
    pub(super) async fn close(self) -> anyhow::Result<()> {
        self.stop.cancel();
        self.tasks.join().await
    }

    /// Asks until an answer is what it should be.
    async fn ready(&self) -> anyhow::Result<()> {
        let question = self.question(Who::Ticket(TicketAlg::Hs256), 0)?;
        let deadline = self.clock.mono() + START_MAX;
        loop {
            let tried = async {
                let url = format!("http://{}/v1/enter", self.addr);
                let asked = self.client.post(url).body(question.clone()).send().await?;
                self.check(&asked.text().await?, ADDRESSES).await
            };
            match tried.await {
                Ok(()) => return Ok(()),
                Err(error) if self.clock.mono() >= deadline => return Err(error),
                Err(_) => self.clock.sleep(LOOK).await,
            }
        }
    }
}

/// All nodes report again and again, as a collector would write it.
async fn report_all(
    table: Arc<dyn LoadTable>,
    clock: Clock,
    stop: CancellationToken,
) -> anyhow::Result<()> {
    let mut counter = 0;
    loop {
        counter += 1;
        let mut nodes: Vec<LoadReport> = (0..NODES).map(|it| report(it, 1, counter)).collect();
        let first = &mut nodes[0].addresses;
        first.push(Address { port: 8443, transport: SELDOM, ..first[0].clone() });
        let loads = RegionLoads { region: region(0), at: clock.wall(), nodes };
        let value = Value { region: region(0).into(), bytes: loads.encode() };
        table.put(vec![value]).await?;
        tokio::select! {
            () = stop.cancelled() => return Ok(()),
            () = clock.sleep(REPORT) => {}
        }
    }
}

fn client(tls: &ClientTls) -> anyhow::Result<reqwest::Client> {
    let tls = tls.clone().with_alpn(&[b"h2", b"http/1.1"]);
    Ok(reqwest::Client::builder().tls_backend_preconfigured(tls.config()).no_proxy().build()?)
}
