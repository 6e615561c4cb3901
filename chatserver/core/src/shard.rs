//! Everything a chatserver decides about viewers' comments, as a machine.
//!
//! A [`Shard`] is fed the bus's records as [`Input`]s and drained of [`Output`]s until it has
//! none. An admitted comment is not answered before [`Input::Published`] or [`Input::Busy`] says
//! what the bus did with it, so a sender never hears "admitted" about an item that was lost.

mod facts;
mod fates;
mod held;
mod reviewed;
mod stream;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use proto::control::Fact;
use proto::envelope::{Accepted, Act, Reply, RoomEntry, UplinkEntry};
use proto::frame::Outcome;
use proto::id::{AppId, ItemId, NodeId, RoomId, ViewerId};
use proto::item::{Body, Item, Lane};
use proto::time::{Mono, Wall};
use proto::verdict::{Reason, Verdict};

use crate::asker::{Asked, Asker, Askers};
use crate::flow::{self, Seen};
use crate::hold::Hold;
use crate::id::Ids;
use crate::judge::{self, Comment, History, Now, Refusal};
use crate::review::{Answer, Question, Reviews, Unasked};
use crate::room::{Ear, Heard, Room, drop_as};
use crate::sender::SenderSecret;
use crate::text::Shown;
use crate::words::{Scanner, Words};

/// How often old state is swept out.
const SWEEP: Duration = Duration::from_secs(1);
/// What a sender waits after the bus was full.
const BUSY_RETRY_MS: u32 = 1000;

/// What a shard is and may hold.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Its number, less than [`crate::id::SHARDS_MAX`] and no other chatserver's.
    pub shard: u16,
    /// Rooms; closed ones go first, and facts about more are ignored and counted.
    pub rooms_max: usize,
    /// Senders remembered per room, about 300 bytes each.
    pub senders_max: usize,
    /// Admitted items whose fate is not known, about 200 bytes each; more than one turn admits.
    pub asked_max: usize,
    /// Chatservers there are at least, all units together: each keeps to its part of a room's
    /// comments until it knows what the others do.
    pub nodes_min: u32,
}

/// What a shard is told.
#[derive(Clone, Debug)]
pub enum Input {
    /// From `uplink`: a viewer did something.
    Uplink {
        /// The link that says so.
        node: NodeId,
        /// What.
        entry: UplinkEntry,
    },
    /// From `control`.
    Fact(Fact),
    /// From `sealed`.
    Event(RoomEntry),
    /// The words that an app, or one room of it, lists now; `None`: none any more.
    Words {
        /// Whose.
        app: AppId,
        /// Where; `None`: in all rooms.
        room: Option<RoomId>,
        /// Which.
        words: Option<Arc<Words>>,
    },
    /// The answer to [`Shard::tell`]: how many chatservers there are, and what all saw of rooms.
    Flow {
        /// Chatservers.
        nodes: u32,
        /// Of rooms.
        seen: Vec<(AppId, RoomId, Seen)>,
    },
    /// From `gauges`: what a room was offered at a link in the last second.
    Offered {
        /// The link that says so.
        link: NodeId,
        /// App of the room.
        app: AppId,
        /// Where.
        room: RoomId,
        /// Comments.
        per_s: u32,
    },
    /// The item of an [`Output::Publish`] is on the bus.
    Published(ItemId),
    /// The bus had no place for the item of an [`Output::Publish`].
    Busy(ItemId),
    /// What the hook said to an [`Output::Review`], or that it said nothing.
    Reviewed {
        /// Id of the question.
        id: ItemId,
        /// What it said.
        answer: Option<Answer>,
    },
    /// Time went on: what was held back may go on. At least a few times a second.
    Release,
    /// The process ends: what is held back is given back to its senders.
    GiveBack,
}

/// What a shard wants done.
#[derive(Clone, Debug, PartialEq)]
pub enum Output {
    /// Put this on `accepted`, then say [`Input::Published`] or [`Input::Busy`].
    Publish(Accepted),
    /// Tell a session.
    Reply {
        /// The link that has it.
        node: NodeId,
        /// What.
        reply: Reply,
        /// Who has it.
        whom: Whom,
    },
    /// Tell everyone on `control`, unless another chatserver has the room's gauges.
    Tell(Fact),
    /// Ask the review hook of the app, then say [`Input::Reviewed`].
    Review(Question),
    /// A hook is not asked, for this reason. For counting; what follows is decided.
    Unasked(Unasked),
}

