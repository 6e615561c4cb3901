//! One room: its settings, who may not speak in it, and what its senders did lately.

mod flow;

use std::collections::VecDeque;
use std::hash::BuildHasher;
use std::sync::Arc;
use std::time::Duration;

use foldhash::HashMap;
use foldhash::fast::FixedState;
use proto::control::{Review, RoomFact, RoomSettings};
use proto::id::{SenderRef, ViewerId};
use proto::item::Role;
use proto::time::{Mono, Wall};
use proto::verdict::{Reason, Verdict};

use crate::asker::{Asker, Mark};
use crate::flow::Stream;
use crate::judge::{self, Comment, History, Now, Refusal, Rules};
use crate::keep::Valve;
use crate::people::People;
use crate::rate::Rate;
use crate::repeats::{Echo, Past, Sketch};
use crate::said::{Said, Verdicts};
use crate::sender::RoomSecret;
use crate::text::{self, Shown, Taste};
use crate::words::{Scanner, Words};

/// How long a silent sender is remembered, if slow mode does not need longer. A record that comes
/// a second time does so within seconds.
pub const SENDER_LIFE: Duration = Duration::from_secs(60);
/// A room that is closed, or of which nobody says that it is there, answers so for this long.
pub const SHUT_LIFE: Duration = Duration::from_hours(1);
/// Senders looked at to make place for one more.
const EVICT_TRIES_MAX: usize = 8;
/// Senders forgotten in one turn.
const EXPIRE_MAX: usize = 1000;
/// When a room that is full of senders may have place again.
const FULL_RETRY_MS: u64 = 1000;

/// One room.
#[derive(Debug)]
pub struct Room {
    secret: RoomSecret,
    fact: Option<RoomFact>,
    /// Who is what, and may not speak.
    pub(crate) people: People,
    words: Option<Arc<Words>>,
    echo: Echo,
    /// What flows in here.
    pub(crate) stream: Stream,
    /// What links pass on.
    pub(crate) valve: Valve,
    senders: HashMap<ViewerId, Sender>,
    /// Every sender once, roughly the longest silent one first.
    order: VecDeque<ViewerId>,
    senders_max: usize,
    /// Since when it is not open.
    shut_since: Option<Mono>,
}

/// Whether a room is to be remembered.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Life {
    /// It is.
    Known,
    /// It was closed long ago.
    Over,
}

/// What a viewer did lately.
#[derive(Debug)]
struct Sender {
    sender_ref: SenderRef,
    rate: Rate,
    last: Option<Mono>,
    touched: Mono,
    verdicts: Verdicts,
    past: Past,
}

/// What a room listens with.
#[derive(Debug)]
pub struct Ear<'a> {
    /// Reads texts.
    pub scanner: &'a mut Scanner,
    /// The words that the app lists.
    pub words: Option<&'a Words>,
    /// Chatservers that share what the room shows.
    pub nodes: u32,
}

/// What the room says to a comment.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Heard {
    /// It may be shown; [`Room::settle`] tells under which verdict.
    Admitted {
        /// As from whom.
        sender: SenderRef,
        /// How.
        shown: Shown,
        /// What it counts for the next ones.
        mark: Mark,
    },
    /// It may not.
    Refused(Refusal),
    /// It came before.
    Again {
        /// Who asked last, until now.
        before: Asker,
        /// What was said; `None` while that is not settled.
        said: Option<Verdict>,
    },
}

impl Room {
    /// A room of which nothing is known yet but its secret.
    #[must_use]
    pub fn new(secret: RoomSecret, senders_max: usize) -> Self {
        Self {
            secret,
            fact: None,
            people: People::default(),
            words: None,
            echo: Echo::default(),
            stream: Stream::default(),
            valve: Valve::default(),
            senders: HashMap::default(),
            order: VecDeque::new(),
            senders_max,
            shut_since: None,
        }
    }

    /// Takes new settings, unless they are older than those it has.
    pub fn set(&mut self, fact: RoomFact) {
        if self.fact.as_ref().is_none_or(|old| old.version <= fact.version) {
            self.fact = Some(fact);
        }
    }

    /// Whether it is known to be closed.
    pub(crate) fn is_closed(&self) -> bool {
        self.fact.as_ref().is_some_and(|it| !it.open)
    }

    /// Takes another list of words; `None` ends it.
    pub fn list(&mut self, words: Option<Arc<Words>>) {
        self.words = words;
    }

    /// The words that it lists.
    pub(crate) const fn words(&self) -> Option<&Arc<Words>> {
        self.words.as_ref()
    }

