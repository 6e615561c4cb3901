//! Keeps the workers running.

use std::process::ExitStatus;
use std::time::Duration;

use kit::health::Part;
use kit::meter::list;
use link::workers::Relay;
use parking_lot::Mutex;
use prometheus::IntGauge;
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;

use super::Parts;
use super::process::{Event, Orders, Process};

/// First and longest pause before a worker that ended is started again.
const PAUSE: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(10));
/// A worker that lived for so long begins with the first pause again.
const STEADY: Duration = Duration::from_secs(60);
/// A worker that was told to end is killed after so much more than it may take.
const END_SPARE: Duration = Duration::from_secs(1);
/// Between two looks whether a worker was heard.
const LOOK: Duration = Duration::from_secs(1);
/// A worker that the relay has heard nothing of for so many looks hangs, and is killed. Looks are
/// counted, and not the time, so that none is blamed when this process hangs.
const SILENT_LOOKS_MAX: u32 = 10;
/// A worker that was rolled is ready again within so much more than its end may take.
const READY_MAX: Duration = Duration::from_secs(60);

/// What those that keep the workers share.
pub(super) struct Crew {
    pub(super) relay: Relay,
    parts: Parts,
    orders: Vec<Orders>,
    seats: Vec<Seat>,
    states: Mutex<Vec<State>>,
    part: Part,
    ready: IntGauge,
    /// Rises when a state changes.
    changes: watch::Sender<u64>,
}

/// What is asked of one worker.
#[derive(Default)]
struct Seat {
    /// Rung when it is to end, and to be started again.
    roll: Notify,
}

#[derive(Clone, Debug, Eq, PartialEq)]
struct State {
    /// Processes that were started in this place.
    life: u64,
    /// Whether it can do its job; why not.
    ready: Result<(), String>,
}

impl Crew {
    pub(super) fn new(orders: Vec<Orders>, relay: Relay, parts: Parts) -> Self {
        let seats = orders.iter().map(|_| Seat::default()).collect();
        let state = State { life: 1, ready: Err("starting".to_owned()) };
        Self {
            states: Mutex::new(vec![state; orders.len()]),
            part: parts.health.part("link workers"),
            ready: parts.meter.gauge(list::STACK_WORKERS, &[]),
            changes: watch::Sender::default(),
            relay,
            orders,
            seats,
            parts,
        }
    }

    /// Keeps one worker running until `shutdown`, and lets it drain then.
    pub(super) async fn keep(
        &self,
        no: u8,
        process: Process,
        shutdown: &CancellationToken,
    ) -> anyhow::Result<()> {
        let clock = &self.parts.clock;
        let (mut process, mut pause) = (Some(process), PAUSE.0);
        loop {
            if let Some(process) = process.take() {
                let start = clock.mono();
                let end = self.attend(no, process, shutdown).await;
                self.relay.forget(no);
                self.become_ready(no, Err("it has ended".to_owned()));
                if shutdown.is_cancelled() {
                    return Ok(());
                }
                self.count(no, end);
                if end.why == Why::Told || clock.mono().since(start) > STEADY {
                    pause = PAUSE.0;
                }
            }
            tokio::select! {
                () = clock.sleep(pause) => pause = (pause * 2).min(PAUSE.1),
                () = shutdown.cancelled() => return Ok(()),
            }
            let orders = &self.orders[usize::from(no)];
            let started = tokio::select! {
                it = Process::start(&self.parts.program, orders, &self.parts.ports) => it,
                () = shutdown.cancelled() => return Ok(()),
            };
            match started {
                Ok(started) => {
                    self.change(no, |it| it.life += 1);
                    process = Some(started);
                }
                Err(error) => tracing::error!(error = format!("{error:#}"), "a worker is missing"),
            }
        }
    }

