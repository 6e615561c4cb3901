//! Fan-out: items delivered for a second of CPU, from the bus through the link to real sessions,
//! beside other servers that send items of the same size to as many.
//!
//! All services run in this process, but only the link has work: flushes are put on the bus as the
//! broadcaster would, and every session gets each of them in one write. The receivers are a process
//! of their own, since its CPU time is not the link's. The next flush goes out when every session
//! has the one before, so nothing is merged and nothing is skipped; waiting costs no CPU time.
//!
//! A peer is a process too, with its own subscribers, and only its CPU time counts. The peer of
//! every run is the kernel alone, one `write` a subscriber; [`beside_peers`] has products as well.

mod audience;
mod crowd;
mod login;
mod receiver;
mod rival;
mod site;

use std::time::Duration;

use anyhow::{Context, ensure};
use kit::clock::Clock;
use proto::address::Transport;

use crate::cpu;
use crate::line::Line;
use crate::timing::{ROUNDS, median};
use receiver::Report;
use rival::{Kind, Rival};

pub(crate) use audience::Audience;
pub(crate) use crowd::subscribe;
pub(crate) use login::log_all_in;
pub(crate) use receiver::{Orders, receive, say};
pub(crate) use rival::{BARE, SUBSCRIBERS, serve};
pub(crate) use site::Site;

/// The name under which this executable is started as the receivers.
pub(crate) const RECEIVER: &str = "fanout-receiver";
/// Ours beside products, whose lines follow ours.
const PEERS: &str = "peers";
/// How many sessions, if this is set in the environment.
const SESSIONS_ENV: &str = "BENCH_SESSIONS";
const SESSIONS: usize = 2_000;
/// The same beside products.
const PEERS_SESSIONS: usize = 10_000;
/// A process has 20,000 descriptors, and a session of QUIC none of its own.
const SESSIONS_MAX: usize = 19_000;
/// Viewers with several sessions each.
const ACCOUNTS: usize = 50;
/// Items of one write.
const ITEMS: [usize; 3] = [1, 10, 50];
/// Of the lines.
const UNIT: &str = "1/s/core";
/// Length of a round.
const ROUND: Duration = Duration::from_millis(1200);

/// A line for each number of items: `start` and the number.
pub(crate) async fn run(transport: Transport, start: &str) -> anyhow::Result<Vec<Line>> {
    let rates = measure(transport, SESSIONS, &[Kind::Bare]).await?;
    let lines = ITEMS.iter().zip(&rates);
    Ok(lines.map(|(items, rates)| rates.line(format!("{start}{items}"), 0)).collect())
}

/// Whether it is [`PEERS`], or that and the name of one: `peers.redis`.
pub(crate) fn has_peers(name: &str) -> bool {
    products(name).is_some()
}

/// Plain sessions beside products: for each number of items a line of ours with the best of them,
/// then one of each of them and of the bare system call.
pub(crate) async fn beside_peers(name: &str, start: &str) -> anyhow::Result<Vec<Line>> {
    let products = products(name).context("there is no such peer")?;
    let kinds = [products, vec![Kind::Bare]].concat();
    let rates = measure(Transport::Tcp, PEERS_SESSIONS, &kinds).await?;
    let mut lines = Vec::new();
    for (items, rates) in ITEMS.iter().zip(&rates) {
        lines.push(rates.line(format!("{start}{items}"), rates.best()));
        lines.extend(rates.peers(&format!("{start}{items}.peer")));
    }
    Ok(lines)
}

fn products(name: &str) -> Option<Vec<Kind>> {
    let rest = name.strip_prefix(PEERS)?;
    if rest.is_empty() {
        return Some(Kind::PRODUCTS.to_vec());
    }
    let product = rest.strip_prefix('.')?;
    Kind::PRODUCTS.iter().find(|it| it.name() == product).map(|it| vec![*it])
}

