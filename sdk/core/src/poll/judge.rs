//! What a head means for the next question.

use std::time::Duration;

use proto::head::{GenInfo, Head};
use proto::id::{Gen, SlotNo};
use proto::time::Mono;

use super::{CATCH_UP_SLOTS_MAX, Poll, Stage};

/// How long a head is believed that shows no progress: it is written once a slot.
const STALLED_WAIT: Duration = Duration::from_millis(1_000);
/// The longest wait of this kind. A broadcaster is replaced within 5 s.
const STALLED_WAIT_MAX: Duration = Duration::from_secs(8);

impl Poll {
    /// Decides where to go on.
    pub(super) fn judge(&mut self, head: &Head, now: Mono) {
        self.spread_ms = head.spread_ms;
        self.head_attempt = 0;
        self.head_is_fresh = true;
        match self.timeline {
            None => self.enter(head, self.from),
            Some(timeline) if head.gen_no == timeline.gen_no => self.judge_same_gen(head, now),
            Some(timeline) if head.gen_no > timeline.gen_no => {
                self.finish_gen();
                let next_gen = timeline.gen_no.0.saturating_add(1);
                let follows = head.gen_no.0 == next_gen;
                self.enter(head, follows.then_some((head.gen_no, SlotNo(0))));
            }
            // An old head from some cache.
            Some(_) => self.stall(now),
        }
        self.stop_if_over();
    }

    /// Starts on the head's gen, at `from` if that is near enough.
    fn enter(&mut self, head: &Head, from: Option<(Gen, SlotNo)>) {
        let (gen_no, epoch_ms, interval_ms) = (head.gen_no, head.epoch_ms, head.interval_ms);
        let from = from.map(|(wanted, slot)| {
            // The gen after the one that was wanted is taken from its start.
            if wanted.0.checked_add(1) == Some(gen_no.0) {
                (gen_no, SlotNo(0))
            } else {
                (wanted, slot)
            }
        });
        let near = |slot: SlotNo| head.slot.0.saturating_sub(slot.0) <= CATCH_UP_SLOTS_MAX;
        let from = from.filter(|&(wanted, slot)| wanted == gen_no && near(slot));
        let slot = from.map_or(head.slot, |(_, slot)| slot.max(head.oldest));
        self.end = head.end;
        self.following = head.next;
        self.misses = 0;
        self.waits = 0;
        self.follow(GenInfo { gen_no, epoch_ms, interval_ms, layout: head.v }, slot);
        if head.end.is_some_and(|end| slot > end) {
            self.stage = Stage::Head;
        }
    }

    fn judge_same_gen(&mut self, head: &Head, now: Mono) {
        self.end = head.end.or(self.end);
        self.following = head.next.or(self.following);
        if self.end.is_some_and(|end| self.next > end) {
            return match self.following.take() {
                Some(following) => {
                    self.end = None;
                    self.follow(following, SlotNo(0));
                }
                None => self.stall(now),
            };
        }
        if head.slot < self.next {
            // Not sealed yet: the room stands still, or this head is a little old.
            return self.stall_for_slot(now);
        }
        self.waits = 0;
        self.stage = Stage::Slot;
        let newest = head.slot.0;
        let first = if newest.saturating_sub(self.next.0) > CATCH_UP_SLOTS_MAX {
            newest
        } else {
            self.next.max(head.oldest).0
        };
        if first > self.next.0 {
            // The slots between are one loss: its two ends are enough to mark it.
            self.tell_lost(self.next);
            self.tell_lost(SlotNo(first - 1));
            self.next = SlotNo(first);
            self.attempt = 0;
        }
    }

    /// What is left of a gen that was announced to end is lost; if no end was announced, the slot
    /// that was asked for never existed.
    fn finish_gen(&mut self) {
        if self.end.take().is_some_and(|end| self.next <= end) {
            self.tell_lost(self.next);
        }
        self.following = None;
    }

    /// Reads the head again, later each time.
    fn stall(&mut self, now: Mono) {
        self.not_before = now + self.stalled_wait();
        self.stage = Stage::Head;
    }

    /// Asks for the slot again, later each time: our own origin holds the question until it is
    /// sealed.
    fn stall_for_slot(&mut self, now: Mono) {
        self.not_before = now + self.stalled_wait();
        self.attempt = 1;
        self.stage = Stage::Slot;
    }

    fn stalled_wait(&mut self) -> Duration {
        let wait = STALLED_WAIT.saturating_mul(1 << self.waits.min(3)).min(STALLED_WAIT_MAX);
        self.waits = self.waits.saturating_add(1);
        wait
    }
}