    /// Decides about a comment of `viewer`. A viewer whose session ended sends again, in the next
    /// one, what was not answered: the same number and text are the same comment.
    pub fn hear(
        &mut self,
        viewer: &ViewerId,
        asker: Asker,
        comment: Comment<'_>,
        ear: Ear<'_>,
        now: Now,
    ) -> Heard {
        let text = hash(comment.text);
        let mut history = self.history(viewer);
        if let Some(sender) = self.senders.get_mut(viewer) {
            if let Some(said) = sender.verdicts.find(asker, text) {
                let before = std::mem::replace(&mut said.asker, asker);
                return Heard::Again { before, said: said.verdict };
            }
            (history.rate, history.last) = (sender.rate, sender.last);
        }
        let nodes = ear.nodes;
        let judged = judge::judge(comment, &history, self.rules(), now)
            .and_then(|()| self.judge_text(viewer, comment, ear, now.mono));
        let judged = judged.and_then(|it| self.flow(it, viewer, comment.role, nodes, now.mono));
        let refill_ms = self.settings().map_or(0, |it| it.viewer_refill_ms);
        let Some(sender) = self.sender(viewer, now.mono) else {
            let full = judge::later(Reason::RoomBusy, FULL_RETRY_MS);
            return Heard::Refused(judged.err().unwrap_or(full));
        };
        match judged {
            Ok((shown, sketch)) => {
                sender.rate.take(refill_ms, now.mono);
                sender.last = Some(now.mono);
                sender.verdicts.push(Said { asker, text, verdict: None });
                let sender_ref = sender.sender_ref;
                if let Some(sketch) = sketch {
                    sender.past.push(sketch, now.mono);
                    self.echo.push(&sketch, now.mono);
                }
                let mark = Mark { at: now.mono, text: sketch.map(|it| it.key()) };
                Heard::Admitted { sender: sender_ref, shown, mark }
            }
            Err(refusal) => {
                sender.verdicts.push(Said { asker, text, verdict: Some(drop_as(refusal)) });
                Heard::Refused(refusal)
            }
        }
    }

    fn judge_text(
        &self,
        viewer: &ViewerId,
        comment: Comment<'_>,
        ear: Ear<'_>,
        now: Mono,
    ) -> Result<(Shown, Option<Sketch>), Refusal> {
        let Some(settings) = self.settings() else { return Err(judge::never(Reason::NoRoom)) };
        let none = Past::default();
        let past = self.senders.get(viewer).map_or(&none, |it| &it.past);
        let (own, app) = (self.words.as_deref(), ear.words);
        let lists: &[&Words] = match (app, own) {
            (Some(app), Some(own)) => &[app, own],
            (Some(one), None) | (None, Some(one)) => &[one],
            (None, None) => &[],
        };
        let taste = Taste { settings, lists, past, echo: &self.echo };
        text::judge(ear.scanner, comment.text, comment.role, taste, now)
    }

    /// How long it holds comments back.
    pub(crate) fn hold_ms(&self) -> u32 {
        self.settings().map_or(0, |it| it.hold_ms)
    }

    /// What the room says about reviews, if anything.
    pub(crate) fn review(&self) -> Option<Review> {
        self.settings().and_then(|it| it.review)
    }

    /// Items that the room shows a second, once it is known.
    pub(crate) fn items_per_s(&self) -> Option<u32> {
        self.settings().map(|it| it.items_per_s)
    }

    /// Remembers the verdict about an admitted comment.
    pub fn settle(&mut self, viewer: &ViewerId, asker: Asker, verdict: Verdict) {
        if let Some(sender) = self.senders.get_mut(viewer) {
            sender.verdicts.settle(asker, verdict);
        }
    }

    /// Whether a comment that waited since it was admitted may still be shown.
    ///
    /// # Errors
    /// What was done to the room or the sender meanwhile.
    pub fn hear_again(&self, viewer: &ViewerId, role: Role, now: Wall) -> Result<(), Refusal> {
        let role = self.people.role(viewer, role);
        judge::judge_again(role, &self.history(viewer), self.rules(), now)
    }

