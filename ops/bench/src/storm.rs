//! Storms: many come and go at once.
//!
//! `link.departures` is the queue of leaves by itself: one goes in and one comes out while 100,000
//! wait. `link.joins` is joins a second of CPU time, each with its leave, of one room that 2,000
//! sessions join 20,000 times a second for ten seconds; `….rate` is how many there really were in a
//! second, and `….p99` how long one takes, from when it was due. What the chatserver does with them
//! is counted too. Afterwards half of them stay, and the business
//! API must say so within a second.
//!
//! `link.entry.admitted` is joins let in over the limit of a room, while five times as many want to
//! come in: 1 is exact. `link.entry.settled_p99` is how long others' pings take meanwhile, and its
//! ratio to the same before the storm. Who comes and who pings are two processes, which share the
//! machine with the link and each other: with two cores the ratio counts what all three contend for.

mod departures;
mod guests;

use std::time::Duration;

use anyhow::ensure;
use kit::clock::Clock;
use proto::address::Transport;

use crate::aside::Aside;
use crate::cpu::Stretch;
use crate::fanout::Site;
use crate::line::Line;
use guests::{Orders, Rush, Tale};

pub(crate) use guests::serve;

/// The name under which this executable is started as the guests.
pub(crate) const GUESTS: &str = "storm-guests";
/// Sessions that come and go.
const SESSIONS: usize = 2_000;
/// Sessions that are there all the time, and ping.
const SETTLED: usize = 100;
/// Joins a second, and as many leaves.
const JOINS_PER_S: u32 = 20_000;
/// Joins a second that are let in.
const LIMIT_PER_S: u32 = 2_000;
/// Times the limit that want to come in.
const EXCESS: u32 = 5;
/// Length of a storm.
const STORM_MS: u64 = 10_000;
/// Counts must be right after this time.
const COUNTED_MAX: Duration = Duration::from_secs(1);

const ALL: &str = "storm";
const DEPARTURES: &str = "link.departures";
const JOINS: &str = "link.joins";
const ENTRY: &str = "link.entry";

/// Whether there is a storm of that name.
pub(crate) fn has(name: &str) -> bool {
    [ALL, DEPARTURES, JOINS, ENTRY].contains(&name)
}

/// The storm of that name, or every one.
pub(crate) async fn run(name: &str) -> anyhow::Result<Vec<Line>> {
    let mut lines = Vec::new();
    let is_asked = |it| name == ALL || it == name;
    if is_asked(DEPARTURES) {
        lines.push(departures::run()?);
    }
    if is_asked(JOINS) {
        lines.extend(Box::pin(joins()).await?);
    }
    if is_asked(ENTRY) {
        lines.extend(Box::pin(entry()).await?);
    }
    Ok(lines)
}

/// Everyone is let in.
async fn joins() -> anyhow::Result<Vec<Line>> {
    let clock = Clock::system();
    let Stage { site, mut guests, settled } = Stage::open(&clock, 0).await?;

    let storm = Stretch::begin(&clock);
    let rush = Rush { joins_per_s: JOINS_PER_S, length_ms: STORM_MS };
    let tale: Tale = guests.inquire(&rush).await?;
    let storm = storm.end(&clock);

    ensure!(tale.refused == 0, "{} joins were refused", tale.refused);
    let expected = (SESSIONS / 2 + SETTLED) as u64;
    let deadline = clock.mono() + COUNTED_MAX;
    loop {
        let people = site.people().await?;
        if people == expected {
            break;
        }
        ensure!(clock.mono() < deadline, "{people} people are in the room, not {expected}");
        clock.sleep(COUNTED_MAX / 50).await;
    }
    guests.leave().await?;
    settled.leave().await?;
    site.close().await?;
    let admitted = tale.admitted as f64;
    Ok(vec![
        Line::alone(JOINS, admitted / storm.used, "1/s/core"),
        Line::alone(format!("{JOINS}.rate"), admitted / storm.lasted, "1/s"),
        Line::alone(format!("{JOINS}.p99"), tale.joins_p99_ms, "ms"),
    ])
}

/// Five times as many want to come in as may.
async fn entry() -> anyhow::Result<Vec<Line>> {
    let clock = Clock::system();
    let Stage { site, mut guests, mut settled } = Stage::open(&clock, LIMIT_PER_S).await?;

    let pings = Rush { joins_per_s: 0, length_ms: STORM_MS };
    let calm: Tale = settled.inquire(&pings).await?;
    let rush = Rush { joins_per_s: LIMIT_PER_S * EXCESS, length_ms: STORM_MS };
    let length = Stretch::begin(&clock);
    let (storm, shaken): (Tale, Tale) =
        tokio::try_join!(guests.inquire(&rush), settled.inquire(&pings))?;
    let length = length.end(&clock);

    guests.leave().await?;
    settled.leave().await?;
    site.close().await?;
    let allowed = f64::from(LIMIT_PER_S) * length.lasted;
    let pings_p99 = Line {
        name: format!("{ENTRY}.settled_p99"),
        value: shaken.pings_p99_ms,
        unit: "ms",
        peer: Some("before the storm"),
        ratio: Some(shaken.pings_p99_ms / calm.pings_p99_ms),
    };
    let wanted = (storm.admitted + storm.refused) as f64 / allowed;
    Ok(vec![
        Line::alone(format!("{ENTRY}.admitted"), storm.admitted as f64 / allowed, "of the limit"),
        Line::alone(format!("{ENTRY}.wanted"), wanted, "of the limit"),
        pings_p99,
    ])
}

/// All services, and two processes with sessions that are logged in.
struct Stage {
    site: Site,
    /// In no room yet.
    guests: Aside,
    settled: Aside,
}

impl Stage {
    async fn open(clock: &Clock, limit_per_s: u32) -> anyhow::Result<Self> {
        let site = Site::open_with(clock, SESSIONS + SETTLED, |config| {
            let link = &mut config.link;
            link.entry.room_joins_per_s = limit_per_s;
            // No session is held back but by what is measured.
            link.entry.node_joins_per_s = 10 * JOINS_PER_S;
            link.frames_per_s = JOINS_PER_S;
            link.frames_burst = JOINS_PER_S;
        });
        let site = site.await?;
        let doors = site.orders(SESSIONS + SETTLED, Transport::Tcp);
        let (settled, guests) = doors.tickets.split_at(SETTLED);
        let orders = Orders { doors: doors.only(settled), settled: settled.len() };
        let mut settled = Aside::start(GUESTS, &orders).await?;
        settled.expect(guests::IN).await?;
        let orders = Orders { doors: doors.only(guests), settled: 0 };
        let mut guests = Aside::start(GUESTS, &orders).await?;
        guests.expect(guests::IN).await?;
        Ok(Self { site, guests, settled })
    }
}