/// Starts everybody, and lets all take turns.
async fn measure(
    transport: Transport,
    sessions: usize,
    kinds: &[Kind],
) -> anyhow::Result<[Rates; ITEMS.len()]> {
    let clock = Clock::system();
    let sessions = match std::env::var(SESSIONS_ENV) {
        Ok(text) => text.parse().with_context(|| format!("{SESSIONS_ENV} is no number"))?,
        Err(_) => sessions,
    };
    ensure!(
        (1..=SESSIONS_MAX).contains(&sessions),
        "{SESSIONS_ENV} must be from 1 to {SESSIONS_MAX}"
    );
    let site = Site::open(&clock, ACCOUNTS).await?;
    let mut audience = Audience::start(&site.orders(sessions, transport)).await?;
    audience.are_in().await?;
    let mut show = Show { site, audience, sessions, rivals: Vec::new() };
    for kind in kinds {
        show.rivals.push(Rival::start(*kind, sessions, &clock).await?);
    }
    let mut rates = ITEMS.map(|_| Rates::of(kinds));
    for _ in 0..ROUNDS {
        for (items, rates) in ITEMS.into_iter().zip(&mut rates) {
            show.round(items, rates, &clock).await?;
        }
    }
    show.close().await?;
    Ok(rates)
}

/// The link, and its peers.
struct Show {
    site: Site,
    audience: Audience,
    sessions: usize,
    rivals: Vec<Rival>,
}

impl Show {
    /// A round of everybody.
    async fn round(
        &mut self,
        items: usize,
        rates: &mut Rates,
        clock: &Clock,
    ) -> anyhow::Result<()> {
        let until = clock.mono() + ROUND;
        let (start, mut flushes) = (cpu::process(), 0.0);
        while clock.mono() < until {
            self.site.flush(items).await?;
            self.audience.have_it().await?;
            flushes += 1.0;
        }
        let each = flushes * items as f64 / (cpu::process() - start).as_secs_f64();
        rates.ours.push(each * self.sessions as f64);
        for (rival, (_, rates)) in self.rivals.iter_mut().zip(&mut rates.theirs) {
            let each = rival.round(items, ROUND, clock).await?;
            rates.push(each * self.sessions as f64);
        }
        Ok(())
    }

    /// Lets all go, and sees that everybody had everything.
    async fn close(self) -> anyhow::Result<()> {
        let Self { site, audience, rivals, .. } = self;
        let report: Report = audience.leave().await?;
        site.check(&report)?;
        for rival in rivals {
            rival.leave().await?;
        }
        site.close().await
    }
}

/// Deliveries for a second of CPU, of each round.
struct Rates {
    ours: Vec<f64>,
    theirs: Vec<(Kind, Vec<f64>)>,
}

impl Rates {
    fn of(kinds: &[Kind]) -> Self {
        Self { ours: Vec::new(), theirs: kinds.iter().map(|it| (*it, Vec::new())).collect() }
    }

    /// The number of the fastest product, or of the only peer.
    fn best(&self) -> usize {
        let products = self.theirs.iter().enumerate().filter(|(_, (kind, _))| *kind != Kind::Bare);
        let rates = products.map(|(number, (_, rates))| (number, median(&mut rates.clone())));
        rates.max_by(|one, other| one.1.total_cmp(&other.1)).map_or(0, |(number, _)| number)
    }

    /// Ours, beside the peer of that number.
    fn line(&self, name: String, peer: usize) -> Line {
        let (kind, rates) = &self.theirs[peer];
        let mut ratios: Vec<f64> = self.ours.iter().zip(rates).map(|(a, b)| a / b).collect();
        Line {
            name,
            value: median(&mut self.ours.clone()),
            unit: UNIT,
            peer: Some(kind.name()),
            ratio: Some(median(&mut ratios)),
        }
    }

    /// Theirs.
    fn peers(&self, start: &str) -> impl Iterator<Item = Line> {
        self.theirs.iter().map(move |(kind, rates)| {
            Line::alone(format!("{start}.{}", kind.name()), median(&mut rates.clone()), UNIT)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_is_called_by_its_name() {
        assert_eq!(products("peers"), Some(Kind::PRODUCTS.to_vec()));
        assert_eq!(products("peers.redis"), Some(vec![Kind::Redis]));
        assert_eq!(products("peers.write(2)"), None);
        assert_eq!(products("peersredis"), None);
    }

    #[test]
    fn the_best_is_the_fastest_product() {
        let theirs = [(Kind::Redis, 3.0), (Kind::Nats, 5.0), (Kind::Bare, 9.0)];
        let theirs = theirs.map(|(kind, rate)| (kind, vec![rate])).to_vec();
        let rates = Rates { ours: vec![10.0], theirs };

        let line = rates.line("ours".to_owned(), rates.best());

        assert_eq!((line.peer, line.ratio), (Some("nats"), Some(2.0)));
    }
}
