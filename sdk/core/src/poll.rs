//! When which slot of a room is asked for.
//!
//! Slot n is asked for at its end by the server's clock, plus 200–300 ms, plus a phase that is
//! fixed for this client, so that viewers do not all ask in the same millisecond. One retry on the
//! next base, and one more if the head can be read meanwhile; then the next slot; after three slots
//! given up the machine waits 1–30 s and reads the head again. While no head can be read the servers
//! are away: nothing is given up, and what is still there afterwards is caught up with in order. A
//! file that is not there is the head's to explain, too: not sealed yet, gone, or another gen; a gen
//! is read to its end before the next one. The server's numbers are taken over from every answer.
//!
//! The machine asks for one thing at a time and waits for its answer.

mod judge;
mod miss;

use std::collections::VecDeque;
use std::time::Duration;

use proto::head::{GenInfo, Head, Tier};
use proto::id::{Gen, SlotNo};
use proto::segment::Header;
use proto::time::{Mono, Wall};

use crate::server_clock::Offset;

/// Slots given up in a row before the machine waits.
pub const MISSES_MAX: u32 = 3;
/// A client that is more slots behind than this goes on at the newest.
///
/// A minute of one-second slots: as long as a link's rings, and longer than anyone wants to read.
pub const CATCH_UP_SLOTS_MAX: u64 = 60;
/// From the end of a slot to the earliest question for it: sealing and storing take this long.
const SETTLE_MS: f64 = 200.0;
/// On top of it, by this client's draw.
const SETTLE_SPREAD_MS: f64 = 100.0;
/// A silence after which the head is read, if the next slot is still ahead by this client's idea of
/// the server's clock; three intervals, if that is longer.
const PATIENCE: Duration = Duration::from_secs(8);
/// No interval or spread from a server is taken beyond this.
const INTERVAL_MS_MAX: u32 = 60_000;

/// This client's draws, uniform in 0..1, fixed for its life.
#[derive(Clone, Copy, Debug)]
pub struct Draws {
    /// Where it stands in `spread_ms`.
    pub phase: f64,
    /// Where it stands in 200–300 ms.
    pub settle: f64,
}

/// Why there is no answer.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Miss {
    /// 404: not there yet, or not there any more.
    NotYet,
    /// 410: older than what is kept, or past the end of the gen.
    Gone,
    /// No answer, a server's error, or bytes that are not what they should be.
    Failed,
}

/// What the machine is told.
#[derive(Clone, Debug)]
pub enum Input {
    /// Start, or start again, at the newest slot, or at this one if it is not too old.
    Start {
        /// Where to go on.
        from: Option<(Gen, SlotNo)>,
    },
    /// Stop behind this slot: the room is pushed from there on.
    Until {
        /// Gen.
        gen_no: Gen,
        /// Last slot to ask for.
        slot: SlotNo,
    },
    /// Stop at once: the viewer does not look.
    Hide,
    /// A better idea of the server's clock.
    Clock(Offset),
    /// The head that was asked for.
    Head(Box<Head>),
    /// The segment that was asked for.
    Segment(Box<Header>),
    /// What was asked for did not come.
    Missed {
        /// Why.
        why: Miss,
        /// Uniform in 0..1, for the wait.
        draw: f64,
    },
}

/// What the machine wants.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Output {
    /// Read the head.
    Head {
        /// Number of the attempt: selects the base.
        attempt: u32,
    },
    /// Fetch a segment.
    Segment {
        /// Gen.
        gen_no: Gen,
        /// Slot.
        slot: SlotNo,
        /// How much of it.
        tier: Tier,
        /// Number of the attempt: selects the base.
        attempt: u32,
    },
    /// This gen is over, and all of it was asked for.
    Ended {
        /// Gen.
        gen_no: Gen,
        /// Its first slot that does not exist.
        slot: SlotNo,
    },
    /// This slot is given up.
    Lost {
        /// Gen.
        gen_no: Gen,
        /// Slot.
        slot: SlotNo,
    },
}

