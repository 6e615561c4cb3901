//! What a head means for the next question.

use std::time::Duration;

use proto::head::{GenInfo, Head};
use proto::id::{Gen, SlotNo};
use proto::time::{Mono, Wall};

use super::{CATCH_UP_SLOTS_MAX, Output, Poll, Stage};

/// A client that is more gens behind than this goes on at the newest. A room opens one when its
/// servers' clock jumps, or when its history is lost.
const GENS_BEHIND_MAX: u32 = 4;
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
            // The slot may have been sealed since it was asked for.
            Some(timeline) if head.gen_no > timeline.gen_no && self.is_in_doubt() => {
                self.is_over = true;
                self.stage = Stage::Slot;
            }
            Some(timeline) if head.gen_no > timeline.gen_no => {
                self.finish_gen();
                let next_gen = Gen(timeline.gen_no.0.saturating_add(1));
                self.enter(head, Some((next_gen, SlotNo(0))));
            }
            // An old head from some cache.
            Some(_) => self.stall(now),
        }
        self.stop_if_over();
    }

    /// Starts at `from` if that is near enough, else at the newest slot.
    fn enter(&mut self, head: &Head, from: Option<(Gen, SlotNo)>) {
        let (gen_no, epoch_ms, interval_ms) = (head.gen_no, head.epoch_ms, head.interval_ms);
        self.misses = 0;
        self.waits = 0;
        if let Some((wanted, slot)) = from.filter(|it| it.0 < gen_no) {
            if gen_no.0 - wanted.0 <= GENS_BEHIND_MAX {
                (self.end, self.following) = (None, None);
                // Its segments say when it was; until then all of it counts as due.
                let info =
                    GenInfo { gen_no: wanted, epoch_ms: Wall(0), interval_ms, layout: head.v };
                return self.follow(info, slot);
            }
            self.tell_lost((wanted, SlotNo(slot.0.saturating_add(1))));
        }
        let near = |slot: SlotNo| head.slot.0.saturating_sub(slot.0) <= CATCH_UP_SLOTS_MAX;
        let from = from.filter(|&(wanted, slot)| wanted == gen_no && near(slot));
        let slot = from.map_or(head.slot, |(_, slot)| slot.max(head.oldest));
        self.end = head.end;
        self.following = head.next;
        self.follow(GenInfo { gen_no, epoch_ms, interval_ms, layout: head.v }, slot);
        if head.end.is_some_and(|end| slot > end) {
            self.stage = Stage::Head;
        }
    }

    fn judge_same_gen(&mut self, head: &Head, now: Mono) {
        self.is_over = false;
        self.end = head.end.or(self.end);
        self.following = head.next.or(self.following);
        if let Some(end) = self.end.filter(|&it| self.next > it) {
            let Some(following) = self.following.take() else {
                return self.stall(now);
            };
            let slot = SlotNo(end.0.saturating_add(1));
            self.outputs.push_back(Output::Ended { gen_no: head.gen_no, slot });
            self.end = None;
            return self.follow(following, SlotNo(0));
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
            self.tell_lost((head.gen_no, self.next));
            self.tell_lost((head.gen_no, SlotNo(first - 1)));
            self.next = SlotNo(first);
            self.attempt = 0;
        }
    }

    /// Whether the slot may be there, and was not asked for since the gen is known to be over.
    fn is_in_doubt(&self) -> bool {
        !self.is_over && !self.is_gone && self.end.is_none_or(|end| self.next <= end)
    }

    /// The gen is over. What is left of it is lost: up to its end, if that was announced, or
    /// whatever was not asked for; a slot that was asked for in vain never existed.
    fn finish_gen(&mut self) {
        let is_cut = self.end.take().map_or(self.attempt == 0, |end| self.next <= end);
        self.following = None;
        let Some(GenInfo { gen_no, .. }) = self.timeline else {
            return;
        };
        let slot = self.next;
        if is_cut {
            self.tell_lost((gen_no, slot));
        } else {
            self.outputs.push_back(Output::Ended { gen_no, slot });
        }
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
