//! Logins a second of one core: TCP connect, full TLS handshake, Hello, Login with a binder,
//! LoginOk.
//!
//! All services run in this process, but only the link has work: the CPU time of this process is
//! counted, less what it uses in as long a while when nobody comes. The guests are a process of
//! their own, since their CPU time is not the link's. A login costs them more than the link; so
//! there are more of them at a time than threads of the link, they take turns with it on all
//! cores, and it finds another whenever it is done with one. A link that waits uses more CPU time
//! for a login, because it goes to sleep and is woken; `….cores` says how busy it was, and on two
//! cores that should be near one. Tokens are fetched before a round begins. Every handshake is a
//! full one, with the hybrid key exchange where the server has it.
//!
//! Peers of mode T: nginx with one worker, the same certificate, TLS 1.3 alone, `return 204`; each
//! connection asks once and is closed. Of mode G: OpenSSL 4's `s_server -rev`, likewise. Both do
//! less than a login: they verify no token and keep no session. The clients are the same, and offer
//! the same.

mod certificate;
mod guests;
mod peer;
mod site;

use std::time::Duration;

use kit::clock::Clock;

use crate::aside::Aside;
use crate::cpu::Stretch;
use crate::line::Line;
use crate::timing::{ROUNDS, median};
use certificate::{Certificate, Kind};
use guests::{ASK_PEER, DONE, LOG_IN, Orders, PREPARE};
use site::Site;

pub(crate) use guests::serve;

/// The name under which this executable is started as the guests.
pub(crate) const GUESTS: &str = "handshake-guests";
/// Logins of a round: between a quarter of a second and one second of CPU time.
const LOGINS: u32 = 1_000;
/// How long all services are watched while nobody comes.
const IDLE: Duration = Duration::from_secs(2);

/// Whether it is a line of these, or the beginning of some.
pub(crate) fn has(name: &str) -> bool {
    Kind::ALL.iter().any(|it| it.line().starts_with(name))
}

/// `handshake.tls.p256`, `handshake.tls.ed25519`, `handshake.tls.rsa2048`, `handshake.national`:
/// those that begin with `name`. Behind each, with `.cores`, how many cores all services had.
pub(crate) async fn run(name: &str) -> anyhow::Result<Vec<Line>> {
    let mut lines = Vec::new();
    for kind in Kind::ALL.into_iter().filter(|it| it.line().starts_with(name)) {
        lines.extend(Box::pin(measure(kind)).await?);
    }
    Ok(lines)
}

async fn measure(kind: Kind) -> anyhow::Result<[Line; 2]> {
    let clock = Clock::system();
    let certificate = Certificate::make(kind).await?;
    let peer = peer::start(&certificate, &clock).await?;
    let site = Site::open(&certificate, &clock).await?;
    let peer_addr = peer.as_ref().map(|it| it.addr);
    let orders = Orders { logins: LOGINS, peer: peer_addr, ..site.orders(&certificate)? };
    let mut guests = Aside::start(GUESTS, &orders).await?;
    guests.expect(DONE).await?;
    let idle = Stretch::begin(&clock);
    clock.sleep(IDLE).await;
    let idle = idle.end(&clock);

    let mut rates = Vec::with_capacity(ROUNDS);
    let mut cores = Vec::with_capacity(ROUNDS);
    let mut ratios = Vec::with_capacity(ROUNDS);
    for _ in 0..ROUNDS {
        guests.tell(PREPARE).await?;
        guests.expect(DONE).await?;
        let round = Stretch::begin(&clock);
        guests.tell(LOG_IN).await?;
        guests.expect(DONE).await?;
        let round = round.end(&clock);
        let rate = f64::from(LOGINS) / round.used_beyond(idle);
        rates.push(rate);
        cores.push(round.cores());

        if let Some(peer) = &peer {
            let start = peer.cpu()?;
            guests.tell(ASK_PEER).await?;
            guests.expect(DONE).await?;
            let peer_rate = f64::from(LOGINS) / (peer.cpu()? - start).as_secs_f64();
            ratios.push(rate / peer_rate);
        }
    }

    guests.leave().await?;
    site.close().await?;
    let line = Line {
        name: kind.line().to_owned(),
        value: median(&mut rates),
        unit: "1/s/core",
        peer: peer.as_ref().map(|it| it.name),
        ratio: peer.is_some().then(|| median(&mut ratios)),
    };
    Ok([line, Line::alone(format!("{}.cores", kind.line()), median(&mut cores), "cores")])
}
