//! One room as a viewer follows it: pushed, polled, or one after the other as the link says.
//!
//! A [`Room`] is fed what the link says and what was fetched, and drained of [`Output`]s. It puts
//! [`Merge`] and [`Poll`] together: the first knows what is missing, the second when to ask.

use std::collections::VecDeque;
use std::time::Duration;

use proto::frame::{Batch, Join, JoinOutcome, Path, Place, Resumed, Seal};
use proto::head::{Head, Tier};
use proto::heat::Heat;
use proto::id::{Gen, RoomId, Seq, SlotNo};
use proto::segment::Segment;
use proto::time::Mono;

use crate::merge::{self, Merge};
use crate::poll::{self, Draws, Miss, Poll};
use crate::server_clock::Offset;

/// The shortest wait before a refused join is tried again; up to as much comes on top, or those whom
/// a link told to wait for less would all come at once.
const REJOIN_WAIT: Duration = Duration::from_secs(1);

/// How much a room keeps and fetches.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// What its merge remembers, and how long it waits.
    pub merge: merge::Limits,
    /// Segments that are fetched at once to fill a gap.
    pub fetches_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { merge: merge::Limits::default(), fetches_max: 4 }
    }
}

/// What a room is told.
#[derive(Clone, Debug)]
pub enum Input {
    /// The answer to a join.
    Joined(JoinOutcome),
    /// The connection ended.
    Disconnected,
    /// Segments can be asked for, whether or not a link lets the viewer in.
    Entered,
    /// No link lets the viewer in: the room is polled, whatever its path.
    ReadOnly,
    /// Items of one flush.
    Batch(Batch),
    /// A slot is complete.
    Seal(Seal),
    /// The link left items out because this session is slow.
    Skipped {
        /// How many.
        items: u32,
    },
    /// The room changes its path from this slot on.
    Heat {
        /// Hot: segments; cold: push.
        heat: Heat,
        /// Gen of the switch.
        gen_no: Gen,
        /// First slot on the new path.
        slot: SlotNo,
    },
    /// The room is closed.
    Closed,
    /// A better idea of the server's clock.
    Clock(Offset),
    /// The head that [`Output::Head`] asked for.
    Head(Box<Head>),
    /// The segment that [`Output::Poll`] asked for.
    Polled(Box<Segment>),
    /// What [`Output::Head`] or [`Output::Poll`] asked for did not come.
    Missed {
        /// Why.
        why: Miss,
        /// Uniform in 0..1, for the wait.
        draw: f64,
    },
    /// What [`Output::Fetch`] asked for; none if it will not come.
    Fetched {
        /// Gen.
        gen_no: Gen,
        /// Slot.
        slot: SlotNo,
        /// The segment.
        segment: Option<Box<Segment>>,
    },
}

/// What a room wants.
#[derive(Clone, Debug, PartialEq)]
pub enum Output {
    /// Show, recall, or tell of a gap; never [`merge::Output::Fetch`].
    Tell(merge::Output),
    /// Send [`Room::join`] again.
    Join,
    /// Read the head.
    Head {
        /// Number of the attempt: selects the base.
        attempt: u32,
    },
    /// Fetch a segment once, for the schedule.
    Poll {
        /// Gen.
        gen_no: Gen,
        /// Slot.
        slot: SlotNo,
        /// How much of it.
        tier: Tier,
        /// Number of the attempt: selects the base.
        attempt: u32,
    },
    /// Fetch a segment, with retries, to fill a gap.
    Fetch {
        /// Gen.
        gen_no: Gen,
        /// Slot.
        slot: SlotNo,
    },
}

/// One room.
#[derive(Debug)]
pub struct Room {
    id: RoomId,
    path: Path,
    merge: Merge,
    poll: Poll,
    /// The session keeps the push in a hot room, so news of heat changes nothing.
    keeps_push: bool,
    /// The first slot that is to be polled, while a room that was pushed is hot.
    hot_from: Option<(Gen, SlotNo)>,
    /// The newest place when a push began.
    entered: Option<Place>,
    rejoin_at: Option<Mono>,
    /// Uniform in 0..1.
    draw: f64,
    wanted: VecDeque<(Gen, SlotNo)>,
    fetching: usize,
    fetches_max: usize,
    outputs: VecDeque<Output>,
}

