//! Logins a second of one core: TCP connect, full TLS handshake, Hello, Login with a binder,
//! LoginOk.
//!
//! All services run in this process, but only the link has work; what the others use while nobody
//! comes, some hundredths of a core, counts against us. The guests are a process of their own,
//! since their CPU time is not the link's. Tokens are fetched before a round begins. No handshake
//! is an abbreviated one.
//!
//! Peers of mode T: nginx with one worker, the same certificate, TLS 1.3 alone, `return 204`; each
//! connection asks once and is closed. Of mode G: OpenSSL 4's `s_server -rev`, likewise. Both do
//! less than a login: they verify no token and keep no session. The clients are the same, and offer
//! the same.

mod certificate;
mod guests;
mod peer;
mod site;

use kit::clock::Clock;

use crate::aside::Aside;
use crate::cpu;
use crate::line::Line;
use crate::timing::{ROUNDS, median};
use certificate::{Certificate, Kind};
use guests::{ASK_PEER, DONE, LOG_IN, Orders, PREPARE};
use peer::Peer;
use site::Site;

pub(crate) use guests::serve;

/// The name under which this executable is started as the guests.
pub(crate) const GUESTS: &str = "handshake-guests";
/// Logins of a round: between a quarter of a second and one second of CPU time.
const LOGINS: u32 = 1_000;

/// `handshake.tls.p256`, `handshake.tls.ed25519`, `handshake.tls.rsa2048`, `handshake.national`.
pub(crate) async fn run() -> anyhow::Result<Vec<Line>> {
    let mut lines = Vec::new();
    for kind in Kind::ALL {
        lines.push(Box::pin(measure(kind)).await?);
    }
    Ok(lines)
}

async fn measure(kind: Kind) -> anyhow::Result<Line> {
    let clock = Clock::system();
    let certificate = Certificate::make(kind).await?;
    let mut peer = Peer::start(&certificate, &clock).await?;
    let site = Site::open(&certificate, &clock).await?;
    let peer_addr = peer.as_ref().map(|it| it.addr);
    let orders = Orders { logins: LOGINS, peer: peer_addr, ..site.orders(&certificate)? };
    let mut guests = Aside::start(GUESTS, &orders).await?;
    guests.expect(DONE).await?;

    let mut ours = Vec::with_capacity(ROUNDS);
    let mut ratios = Vec::with_capacity(ROUNDS);
    for _ in 0..ROUNDS {
        guests.tell(PREPARE).await?;
        guests.expect(DONE).await?;
        let start = cpu::process();
        guests.tell(LOG_IN).await?;
        guests.expect(DONE).await?;
        let rate = f64::from(LOGINS) / (cpu::process() - start).as_secs_f64();
        ours.push(rate);

        if let Some(peer) = &mut peer {
            let start = peer.cpu()?;
            guests.tell(ASK_PEER).await?;
            guests.expect(DONE).await?;
            let peer_rate = f64::from(LOGINS) / (peer.cpu()? - start).as_secs_f64();
            ratios.push(rate / peer_rate);
        }
    }

    guests.leave().await?;
    site.close().await?;
    Ok(Line {
        name: kind.line().to_owned(),
        value: median(&mut ours),
        unit: "1/s/core",
        peer: peer.as_ref().map(|it| it.name),
        ratio: peer.is_some().then(|| median(&mut ratios)),
    })
}
