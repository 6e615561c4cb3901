//! The crowd's books: what was sent, what became of it, who got it, and how long that took.

use std::collections::{BTreeMap, HashMap};
use std::io::Write;

use hdrhistogram::Histogram;
use proto::envelope::RoomEvent;
use proto::frame::{Outcome, Place};
use proto::id::{Cid, ItemId, ViewerId};
use proto::verdict::{Fate, Reason, Verdict};
use serde::Serialize;

use super::Audit;
use super::summary::{Latency, Quantiles, Received, Summary};

/// By which path a viewer reads.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Side {
    Push,
    Segments,
}

/// Latencies above this count as this.
const LATENCY_MS_MAX: u64 = 60_000;

struct Sent {
    viewer: usize,
    text: String,
    sent_us: u64,
    state: State,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum State {
    Waiting,
    Admitted(ItemId),
    Refused,
    Known,
}

/// One line of `--input-log`.
#[derive(Serialize)]
struct Line<'a> {
    id: Option<ItemId>,
    account: &'a ViewerId,
    text: &'a str,
    verdict: &'a str,
    fate: &'a str,
}

pub(super) struct Book {
    accounts: Vec<ViewerId>,
    sides: Vec<Side>,
    sent: Vec<Sent>,
    /// On pages that were turned.
    sent_before: u64,
    by_cid: HashMap<(usize, Cid), usize>,
    by_id: HashMap<ItemId, usize>,
    /// Fates that came before their Ack.
    early: HashMap<ItemId, Fate>,
    refused: BTreeMap<String, u64>,
    admitted: u64,
    sealed: u64,
    merged: u64,
    shed: BTreeMap<String, u64>,
    delivered: Vec<u64>,
    audit: Audit,
    latency: [Histogram<u64>; 2],
    log: Option<Box<dyn Write + Send>>,
}

impl Book {
    pub(super) fn new(
        accounts: Vec<ViewerId>,
        sides: Vec<Side>,
        log: Option<Box<dyn Write + Send>>,
    ) -> Self {
        let histogram = || {
            Histogram::new_with_bounds(1, LATENCY_MS_MAX, 3)
                .expect("1 to 60,000 at 3 digits is valid")
        };
        Self {
            delivered: vec![0; accounts.len()],
            audit: Audit::new(accounts.len()),
            accounts,
            sides,
            sent: Vec::new(),
            sent_before: 0,
            by_cid: HashMap::new(),
            by_id: HashMap::new(),
            early: HashMap::new(),
            refused: BTreeMap::new(),
            admitted: 0,
            sealed: 0,
            merged: 0,
            shed: BTreeMap::new(),
            latency: [histogram(), histogram()],
            log,
        }
    }

    /// A comment went out, or `cid` is the reason why the SDK did not take it.
    pub(super) fn sent(&mut self, viewer: usize, text: &str, cid: Result<Cid, &str>, now_us: u64) {
        let number = self.sent.len();
        let state = State::Waiting;
        self.sent.push(Sent { viewer, text: text.to_owned(), sent_us: now_us, state });
        match cid {
            Ok(cid) => {
                self.by_cid.insert((viewer, cid), number);
            }
            Err(reason) => self.refuse(number, reason),
        }
    }

    /// A sender learned something.
    pub(super) fn acked(&mut self, viewer: usize, cid: Cid, outcome: Outcome) {
        let Some(&number) = self.by_cid.get(&(viewer, cid)) else {
            return;
        };
        let waiting = self.sent[number].state == State::Waiting;
        match outcome {
            Outcome::Verdict(Verdict::Admit(id) | Verdict::Shadow(id)) if waiting => {
                self.admitted += 1;
                self.sent[number].state = State::Admitted(id);
                self.by_id.insert(id, number);
                if let Some(fate) = self.early.remove(&id) {
                    self.fate(id, fate);
                }
            }
            Outcome::Verdict(Verdict::Drop { reason, .. }) if waiting => {
                self.refuse(number, reason.name());
            }
            // The ledger tells fates; the Ack that repeats them is for people.
            Outcome::Verdict(_) | Outcome::Merged(_) | Outcome::Shed(_) => {}
        }
    }

    /// The room's ledger went on.
    pub(super) fn event(&mut self, event: &RoomEvent) {
        match event {
            RoomEvent::Flush { gen_no, slot, items, .. } => {
                for placed in items {
                    let (gen_no, seq, slot) = (*gen_no, placed.seq, *slot);
                    self.audit.sealed(placed.item.id, Place { gen_no, seq });
                    self.fate(placed.item.id, Fate::Sealed { gen_no, seq, slot });
                }
            }
            RoomEvent::Fates { fates } => {
                for &(id, fate) in fates {
                    self.fate(id, fate);
                }
            }
            RoomEvent::Opened { .. } | RoomEvent::Seal { .. } | RoomEvent::Heat { .. } => {}
        }
    }