/// A viewer in a room.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Whom {
    /// App of the room.
    pub app: AppId,
    /// Where.
    pub room: RoomId,
    /// Who.
    pub viewer: ViewerId,
}

/// The machine.
#[derive(Debug)]
pub struct Shard {
    limits: Limits,
    secret: SenderSecret,
    ids: Ids,
    rooms: BTreeMap<(AppId, RoomId), Room>,
    /// Those of them that are closed.
    closed: BTreeSet<(AppId, RoomId)>,
    /// Words that apps list, for as many apps as are configured.
    words: BTreeMap<AppId, Arc<Words>>,
    scanner: Scanner,
    askers: Askers,
    reviews: Reviews,
    hold: Hold,
    /// Open rooms that hold comments back.
    holding: BTreeSet<(AppId, RoomId)>,
    /// Whether this process goes on.
    holds_more: bool,
    /// Rooms in which somebody spoke lately.
    flowing: BTreeSet<(AppId, RoomId)>,
    /// Rooms of which links said what they were offered, or pass on a share.
    offered: BTreeSet<(AppId, RoomId)>,
    /// Chatservers that share what rooms show.
    nodes: u32,
    outputs: VecDeque<Output>,
    sweep_at: Mono,
    valves_at: Mono,
    /// The room after which the next sweep begins.
    swept: Option<(AppId, RoomId)>,
    ignored: u64,
}

impl Shard {
    /// A shard that knows no room yet. Its ids are later than `floor`.
    #[must_use]
    pub fn new(limits: Limits, secret: SenderSecret, floor: Wall) -> Self {
        Self {
            ids: Ids::new(limits.shard, floor),
            askers: Askers::new(limits.asked_max),
            reviews: Reviews::default(),
            hold: Hold::default(),
            holding: BTreeSet::new(),
            holds_more: true,
            nodes: limits.nodes_min,
            limits,
            secret,
            rooms: BTreeMap::new(),
            closed: BTreeSet::new(),
            words: BTreeMap::new(),
            scanner: Scanner::default(),
            flowing: BTreeSet::new(),
            offered: BTreeSet::new(),
            outputs: VecDeque::new(),
            sweep_at: Mono(0),
            valves_at: Mono(0),
            swept: None,
            ignored: 0,
        }
    }

    /// Takes in what happened.
    pub fn handle(&mut self, input: Input, now: Now) {
        match input {
            Input::Uplink { node, entry } => self.hear(node, entry, now),
            Input::Fact(fact) => self.learn(fact, now.mono),
            Input::Event(entry) => self.close(&entry, now.mono),
            Input::Words { app, room, words } => self.list(app, room, words),
            Input::Flow { nodes, seen } => self.hear_all(nodes, seen, now.mono),
            Input::Offered { link, app, room, per_s } => {
                if let Some(known) = self.rooms.get_mut(&(app, room.clone())) {
                    known.valve.offered(link, per_s, now.mono);
                    self.offered.insert((app, room));
                }
            }
            Input::Published(id) => self.settle(id, Verdict::Admit(id)),
            Input::Busy(id) => {
                let refusal = Refusal { reason: Reason::Busy, retry_after_ms: BUSY_RETRY_MS };
                self.refuse(id, refusal, now.mono);
            }
            Input::Reviewed { id, answer } => self.hear_hook(id, answer, now),
            Input::Release => self.release(now),
            Input::GiveBack => self.give_back(now.mono),
        }
    }

    /// Forgets what is over, and looks which share of their comments rooms can take.
    pub fn tick(&mut self, now: Now) {
        if now.mono >= self.valves_at {
            self.valves_at = now.mono + flow::TURN;
            self.turn_valves(now.mono);
        }
        if now.mono < self.sweep_at {
            return;
        }
        self.sweep_at = now.mono + SWEEP;
        self.askers.expire(now.mono);
        self.sweep(now);
    }

    /// What is to be done next.
    pub fn poll(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// When [`Shard::tick`] has something to do.
    #[must_use]
    pub const fn deadline(&self) -> Option<Mono> {
        Some(if self.sweep_at.0 < self.valves_at.0 { self.sweep_at } else { self.valves_at })
    }

    /// No id drawn so far is later than this.
    #[must_use]
    pub const fn floor(&self) -> Wall {
        self.ids.floor()
    }

    /// Rooms known.
    #[must_use]
    pub fn rooms(&self) -> usize {
        self.rooms.len()
    }

    /// Whether it has no place for one more room; closed ones make place.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.rooms.len() - self.closed.len() >= self.limits.rooms_max
    }

