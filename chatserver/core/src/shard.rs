//! Everything a chatserver decides about viewers' comments, as a machine.
//!
//! A [`Shard`] is fed the bus's records as [`Input`]s and drained of [`Output`]s until it has
//! none. An admitted comment is not answered before [`Input::Published`] or [`Input::Busy`] says
//! what the bus did with it, so a sender never hears "admitted" about an item that was lost.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;
use std::sync::Arc;
use std::time::Duration;

use proto::control::Fact;
use proto::envelope::{Accepted, Act, Reply, RoomEvent, UplinkEntry};
use proto::frame::Outcome;
use proto::id::{AppId, ItemId, NodeId, RoomId};
use proto::item::{Body, Item, Lane};
use proto::time::{Mono, Wall};
use proto::verdict::{Fate, Reason, Verdict};

use crate::asker::{Asked, Asker, Askers};
use crate::id::Ids;
use crate::judge::{self, Comment, History, Now};
use crate::room::{Ear, Heard, Room, drop_as};
use crate::sender::SenderSecret;
use crate::text::Shown;
use crate::words::{Scanner, Words};

/// How often old state is swept out.
const SWEEP: Duration = Duration::from_secs(1);
/// Rooms swept in one turn; all of 10,000 within 40 s. A silent sender costs memory, nothing else.
const ROOMS_PER_SWEEP: usize = 256;
/// What a sender waits after the bus was full.
const BUSY_RETRY_MS: u32 = 1000;

/// What a shard is and may hold.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Its number, less than [`crate::id::SHARDS_MAX`] and no other chatserver's.
    pub shard: u16,
    /// Rooms; facts about more are ignored and counted.
    pub rooms_max: usize,
    /// Senders remembered per room, about 300 bytes each.
    pub senders_max: usize,
    /// Admitted items whose fate is not known, about 200 bytes each; more than one turn admits.
    pub asked_max: usize,
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
    Event(RoomEvent),
    /// The words that an app, or one room of it, lists now; `None`: none any more.
    Words {
        /// Whose.
        app: AppId,
        /// Where; `None`: in all rooms.
        room: Option<RoomId>,
        /// Which.
        words: Option<Arc<Words>>,
    },
    /// The item of an [`Output::Publish`] is on the bus.
    Published(ItemId),
    /// The bus had no place for the item of an [`Output::Publish`].
    Busy(ItemId),
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
    },
}

