//! One push: connects while its room is this process's, says what the room says, and comes back
//! when the connection is lost.

use std::panic::AssertUnwindSafe;
use std::time::Duration;

use broadcaster_core::video::avc::{self, Stamps};
use futures_util::FutureExt;
use prometheus::IntGauge;
use proto::time::{Mono, millis};
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{broadcast, watch};
use tokio_util::sync::CancellationToken;

use crate::push::backoff::Backoff;
use crate::push::session::{Failure, Session};
use crate::push::target::Target;
use crate::push::{Tools, Units};

/// A frame comes at least this often: five a second, as the stream says of itself.
const FRAME: Duration = Duration::from_millis(200);

/// One of the configuration's pushes.
pub(super) struct Pusher {
    number: usize,
    target: Target,
    moments: broadcast::Receiver<Units>,
    reign: Reign,
    backoff: Backoff,
    rng: SmallRng,
    up: IntGauge,
    tools: Tools,
}

/// As long as the room is this process's.
struct Reign {
    owned: watch::Receiver<bool>,
    closing: CancellationToken,
}

impl Reign {
    /// Whether it begins; false at the end of everything.
    async fn begins(&mut self) -> bool {
        tokio::select! {
            begun = self.owned.wait_for(|it| *it) => begun.is_ok(),
            () = self.closing.cancelled() => false,
        }
    }

    /// Waits for its end. Cancelling it loses nothing.
    async fn ends(&mut self) {
        tokio::select! {
            // An error is an end, too.
            ended = self.owned.wait_for(|it| !*it) => drop(ended),
            () = self.closing.cancelled() => {}
        }
    }
}

/// What happened to a stream.
enum Turn {
    Say(Result<Units, RecvError>),
    Heard(Result<Vec<u8>, Failure>),
    Due,
    End,
}

impl Pusher {
    pub(super) fn new(
        number: usize,
        target: Target,
        moments: broadcast::Receiver<Units>,
        owned: watch::Receiver<bool>,
        seed: u64,
        tools: Tools,
    ) -> Self {
        Self {
            number,
            target,
            moments,
            reign: Reign { owned, closing: tools.closing.clone() },
            backoff: Backoff::default(),
            rng: SmallRng::seed_from_u64(seed),
            up: tools.counts.push_up(number),
            tools,
        }
    }

    /// Runs until everything ends.
    pub(super) async fn run(mut self) -> anyhow::Result<()> {
        while self.reign.begins().await {
            self.push().await;
            self.tools.wellness.up(self.number);
            // What the room said last is the next owner's to say.
            self.moments = self.moments.resubscribe();
        }
        Ok(())
    }

    /// Connects again and again until the room is another's.
    async fn push(&mut self) {
        loop {
            let began = self.tools.clock.mono();
            // A panic of the library ends this connection alone.
            let ended = AssertUnwindSafe(self.connect()).catch_unwind().await;
            self.up.set(0);
            let why = match ended {
                Ok(Ok(())) => return,
                Ok(Err(failure)) => {
                    tracing::debug!(push = self.number, %failure, "a push ended");
                    failure.name()
                }
                Err(_) => Failure::Unclear.name(),
            };
            self.tools.counts.push_connection(self.number, why);
            self.tools.wellness.away(self.number);
            let held = self.tools.clock.mono().since(began);
            let wait = self.backoff.failed(held, self.rng.random::<f64>());
            tokio::select! {
                () = self.tools.clock.sleep(wait) => {}
                () = self.reign.ends() => return,
            }
        }
    }

    /// One connection; without an error when the room is another's.
    async fn connect(&mut self) -> Result<(), Failure> {
        let mut session = tokio::select! {
            session = Session::open(&self.target) => session?,
            () = self.reign.ends() => return Ok(()),
        };
        session.send(avc::header(), 0).await?;
        self.up.set(1);
        self.tools.counts.push_connection(self.number, "taken");
        self.tools.wellness.up(self.number);
        self.stream(&mut session).await?;
        session.close().await;
        Ok(())
    }

    async fn stream(&mut self, session: &mut Session) -> Result<(), Failure> {
        let mut film =
            Film { began: self.tools.clock.mono(), stamps: Stamps::default(), frames: 0 };
        let mut due = film.began;
        loop {
            let turn = tokio::select! {
                units = self.moments.recv() => Turn::Say(units),
                heard = session.read() => Turn::Heard(heard),
                () = self.tools.clock.sleep_until(due) => Turn::Due,
                () = self.reign.ends() => Turn::End,
            };
            let frames = film.frames;
            match turn {
                Turn::Say(Ok(units)) => {
                    for unit in units.iter() {
                        let shown = film.show(session, Some(unit), self.tools.clock.mono()).await;
                        shown.inspect_err(|_| self.tools.counts.push_lost(self.number, 1))?;
                    }
                }
                Turn::Say(Err(RecvError::Lagged(lost))) => {
                    self.tools.counts.push_lost(self.number, lost);
                }
                Turn::Due => film.show(session, None, self.tools.clock.mono()).await?,
                Turn::Heard(heard) => session.heed(&heard?).await?,
                Turn::End | Turn::Say(Err(RecvError::Closed)) => return Ok(()),
            }
            if film.frames > frames {
                self.tools.counts.push_frames(self.number, film.frames - frames);
                due = self.tools.clock.mono() + FRAME;
            }
        }
    }
}

/// The frames of one connection.
struct Film {
    began: Mono,
    stamps: Stamps,
    frames: u64,
}

impl Film {
    async fn show(
        &mut self,
        session: &mut Session,
        unit: Option<&bytes::Bytes>,
        now: Mono,
    ) -> Result<(), Failure> {
        let stamp = self.stamps.next(millis(now.since(self.began)));
        session.send(avc::frame(self.frames, unit), stamp).await?;
        self.frames += 1;
        Ok(())
    }
}
