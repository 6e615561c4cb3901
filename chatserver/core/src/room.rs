//! One room: its settings, who may not speak in it, and what its senders did lately.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use proto::control::{RoomFact, RoomSettings};
use proto::id::{SenderRef, ViewerId};
use proto::time::{Mono, Wall};
use proto::verdict::{Reason, Verdict};

use crate::asker::Asker;
use crate::judge::{self, Comment, History, Now, Refusal, Rules};
use crate::rate::Rate;
use crate::repeats::{Echo, Past, Sketch};
use crate::sender::RoomSecret;
use crate::text::{self, Shown, Taste};
use crate::words::{Scanner, Words};

/// How long a silent sender is remembered, if slow mode does not need longer. A record that comes
/// a second time does so within seconds.
pub const SENDER_LIFE: Duration = Duration::from_secs(60);
/// Verdicts remembered for one sender, 48 bytes each. A replay reaches back a few seconds, in which
/// the default rate admits about 10.
pub const VERDICTS_MAX: usize = 32;
/// Mutes of one room, and bans: about 100 bytes each.
pub const SANCTIONS_MAX: usize = 10_000;
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
    mutes: BTreeMap<ViewerId, Wall>,
    bans: BTreeMap<ViewerId, Wall>,
    words: Option<Arc<Words>>,
    echo: Echo,
    senders: HashMap<ViewerId, Sender>,
    /// Every sender once, roughly the longest silent one first.
    order: VecDeque<ViewerId>,
    senders_max: usize,
}

/// What a viewer did lately.
#[derive(Debug)]
struct Sender {
    sender_ref: SenderRef,
    rate: Rate,
    last: Option<Mono>,
    touched: Mono,
    verdicts: VecDeque<Said>,
    past: Past,
}

/// What was said about one comment.
#[derive(Debug)]
struct Said {
    /// Who asked last.
    asker: Asker,
    /// Hash of the comment's text.
    text: u64,
    /// None while that is not settled.
    verdict: Option<Verdict>,
}

/// What a room listens with.
#[derive(Debug)]
pub struct Ear<'a> {
    /// Reads texts.
    pub scanner: &'a mut Scanner,
    /// The words that the app lists.
    pub words: Option<&'a Words>,
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
            mutes: BTreeMap::new(),
            bans: BTreeMap::new(),
            words: None,
            echo: Echo::default(),
            senders: HashMap::new(),
            order: VecDeque::new(),
            senders_max,
        }
    }

    /// Takes new settings, unless they are older than those it has.
    pub fn set(&mut self, fact: RoomFact) {
        if self.fact.as_ref().is_none_or(|old| old.version <= fact.version) {
            self.fact = Some(fact);
        }
    }

    /// Mutes `viewer` until then; 0 ends it. Past [`SANCTIONS_MAX`] the one that ends first goes.
    pub fn mute(&mut self, viewer: ViewerId, until: Wall) {
        sanction(&mut self.mutes, viewer, until);
    }

    /// Bans `viewer` until then; 0 ends it. Bounded as [`Room::mute`].
    pub fn ban(&mut self, viewer: ViewerId, until: Wall) {
        sanction(&mut self.bans, viewer, until);
    }

    /// Takes another list of words; `None` ends it.
    pub fn list(&mut self, words: Option<Arc<Words>>) {
        self.words = words;
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
        if let Some(said) = self.senders.get_mut(viewer).and_then(|it| it.said(asker, text)) {
            let before = std::mem::replace(&mut said.asker, asker);
            return Heard::Again { before, said: said.verdict };
        }
        let sender = self.senders.get(viewer);
        let history = History {
            banned_until: self.bans.get(viewer).copied().unwrap_or_default(),
            muted_until: self.mutes.get(viewer).copied().unwrap_or_default(),
            rate: sender.map(|it| it.rate).unwrap_or_default(),
            last: sender.and_then(|it| it.last),
        };
        let rules = self.fact.as_ref().map(|it| Rules { open: it.open, settings: &it.settings });
        let judged = judge::judge(comment, &history, rules, now)
            .and_then(|()| self.judge_text(viewer, comment, ear, now.mono));
        let refill_ms = self.settings().map_or(0, |it| it.viewer_refill_ms);
        let Some(sender) = self.sender(viewer, now.mono) else {
            let full = judge::later(Reason::RoomBusy, FULL_RETRY_MS);
            return Heard::Refused(judged.err().unwrap_or(full));
        };
        match judged {
            Ok((shown, sketch)) => {
                sender.rate.take(refill_ms, now.mono);
                sender.last = Some(now.mono);
                sender.remember(Said { asker, text, verdict: None });
                let sender_ref = sender.sender_ref;
                if let Some(sketch) = sketch {
                    sender.past.push(sketch, now.mono);
                    self.echo.push(&sketch, now.mono);
                }
                Heard::Admitted { sender: sender_ref, shown }
            }
            Err(refusal) => {
                sender.remember(Said { asker, text, verdict: Some(drop_as(refusal)) });
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

    /// Remembers the verdict about an admitted comment.
    pub fn settle(&mut self, viewer: &ViewerId, asker: Asker, verdict: Verdict) {
        let said = self.senders.get_mut(viewer).map(|it| &mut it.verdicts);
        if let Some(said) = said.and_then(|all| all.iter_mut().find(|it| it.asker == asker)) {
            said.verdict = Some(verdict);
        }
    }

    /// Forgets silent senders and sanctions that are over; the work of one turn is bounded.
    pub fn expire(&mut self, now: Now) {
        self.mutes.retain(|_, until| *until > now.wall);
        self.bans.retain(|_, until| *until > now.wall);
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

    fn settings(&self) -> Option<&RoomSettings> {
        self.fact.as_ref().map(|it| &it.settings)
    }
}

impl Sender {
    fn new(sender_ref: SenderRef) -> Self {
        Self {
            sender_ref,
            rate: Rate::default(),
            last: None,
            touched: Mono(0),
            verdicts: VecDeque::new(),
            past: Past::default(),
        }
    }

    fn said(&mut self, asker: Asker, text: u64) -> Option<&mut Said> {
        let is_same = |it: &Said| it.asker == asker || it.asker.cid == asker.cid && it.text == text;
        self.verdicts.iter_mut().find(|it| is_same(it))
    }

    /// Past [`VERDICTS_MAX`] refusals go first: only a forgotten admission could show an item twice.
    fn remember(&mut self, said: Said) {
        if self.verdicts.len() >= VERDICTS_MAX {
            let refused = |it: &Said| matches!(it.verdict, Some(Verdict::Drop { .. }));
            let oldest = self.verdicts.iter().position(refused).unwrap_or(0);
            self.verdicts.remove(oldest);
        }
        self.verdicts.push_back(said);
    }
}

fn hash(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}

/// A refusal as a verdict.
#[must_use]
pub const fn drop_as(refusal: Refusal) -> Verdict {
    Verdict::Drop { reason: refusal.reason, retry_after_ms: refusal.retry_after_ms }
}

fn sanction(sanctions: &mut BTreeMap<ViewerId, Wall>, viewer: ViewerId, until: Wall) {
    if until == Wall(0) {
        sanctions.remove(&viewer);
        return;
    }
    sanctions.insert(viewer, until);
    if sanctions.len() > SANCTIONS_MAX {
        let first = sanctions.iter().min_by_key(|it| it.1).map(|it| it.0.clone());
        if let Some(viewer) = first {
            sanctions.remove(&viewer);
        }
    }
}
