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
//! ratio to the same while nobody wants to come in; `….beside_pings` has the ratio to the same while
//! the guests ping as often. The three follow each other in rounds, so
//! that what else the machine does falls on all alike, and medians of the rounds are told. Who
//! comes and who pings are two processes, which share the machine with the link and each other:
//! with two cores the first ratio counts what all three contend for, and the second what it costs
//! to be asked for entry rather than for nothing. It is unchanged within a fifth.

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
use guests::{Ask, Orders, Rush, Tale, Then};

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
/// Rounds in which entry is compared with what is not entry.
const ROUNDS: usize = 5;
/// Length of each part of a round.
const PART_MS: u64 = 3_000;
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
    let rush =
        Rush { ask: Ask::Join, asks_per_s: JOINS_PER_S, length_ms: STORM_MS, then: Then::Stay };
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

    let part = |ask, asks_per_s| Rush { ask, asks_per_s, length_ms: PART_MS, then: Then::Leave };
    let quiet = part(Ask::Ping, 0);
    let (mut admitted, mut wanted, mut lasted) = (0, 0, 0.0);
    let (mut p99_ms, mut to_quiet, mut to_pings) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let calm: Tale = settled.inquire(&quiet).await?;
        let rush = part(Ask::Join, LIMIT_PER_S * EXCESS);
        let length = Stretch::begin(&clock);
        let (storm, shaken): (Tale, Tale) =
            tokio::try_join!(guests.inquire(&rush), settled.inquire(&quiet))?;
        lasted += length.end(&clock).lasted;
        admitted += storm.admitted;
        wanted += storm.admitted + storm.refused;
        let talk = part(Ask::Ping, LIMIT_PER_S * EXCESS);
        let (_, beside): (Tale, Tale) =
            tokio::try_join!(guests.inquire(&talk), settled.inquire(&quiet))?;
        p99_ms.push(shaken.pings_p99_ms);
        to_quiet.push(shaken.pings_p99_ms / calm.pings_p99_ms);
        to_pings.push(shaken.pings_p99_ms / beside.pings_p99_ms);
    }

    guests.leave().await?;
    settled.leave().await?;
    site.close().await?;
    let allowed = f64::from(LIMIT_PER_S) * lasted;
    let p99 = median(p99_ms);
    let settled = |name, peer, ratios| Line {
        name,
        value: p99,
        unit: "ms",
        peer: Some(peer),
        ratio: Some(median(ratios)),
    };
    Ok(vec![
        Line::alone(format!("{ENTRY}.admitted"), admitted as f64 / allowed, "of the limit"),
        Line::alone(format!("{ENTRY}.wanted"), wanted as f64 / allowed, "of the limit"),
        settled(format!("{ENTRY}.settled_p99"), "nobody comes", to_quiet),
        settled(format!("{ENTRY}.settled_p99.beside_pings"), "as many pings", to_pings),
    ])
}

/// The middle of an odd number of values.
fn median(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
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
