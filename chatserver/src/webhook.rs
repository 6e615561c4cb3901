//! Telling business servers what happens in their rooms, beside the turns.
//!
//! The desk and the API say what happened ([`Events`]) and never wait; one task for each app sends
//! ([`Post`]). An event may come twice: after a takeover of a partition a turn is done again, and a
//! batch whose answer was lost is sent again, under the same number. What waits when the process
//! ends is lost, and counted.

mod config;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::Context;
use chatserver_core::shard::Input;
use chatserver_core::webhook::{self, Batch, Courier, Event, Kind, Lost, Output};
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, pending};
use kit::clock::Clock;
use kit::meter::{Meter, list};
use kit::seed;
use proto::control::Fact;
use proto::envelope::{Act, Reply};
use proto::frame::Outcome;
use proto::id::AppId;
use proto::verdict::Verdict;
use serde::Serialize;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::desk::Told;
use crate::outward::{Fault, Outward, Target};

pub use self::config::WebhookConfig;
pub(crate) use self::config::check;

/// Joins, leaves and refusals between the desk and an app's task. A turn of a crowd has more: what
/// finds no place is counted, as what is beyond the rate.
const QUEUE: usize = 4096;
/// What moderators did, between the API and an app's task: as many as one app asks for at a time.
const ACTS: usize = 512;
/// How long an app's task sleeps when nothing is due.
const IDLE: Duration = Duration::from_secs(60);

/// Who says what happened.
#[derive(Debug)]
pub(crate) struct Events {
    apps: BTreeMap<AppId, Mailbox>,
    clock: Clock,
    counts: Counts,
}

#[derive(Debug)]
struct Mailbox {
    kinds: Vec<Kind>,
    /// What viewers do.
    events: mpsc::Sender<Event>,
    /// What moderators do: no crowd takes its places.
    acts: mpsc::Sender<Event>,
    /// Events that found no place, and that no batch told of.
    lost: Arc<AtomicU64>,
}

/// Who tells one app.
#[derive(Debug)]
pub(crate) struct Post {
    app: AppId,
    outward: Outward,
    target: Target,
    deadline: Duration,
    courier: Courier,
    events: mpsc::Receiver<Event>,
    acts: mpsc::Receiver<Event>,
    lost: Arc<AtomicU64>,
    clock: Clock,
    counts: Counts,
    /// Which process's batches these are.
    run: String,
    seed: u64,
    rolls: u64,
}

#[derive(Clone, Debug)]
struct Counts {
    meter: Meter,
}

/// How many events a batch had, and what became of it.
type Called = (u64, Result<(), Fault>);

/// What is posted.
#[derive(Debug, Serialize)]
struct Body<'a> {
    app: AppId,
    /// With `batch`: what makes two of them the same.
    run: &'a str,
    batch: u64,
    /// Events before these that are told to nobody.
    missed: u64,
    events: &'a [Event],
}

/// The webhooks of all apps: who says what happened, and who tells.
///
/// # Errors
/// Says which webhook cannot be called, and why.
pub(crate) fn connect(
    hooks: &[WebhookConfig],
    outward: Option<&Outward>,
    (clock, meter): (&Clock, &Meter),
    seed: u64,
) -> anyhow::Result<(Events, Vec<Post>)> {
    let counts = Counts { meter: meter.clone() };
    let (mut apps, mut posts) = (BTreeMap::new(), Vec::new());
    for hook in hooks {
        let outward = outward.context("nobody may be called")?.clone();
        let target = Target::new(&hook.url, &hook.secret, outward.reach())
            .with_context(|| format!("webhook of app {}", hook.app))?;
        let (viewers, events) = mpsc::channel(QUEUE.min(hook.events_max()));
        let (moderators, acts) = mpsc::channel(ACTS);
        let lost = Arc::<AtomicU64>::default();
        let (kinds, counted) = (hook.kinds.clone(), Arc::clone(&lost));
        let mailbox = Mailbox { kinds, events: viewers, acts: moderators, lost: counted };
        apps.insert(hook.app, mailbox);
        let run = seed::random_bytes::<8>().context("cannot draw the run's number")?;
        posts.push(Post {
            app: hook.app,
            outward,
            target,
            deadline: hook.deadline(),
            courier: Courier::new(hook.limits(), clock.mono()),
            events,
            acts,
            lost,
            clock: clock.clone(),
            counts: counts.clone(),
            run: hex::encode(run),
            seed: seed::derive(seed, "webhook"),
            rolls: 0,
        });
    }
    Ok((Events { apps, clock: clock.clone(), counts }, posts))
}

impl Events {
    /// Says who came and went.
    pub(crate) fn hear(&self, inputs: &[Input]) {
        if self.apps.is_empty() {
            return;
        }
        for input in inputs {
            let Input::Uplink { entry, .. } = input else { continue };
            let kind = match entry.act {
                Act::Join { age_ms: 0 } => Kind::Join,
                Act::Leave => Kind::Leave,
                // Who says again that it is there did not come in.
                Act::Join { .. } | Act::Comment { .. } | Act::Like { .. } => continue,
            };
            let account = Some(entry.viewer.clone());
            let event = Event::new(kind, entry.room.clone(), entry.at);
            self.say(entry.app, Event { account, ..event });
        }
    }

