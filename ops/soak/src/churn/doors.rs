//! The doors, through which one visitor after the other comes in.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::ensure;
use kit::seed::derive;
use kit::task::Tasks;
use parking_lot::Mutex;
use proto::address::Transport;
use proto::frame::Path;
use proto::id::{RoomId, ViewerId};
use proto::item::Style;
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use sdk::{Client, Event, Events, Options};
use serde::{Deserialize, Serialize};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::guests::Outfit;

/// How long a visit lasts, once the visitor is in.
const STAY_MS: std::ops::Range<u64> = 20..600;
/// A visitor is in within this time, and gone.
const STEP_MAX: Duration = Duration::from_secs(15);
/// One in so many visitors says something.
const SPEAKERS: u32 = 10;
/// Names of one door's visitors. Who spoke is remembered by name: all have within minutes.
const NAMES: u64 = 10;

/// What all doors share.
#[derive(Debug, Default)]
pub(super) struct Hall {
    /// What visitors did so far.
    pub(super) visits: Mutex<Visits>,
    /// Whether visitors may say something now.
    pub(super) may_speak: AtomicBool,
    /// Fires when nobody is to come in any more.
    pub(super) closes: CancellationToken,
}

/// What visitors did.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize)]
pub(super) struct Visits {
    pub(super) done: u64,
    pub(super) failed: u64,
    pub(super) spoke: u64,
}

/// Starts tasks that each send one visitor after the other until the hall closes.
pub(super) fn open(
    outfit: &Outfit,
    doors: usize,
    hall: &Arc<Hall>,
    seed: u64,
) -> anyhow::Result<Tasks> {
    // An HTTP client of their own: its idle connections end with it.
    let http = sdk::http::client(&outfit.tls)?;
    let mut tasks = Tasks::default();
    for door in 0..doors {
        let mut options = Vec::new();
        for name in 0..NAMES {
            let account = ViewerId::parse(&format!("visitor-{door}-{name}"))?;
            options.push(outfit.options(&account, &http));
        }
        let walk = Door {
            options,
            room: outfit.room.clone(),
            hall: Arc::clone(hall),
            rng: SmallRng::seed_from_u64(derive(seed, &format!("door {door}"))),
        };
        tasks.spawn("door", walk.walk());
    }
    Ok(tasks)
}

/// Where one visitor after the other comes in.
struct Door {
    /// One for each name.
    options: Vec<Options>,
    room: RoomId,
    hall: Arc<Hall>,
    rng: SmallRng,
}

impl Door {
    async fn walk(mut self) -> anyhow::Result<()> {
        const TRANSPORTS: [Transport; 4] =
            [Transport::Tcp, Transport::Tls, Transport::Ws, Transport::Wss];
        while !self.hall.closes.is_cancelled() {
            let draw = self.rng.random_range(0..self.options.len());
            let mut options = self.options[draw].clone();
            let path = if self.rng.random() { Path::Push } else { Path::Segments };
            options.rooms = vec![(self.room.clone(), path)];
            options.transports = vec![TRANSPORTS[self.rng.random_range(0..TRANSPORTS.len())]];
            options.seed = self.rng.random();
            let stay = Duration::from_millis(self.rng.random_range(STAY_MS));
            let wants = self.rng.random_ratio(1, SPEAKERS);
            let came = timeout(STEP_MAX, self.visit(options, stay, wants)).await;
            let mut visits = self.hall.visits.lock();
            match came {
                Ok(Ok(spoke)) => {
                    visits.done += 1;
                    visits.spoke += u64::from(spoke);
                }
                Ok(Err(_)) | Err(_) => visits.failed += 1,
            }
        }
        Ok(())
    }

    /// Whether the visitor, who `wants` to say something or not, did.
    async fn visit(&self, options: Options, stay: Duration, wants: bool) -> anyhow::Result<bool> {
        let (client, mut events) = Client::start(options);
        let is_in = |event: &Event| matches!(event, Event::Connected { .. });
        ensure!(read_until(&mut events, is_in).await, "ended before it was in");
        let speaks = wants && self.hall.may_speak.load(Ordering::Relaxed);
        if speaks {
            client.send(&self.room, "just passing", Style::default(), None)?;
        }
        // Whoever stays reads; the end of the stay is no event.
        let ended = timeout(stay, read_until(&mut events, |_| false)).await;
        ensure!(ended.is_err(), "ended while it was in");
        client.close();
        read_until(&mut events, |_| false).await;
        Ok(speaks)
    }
}

/// Reads until an event is found (true) or the viewer ended (false).
async fn read_until(events: &mut Events, is_it: impl Fn(&Event) -> bool) -> bool {
    while let Some(event) = events.next().await {
        if is_it(&event) {
            return true;
        }
    }
    false
}