    /// The SDK handed an item to a viewer, before faults.
    pub(super) fn delivered(&mut self, viewer: usize, id: ItemId, now_us: u64) {
        self.delivered[viewer] += 1;
        if let Some(&number) = self.by_id.get(&id) {
            let ms = now_us.saturating_sub(self.sent[number].sent_us) / 1000;
            self.latency[self.sides[viewer] as usize].saturating_record(ms.max(1));
        }
    }

    /// A viewer was shown an item, after faults.
    pub(super) fn shown(&mut self, viewer: usize, id: ItemId, place: Place) {
        self.audit.shown(viewer, id, place);
    }

    /// Forgets everything but the viewers.
    pub(super) fn forget(&mut self) {
        *self = Self::new(
            std::mem::take(&mut self.accounts),
            std::mem::take(&mut self.sides),
            self.log.take(),
        );
    }

    /// Whether every comment has its fate.
    pub(super) fn is_settled(&self) -> bool {
        let known = |it: &Sent| matches!(it.state, State::Known | State::Refused);
        self.sent.iter().all(known)
    }

    /// Whether nothing is on its way: every comment has its fate, and every viewer was handed what
    /// was sealed and no more.
    pub(super) fn is_complete(&self) -> bool {
        let sealed = self.audit.sealed_items() as u64;
        self.is_settled() && self.delivered.iter().all(|&it| it == sealed)
    }

    /// Keeps what the books came to, and forgets every comment.
    pub(super) fn turn_page(&mut self) {
        self.sent_before += self.sent.len() as u64;
        self.sent.clear();
        self.by_cid.clear();
        self.by_id.clear();
        self.early.clear();
        self.delivered.fill(0);
        self.audit.turn_page();
    }

    /// Whether every viewer was handed all that was sealed.
    pub(super) fn is_delivered(&self) -> bool {
        let sealed = self.audit.sealed_items() as u64;
        self.delivered.iter().all(|&it| it >= sealed)
    }

    /// Closes the books: comments that never got an answer count as refused.
    pub(super) fn close(&mut self, damaged: u64, rss_bytes: u64) -> Summary {
        let unanswered: Vec<usize> =
            (0..self.sent.len()).filter(|&it| self.sent[it].state == State::Waiting).collect();
        for number in unanswered {
            self.refuse(number, "unanswered");
        }
        if let Some(log) = &mut self.log
            && let Err(error) = log.flush()
        {
            tracing::error!(%error, "the input log could not be written");
        }
        let received = |side| {
            let viewers = (0..self.sides.len()).filter(|&it| self.sides[it] == side);
            viewers.map(|it| self.audit.received(it)).sum()
        };
        let findings = self.audit.findings();
        Summary {
            sent: self.sent_before + self.sent.len() as u64,
            admitted: self.admitted,
            refused: self.refused.clone(),
            sealed: self.sealed,
            merged: self.merged,
            shed: self.shed.clone(),
            received: Received { push: received(Side::Push), segments: received(Side::Segments) },
            repeats: findings.repeats,
            out_of_order: findings.out_of_order,
            missing: findings.missing,
            unexpected: findings.unexpected,
            latency_ms: Latency {
                push: Quantiles::of(&self.latency[Side::Push as usize]),
                segments: Quantiles::of(&self.latency[Side::Segments as usize]),
            },
            damaged,
            rss_bytes,
        }
    }

    fn refuse(&mut self, number: usize, reason: &str) {
        self.sent[number].state = State::Refused;
        *self.refused.entry(reason.to_owned()).or_default() += 1;
        self.log_line(number, None, reason, "refused");
    }

    fn fate(&mut self, id: ItemId, fate: Fate) {
        let Some(&number) = self.by_id.get(&id) else {
            self.early.insert(id, fate);
            return;
        };
        if self.sent[number].state != State::Admitted(id) {
            return;
        }
        self.sent[number].state = State::Known;
        let word = match fate {
            Fate::Sealed { .. } => {
                self.sealed += 1;
                "sealed"
            }
            Fate::Merged { .. } => {
                self.merged += 1;
                "merged"
            }
            Fate::Shed { reason } => {
                self.shed_one(reason);
                "shed"
            }
        };
        self.log_line(number, Some(id), "admit", word);
    }

    /// The crowd sends comments only, so what is shed of it was in the comment lane.
    fn shed_one(&mut self, reason: Reason) {
        tracing::debug!(reason = reason.name(), "a comment was shed");
        *self.shed.entry(proto::item::Lane::Comment.name().to_owned()).or_default() += 1;
    }

    fn log_line(&mut self, number: usize, id: Option<ItemId>, verdict: &str, fate: &str) {
        let Some(log) = &mut self.log else {
            return;
        };
        let sent = &self.sent[number];
        let line =
            Line { id, account: &self.accounts[sent.viewer], text: &sent.text, verdict, fate };
        let written = serde_json::to_writer(&mut *log, &line).map_err(Into::into);
        if let Err(error) = written.and_then(|()| log.write_all(b"\n")) {
            tracing::error!(%error, "the input log could not be written");
            self.log = None;
        }
    }
}
