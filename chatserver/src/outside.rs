//! What leaves the chatserver besides the bus: questions to review hooks, events, and evidence.

use std::sync::Arc;

use kit::clock::Clock;
use kit::health::Health;
use kit::meter::Meter;
use kit::task::Tasks;
use tokio_util::sync::CancellationToken;

use crate::config::Config;
use crate::desk::Desk;
use crate::evidence::{self, Eraser, Export, Scribe, Witness};
use crate::outward::Outward;
use crate::review::{self, Asking, Reviewer};
use crate::webhook::{self, Events, Post};

/// What the desk says it to.
#[derive(Debug)]
pub(crate) struct Outside {
    pub(crate) asking: Asking,
    pub(crate) witness: Arc<Witness>,
    pub(crate) events: Events,
}

/// What the API asks of the ledger, if there is one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ledger {
    pub(crate) export: Option<Arc<Export>>,
    pub(crate) eraser: Option<Arc<Eraser>>,
}

/// Who does it.
#[derive(Debug)]
pub(crate) struct Hands {
    reviewer: Reviewer,
    scribe: Option<Scribe>,
    posts: Vec<Post>,
    ledger: Ledger,
}

/// Prepares everything that is configured.
///
/// # Errors
/// When a business server cannot be called, or the ledger's folder not be used.
pub(crate) fn open(
    config: &Config,
    clock: &Clock,
    meter: &Meter,
    health: &Health,
    seed: u64,
) -> anyhow::Result<(Outside, Ledger, Hands)> {
    let is_called = !config.review.is_empty() || !config.webhook.is_empty();
    let outward = is_called.then(|| Outward::new(&config.outward, clock.clone())).transpose()?;
    let (asking, reviewer) = review::connect(&config.review, outward.as_ref(), (clock, meter))?;
    let (events, posts) =
        webhook::connect(&config.webhook, outward.as_ref(), (clock, meter), seed)?;
    let evidence::Parts { witness, scribe, eraser, export } =
        evidence::open(&config.evidence, config.node, clock, meter, health)?;
    let ledger = Ledger { export, eraser };
    let hands = Hands { reviewer, scribe, posts, ledger: ledger.clone() };
    Ok((Outside { asking, witness, events }, ledger, hands))
}

impl Hands {
    /// Starts them. Each ends when whoever feeds it has ended: the reviewer after the last turn,
    /// at `judged`, the others after the reviewer.
    pub(crate) fn start(
        self,
        desk: Arc<Desk>,
        tasks: &mut Tasks,
        judged: CancellationToken,
        shutdown: CancellationToken,
    ) {
        let Self { reviewer, scribe, posts, ledger } = self;
        let settled = CancellationToken::new();
        if let Some(scribe) = scribe {
            tasks.spawn("chatserver evidence", scribe.run(settled.clone()));
        }
        for post in posts {
            tasks.spawn("chatserver events", post.run(settled.clone()));
        }
        if let Some(eraser) = ledger.eraser {
            tasks.spawn("chatserver erasures", eraser.run(shutdown));
        }
        tasks.spawn("chatserver review", async move {
            let settled = settled.drop_guard();
            let ended = reviewer.run(desk, judged).await;
            drop(settled);
            ended
        });
    }
}
