//! The shard behind its lock, and what has to happen around each of its decisions.

use std::sync::Arc;

use chatserver_core::shard::{Input, Output, Shard};
use parking_lot::Mutex;
use proto::envelope::{Accepted, Reply};
use proto::frame::Outcome;
use proto::id::NodeId;
use proto::time::Wall;

use crate::mail::{self, ItemRecord};
use crate::site::Site;

/// Feeds the shard and does what it says.
#[derive(Debug)]
pub(crate) struct Desk {
    site: Arc<Site>,
    shard: Mutex<Shard>,
}

impl Desk {
    pub(crate) fn new(site: Arc<Site>, shard: Shard) -> Self {
        Self { site, shard: Mutex::new(shard) }
    }

    /// Tells the shard what needs no answer, such as facts.
    pub(crate) fn learn(&self, inputs: impl IntoIterator<Item = Input>) {
        let (items, replies) = self.feed(inputs);
        debug_assert!(items.is_empty() && replies.is_empty(), "facts have no effects");
    }

    /// Tells the shard and does what it says; returns when everything is on the bus.
    ///
    /// Cancelling it may leave items published and nobody told; the same inputs again make up for
    /// it.
    pub(crate) async fn act(&self, inputs: Vec<Input>) {
        let (items, mut replies) = self.feed(inputs);
        if !items.is_empty() {
            let (ids, records): (Vec<_>, Vec<_>) = mail::accepted(items)
                .into_iter()
                .map(|ItemRecord { ids, record }| (ids, record))
                .unzip();
            let sent = self.site.global.send(records).await;
            let told = ids.into_iter().zip(sent).flat_map(|(ids, sent)| {
                let told =
                    move |id| if sent.is_ok() { Input::Published(id) } else { Input::Busy(id) };
                ids.into_iter().map(told)
            });
            replies.extend(self.feed(told).1);
        }
        if !replies.is_empty() {
            self.count(&replies);
            let records = mail::replies(self.site.config.unit, replies);
            for refused in self.site.local.send(records).await.into_iter().filter_map(Result::err) {
                tracing::warn!(error = %refused, "answers were lost");
            }
        }
    }

    /// Lets the shard forget what is over.
    pub(crate) fn tick(&self) {
        let now = self.site.now();
        let mut shard = self.shard.lock();
        shard.tick(now);
        let counts = &self.site.counts;
        counts.rooms.set(gauge(shard.rooms()));
        counts.asked.set(gauge(shard.asked()));
        counts.facts_ignored.set(i64::try_from(shard.ignored()).unwrap_or(i64::MAX));
    }

    /// Rooms known.
    pub(crate) fn rooms(&self) -> usize {
        self.shard.lock().rooms()
    }

    /// No id drawn so far is later than this.
    pub(crate) fn floor(&self) -> Wall {
        self.shard.lock().floor()
    }

    fn feed(
        &self,
        inputs: impl IntoIterator<Item = Input>,
    ) -> (Vec<Accepted>, Vec<(NodeId, Reply)>) {
        let now = self.site.now();
        let (mut items, mut replies) = (Vec::new(), Vec::new());
        let mut shard = self.shard.lock();
        for input in inputs {
            shard.handle(input, now);
        }
        while let Some(output) = shard.poll() {
            match output {
                Output::Publish(accepted) => items.push(accepted),
                Output::Reply { node, reply } => replies.push((node, reply)),
            }
        }
        (items, replies)
    }

    fn count(&self, replies: &[(NodeId, Reply)]) {
        let counts = &self.site.counts;
        for (_, reply) in replies {
            match reply {
                Reply::Ack { outcome: Outcome::Verdict(it), .. } => counts.verdict(*it),
                Reply::Ack { outcome: Outcome::Merged(_), .. } => counts.merged.inc(),
                Reply::Ack { outcome: Outcome::Shed(_), .. } => counts.shed.inc(),
                Reply::Close { .. } => {}
            }
        }
    }
}

pub(crate) fn gauge(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