impl Room {
    /// A room that is not entered yet.
    #[must_use]
    pub fn new(id: RoomId, path: Path, tier: Tier, draws: Draws, limits: Limits) -> Self {
        Self {
            id,
            path,
            merge: Merge::new(limits.merge),
            poll: Poll::new(draws, tier),
            keeps_push: false,
            hot_from: None,
            entered: None,
            rejoin_at: None,
            draw: draws.phase,
            wanted: VecDeque::new(),
            fetching: 0,
            fetches_max: limits.fetches_max,
            outputs: VecDeque::new(),
        }
    }

    /// The wish to be in this room, from where the viewer is: behind what was shown, or, if the
    /// room was silent, behind what was there when the viewer came.
    #[must_use]
    pub fn join(&self) -> Join {
        let silent = self.merge.reached().map(|(gen_no, _)| Place { gen_no, seq: Seq(0) });
        let resume = self.merge.cursor().or_else(|| self.entered.max(silent));
        Join { room: self.id.clone(), path: self.path, resume }
    }

    /// Takes in what happened at `now`.
    pub fn handle(&mut self, input: Input, now: Mono) {
        match input {
            Input::Joined(outcome) => self.joined(&outcome, now),
            Input::Disconnected => self.rejoin_at = None,
            Input::Entered if self.path == Path::Segments => self.read_only(now),
            Input::Entered => {}
            Input::ReadOnly => self.read_only(now),
            Input::Batch(batch) => self.pushed(batch, now),
            Input::Seal(seal) => self.merge(merge::Input::Seal(seal), now),
            Input::Skipped { items } => self.merge(merge::Input::Skipped { items }, now),
            Input::Heat { heat, gen_no, slot } => self.heat(heat, gen_no, slot, now),
            Input::Closed => self.poll.handle(poll::Input::Hide, now),
            Input::Clock(offset) => self.poll.handle(poll::Input::Clock(offset), now),
            Input::Head(head) => {
                self.merge(merge::Input::Recalled(head.recalled.clone()), now);
                self.poll.handle(poll::Input::Head(head), now);
            }
            Input::Polled(segment) => {
                let header = Box::new(segment.header.clone());
                self.merge(merge::Input::Segment(*segment), now);
                self.poll.handle(poll::Input::Segment(header), now);
            }
            Input::Missed { why, draw } => self.poll.handle(poll::Input::Missed { why, draw }, now),
            Input::Fetched { gen_no, slot, segment } => {
                self.fetching = self.fetching.saturating_sub(1);
                let lost = merge::Input::Lost { gen_no, slot };
                self.merge(segment.map_or(lost, |it| merge::Input::Segment(*it)), now);
            }
        }
        self.pass_on(now);
    }

    /// Acts on what came due.
    pub fn tick(&mut self, now: Mono) {
        self.merge.tick(now);
        self.poll.tick(now);
        if self.rejoin_at.take_if(|it| now >= *it).is_some() {
            self.outputs.push_back(Output::Join);
        }
        self.pass_on(now);
    }