    /// An admitted comment is refused after all, which leaves nothing behind that slow mode or
    /// repeats count; only its sender's rate stays used. Gives the refusal that the sender is told:
    /// who may try again is told when the rate allows it.
    pub fn take_back(
        &mut self,
        viewer: &ViewerId,
        mark: Mark,
        refusal: Refusal,
        now: Mono,
    ) -> Refusal {
        let (burst, refill_ms) =
            self.settings().map_or((1, 0), |it| (it.viewer_burst, it.viewer_refill_ms));
        let Some(sender) = self.senders.get_mut(viewer) else { return refusal };
        // Slow mode let this one pass, so what was last before it does not count any more.
        sender.last = sender.last.filter(|it| *it != mark.at);
        if let Some(text) = mark.text {
            sender.past.take_back(text);
            self.echo.take_back(text, mark.at);
        }
        let wait_ms = sender.rate.wait_ms(burst, refill_ms, now);
        match refusal.retry_after_ms {
            0 => refusal,
            told_ms => judge::later(refusal.reason, wait_ms.max(told_ms.into())),
        }
    }

    /// Forgets silent senders and sanctions that are over; the work of one turn is bounded. Says
    /// whether the room itself can be forgotten.
    pub fn expire(&mut self, now: Now) -> Life {
        self.expire_senders(now);
        if self.fact.as_ref().is_some_and(|it| it.open) {
            self.shut_since = None;
            return Life::Known;
        }
        let since = *self.shut_since.get_or_insert(now.mono);
        if now.mono.since(since) < SHUT_LIFE { Life::Known } else { Life::Over }
    }

    fn expire_senders(&mut self, now: Now) {
        self.people.expire(now.wall);
        self.echo.expire(now.mono);
        let slow = Duration::from_millis(self.settings().map_or(0, |it| it.slow_mode_ms).into());
        let life = SENDER_LIFE.max(slow);
        for _ in 0..EXPIRE_MAX.min(self.order.len()) {
            let Some(viewer) = self.order.pop_front() else { return };
            let Some(sender) = self.senders.get(&viewer) else { continue };
            if now.mono.since(sender.touched) < life || !sender.rate.is_full(now.mono) {
                self.order.push_back(viewer);
            } else {
                self.senders.remove(&viewer);
            }
        }
    }

    /// Senders remembered.
    #[must_use]
    pub fn senders(&self) -> usize {
        self.senders.len()
    }

    /// The viewer's state, made if there is place for it.
    fn sender(&mut self, viewer: &ViewerId, now: Mono) -> Option<&mut Sender> {
        if !self.senders.contains_key(viewer) {
            if self.senders.len() >= self.senders_max && !self.evict(now) {
                return None;
            }
            self.order.push_back(viewer.clone());
            self.senders.insert(viewer.clone(), Sender::new(self.secret.sender(viewer)));
        }
        let sender = self.senders.get_mut(viewer)?;
        sender.touched = now;
        Some(sender)
    }

    /// Forgets one sender whom no rate or slow mode holds back at the moment.
    fn evict(&mut self, now: Mono) -> bool {
        let slow_ms = u64::from(self.settings().map_or(0, |it| it.slow_mode_ms));
        for _ in 0..EVICT_TRIES_MAX.min(self.order.len()) {
            let Some(viewer) = self.order.pop_front() else { return false };
            let held = self.senders.get(&viewer).is_some_and(|it| {
                !it.rate.is_full(now) || it.last.is_some_and(|last| last.0 + slow_ms > now.0)
            });
            if !held {
                self.senders.remove(&viewer);
                return true;
            }
            self.order.push_back(viewer);
        }
        false
    }

    /// What it says, once it is known.
    pub(crate) fn settings(&self) -> Option<&RoomSettings> {
        self.fact.as_ref().map(|it| &it.settings)
    }

    fn rules(&self) -> Option<Rules<'_>> {
        self.fact.as_ref().map(|it| Rules { open: it.open, settings: &it.settings })
    }

    /// What is known of a viewer but the rate and the last comment.
    fn history(&self, viewer: &ViewerId) -> History {
        History {
            standing: self.people.standing(viewer),
            banned_until: self.people.banned_until(viewer),
            muted_until: self.people.muted_until(viewer),
            ..History::default()
        }
    }
}

impl Sender {
    fn new(sender_ref: SenderRef) -> Self {
        Self {
            sender_ref,
            rate: Rate::default(),
            last: None,
            touched: Mono(0),
            verdicts: Verdicts::default(),
            past: Past::default(),
        }
    }
}

fn hash(text: &str) -> u64 {
    FixedState::default().hash_one(text)
}

/// A refusal as a verdict.
#[must_use]
pub const fn drop_as(refusal: Refusal) -> Verdict {
    Verdict::Drop { reason: refusal.reason, retry_after_ms: refusal.retry_after_ms }
}