    /// Admitted items whose fate is not known.
    #[must_use]
    pub fn asked(&self) -> usize {
        self.askers.len()
    }

    /// Facts ignored because [`Limits::rooms_max`] rooms are known.
    #[must_use]
    pub const fn ignored(&self) -> u64 {
        self.ignored
    }

    fn hear(&mut self, node: NodeId, entry: UplinkEntry, now: Now) {
        let UplinkEntry { session, app, room, viewer, role, may_send, act, .. } = entry;
        let Act::Comment { cid, text, style, media_ms } = act else {
            // Joins and leaves are counted by the links' gauges; a like is not shown.
            return;
        };
        let asker = Asker { node, session, cid };
        let known = self.rooms.get(&(app, room.clone()));
        let role = known.map_or(role, |it| it.people.role(&viewer, role));
        let comment = Comment { text: &text, role, may_send };
        let words = self.words.get(&app).map(|it| &**it);
        let ear = Ear { scanner: &mut self.scanner, words, nodes: self.nodes };
        let mut review = None;
        let heard = match self.rooms.get_mut(&(app, room.clone())) {
            Some(it) => {
                review = it.review();
                let was_used = it.stream.is_used();
                let heard = it.hear(&viewer, asker, comment, ear, now);
                if !was_used && it.stream.is_used() {
                    self.flowing.insert((app, room.clone()));
                }
                heard
            }
            None => match judge::judge(comment, &History::default(), None, now) {
                Ok(()) => return,
                Err(refusal) => Heard::Refused(refusal),
            },
        };
        match heard {
            Heard::Admitted { shown: Shown::Shadowed, .. } => {
                let verdict = Verdict::Shadow(self.ids.next(now.wall));
                if let Some(room) = self.rooms.get_mut(&(app, room.clone())) {
                    room.settle(&viewer, asker, verdict);
                }
                self.reply(asker, Whom { app, room, viewer }, Outcome::Verdict(verdict));
            }
            Heard::Admitted { sender, shown, mark } => {
                let id = self.ids.next(now.wall);
                let body = Body::Comment { text: text.into(), style, media_ms, count: 1 };
                let item = Item { id, lane: Lane::Comment, sender, role, at: now.wall, body };
                let accepted = Accepted { app, room, item };
                self.admit((asker, viewer, mark), accepted, shown, review, now.mono);
            }
            Heard::Refused(refusal) => {
                self.reply(asker, Whom { app, room, viewer }, Outcome::Verdict(drop_as(refusal)));
            }
            Heard::Again { before, said } => {
                if before != asker {
                    self.redirect(before, asker, said);
                }
                // Otherwise the answer is on its way, to whoever asked last.
                if let Some(verdict) = said {
                    self.reply(asker, Whom { app, room, viewer }, Outcome::Verdict(verdict));
                }
            }
        }
    }

    /// The fate of what came again is told to whoever sent it last. No rate holds back who sends
    /// again, so that only an item without a verdict, which has one in a moment, is searched for.
    fn redirect(&mut self, before: Asker, asker: Asker, said: Option<Verdict>) {
        match said {
            None => self.askers.redirect(before, asker),
            Some(Verdict::Admit(id) | Verdict::Shadow(id)) => {
                if let Some(asked) = self.askers.find(id) {
                    asked.asker = asker;
                }
            }
            Some(Verdict::Drop { .. }) => {}
        }
    }

    fn settle(&mut self, id: ItemId, verdict: Verdict) {
        let Some(asked) = self.askers.find(id).filter(|it| !it.is_settled) else { return };
        asked.is_settled = true;
        let Asked { asker, app, room, viewer, .. } = asked.clone();
        if let Some(room) = self.rooms.get_mut(&(app, room.clone())) {
            room.settle(&viewer, asker, verdict);
        }
        self.reply(asker, Whom { app, room, viewer }, Outcome::Verdict(verdict));
    }

    fn reply(&mut self, asker: Asker, whom: Whom, outcome: Outcome) {
        let Asker { node, session, cid } = asker;
        let reply = Reply::Ack { session, cid, outcome };
        self.outputs.push_back(Output::Reply { node, reply, whom });
    }
}

#[cfg(test)]
#[path = "shard/tests.rs"]
mod tests;
