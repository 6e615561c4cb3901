//! Takes the load reports of a node's workers, and tells collectors one.
//!
//! A worker reports to the relay as it would to a collector, signed with the node's secret, over
//! loopback.

use std::net::{Ipv4Addr, SocketAddr};

use hmac::Mac;
use kit::clock::Clock;
use kit::meter::{Meter, list};
use parking_lot::Mutex;
use prometheus::IntCounter;
use proto::address::Address;
use proto::id::{NodeId, UnitId};
use proto::limits::REPORT_BYTES_MAX;
use proto::load::{Load, LoadReport, ReportView};
use proto::time::{Mono, Wall};
use tokio::net::UdpSocket;
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;

use super::gather::{Gather, Gathered, News};
use super::worker_node;
use crate::Config;
use crate::config::ms;
use crate::report::{MAC_BYTES, Post, mac, resolve, seal};

/// The relay of one node.
#[derive(Debug)]
pub struct Relay {
    config: Config,
    clock: Clock,
    start: Wall,
    socket: UdpSocket,
    gather: Mutex<Gather>,
    /// Rung when gslb should know at once.
    urgent: Notify,
    heard: IntCounter,
    refused: IntCounter,
    sent: IntCounter,
}

/// A datagram that is no newer report of a worker of this node.
struct Refused;

impl Relay {
    /// Binds the workers' collector; `config` is the node's, with the real collectors.
    ///
    /// # Errors
    /// When there is no port.
    pub async fn bind(config: Config, clock: Clock, meter: &Meter) -> anyhow::Result<Self> {
        let count = |outcome| meter.counter(list::LINK_WORKER_REPORTS_TOTAL, &[outcome]);
        Ok(Self {
            socket: UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await?,
            gather: Mutex::new(Gather::new(config.workers)),
            urgent: Notify::new(),
            heard: count("heard"),
            refused: count("refused"),
            sent: meter.counter(list::LINK_LOAD_REPORTS_TOTAL, &[]),
            start: clock.wall(),
            config,
            clock,
        })
    }

    /// Where workers report.
    ///
    /// # Panics
    /// Never: a bound socket has an address.
    #[must_use]
    pub fn addr(&self) -> SocketAddr {
        self.socket.local_addr().expect("a bound socket has an address")
    }

    /// When the node began, as its reports say.
    #[must_use]
    pub const fn start(&self) -> Wall {
        self.start
    }

    /// When a worker was heard last, if it was since it was forgotten.
    pub fn heard_at(&self, no: u8) -> Option<Mono> {
        self.gather.lock().heard_at(no.into())
    }

    /// Leaves a worker out that has ended, until it reports again.
    pub fn forget(&self, no: u8) {
        self.gather.lock().forget(no.into());
        self.urgent.notify_one();
    }

    /// Relays until `done`.
    ///
    /// # Errors
    /// When there is no socket to report from.
    pub async fn run(&self, done: CancellationToken) -> anyhow::Result<()> {
        let (found, collectors) = watch::channel(Vec::new());
        let post = Post::new(collectors).await?;
        tokio::select! {
            never = resolve(&self.config.collectors, &self.clock, found, &self.urgent) => match never {},
            () = self.relay(post) => Ok(()),
            () = done.cancelled() => Ok(()),
        }
    }

    async fn relay(&self, post: Post) {
        let (pause_min, pause_max) = (ms(self.config.report_ms_min), ms(self.config.report_ms_max));
        // One byte more than the longest datagram, so that a longer one is seen to be longer.
        let mut buffer = [0; REPORT_BYTES_MAX + MAC_BYTES + 1];
        let (mut counter, mut sent_at) = (0, self.clock.mono());
        let mut due = sent_at;
        let mut again = false;
        loop {
            tokio::select! {
                received = self.socket.recv_from(&mut buffer) => {
                    // An ICMP error of an earlier datagram comes up here, and means nothing.
                    let Ok((bytes, _)) = received else { continue };
                    match self.hear(&buffer[..bytes]) {
                        Ok(News::None) => {}
                        Ok(News::Some) => due = due.min(sent_at + pause_min),
                        Ok(News::Urgent) => self.urgent.notify_one(),
                        Err(Refused) => self.refused.inc(),
                    }
                    continue;
                }
                // What is urgent is told twice: a datagram may be lost.
                () = self.urgent.notified() => again = true,
                () = self.clock.sleep_until(due) => {}
            }
            let gathered = self.gather.lock().gathered(self.clock.mono());
            if let Some(gathered) = gathered {
                counter += 1;
                post.send(&self.datagram(counter, gathered)).await;
                self.sent.inc();
            }
            sent_at = self.clock.mono();
            due = sent_at + if std::mem::take(&mut again) { pause_min } else { pause_max };
        }
    }

