//! The worker's side: a link alone, whose buses are at the other end of its standard input.

use std::io::Write;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, ensure};
use auth_core::policy::Policies;
use bus::remote::{Ports, connect};
use kit::clock::Clock;
use kit::health::Health;
use kit::meter::Meter;
use kit::seed::derive;
use kit::task::Tasks;
use tokio::net::{TcpListener, UnixStream};
use tokio_util::sync::CancellationToken;

use super::process::{Bound, Orders, Said};
use crate::config::Config;
use crate::stack::{Shared, listen, serve_admin};
use crate::tls::Certificates;

/// The first argument of an executable that is to be a worker.
pub const NAME: &str = "link-worker";
/// Descriptors beside connections: the bus, files, metrics, the runtime's own.
const DESCRIPTORS_BESIDES: u64 = 256;
/// How often it is looked whether it can do its job.
const LOOK: Duration = Duration::from_millis(100);

/// Runs as a worker of the process that started this one, until that says so or ends.
///
/// # Errors
/// When this process was not started as a worker, there are too few descriptors, something cannot
/// be opened, or the link fails.
pub async fn run() -> anyhow::Result<()> {
    let mut stream =
        input().context("a worker is started by `barrage up`, with its bus as input")?;
    let config = Orders::read(&mut stream).await.context("there are no orders")?;
    kit::logs::init(config.log.json, &config.log.filter)?;
    check_descriptors(&config.link, kit::process::raise_descriptors()?)?;

    let mut signals = Tasks::default();
    let stop = kit::shutdown::on_first_signal(&mut signals)?;
    let mut carrying = Tasks::default();
    let (ports, carried) = connect(stream);
    let orphaned = stop.clone();
    carrying.spawn("bus", async move {
        if let Err(error) = carried.await {
            tracing::error!(%error, "the bus is lost");
        }
        orphaned.cancel();
        Ok(())
    });
    Box::pin(serve(config, ports, stop)).await
}

/// The link, its certificates, its metrics, and what it says of itself.
async fn serve(config: Config, ports: Ports, stop: CancellationToken) -> anyhow::Result<()> {
    let clock = Clock::system();
    let parts = Shared {
        clock: clock.clone(),
        meter: Meter::new(),
        health: Health::default(),
        bus: Arc::clone(&ports.unit),
    };
    let Certificates { trust, tls, national, follow, .. } =
        Certificates::open(&config, &parts).await?;
    let seed = derive(kit::seed::fresh()?, "link");
    let link = link::Service::bind(
        config.link.clone(),
        link::Parts {
            clock: clock.clone(),
            meter: parts.meter.clone(),
            health: parts.health.clone(),
            seed,
            global_bus: ports.global,
            unit_bus: ports.unit,
            quota: ports.quota,
            policies: Policies::new(&config.app),
            auth_tls: trust.tls,
            tls: Some(tls),
            national: Some(national),
        },
    )
    .await?;
    let admin: TcpListener = listen(config.admin.listen).await?;
    say(&Said::Bound(Bound {
        addresses: link.addrs(),
        ports: link.ports(),
        admin: admin.local_addr()?,
    }))?;
    let mut beside = Tasks::default();
    let (health, done) = (parts.health.clone(), CancellationToken::new());
    beside.spawn("admin", serve_admin(admin, parts, done.clone()));
    beside.spawn("certificates", follow.run(done.clone()));
    beside.spawn("readiness", tell_readiness(health, clock));
    tokio::select! {
        ended = link.run(stop) => ended,
        Some(ended) = beside.next() => ended.context("the worker cannot go on"),
    }
}

/// The socket that this process has in the place of a terminal.
fn input() -> anyhow::Result<UnixStream> {
    let stream = std::io::stdin().as_fd().try_clone_to_owned()?;
    let stream = std::os::unix::net::UnixStream::from(stream);
    stream.peer_addr().context("it is no socket")?;
    stream.set_nonblocking(true)?;
    Ok(UnixStream::from_std(stream)?)
}

/// Refuses to promise more places than there are descriptors for.
fn check_descriptors(config: &link::Config, allowed: u64) -> anyhow::Result<()> {
    let connections = u64::from(config.sessions_max) + u64::from(config.handshakes_max);
    let needed = connections + DESCRIPTORS_BESIDES;
    ensure!(
        needed <= allowed,
        "sessions_max {} and handshakes_max {} take {needed} descriptors of each worker, and the \
         hard limit is {allowed} (`ulimit -Hn`): set sessions_max lower and workers higher, or \
         raise the limit",
        config.sessions_max,
        config.handshakes_max
    );
    Ok(())
}

/// Says for ever whether it can do its job, when that changes.
async fn tell_readiness(health: Health, clock: Clock) -> anyhow::Result<()> {
    let mut told = None;
    loop {
        let failures = health.failures();
        let is_ready = failures.is_empty();
        if told != Some(is_ready) {
            told = Some(is_ready);
            let why = || failures.iter().map(|(part, why)| format!("{part}: {why}"));
            let said = say(&match is_ready {
                true => Said::Ready,
                false => Said::NotReady(why().collect::<Vec<_>>().join("; ")),
            });
            if said.is_err() {
                // The supervisor is gone: the worker drains, and nobody is there to be told.
                return std::future::pending().await;
            }
        }
        clock.sleep(LOOK).await;
    }
}

fn say(said: &Said) -> anyhow::Result<()> {
    let mut output = std::io::stdout().lock();
    writeln!(output, "{}", serde_json::to_string(said)?)?;
    Ok(output.flush()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_places_than_descriptors_are_refused_with_advice() {
        let config =
            link::Config { sessions_max: 17_000, handshakes_max: 2_000, ..link::Config::default() };

        assert!(check_descriptors(&config, 19_256).is_ok());
        let refused = check_descriptors(&config, 19_255).unwrap_err().to_string();
        assert!(refused.contains("19256 descriptors"), "{refused}");
        assert!(refused.contains("workers higher"), "{refused}");
    }
}
