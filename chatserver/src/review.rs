//! Asking review hooks about comments, beside the turns.
//!
//! The shard says which hook is asked about what, and how often; here the calls are made. Every
//! question comes back to the shard as [`Input::Reviewed`], with an answer or without one. A turn's
//! records are committed while its questions wait: what waits when a process is killed is not
//! answered, and its sender sends it again with the next session.

mod config;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use chatserver_core::review::{Answer, Found, Question, Reviews, Unasked};
use chatserver_core::shard::Input;
use futures_util::FutureExt;
use futures_util::stream::{FuturesUnordered, StreamExt};
use kit::clock::Clock;
use kit::meter::{Meter, list};
use prometheus::{Histogram, IntCounter, IntGauge};
use proto::id::{AppId, ItemId, RoomId, ViewerId};
use proto::item::Role;
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::desk::{Desk, gauge};
use crate::outward::{Fault, Outward, Target};

pub use self::config::ReviewConfig;
pub(crate) use self::config::check;

/// Where the desk puts questions.
#[derive(Debug)]
pub(crate) struct Asking {
    questions: mpsc::Sender<Question>,
    counts: Counts,
}

/// Who asks the hooks.
#[derive(Debug)]
pub(crate) struct Reviewer {
    hooks: BTreeMap<AppId, Hook>,
    questions: mpsc::Receiver<Question>,
    clock: Clock,
    counts: Counts,
}

#[derive(Clone, Debug)]
struct Hook {
    outward: Outward,
    target: Target,
    deadline: Duration,
}

#[derive(Clone, Debug)]
struct Counts {
    meter: Meter,
    seconds: Histogram,
    waiting: IntGauge,
    shut: IntGauge,
}

/// What a hook is sent.
#[derive(Debug, Serialize)]
struct Asked<'a> {
    app: AppId,
    room: &'a RoomId,
    id: ItemId,
    account: &'a ViewerId,
    role: Role,
    at_ms: u64,
    text: &'a str,
    /// Whether something was found in it, or all comments are asked about.
    why: &'static str,
}

/// What a hook says. What else it says is not looked at.
#[derive(Debug, Deserialize)]
struct Said {
    verdict: String,
    text: Option<String>,
}

/// The hooks of all apps: who is asked by the desk, and who asks.
///
/// # Errors
/// Says which hook cannot be called, and why.
pub(crate) fn connect(
    hooks: &[ReviewConfig],
    outward: Option<&Outward>,
    (clock, meter): (&Clock, &Meter),
) -> anyhow::Result<(Asking, Reviewer)> {
    // The shard lets no more be under way.
    let calls_max: usize = hooks.iter().map(|it| it.rule().calls_max).sum();
    let (sender, questions) = mpsc::channel(calls_max.max(1));
    let hook = |it: &ReviewConfig| {
        let outward = outward.context("nobody may be called")?.clone();
        let target = Target::new(&it.url, &it.secret, outward.reach())
            .with_context(|| format!("review hook of app {}", it.app))?;
        Ok((it.app, Hook { outward, target, deadline: it.deadline() }))
    };
    let hooks = hooks.iter().map(hook).collect::<anyhow::Result<_>>()?;
    let counts = Counts {
        seconds: meter.histogram(list::CHATSERVER_REVIEW_SECONDS, &[]),
        waiting: meter.gauge(list::CHATSERVER_REVIEWS_WAITING, &[]),
        shut: meter.gauge(list::CHATSERVER_REVIEW_HOOKS_SHUT, &[]),
        meter: meter.clone(),
    };
    let asking = Asking { questions: sender, counts: counts.clone() };
    Ok((asking, Reviewer { hooks, questions, clock: clock.clone(), counts }))
}

impl Asking {
    /// Hands a question on without waiting. If nobody takes it, the shard is to hear that its
    /// comment has no answer.
    pub(crate) fn ask(&self, question: Question) -> Result<(), ItemId> {
        let id = question.id;
        self.questions.try_send(question).map_err(|_| id)
    }

    /// Counts a comment whose hook was not asked.
    pub(crate) fn unasked(&self, why: Unasked) {
        self.counts.count(match why {
            Unasked::NoHook => "no_hook",
            Unasked::Full => "full",
            Unasked::Shut => "shut",
        });
    }

    /// Shows how things are.
    pub(crate) fn show(&self, reviews: &Reviews) {
        self.counts.waiting.set(gauge(reviews.waiting()));
        self.counts.shut.set(gauge(reviews.shut()));
    }
}

impl Reviewer {
    /// Asks until `judged`, when nobody judges any more, and every question is answered.
    pub(crate) async fn run(
        mut self,
        desk: Arc<Desk>,
        judged: CancellationToken,
    ) -> anyhow::Result<()> {
        let mut calls = FuturesUnordered::new();
        loop {
            tokio::select! {
                biased;
                Some(answered) = calls.next() => {
                    let mut inputs = vec![answered];
                    while let Some(Some(answered)) = calls.next().now_or_never() {
                        inputs.push(answered);
                    }
                    desk.act(inputs).await;
                }
                Some(question) = self.questions.recv() => {
                    let hook = self.hooks.get(&question.app).cloned();
                    calls.push(ask(hook, question, self.clock.clone(), self.counts.clone()));
                }
                () = judged.cancelled(), if calls.is_empty() => return Ok(()),
            }
        }
    }
}

/// Asks one hook within its deadline.
async fn ask(hook: Option<Hook>, question: Question, clock: Clock, counts: Counts) -> Input {
    let begun = clock.micros();
    let answer = match &hook {
        Some(hook) => answer(hook, &question).await,
        // The shard asks about apps that have one.
        None => Err(Fault::Unreachable),
    };
    let took = Duration::from_micros(clock.micros().saturating_sub(begun));
    counts.seconds.observe(took.as_secs_f64());
    counts.count(match &answer {
        Ok(Answer::Allow) => "allow",
        Ok(Answer::Refuse) => "refuse",
        Ok(Answer::Shadow) => "shadow",
        Ok(Answer::Mask(_)) => "mask",
        Err(fault) => fault.name(),
    });
    Input::Reviewed { id: question.id, answer: answer.ok() }
}

async fn answer(hook: &Hook, question: &Question) -> Result<Answer, Fault> {
    let said = hook.outward.post(&hook.target, body(question), hook.deadline).await?;
    let said: Said = serde_json::from_slice(&said).map_err(|_| Fault::Answer)?;
    Answer::read(&said.verdict, said.text).map_err(|_| Fault::Answer)
}

fn body(question: &Question) -> Vec<u8> {
    let asked = Asked {
        app: question.app,
        room: &question.room,
        id: question.id,
        account: &question.viewer,
        role: question.role,
        at_ms: question.at.0,
        text: &question.text,
        why: match question.found {
            Found::Marked => "listed",
            Found::Nothing => "all",
        },
    };
    serde_json::to_vec(&asked).expect("it has string keys only and no failing serializer")
}

impl Counts {
    fn count(&self, outcome: &str) {
        self.counter(outcome).inc();
    }

    fn counter(&self, outcome: &str) -> IntCounter {
        self.meter.counter(list::CHATSERVER_REVIEWS_TOTAL, &[outcome])
    }
}