/// The machine.
#[derive(Debug)]
pub struct Shard {
    limits: Limits,
    secret: SenderSecret,
    ids: Ids,
    rooms: BTreeMap<(AppId, RoomId), Room>,
    /// Words that apps list, for as many apps as are configured.
    words: BTreeMap<AppId, Arc<Words>>,
    scanner: Scanner,
    askers: Askers,
    outputs: VecDeque<Output>,
    sweep_at: Mono,
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
            limits,
            secret,
            rooms: BTreeMap::new(),
            words: BTreeMap::new(),
            scanner: Scanner::default(),
            outputs: VecDeque::new(),
            sweep_at: Mono(0),
            swept: None,
            ignored: 0,
        }
    }

    /// Takes in what happened.
    pub fn handle(&mut self, input: Input, now: Now) {
        match input {
            Input::Uplink { node, entry } => self.hear(node, entry, now),
            Input::Fact(fact) => self.learn(fact),
            Input::Event(event) => self.close(&event),
            Input::Words { app, room, words } => self.list(app, room, words),
            Input::Published(id) => self.settle(id, Verdict::Admit(id)),
            Input::Busy(id) => {
                self.settle(
                    id,
                    Verdict::Drop { reason: Reason::Busy, retry_after_ms: BUSY_RETRY_MS },
                );
                self.askers.take(id);
            }
        }
    }

    /// Forgets what is over.
    pub fn tick(&mut self, now: Now) {
        if now.mono < self.sweep_at {
            return;
        }
        self.sweep_at = now.mono + SWEEP;
        self.askers.expire(now.mono);
        let from = self.swept.take().map_or(Bound::Unbounded, Bound::Excluded);
        for (name, room) in self.rooms.range_mut((from, Bound::Unbounded)).take(ROOMS_PER_SWEEP) {
            room.expire(now);
            self.swept = Some(name.clone());
        }
    }

    /// What is to be done next.
    pub fn poll(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// When [`Shard::tick`] has something to do.
    #[must_use]
    pub const fn deadline(&self) -> Option<Mono> {
        Some(self.sweep_at)
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
        let comment = Comment { text: &text, role, may_send };
        let words = self.words.get(&app).map(|it| &**it);
        let ear = Ear { scanner: &mut self.scanner, words };
        let heard = match self.rooms.get_mut(&(app, room.clone())) {
            Some(it) => it.hear(&viewer, asker, comment, ear, now),
            None => match judge::judge(comment, &History::default(), None, now) {
                Ok(()) => return,
                Err(refusal) => Heard::Refused(refusal),
            },
        };
        match heard {
            Heard::Admitted { shown: Shown::Shadowed, .. } => {
                let verdict = Verdict::Shadow(self.ids.next(now.wall));
                if let Some(room) = self.rooms.get_mut(&(app, room)) {
                    room.settle(&viewer, asker, verdict);
                }
                self.reply(asker, Outcome::Verdict(verdict));
            }
            Heard::Admitted { sender, shown } => {
                let id = self.ids.next(now.wall);
                let text = if let Shown::Masked(masked) = shown { masked } else { text };
                let body = Body::Comment { text, style, media_ms };
                let item = Item { id, lane: Lane::Comment, sender, role, at: now.wall, body };
                let (name, is_settled) = (room.clone(), false);
                let asked = Asked { asker, app, room: name, viewer, is_settled };
                self.askers.push(id, asked, now.mono);
                self.outputs.push_back(Output::Publish(Accepted { app, room, item }));
            }
            Heard::Refused(refusal) => self.reply(asker, Outcome::Verdict(drop_as(refusal))),
            Heard::Again { before, said } => {
                if before != asker {
                    self.redirect(before, asker, said);
                }
                // Otherwise the answer is on its way, to whoever asked last.
                if let Some(verdict) = said {
                    self.reply(asker, Outcome::Verdict(verdict));
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

    fn list(&mut self, app: AppId, room: Option<RoomId>, words: Option<Arc<Words>>) {
        match (room, words) {
            (Some(name), words) => {
                if let Some(room) = self.room(app, &name) {
                    room.list(words);
                }
            }
            (None, Some(words)) => {
                self.words.insert(app, words);
            }
            (None, None) => {
                self.words.remove(&app);
            }
        }
    }

    fn learn(&mut self, fact: Fact) {
        match fact {
            Fact::Room(fact) => {
                if let Some(room) = self.room(fact.app, &fact.room.clone()) {
                    room.set(fact);
                }
            }
            Fact::Mute { app, room, viewer, until } => {
                if let Some(room) = self.room(app, &room) {
                    room.mute(viewer, until);
                }
            }
            Fact::Ban { app, room, viewer, until } => {
                if let Some(room) = self.room(app, &room) {
                    room.ban(viewer, until);
                }
            }
            Fact::Epoch(_)
            | Fact::Kick { .. }
            | Fact::Close { .. }
            | Fact::Keep { .. }
            | Fact::Heat { .. }
            | Fact::Bases { .. }
            | Fact::Move { .. }
            | Fact::Lease(_)
            | Fact::Policy(_)
            | Fact::Sdk(_)
            // The shell reads the list, and tells it by `Input::Words`.
            | Fact::Words { .. }
            | Fact::Revoked { .. } => {}
        }
    }

    /// The room, made if it is new: a mute may be told before its room, since facts are compacted.
    fn room(&mut self, app: AppId, room: &RoomId) -> Option<&mut Room> {
        let key = (app, room.clone());
        if !self.rooms.contains_key(&key) {
            if self.rooms.len() >= self.limits.rooms_max {
                self.ignored += 1;
                return None;
            }
            let made = Room::new(self.secret.room(app, room), self.limits.senders_max);
            self.rooms.insert(key.clone(), made);
        }
        self.rooms.get_mut(&key)
    }

    fn close(&mut self, event: &RoomEvent) {
        match event {
            RoomEvent::Flush { items, .. } => {
                for placed in items {
                    self.take_asker(placed.item.id);
                }
            }
            RoomEvent::Fates { fates } => {
                for &(id, fate) in fates {
                    self.close_one(id, fate);
                }
            }
            RoomEvent::Opened { .. } | RoomEvent::Seal { .. } | RoomEvent::Heat { .. } => {}
        }
    }

    fn close_one(&mut self, id: ItemId, fate: Fate) {
        let Some(asker) = self.take_asker(id) else { return };
        match fate {
            Fate::Sealed { .. } => {}
            Fate::Merged { into } => self.reply(asker, Outcome::Merged(into)),
            Fate::Shed { reason } => self.reply(asker, Outcome::Shed(reason)),
        }
    }

    /// Who waits for the fate of `id`, for the last time. A fate may be quicker than the bus's
    /// answer to the publish; it proves that the item was published.
    fn take_asker(&mut self, id: ItemId) -> Option<Asker> {
        self.settle(id, Verdict::Admit(id));
        self.askers.take(id).map(|it| it.asker)
    }

    fn settle(&mut self, id: ItemId, verdict: Verdict) {
        let Some(asked) = self.askers.find(id).filter(|it| !it.is_settled) else { return };
        asked.is_settled = true;
        let asker = asked.asker;
        if let Some(room) = self.rooms.get_mut(&(asked.app, asked.room.clone())) {
            room.settle(&asked.viewer, asker, verdict);
        }
        self.reply(asker, Outcome::Verdict(verdict));
    }

    fn reply(&mut self, asker: Asker, outcome: Outcome) {
        let Asker { node, session, cid } = asker;
        let reply = Reply::Ack { session, cid, outcome };
        self.outputs.push_back(Output::Reply { node, reply });
    }
}

#[cfg(test)]
#[path = "shard/tests.rs"]
mod tests;