    /// Watches a worker until it ends; tells it to when it must.
    async fn attend(&self, no: u8, mut process: Process, shutdown: &CancellationToken) -> End {
        let clock = &self.parts.clock;
        let end_max = self.end_max() + END_SPARE;
        let (mut heard_at, mut silent_looks) = (None, 0);
        let mut why = Why::Failed;
        let mut due = clock.mono() + LOOK;
        loop {
            tokio::select! {
                event = process.next() => match event {
                    Event::Ready(ready) => self.become_ready(no, ready),
                    Event::Ended(status) => return End { why, status },
                },
                () = self.told(no, shutdown), if why != Why::Told => {
                    (why, due) = (Why::Told, clock.mono() + end_max);
                    process.tell_end();
                }
                () = clock.sleep_until(due) => match why {
                    Why::Failed => {
                        due = clock.mono() + LOOK;
                        let before = std::mem::replace(&mut heard_at, self.relay.heard_at(no));
                        silent_looks = if before == heard_at { silent_looks + 1 } else { 0 };
                        if silent_looks >= SILENT_LOOKS_MAX {
                            tracing::error!(no, "a worker hangs, and is killed");
                            why = Why::Hung;
                            process.kill();
                        }
                    }
                    Why::Hung | Why::Told => {
                        tracing::error!(no, "a worker does not end, and is killed");
                        due = clock.mono() + end_max;
                        process.kill();
                    }
                },
            }
        }
    }

    /// Waits until a worker is to end.
    async fn told(&self, no: u8, shutdown: &CancellationToken) {
        tokio::select! {
            () = shutdown.cancelled() => {}
            () = self.seats[usize::from(no)].roll.notified() => {}
        }
    }

    /// Ends one worker after the other, each when the one before is ready again.
    pub(super) async fn roll(&self, shutdown: &CancellationToken) {
        tracing::info!("workers are started anew, one after the other");
        for (no, seat) in self.seats.iter().enumerate() {
            let life = self.states.lock()[no].life;
            seat.roll.notify_one();
            let back = self.wait_for(no, |it| it.life > life && it.ready.is_ok());
            tokio::select! {
                back = tokio::time::timeout(READY_MAX + self.end_max(), back) => if back.is_err() {
                    tracing::error!(no, "a worker does not come back: the others stay as they are");
                    return;
                },
                () = shutdown.cancelled() => return,
            }
        }
        tracing::info!("all workers are new");
    }

    async fn wait_for(&self, no: usize, is_it: impl Fn(&State) -> bool) {
        let mut changes = self.changes.subscribe();
        while !is_it(&self.states.lock()[no]) {
            // The sender is in `self`.
            drop(changes.changed().await);
        }
    }

    /// How long a worker may take to end, its drain included.
    fn end_max(&self) -> Duration {
        self.orders.first().map_or(Duration::ZERO, |it| it.config.link.end_max())
    }

    fn count(&self, no: u8, end: End) {
        self.parts.meter.counter(list::STACK_WORKER_ENDS_TOTAL, &[end.why.name()]).inc();
        if end.why != Why::Told {
            tracing::error!(no, status = %end.status, "a worker ended, and is started again");
        }
    }

    fn become_ready(&self, no: u8, ready: Result<(), String>) {
        self.change(no, |it| it.ready = ready);
    }

    /// The process is ready while one is: what else it has must not be taken away with a worker.
    fn change(&self, no: u8, how: impl FnOnce(&mut State)) {
        let mut states = self.states.lock();
        how(&mut states[usize::from(no)]);
        let ready = states.iter().filter(|it| it.ready.is_ok()).count();
        self.ready.set(i64::try_from(ready).unwrap_or(i64::MAX));
        let failing =
            states.iter().enumerate().find_map(|(no, it)| Some((no, it.ready.as_ref().err()?)));
        match failing {
            None => self.part.ok(),
            Some((no, why)) if ready > 0 => self.part.warn(format!("worker {no}: {why}")),
            Some((no, why)) => self.part.fail(format!("worker {no}: {why}")),
        }
        drop(states);
        self.changes.send_modify(|it| *it += 1);
    }
}

/// How a worker ended.
#[derive(Clone, Copy, Debug)]
struct End {
    why: Why,
    status: ExitStatus,
}

/// Why a worker ends.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Why {
    /// By itself: nobody told it.
    Failed,
    /// Nothing was heard of it for too long.
    Hung,
    /// It was told to.
    Told,
}

impl Why {
    /// The word in metrics.
    const fn name(self) -> &'static str {
        match self {
            Self::Failed => "failed",
            Self::Hung => "hung",
            Self::Told => "told",
        }
    }
}
