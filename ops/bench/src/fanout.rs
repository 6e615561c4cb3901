//! Fan-out: items delivered for a second of CPU, from the bus through the link to real sessions.
//!
//! All services run in this process, but only the link has work: flushes are put on the bus as the
//! broadcaster would, and every session gets each of them in one write. The receivers are a process
//! of their own, since its CPU time is not the link's. The next flush goes out when every session
//! has the one before, so nothing is merged and nothing is skipped; waiting costs no CPU time.
//!
//! The peer writes the same bytes to as many sockets, one `write` each, from one thread: what the
//! kernel costs whatever the design.

mod audience;
mod bare;
mod login;
mod receiver;
mod site;

use std::time::Duration;

use anyhow::{Context, ensure};
use kit::clock::Clock;
use proto::address::Transport;
use proto::frame::prefixed;

use crate::cpu;
use crate::line::Line;
use crate::timing::{ROUNDS, median};
use bare::Bare;
use receiver::Group;
use site::Sent;

pub(crate) use audience::Audience;
pub(crate) use login::log_all_in;
pub(crate) use receiver::{Orders, receive, say};
pub(crate) use site::Site;

/// The name under which this executable is started as the receivers.
pub(crate) const RECEIVER: &str = "fanout-receiver";
/// How many sessions, if this is set in the environment.
const SESSIONS_ENV: &str = "BENCH_SESSIONS";
const SESSIONS: usize = 2_000;
/// Two sockets a session in each process, and a process has 20,000 descriptors.
const SESSIONS_MAX: usize = 9_000;
/// Viewers with several sessions each.
const ACCOUNTS: usize = 50;
/// Items of one write.
const ITEMS: [usize; 3] = [1, 10, 50];
/// Length of a round.
const ROUND: Duration = Duration::from_millis(1200);

/// A line for each number of items: `start` and the number.
pub(crate) async fn run(transport: Transport, start: &str) -> anyhow::Result<Vec<Line>> {
    let clock = Clock::system();
    let sessions = match std::env::var(SESSIONS_ENV) {
        Ok(text) => text.parse().with_context(|| format!("{SESSIONS_ENV} is no number"))?,
        Err(_) => SESSIONS,
    };
    ensure!(
        (1..=SESSIONS_MAX).contains(&sessions),
        "{SESSIONS_ENV} must be from 1 to {SESSIONS_MAX}"
    );
    let mut show = Show {
        site: Site::open(&clock, ACCOUNTS).await?,
        bare: Bare::listen().await?,
        written: Sent::default(),
    };
    let bare = Some(show.bare.address()?);
    let orders = Orders { bare, ..show.site.orders(sessions, transport) };
    let mut audience = Audience::start(&orders).await?;
    show.bare.accept(sessions).await?;
    audience.are_in().await?;

    let mut lines = show.measure(&mut audience, sessions, &clock).await?;
    lines.iter_mut().for_each(|it| it.name.insert_str(0, start));

    let report = audience.leave().await?;
    show.site.check(&report.linked)?;
    show.written.check(&report.bare)?;
    show.site.close().await?;
    Ok(lines)
}

/// The link, and its peer.
struct Show {
    site: Site,
    bare: Bare,
    written: Sent,
}

impl Show {
    /// Rounds of all sizes and of the peer take turns.
    async fn measure(
        &mut self,
        audience: &mut Audience,
        sessions: usize,
        clock: &Clock,
    ) -> anyhow::Result<Vec<Line>> {
        let mut ours = ITEMS.map(|_| Vec::with_capacity(ROUNDS));
        let mut peer = ITEMS.map(|_| Vec::with_capacity(ROUNDS));
        for _ in 0..ROUNDS {
            for (number, items) in ITEMS.into_iter().enumerate() {
                let delivered = |flushes: f64| flushes * (items * sessions) as f64;
                let until = clock.mono() + ROUND;
                let start = cpu::process();
                let mut flushes = 0.0;
                while clock.mono() < until {
                    self.site.flush(items).await?;
                    audience.have_it().await?;
                    flushes += 1.0;
                }
                ours[number].push(delivered(flushes) / (cpu::process() - start).as_secs_f64());

                let until = clock.mono() + ROUND;
                let mut used = Duration::ZERO;
                flushes = 0.0;
                while clock.mono() < until {
                    used += self.write_bare(items)?;
                    audience.have_it().await?;
                    flushes += 1.0;
                }
                peer[number].push(delivered(flushes) / used.as_secs_f64());
            }
        }
        let rows = ITEMS.into_iter().zip(ours.iter_mut().zip(&mut peer));
        Ok(rows
            .map(|(items, (ours, peer))| {
                let mut ratios: Vec<f64> = ours.iter().zip(&*peer).map(|(a, b)| a / b).collect();
                Line {
                    name: items.to_string(),
                    value: median(ours),
                    unit: "1/s/core",
                    peer: Some("write(2)"),
                    ratio: Some(median(&mut ratios)),
                }
            })
            .collect())
    }

    /// Writes what a flush would become to the bare sockets, and says what CPU time that took.
    fn write_bare(&mut self, items: usize) -> anyhow::Result<Duration> {
        let frame = self.site.frame(items);
        self.written.add(items, frame.len());
        self.bare.write(&prefixed(&frame))
    }
}