/// One room's schedule.
#[derive(Debug)]
pub struct Poll {
    draws: Draws,
    tier: Tier,
    offset: Option<Offset>,
    stage: Stage,
    timeline: Option<GenInfo>,
    spread_ms: u32,
    /// The slot to ask for next.
    next: SlotNo,
    /// Where a start was asked for.
    from: Option<(Gen, SlotNo)>,
    until: Option<(Gen, SlotNo)>,
    /// The last slot of this gen, and what follows.
    end: Option<SlotNo>,
    following: Option<GenInfo>,
    /// A head named a later gen, so what is not there now will never be.
    is_over: bool,
    /// The last answer was that the slot is gone.
    is_gone: bool,
    /// Attempts for the current slot.
    attempt: u32,
    /// Attempts for the head.
    head_attempt: u32,
    /// Slots given up in a row.
    misses: u32,
    /// Waits in a row.
    waits: u32,
    /// The head was read since the last slot.
    head_is_fresh: bool,
    /// When something was last heard.
    heard: Mono,
    /// Not before this, whatever is due.
    not_before: Mono,
    outputs: VecDeque<Output>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Stage {
    Stopped,
    /// The head is to be read.
    Head,
    HeadAsked,
    /// The next slot is to be asked for when it is due.
    Slot,
    SlotAsked,
}

impl Poll {
    /// A schedule that is stopped.
    #[must_use]
    pub const fn new(draws: Draws, tier: Tier) -> Self {
        Self {
            draws,
            tier,
            offset: None,
            stage: Stage::Stopped,
            timeline: None,
            spread_ms: 0,
            next: SlotNo(0),
            from: None,
            until: None,
            end: None,
            following: None,
            is_over: false,
            is_gone: false,
            attempt: 0,
            head_attempt: 0,
            misses: 0,
            waits: 0,
            head_is_fresh: false,
            heard: Mono(0),
            not_before: Mono(0),
            outputs: VecDeque::new(),
        }
    }

    /// Takes in what happened at `now`.
    pub fn handle(&mut self, input: Input, now: Mono) {
        self.heard = now;
        match input {
            Input::Start { from } => self.start(from),
            Input::Until { gen_no, slot } => self.stop_behind((gen_no, slot)),
            Input::Hide => self.stage = Stage::Stopped,
            Input::Clock(offset) => self.offset = Some(offset),
            Input::Head(head) => {
                if self.stage == Stage::HeadAsked {
                    self.judge(&head, now);
                }
            }
            Input::Segment(header) => {
                // A schedule that was stopped and started again may hear an older answer first.
                let asked = self.timeline.map(|it| (it.gen_no, self.next));
                if self.stage == Stage::SlotAsked && asked == Some((header.gen_no, header.slot)) {
                    self.arrived(&header);
                }
            }
            Input::Missed { why, draw } => self.missed(why, now, draw),
        }
        self.tick(now);
    }

    /// Asks for what is due.
    pub fn tick(&mut self, now: Mono) {
        if self.deadline().is_none_or(|due| now < due) {
            return;
        }
        match self.timeline {
            Some(timeline)
                if self.stage == Stage::Slot
                    && now >= self.due()
                    && !self.is_far_behind(&timeline, now) =>
            {
                self.stage = Stage::SlotAsked;
                let (gen_no, slot, tier) = (timeline.gen_no, self.next, self.tier);
                let attempt = self.attempt;
                self.outputs.push_back(Output::Segment { gen_no, slot, tier, attempt });
            }
            Some(_) | None => {
                self.stage = Stage::HeadAsked;
                self.outputs.push_back(Output::Head { attempt: self.head_attempt });
            }
        }
    }

    /// Whether the device slept: then the head says where to go on.
    fn is_far_behind(&self, timeline: &GenInfo, now: Mono) -> bool {
        let behind = self.offset.map(|it| it.wall(now).since(end_of(timeline, self.next)));
        let slots_max = u32::try_from(2 * CATCH_UP_SLOTS_MAX).unwrap_or(u32::MAX);
        let is_far = behind.is_some_and(|it| it > interval(timeline).saturating_mul(slots_max));
        is_far && !self.head_is_fresh
    }