    fn hear(&self, datagram: &[u8]) -> Result<News, Refused> {
        let (signed, signature) = datagram.split_last_chunk::<MAC_BYTES>().ok_or(Refused)?;
        let secret = self.config.secret.expose().as_bytes();
        mac(secret, signed).verify_slice(signature).map_err(|_| Refused)?;
        let node = ReportView::peek(signed).ok_or(Refused)?;
        let no = self.number_of(node).ok_or(Refused)?;
        let report = LoadReport::decode(signed).map_err(|_| Refused)?;
        let news = self.gather.lock().hear(no.into(), report, self.clock.mono());
        let news = news.map_err(|_| Refused)?;
        self.heard.inc();
        Ok(news)
    }

    fn number_of(&self, node: NodeId) -> Option<u8> {
        (0..self.config.workers).find(|&no| worker_node(self.config.node, no) == node)
    }

    fn datagram(&self, counter: u64, gathered: Gathered) -> Vec<u8> {
        let report = report(&self.config, (self.start, counter), gathered);
        seal(self.config.secret.expose().as_bytes(), &report)
    }
}

/// What the node says in the life and with the counter that `stamp` says.
fn report(config: &Config, stamp: (Wall, u64), gathered: Gathered) -> LoadReport {
    let Gathered { addresses, reserve, load } = gathered;
    LoadReport {
        node: config.node,
        unit: config.unit,
        region: config.region.clone(),
        counter: stamp.1,
        start: stamp.0,
        addresses,
        reserve,
        load,
    }
}

/// The longest report that a node of this configuration can make. FlatBuffers leave out what is 0.
pub(super) fn longest_report(config: &Config) -> LoadReport {
    let addresses = |reserve: bool| {
        let listeners = config.listeners.iter().filter(move |it| it.reserve == reserve);
        let one = listeners.map(|it| Address {
            host: it.host.clone(),
            port: u16::MAX,
            transport: it.transport,
            carrier: it.carrier,
            machine_room: it.machine_room.clone(),
        });
        (0..config.workers).flat_map(|_| one.clone()).collect()
    };
    let load = Load { handshakes_per_s_max: u32::MAX, ..Load::default() };
    let gathered = Gathered { addresses: addresses(false), reserve: addresses(true), load };
    let config = Config { node: NodeId(u32::MAX), unit: UnitId(u16::MAX), ..config.clone() };
    report(&config, (Wall(u64::MAX), u64::MAX), gathered)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use auth_core::secret::Secret;
    use kit::task::Tasks;
    use proto::address::{Carrier, Transport};

    use super::*;

    const SECRET: &str = "a secret of the node, of 32 bytes and more";

    #[tokio::test]
    async fn collectors_are_told_one_report_of_all_workers() {
        let collector = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let config = Config {
            workers: 2,
            secret: Secret::new(SECRET.to_owned()),
            collectors: vec![collector.local_addr().unwrap().to_string()],
            ..Config::default()
        };
        let relay = Relay::bind(config.clone(), Clock::system(), &Meter::new()).await.unwrap();
        let relay = Arc::new(relay);
        let mut tasks = Tasks::default();
        let running = Arc::clone(&relay);
        tasks.spawn("relay", async move { running.run(CancellationToken::new()).await });
        let worker = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let say = |no: u8, secret: &'static str| {
            let datagram = seal(secret.as_bytes(), &of_worker(&config, no));
            let (worker, to) = (&worker, relay.addr());
            async move { worker.send_to(&datagram, to).await.unwrap() }
        };

        say(0, "another secret, which the node does not have").await;
        say(0, SECRET).await;
        say(1, SECRET).await;
        let all = told(&collector, |it| it.addresses.len() == 2).await;
        relay.forget(0);
        let rest = told(&collector, |it| it.addresses.len() == 1).await;

        assert_eq!((all.node, all.load.sessions), (config.node, 7 + 8));
        assert_eq!((rest.load.sessions, rest.addresses[0].port), (8, 2));
        assert!(rest.counter > all.counter);
        assert_eq!(relay.refused.get(), 1);
    }

    fn of_worker(config: &Config, no: u8) -> LoadReport {
        let address = Address {
            host: "127.0.0.1".to_owned(),
            port: u16::from(no) + 1,
            transport: Transport::Tls,
            carrier: Carrier::Bgp,
            machine_room: String::new(),
        };
        LoadReport {
            node: worker_node(config.node, no),
            unit: config.unit,
            region: config.region.clone(),
            counter: 1,
            start: Wall(1),
            addresses: vec![address],
            reserve: Vec::new(),
            load: Load { sessions: 7 + u32::from(no), sessions_max: 100, ..Load::default() },
        }
    }

    /// The first report that is as it should be, signed as it must.
    async fn told(collector: &UdpSocket, is_it: impl Fn(&LoadReport) -> bool) -> LoadReport {
        let mut buffer = [0; 2048];
        loop {
            let (bytes, _) = collector.recv_from(&mut buffer).await.unwrap();
            let (signed, signature) = buffer[..bytes].split_last_chunk::<MAC_BYTES>().unwrap();
            mac(SECRET.as_bytes(), signed).verify_slice(signature).unwrap();
            let report = LoadReport::decode(signed).unwrap();
            if is_it(&report) {
                return report;
            }
        }
    }
}
