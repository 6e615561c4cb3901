//! Questions over HTTP, a second of the server's CPU time.

use std::fs;
use std::path::Path;
use std::time::Duration;

use auth_core::app::TicketAlg;
use kit::clock::Clock;
use tokio::process::Command;

use super::CALLERS;
use super::callers::{DONE, Order, Orders, Speech};
use super::site::{ADDRESSES, Site, Who};
use crate::aside::Aside;
use crate::cpu::Stretch;
use crate::line::Line;
use crate::peer::{Peer, free_addr, nginx, note};
use crate::timing::{ROUNDS, median};

/// Questions of a round: between a quarter of a second and half of CPU time.
const QUESTIONS: u32 = 20_000;
/// The line of batches.
const BATCH: &str = "gslb.batch100";
/// Batches of a round.
const BATCHES: u32 = 2_000;
/// Viewers of a batch.
const VIEWERS: u32 = 100;
/// Of a round that nobody counts, since connections are made and memory is taken: one part of so
/// many of the others.
const PART_BEFORE: u32 = 10;
/// How long the services are watched while nobody asks.
const REST: Duration = Duration::from_secs(1);
/// The line that says how much they use then.
const REST_LINE: &str = "gslb.http.rest";
/// Questions under way at a time.
const CALLERS_AT_ONCE: u32 = 64;

/// Asks for as long as it takes, and reads nothing but the end of the question.
const NODE_SERVER: &str = "\
const answer = 'ok\\n';
const headers = { 'Content-Type': 'text/plain', 'Content-Length': answer.length };
const server = require('node:http').createServer({ keepAliveTimeout: 0 }, (request, response) => {
  request.resume();
  request.on('end', () => response.writeHead(200, headers).end(answer));
});
server.maxRequestsPerSocket = 0;
server.listen({ host: '127.0.0.1', port: Number(process.argv[2]), backlog: 1024 });
";

/// `gslb.http1` beside nginx and Node, `gslb.http1.eddsa`, `gslb.http2` and `gslb.batch100`:
/// those that begin with `name`.
///
/// gslb has one thread for its tasks, as nginx and Node have. With more threads than it needs, each
/// finds little to do when it wakes, and waking is most of what they cost.
pub(super) async fn run(name: &str) -> anyhow::Result<Vec<Line>> {
    let name = name.to_owned();
    let measuring = tokio::task::spawn_blocking(move || {
        let mut runtime = tokio::runtime::Builder::new_multi_thread();
        runtime.worker_threads(1).enable_all().build()?.block_on(measure(&name))
    });
    measuring.await?
}

async fn measure(name: &str) -> anyhow::Result<Vec<Line>> {
    let clock = Clock::system();
    let folder = tempfile::tempdir()?;
    let site = Site::open(&clock, |_| {}).await?;
    let mut peers = Vec::new();
    peers.extend(start_nginx(folder.path(), &clock).await?);
    peers.extend(start_node(folder.path(), &clock).await?);

    let rest = Stretch::begin(&clock);
    clock.sleep(REST).await;
    let rest = rest.end(&clock);
    let meter = Meter { clock, rest };

    let mut lines = vec![Line::alone(REST_LINE, 100.0 * rest.cores(), "% of a core")];
    for (line, speech, alg, peers) in [
        ("gslb.http1", Speech::Http1, TicketAlg::Hs256, &*peers),
        ("gslb.http1.eddsa", Speech::Http1, TicketAlg::EdDsa, &[]),
        ("gslb.http2", Speech::Http2 { connections: 2 }, TicketAlg::Hs256, &[]),
    ]
    .into_iter()
    .filter(|it| super::is_asked(name, it.0))
    {
        let orders = site.orders(speech, alg)?;
        let (measured, answer) = Box::pin(meter.measure(line, orders, QUESTIONS, 1, peers)).await?;
        site.check(&answer, ADDRESSES).await?;
        lines.extend(measured);
    }
    if super::is_asked(name, BATCH) {
        let orders = site.orders_in_batches()?;
        let batch = meter.measure(BATCH, orders, BATCHES, VIEWERS, &[]);
        let (measured, answers) = Box::pin(batch).await?;
        site.check_batch(&answers, VIEWERS as usize).await?;
        lines.extend(measured);
    }
    site.close().await?;
    Ok(lines)
}

impl Site {
    fn orders(&self, speech: Speech, alg: TicketAlg) -> anyhow::Result<Orders> {
        let questions = (0..CALLERS_AT_ONCE).map(|it| self.question(Who::Ticket(alg), it));
        Ok(Orders {
            speech,
            servers: vec![self.addr],
            path: "/v1/enter".to_owned(),
            api_key: None,
            questions: questions.collect::<anyhow::Result<_>>()?,
        })
    }