    /// Says which comments were refused.
    pub(crate) fn tell(&self, told: &[Told]) {
        if self.apps.is_empty() {
            return;
        }
        let at = self.clock.wall();
        for Told { reply, whom, .. } in told {
            if let Reply::Ack { outcome: Outcome::Verdict(Verdict::Drop { reason, .. }), .. } =
                reply
            {
                let (account, reason) = (Some(whom.viewer.clone()), Some(*reason));
                let event = Event::new(Kind::Refusal, whom.room.clone(), at);
                self.say(whom.app, Event { account, reason, ..event });
            }
        }
    }

    /// Says what a moderator did, once: here, not wherever the fact is heard.
    pub(crate) fn announce(&self, fact: &Fact) {
        if let Some((app, event)) = Event::of_fact(fact, self.clock.wall()) {
            self.say(app, event);
        }
    }

    fn say(&self, app: AppId, event: Event) {
        let Some(mailbox) = self.apps.get(&app) else { return };
        if !mailbox.kinds.contains(&event.kind) {
            return;
        }
        let queue = if event.kind.is_viewers() { &mailbox.events } else { &mailbox.acts };
        if queue.try_send(event).is_err() {
            mailbox.lost.fetch_add(1, Ordering::Relaxed);
            self.counts.count("queue", 1);
        }
    }
}

impl Post {
    /// Tells until `settled`, when nothing more happens.
    pub(crate) async fn run(mut self, settled: CancellationToken) -> anyhow::Result<()> {
        let mut call: BoxFuture<'static, Called> = pending().boxed();
        loop {
            let due_at = self.courier.deadline().unwrap_or_else(|| self.clock.mono() + IDLE);
            let input = tokio::select! {
                biased;
                () = settled.cancelled() => break,
                called = &mut call => {
                    call = pending().boxed();
                    Some(self.ended(called))
                }
                Some(event) = self.acts.recv() => Some(webhook::Input::Event(event)),
                Some(event) = self.events.recv() => Some(webhook::Input::Event(event)),
                () = self.clock.sleep_until(due_at) => None,
            };
            let now = self.clock.mono();
            let lost = self.lost.swap(0, Ordering::Relaxed);
            if lost > 0 {
                self.courier.handle(webhook::Input::Missed(lost), now);
            }
            match input {
                Some(input) => self.courier.handle(input, now),
                None => self.courier.tick(now),
            }
            while let Some(output) = self.courier.poll() {
                match output {
                    Output::Send(batch) => call = self.send(&batch).boxed(),
                    Output::Lost(why, events) => self.counts.count(
                        match why {
                            Lost::Rate => "rate",
                            Lost::Full => "full",
                            Lost::Old => "old",
                        },
                        events,
                    ),
                }
            }
        }
        let left = self.courier.waiting() + self.events.len() + self.acts.len();
        self.counts.count("end", u64::try_from(left).unwrap_or(u64::MAX));
        Ok(())
    }

    /// Posts a batch; gives how many events were in it.
    fn send(&self, batch: &Batch) -> impl Future<Output = Called> + use<> {
        let Batch { no, events, missed } = batch;
        let body = Body { app: self.app, run: &self.run, batch: *no, missed: *missed, events };
        let body =
            serde_json::to_vec(&body).expect("it has string keys only and no failing serializer");
        let count = u64::try_from(events.len()).unwrap_or(u64::MAX);
        let (outward, target) = (self.outward.clone(), self.target.clone());
        let deadline = self.deadline;
        async move { (count, outward.post(&target, body, deadline).await.map(|_| ())) }
    }

    fn ended(&mut self, (events, sent): Called) -> webhook::Input {
        match sent {
            Ok(()) => {
                self.counts.call("ok");
                self.counts.count("told", events);
                webhook::Input::Delivered
            }
            Err(fault) => {
                self.counts.call(fault.name());
                self.rolls += 1;
                webhook::Input::Failed { roll: seed::derive(self.seed ^ self.rolls, "jitter") }
            }
        }
    }
}

impl Counts {
    fn count(&self, outcome: &str, events: u64) {
        self.meter.counter(list::CHATSERVER_EVENTS_TOTAL, &[outcome]).inc_by(events);
    }

    fn call(&self, outcome: &str) {
        self.meter.counter(list::CHATSERVER_EVENT_CALLS_TOTAL, &[outcome]).inc();
    }
}

#[cfg(test)]
mod tests {
    use proto::id::RoomId;
    use proto::time::Wall;

    use super::*;

    #[test]
    fn a_crowd_takes_no_place_of_what_moderators_do() {
        const APP: AppId = AppId(1);
        let ((viewers, mut events), (moderators, mut acts)) = (mpsc::channel(1), mpsc::channel(1));
        let lost = Arc::<AtomicU64>::default();
        let (kinds, counted) = (Kind::ALL.to_vec(), Arc::clone(&lost));
        let mailbox = Mailbox { kinds, events: viewers, acts: moderators, lost: counted };
        let counts = Counts { meter: Meter::new() };
        let apps = BTreeMap::from([(APP, mailbox)]);
        let says = Events { apps, clock: Clock::system(), counts };

        for kind in [Kind::Join, Kind::Leave, Kind::Refusal, Kind::Mute] {
            says.say(APP, Event::new(kind, RoomId::parse("r").unwrap(), Wall(1)));
        }

        assert_eq!(events.try_recv().unwrap().kind, Kind::Join);
        assert_eq!(acts.try_recv().unwrap().kind, Kind::Mute);
        assert_eq!(lost.load(Ordering::Relaxed), 2);
    }
}
