//! Load reports: what this node carries, told to every collector, signed with its secret.
//!
//! A change is told within `report_ms_min`, and at once if the node takes no more viewers. Nothing
//! waits to be accepted for long enough to be told: connections are accepted at once, or closed.

mod post;
mod rates;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use link_core::siege::{Output, Sample, Siege};
use proto::address::Address;
use proto::load::{Load, LoadReport};
use proto::time::Mono;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::config::ms;
use crate::node::Node;
use rates::Rates;

pub(crate) use post::{MAC_BYTES, Post, mac, resolve, seal};

/// Between two looks whether the node is attacked.
const LOOK: Duration = Duration::from_millis(50);

/// Sends reports until `done`, then a last one.
pub(crate) async fn run(
    node: Arc<Node>,
    addresses: Vec<Address>,
    reserve: Vec<Address>,
    done: CancellationToken,
) -> anyhow::Result<()> {
    let (found, collectors) = watch::channel(Vec::new());
    let post = Post::new(collectors).await?;
    let reporter = Reporter::new(Arc::clone(&node), addresses, reserve, post);
    let (names, changed) = (&node.config.collectors, &node.traffic.changed);
    tokio::select! {
        never = resolve(names, &node.clock, found, changed) => match never {},
        () = report(&node, reporter, done) => Ok(()),
    }
}

async fn report(node: &Node, mut reporter: Reporter, done: CancellationToken) {
    let (pause_min, pause_max) = (ms(node.config.report_ms_min), ms(node.config.report_ms_max));
    let traffic = &node.traffic;
    loop {
        let is_urgent = reporter.send().await;
        if done.is_cancelled() {
            return;
        }
        tokio::select! {
            () = traffic.urgent.notified() => continue,
            () = node.clock.sleep(pause_min) => {}
        }
        // What is urgent is told twice: a datagram may be lost.
        let wait = if is_urgent { Duration::ZERO } else { pause_max };
        tokio::select! {
            () = traffic.urgent.notified() => {}
            () = traffic.changed.notified() => {}
            () = node.clock.sleep(wait) => {}
            () = done.cancelled() => {}
        }
    }
}

struct Reporter {
    node: Arc<Node>,
    addresses: Vec<Address>,
    reserve: Vec<Address>,
    counter: u64,
    post: Post,
    rates: Rates,
    siege: Option<Siege>,
    looked: Mono,
    /// Draining or besieged, as last told.
    told: (bool, bool),
}

impl Reporter {
    fn new(node: Arc<Node>, addresses: Vec<Address>, reserve: Vec<Address>, post: Post) -> Self {
        Self {
            rates: Rates::new(node.clock.mono()),
            siege: node.config.siege.rules().map(Siege::new),
            looked: node.clock.mono(),
            told: (false, false),
            node,
            addresses,
            reserve,
            counter: 0,
            post,
        }
    }

    /// Says whether the report is the first to tell that the node takes no more viewers, or that
    /// it does again.
    async fn send(&mut self) -> bool {
        self.rates.measure(&self.node);
        self.look();
        let told = (self.node.is_draining(), self.is_besieged());
        let is_urgent = std::mem::replace(&mut self.told, told) != told;
        let datagram = self.datagram();
        self.post.send(&datagram).await;
        self.node.counts.reports.inc();
        is_urgent
    }

    /// Looks whether the node is attacked, if it is time to.
    fn look(&mut self) {
        let now = self.node.clock.mono();
        let Some(siege) = &mut self.siege else { return };
        if now.since(self.looked) < LOOK {
            return;
        }
        self.looked = now;
        let Node { config, traffic, .. } = &*self.node;
        let sample = Sample {
            signs: self.node.signs.lock().tally(),
            logins: traffic.logins.load(Ordering::Relaxed),
            handshakes: self.node.places_taken(),
            handshakes_max: config.handshakes_max,
        };
        siege.handle(sample, now);
        match siege.poll() {
            Some(Output::Besieged) => tracing::error!("this node is attacked: its viewers move"),
            Some(Output::Relieved) => tracing::warn!("the attack on this node is over"),
            None => return,
        }
        self.node.counts.besieged.set(siege.is_besieged().into());
    }

    fn is_besieged(&self) -> bool {
        self.siege.as_ref().is_some_and(Siege::is_besieged)
    }

    fn datagram(&mut self) -> Vec<u8> {
        self.counter += 1;
        let Node { config, traffic, .. } = &*self.node;
        let report = LoadReport {
            node: config.bus_node(),
            unit: config.unit,
            region: config.region.clone(),
            counter: self.counter,
            start: self.node.start,
            addresses: self.addresses.clone(),
            reserve: self.reserve.clone(),
            load: Load {
                sessions: traffic.sessions.load(Ordering::Relaxed),
                sessions_max: config.sessions_max,
                handshakes: traffic.handshakes.load(Ordering::Relaxed),
                handshakes_per_s: self.rates.handshakes_per_s,
                handshakes_per_s_max: config.handshakes_per_s_max,
                egress_bps: self.rates.egress_bps,
                cpu_permille: self.rates.cpu_permille,
                accept_queue: 0,
                draining: self.node.is_draining(),
                besieged: self.is_besieged(),
            },
        };
        seal(config.secret.expose().as_bytes(), &report)
    }
}
