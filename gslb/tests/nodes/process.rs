//! A link node as a process of its own: this executable once more.

use std::process::Stdio;
use std::sync::Arc;

use auth_core::policy::Policies;
use auth_core::secret::Secret;
use bus::{Bus, Limits, MemoryBus};
use channel::DevCerts;
use kit::clock::Clock;
use kit::health::Health;
use kit::meter::Meter;
use kit::quota::MemoryQuota;
use tempfile::TempDir;
use tokio::io::AsyncReadExt;
use tokio::process::{Child, Command};
use tokio_util::sync::CancellationToken;

use crate::site::{NODE, Site, link_config, secret, within};

/// Says where the collector is, to the process that is to be a node.
const COLLECTOR: &str = "BARRAGE_TEST_COLLECTOR";
/// Machine room of the node, by which answers tell it.
pub(crate) const ROOM: &str = "apart";

/// A node that reports, and lets nobody in: it knows no keys.
pub(crate) struct Process {
    child: Child,
    pid: String,
}

impl Process {
    pub(crate) fn start(site: &Site) -> Self {
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "process::a_node_runs_where_it_is_told_to"])
            .env(COLLECTOR, site.collector.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let pid = child.id().unwrap().to_string();
        Self { child, pid }
    }

    /// Stops it where it is, as a machine that stands still.
    pub(crate) async fn stop(&self) {
        self.signal("-STOP").await;
    }

    pub(crate) async fn go_on(&self) {
        self.signal("-CONT").await;
    }

    /// Tells it to drain.
    pub(crate) fn drain(&mut self) {
        drop(self.child.stdin.take());
    }

    pub(crate) async fn ended(mut self) {
        assert!(within(self.child.wait()).await.unwrap().success());
    }

    async fn signal(&self, signal: &str) {
        let sent = Command::new("kill").args([signal, &self.pid]).status();
        assert!(within(sent).await.unwrap().success(), "kill {signal}");
    }
}

/// What the tests of this file's neighbours start as a process of its own; told nothing, there is
/// nothing to run.
#[tokio::test]
async fn a_node_runs_where_it_is_told_to() {
    let Ok(collector) = std::env::var(COLLECTOR) else { return };
    let data = TempDir::new().unwrap();
    let clock = Clock::system();
    let bus: Arc<dyn Bus> = MemoryBus::new(clock.clone(), Limits::default());
    let certs = DevCerts::load_or_create(data.path(), &[]).unwrap();
    let config = link::Config {
        secret: Secret::new(secret(NODE)),
        data: data.path().join("link"),
        collectors: vec![collector],
        auth_url: "https://127.0.0.1:9".to_owned(),
        ..link_config(ROOM)
    };
    let parts = link::Parts {
        clock,
        meter: Meter::new(),
        health: Health::default(),
        seed: 1,
        global_bus: Arc::clone(&bus),
        unit_bus: bus,
        quota: Arc::new(MemoryQuota::new(100)),
        policies: Policies::default(),
        auth_tls: certs.client().unwrap(),
        tls: None,
        national: None,
    };
    let service = link::Service::bind(config, parts).await.unwrap();
    let shutdown = CancellationToken::new();
    let told = async {
        tokio::io::stdin().read_to_end(&mut Vec::new()).await.unwrap();
        shutdown.cancel();
        std::future::pending::<()>().await;
    };
    tokio::select! {
        ended = service.run(shutdown.clone()) => ended.unwrap(),
        () = told => {}
    }
}
