//! The shard behind its lock, and what has to happen around each of its decisions.

use std::sync::Arc;

use chatserver_core::flow::Tally;
use chatserver_core::hold::Waiting;
use chatserver_core::shard::{Input, Output, Shard, Whom};
use chatserver_core::words::Words;
use parking_lot::Mutex;
use proto::control::Fact;
use proto::envelope::{Accepted, Reply, RoomEntry};
use proto::frame::Outcome;
use proto::id::{AppId, NodeId, RoomId};
use proto::time::Wall;

use crate::mail::{self, ItemRecord};
use crate::outside::Outside;
use crate::site::Site;

/// Feeds the shard and does what it says.
#[derive(Debug)]
pub(crate) struct Desk {
    site: Arc<Site>,
    shard: Mutex<Shard>,
    outside: Outside,
}

/// What a session is told.
#[derive(Clone, Debug)]
pub(crate) struct Told {
    /// The link that has it.
    pub(crate) node: NodeId,
    pub(crate) reply: Reply,
    /// Who has it.
    pub(crate) whom: Whom,
}

impl Desk {
    pub(crate) fn new(site: Arc<Site>, shard: Shard, outside: Outside) -> Self {
        Self { site, shard: Mutex::new(shard), outside }
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
        let turn = self.outside.witness.hear(&inputs);
        self.outside.events.hear(&inputs);
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
        self.outside.witness.tell(turn, &replies);
        self.outside.events.tell(&replies);
        if !replies.is_empty() {
            self.count(&replies);
            let replies = replies.into_iter().map(|it| (it.node, it.reply)).collect();
            let records = mail::replies(self.site.config.unit, replies);
            for refused in self.site.local.send(records).await.into_iter().filter_map(Result::err) {
                tracing::warn!(error = %refused, "answers were lost");
            }
        }
    }

    /// Sees what became of rooms' items, whoever judged them.
    pub(crate) fn see(&self, entries: &[RoomEntry]) {
        self.outside.witness.see(entries);
    }

    /// Says outside what a moderator did here.
    pub(crate) fn announce(&self, fact: &Fact) {
        self.outside.events.announce(fact);
    }

    /// What the shard saw of rooms since it was last asked.
    pub(crate) fn tell(&self) -> Vec<Tally> {
        self.shard.lock().tell(self.site.clock.mono())
    }

    /// Lets the shard forget what is over; gives what everyone is to be told.
    pub(crate) fn tick(&self) -> Vec<Fact> {
        let mut shard = self.shard.lock();
        shard.tick(self.site.now());
        let told = std::iter::from_fn(|| shard.poll()).filter_map(|it| match it {
            Output::Tell(fact) => Some(fact),
            Output::Publish(_) | Output::Reply { .. } | Output::Review(_) | Output::Unasked(_) => {
                None
            }
        });
        told.collect()
    }

    /// Says how much the shard holds.
    pub(crate) fn gauge(&self) {
        let shard = self.shard.lock();
        let counts = &self.site.counts;
        counts.rooms.set(gauge(shard.rooms()));
        counts.asked.set(gauge(shard.asked()));
        counts.held.set(gauge(shard.held_count()));
        counts.facts_ignored.set(i64::try_from(shard.ignored()).unwrap_or(i64::MAX));
        counts.flow_nodes.set(shard.nodes().into());
        counts.rooms_sampled.set(gauge(shard.sampled()));
        self.outside.asking.show(shard.reviews());
    }

    /// What a room holds back here, from behind the number `after` on, and for how long.
    pub(crate) fn held(
        &self,
        room: (AppId, &RoomId),
        after: u64,
        rows_max: usize,
    ) -> (Vec<(u64, Waiting)>, u32) {
        self.shard.lock().held(room, after, rows_max, self.site.now())
    }

    /// Whether something is held back.
    pub(crate) fn holds(&self) -> bool {
        self.shard.lock().held_count() > 0
    }

    /// The words that count in a room.
    pub(crate) fn words(&self, app: AppId, room: &RoomId) -> Vec<Arc<Words>> {
        self.shard.lock().words(app, room)
    }

    /// Whether there is no place for one more room.
    pub(crate) fn is_full(&self) -> bool {
        self.shard.lock().is_full()
    }

    /// No id drawn so far is later than this.
    pub(crate) fn floor(&self) -> Wall {
        self.shard.lock().floor()
    }

    fn feed(&self, inputs: impl IntoIterator<Item = Input>) -> (Vec<Accepted>, Vec<Told>) {
        let now = self.site.now();
        let (mut items, mut replies) = (Vec::new(), Vec::new());
        let mut shard = self.shard.lock();
        for input in inputs {
            shard.handle(input, now);
        }
        while let Some(output) = shard.poll() {
            match output {
                Output::Publish(accepted) => items.push(accepted),
                Output::Reply { node, reply, whom } => replies.push(Told { node, reply, whom }),
                Output::Review(question) => {
                    if let Err(id) = self.outside.asking.ask(question) {
                        shard.handle(Input::Reviewed { id, answer: None }, now);
                    }
                }
                Output::Unasked(why) => self.outside.asking.unasked(why),
                // Only a tick says it, and takes it.
                Output::Tell(_) => {}
            }
        }
        (items, replies)
    }

    fn count(&self, replies: &[Told]) {
        let counts = &self.site.counts;
        for Told { reply, .. } in replies {
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