    /// The next thing to do.
    pub fn poll(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// When [`Poll::tick`] has something to do.
    #[must_use]
    pub fn deadline(&self) -> Option<Mono> {
        match self.stage {
            Stage::Stopped | Stage::HeadAsked | Stage::SlotAsked => None,
            Stage::Head => Some(self.not_before),
            Stage::Slot => {
                // The server's clock may have been set: a slot that seems far ahead is asked about.
                let patience = self.timeline.map_or(PATIENCE, |it| PATIENCE.max(3 * interval(&it)));
                Some(self.due().min(self.heard + patience).max(self.not_before))
            }
        }
    }

    /// Whether it asks for anything.
    #[must_use]
    pub const fn is_running(&self) -> bool {
        !matches!(self.stage, Stage::Stopped)
    }

    /// When the next slot should be asked for.
    fn due(&self) -> Mono {
        let (Some(timeline), Some(offset), false) = (self.timeline, self.offset, self.is_over)
        else {
            return Mono(0);
        };
        let spread_ms = f64::from(self.spread_ms.min(INTERVAL_MS_MAX));
        let delay_ms =
            SETTLE_MS + SETTLE_SPREAD_MS * self.draws.settle + spread_ms * self.draws.phase;
        let delay = Duration::try_from_secs_f64(delay_ms / 1_000.0).unwrap_or_default();
        offset.mono(end_of(&timeline, self.next) + delay)
    }

    fn start(&mut self, from: Option<(Gen, SlotNo)>) {
        self.until = None;
        if matches!(self.stage, Stage::Stopped) {
            self.from = from;
            self.timeline = None;
            self.stage = Stage::Head;
        }
    }

    fn stop_behind(&mut self, last: (Gen, SlotNo)) {
        self.until = Some(last);
        self.stop_if_over();
    }

    fn stop_if_over(&mut self) {
        if let (Some(timeline), Some(until)) = (self.timeline, self.until)
            && (timeline.gen_no, self.next) > until
        {
            self.stage = Stage::Stopped;
        }
    }

    fn arrived(&mut self, header: &Header) {
        self.misses = 0;
        self.waits = 0;
        self.spread_ms = header.spread_ms;
        self.tier = header.next_tier.unwrap_or(self.tier);
        self.end = header.end.or(self.end);
        self.following = header.next.or(self.following);
        if let Some(timeline) = &mut self.timeline {
            timeline.epoch_ms = header.epoch_ms;
            timeline.interval_ms = header.interval_ms.clamp(1, INTERVAL_MS_MAX);
        }
        self.advance();
    }

    /// Goes on behind the current slot.
    fn advance(&mut self) {
        (self.attempt, self.is_gone) = (0, false);
        self.head_is_fresh = false;
        self.stage = Stage::Slot;
        let slot = self.next;
        self.next = SlotNo(slot.0.saturating_add(1));
        if self.end.is_some_and(|end| slot >= end) {
            match self.following.take() {
                Some(following) => {
                    self.end = None;
                    self.follow(following, SlotNo(0));
                }
                None => self.stage = Stage::Head,
            }
        }
        self.stop_if_over();
    }

    fn follow(&mut self, timeline: GenInfo, slot: SlotNo) {
        let interval_ms = timeline.interval_ms.clamp(1, INTERVAL_MS_MAX);
        self.timeline = Some(GenInfo { interval_ms, ..timeline });
        self.next = slot;
        self.is_over = false;
        (self.attempt, self.is_gone) = (0, false);
        self.stage = Stage::Slot;
    }

    fn tell_lost(&mut self, (gen_no, slot): (Gen, SlotNo)) {
        self.outputs.push_back(Output::Lost { gen_no, slot });
    }
}

/// When a slot ends, by the server's clock.
fn end_of(timeline: &GenInfo, slot: SlotNo) -> Wall {
    let slots = u32::try_from(slot.0.saturating_add(1)).unwrap_or(u32::MAX);
    timeline.epoch_ms + interval(timeline).saturating_mul(slots)
}

fn interval(timeline: &GenInfo) -> Duration {
    Duration::from_millis(u64::from(timeline.interval_ms))
}