    /// The next thing to do.
    pub fn poll(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// When [`Room::tick`] has something to do.
    #[must_use]
    pub fn deadline(&self) -> Option<Mono> {
        let deadlines = [self.merge.deadline(), self.poll.deadline(), self.rejoin_at];
        deadlines.into_iter().flatten().min()
    }

    fn joined(&mut self, outcome: &JoinOutcome, now: Mono) {
        match *outcome {
            JoinOutcome::In { heat, path, resumed, latest, .. } => {
                self.rejoin_at = None;
                if resumed == Resumed::Fresh {
                    self.entered = latest;
                }
                self.keeps_push = path == Path::Push && heat == Heat::Hot;
                self.hot_from = None;
                self.merge(merge::Input::Joined { path, resumed }, now);
                match path {
                    Path::Segments => self.start_polling(now),
                    Path::Push | Path::Auto => self.poll.handle(poll::Input::Hide, now),
                }
            }
            JoinOutcome::Refused { code, retry_after_ms } => {
                let wait = Duration::from_millis(retry_after_ms.into()).max(REJOIN_WAIT);
                let wait = wait + REJOIN_WAIT.mul_f64(self.draw.clamp(0.0, 1.0));
                self.rejoin_at = code.comes_back().then(|| now + wait);
            }
        }
    }

    fn read_only(&mut self, now: Mono) {
        if !self.poll.is_running() {
            let (path, resumed) = (Path::Segments, Resumed::Fresh);
            self.merge(merge::Input::Joined { path, resumed }, now);
            self.start_polling(now);
        }
    }

    /// Who came while the room was cold was not told whether its session keeps the push when the
    /// room turns hot. A push of a slot that was to be polled says so: from there on it is as if the
    /// room were cold.
    fn pushed(&mut self, batch: Batch, now: Mono) {
        let (gen_no, slot) = (batch.gen_no, batch.slot);
        let is_hot = self.hot_from.is_some_and(|it| it <= (gen_no, slot));
        if is_hot && self.path == Path::Push {
            self.heat(Heat::Cold, gen_no, slot, now);
        }
        self.merge(merge::Input::Batch(batch), now);
    }

    fn heat(&mut self, heat: Heat, gen_no: Gen, slot: SlotNo, now: Mono) {
        if self.keeps_push || self.path == Path::Segments {
            return;
        }
        self.hot_from = (heat == Heat::Hot).then_some((gen_no, slot));
        self.merge(merge::Input::Heat { heat, gen_no, slot }, now);
        // One slot of overlap: a push that is slower than the first segment is not overtaken.
        let before = SlotNo(slot.0.saturating_sub(1));
        let input = match heat {
            Heat::Hot => poll::Input::Start { from: Some((gen_no, before)) },
            Heat::Cold => poll::Input::Until { gen_no, slot: before },
        };
        self.poll.handle(input, now);
    }

    fn start_polling(&mut self, now: Mono) {
        self.poll.handle(poll::Input::Start { from: self.merge.reached() }, now);
    }

    fn merge(&mut self, input: merge::Input, now: Mono) {
        self.merge.handle(input, now);
    }

    /// Makes outputs of what merge and schedule want. The merge bounds how many slots it wants;
    /// this bounds how many are fetched at once.
    fn pass_on(&mut self, now: Mono) {
        while let Some(output) = self.poll.poll() {
            match output {
                poll::Output::Head { attempt } => self.outputs.push_back(Output::Head { attempt }),
                poll::Output::Segment { gen_no, slot, tier, attempt } => {
                    self.outputs.push_back(Output::Poll { gen_no, slot, tier, attempt });
                }
                poll::Output::Ended { gen_no, slot } => {
                    self.merge(merge::Input::Ended { gen_no, slot }, now);
                }
                poll::Output::Lost { gen_no, slot } => {
                    self.merge(merge::Input::Lost { gen_no, slot }, now);
                }
            }
        }
        while let Some(output) = self.merge.poll() {
            match output {
                merge::Output::Fetch { gen_no, slot } => self.wanted.push_back((gen_no, slot)),
                told @ (merge::Output::Show(_)
                | merge::Output::Gap { .. }
                | merge::Output::Recall(_)) => self.outputs.push_back(Output::Tell(told)),
            }
        }
        while self.fetching < self.fetches_max
            && let Some((gen_no, slot)) = self.wanted.pop_front()
        {
            self.fetching += 1;
            self.outputs.push_back(Output::Fetch { gen_no, slot });
        }
    }
}

#[cfg(test)]
mod tests;