    fn orders_in_batches(&self) -> anyhow::Result<Orders> {
        let questions = (0..CALLERS_AT_ONCE / 4).map(|it| self.batch(VIEWERS, it));
        Ok(Orders {
            speech: Speech::Http1,
            servers: vec![self.addr],
            path: "/v1/enter:batch".to_owned(),
            api_key: Some(self.api_key()),
            questions: questions.collect::<anyhow::Result<_>>()?,
        })
    }
}

/// Counts what questions cost.
struct Meter {
    clock: Clock,
    /// What the services use without them.
    rest: Stretch,
}

impl Meter {
    /// A line of ours for each peer, the first under the name itself, or one alone; and each peer's own.
    /// And the last answer to the last question.
    async fn measure(
        &self,
        name: &str,
        mut orders: Orders,
        questions: u32,
        viewers: u32,
        peers: &[Peer],
    ) -> anyhow::Result<(Vec<Line>, String)> {
        orders.servers.extend(peers.iter().map(|it| it.addr));
        let mut callers = Aside::start(CALLERS, &orders).await?;
        callers.expect(DONE).await?;
        for server in 0..orders.servers.len() {
            callers.ask(server, questions / PART_BEFORE).await?;
        }

        let rate = |used_s: f64| f64::from(questions * viewers) / used_s;
        let mut ours = Vec::new();
        let mut theirs = vec![Vec::new(); peers.len()];
        for _ in 0..ROUNDS {
            for ((server, peer), rates) in (1..).zip(peers).zip(&mut theirs) {
                let start = peer.cpu()?;
                callers.ask(server, questions).await?;
                rates.push(rate((peer.cpu()? - start).as_secs_f64()));
            }
            let round = Stretch::begin(&self.clock);
            callers.ask(0, questions).await?;
            ours.push(rate(round.end(&self.clock).used_beyond(self.rest)));
        }
        Ok((lines(name, &ours, peers, theirs), callers.leave().await?))
    }
}

fn lines(name: &str, ours: &[f64], peers: &[Peer], mut theirs: Vec<Vec<f64>>) -> Vec<Line> {
    let value = median(&mut ours.to_vec());
    if peers.is_empty() {
        return vec![Line::alone(name, value, "1/s/core")];
    }
    let mut lines = Vec::new();
    for ((at, peer), rates) in (0..).zip(peers).zip(&mut theirs) {
        let mut ratios: Vec<f64> = ours.iter().zip(&*rates).map(|(a, b)| a / b).collect();
        let name = if at == 0 { name.to_owned() } else { format!("{name}.{}", peer.name) };
        let (peer, ratio) = (Some(peer.name), Some(median(&mut ratios)));
        lines.push(Line { name, value, unit: "1/s/core", peer, ratio });
    }
    for (peer, mut rates) in peers.iter().zip(theirs) {
        let name = format!("{name}.peer.{}", peer.name);
        lines.push(Line::alone(name, median(&mut rates), "1/s/core"));
    }
    lines
}

impl Aside {
    /// Lets the callers ask, and waits until all have their answers.
    async fn ask(&mut self, server: usize, questions: u32) -> anyhow::Result<()> {
        self.tell(&serde_json::to_string(&Order { server, questions })?).await?;
        self.expect(DONE).await
    }
}

/// `return 200` after the same questions, which it throws away.
async fn start_nginx(folder: &Path, clock: &Clock) -> anyhow::Result<Option<Peer>> {
    let addr = free_addr()?;
    let server = format!(
        "listen {addr} backlog=1024; client_header_buffer_size 8k; keepalive_requests 1000000000;\n\
         keepalive_timeout 600; tcp_nodelay on; return 200 \"ok\\n\";"
    );
    let command = nginx(folder, &server)?;
    let peer = Peer::start("nginx", command, addr, folder, clock).await?;
    if peer.is_none() {
        note("gslb.http1 has no peer nginx: apt-get install nginx");
    }
    Ok(peer)
}

async fn start_node(folder: &Path, clock: &Clock) -> anyhow::Result<Option<Peer>> {
    let addr = free_addr()?;
    fs::write(folder.join("server.cjs"), NODE_SERVER)?;
    let mut command = Command::new("node");
    command.args(["server.cjs", &addr.port().to_string()]);
    let peer = Peer::start("node", command, addr, folder, clock).await?;
    if peer.is_none() {
        note("gslb.http1 has no peer node: apt-get install nodejs");
    }
    Ok(peer)
}
