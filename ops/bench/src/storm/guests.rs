//! The guests: a process with sessions that join and leave a room at a steady rate, and with
//! settled ones that ping.

use std::time::Duration;

use anyhow::Context;
use futures_util::future::try_join_all;
use kit::clock::Clock;
use proto::frame::{Downlink, Join, JoinOutcome, Path, Uplink};
use proto::id::RoomId;
use proto::time::Mono;
use sdk::raw::Raw;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt, BufReader};

use crate::fanout::{self, log_all_in, say};

/// Between two pings of a settled session.
const PING_EVERY: Duration = Duration::from_millis(50);

/// Everyone is logged in.
pub(super) const IN: &str = "in";

/// What the guests are told first.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct Orders {
    /// How all come in, the settled ones too.
    pub(super) doors: fanout::Orders,
    /// How many of them stay in the room.
    pub(super) settled: usize,
}

/// A storm; the settled ones ping meanwhile.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub(super) struct Rush {
    pub(super) ask: Ask,
    /// Of all guests together; 0 is none.
    pub(super) asks_per_s: u32,
    pub(super) length_ms: u64,
    pub(super) then: Then,
}

/// What guests ask for.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(super) enum Ask {
    /// To come into the room, and leave at once.
    Join,
    /// Nothing: as much talk, that decides nothing.
    Ping,
}

/// What becomes of the guests in the end.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(super) enum Then {
    /// Every other one is in the room.
    Stay,
    /// Nobody is.
    Leave,
}

/// What became of it.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize)]
pub(super) struct Tale {
    pub(super) admitted: u64,
    pub(super) refused: u64,
    pub(super) joins_p99_ms: f64,
    pub(super) pings_p99_ms: f64,
}

/// What one session saw.
#[derive(Debug, Default)]
struct Seen {
    admitted: u64,
    refused: u64,
    waits_micros: Vec<u64>,
}

/// Does what it is told until the standard input ends.
pub(crate) async fn serve() -> anyhow::Result<()> {
    let mut words = BufReader::new(tokio::io::stdin()).lines();
    let orders = words.next_line().await?.context("there are no orders")?;
    let Orders { doors, settled } = serde_json::from_str(&orders).context("these are no orders")?;
    let clock = Clock::system();
    let room = doors.room().clone();
    let mut guests = log_all_in(&doors, &[]).await?;
    let mut settled = guests.split_off(guests.len() - settled);
    for session in &mut settled {
        join(session, &room).await?;
    }
    say(IN)?;

    while let Some(word) = words.next_line().await? {
        let rush: Rush = serde_json::from_str(&word).context("this is no storm")?;
        let end = clock.mono() + Duration::from_millis(rush.length_ms);
        let pings = settled.iter_mut().map(|it| ping_until(it, end, &clock));
        let storm = storm(&mut guests, &room, rush, &clock);
        let (pings, storm) = tokio::try_join!(try_join_all(pings), storm)?;
        let tale = Tale {
            admitted: storm.iter().map(|it| it.admitted).sum(),
            refused: storm.iter().map(|it| it.refused).sum(),
            joins_p99_ms: p99_ms(storm),
            pings_p99_ms: p99_ms(pings),
        };
        say(&serde_json::to_string(&tale)?)?;
    }
    say(IN)
}

/// All guests ask, each in its turn.
async fn storm(
    guests: &mut [Raw],
    room: &RoomId,
    rush: Rush,
    clock: &Clock,
) -> anyhow::Result<Vec<Seen>> {
    if rush.asks_per_s == 0 {
        return Ok(Vec::new());
    }
    let (start, guests_in_all) = (clock.micros(), guests.len() as u64);
    let end = start + rush.length_ms * 1_000;
    let micros = |asks: u64| asks * 1_000_000 / u64::from(rush.asks_per_s);
    let turns = |number| {
        let turn = move |turn: u64| start + micros(turn * guests_in_all + number);
        (0..).map(turn).take_while(move |&due| due < end)
    };
    let guests = (0..).zip(guests).map(|(number, session)| {
        let then = if number % 2 == 0 { rush.then } else { Then::Leave };
        come_and_go(session, room, turns(number), (rush.ask, then), clock)
    });
    try_join_all(guests).await
}

/// Asks when it is due; who came in leaves at once.
async fn come_and_go(
    session: &mut Raw,
    room: &RoomId,
    turns: impl Iterator<Item = u64>,
    (ask, then): (Ask, Then),
    clock: &Clock,
) -> anyhow::Result<Seen> {
    let mut seen = Seen::default();
    for due in turns {
        let early = due.saturating_sub(clock.micros());
        if early > 0 {
            clock.sleep(Duration::from_micros(early)).await;
        }
        let is_in = match ask {
            Ask::Join => join(session, room).await?,
            Ask::Ping => {
                ping(session, due).await?;
                false
            }
        };
        seen.waits_micros.push(clock.micros().saturating_sub(due));
        if is_in {
            seen.admitted += 1;
            session.send(&Uplink::Leave { room: room.clone() }).await?;
        } else {
            seen.refused += 1;
        }
    }
    if then == Then::Stay {
        join(session, room).await?;
    }
    Ok(seen)
}

/// Pings at a steady pace.
async fn ping_until(session: &mut Raw, end: Mono, clock: &Clock) -> anyhow::Result<Seen> {
    let mut seen = Seen::default();
    while clock.mono() < end {
        let start = clock.micros();
        ping(session, start).await?;
        seen.waits_micros.push(clock.micros() - start);
        clock.sleep(PING_EVERY).await;
    }
    Ok(seen)
}

/// Waits for the answer.
async fn ping(session: &mut Raw, nonce: u64) -> anyhow::Result<()> {
    session.send(&Uplink::Ping { nonce }).await?;
    while !matches!(session.recv().await?, Downlink::Pong { nonce: of, .. } if of == nonce) {}
    Ok(())
}

/// Whether it was let in.
async fn join(session: &mut Raw, room: &RoomId) -> anyhow::Result<bool> {
    let join = Join { room: room.clone(), path: Path::Push, resume: None };
    session.send(&Uplink::Join(join)).await?;
    loop {
        if let Downlink::Joined(joined) = session.recv().await? {
            return Ok(matches!(joined.outcome, JoinOutcome::In { .. }));
        }
    }
}

/// Of what all saw; 0 if nobody saw anything.
fn p99_ms(seen: Vec<Seen>) -> f64 {
    let mut waits: Vec<u64> = seen.into_iter().flat_map(|it| it.waits_micros).collect();
    waits.sort_unstable();
    waits.get(waits.len() * 99 / 100).map_or(0.0, |&it| it as f64 / 1e3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_in_a_hundred_waits_longer_than_the_99th_percentile() {
        let seen = |waits| Seen { waits_micros: waits, ..Seen::default() };

        assert_eq!(p99_ms(vec![seen((0..99).collect()), seen(vec![5_000])]), 5.0);
        assert_eq!(p99_ms(vec![seen((0..198).collect()), seen(vec![9_000; 2])]), 9.0);
        assert_eq!(p99_ms(Vec::new()), 0.0);
    }
}
