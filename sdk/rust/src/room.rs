//! One room as a viewer follows it: its merge, its poll schedule, and what both want fetched.

use std::collections::VecDeque;
use std::time::Duration;

use proto::frame::{Join, JoinOutcome, Path};
use proto::head::{Head, Tier};
use proto::heat::Heat;
use proto::id::{Gen, RoomId, SlotNo};
use proto::segment::Segment;
use proto::time::Mono;
use sdk_core::merge::{self, Merge};
use sdk_core::poll::{self, Draws, Miss, Poll};
use sdk_core::server_clock::Offset;

use crate::event::Event;
use crate::options::Bounds;

/// The shortest wait before a refused join is tried again.
const REJOIN_WAIT: Duration = Duration::from_secs(1);

/// What a room wants done.
#[derive(Debug)]
pub(crate) enum Act {
    /// Tell the application.
    Tell(Event),
    /// Read the head.
    Head {
        /// Selects the base.
        attempt: u32,
    },
    /// Fetch a segment, once, for the schedule.
    Poll { gen_no: Gen, slot: SlotNo, tier: Tier, attempt: u32 },
    /// Fetch a segment, with retries, to fill a gap.
    Fetch { gen_no: Gen, slot: SlotNo },
}

/// One room.
#[derive(Debug)]
pub(crate) struct Room {
    id: RoomId,
    path: Path,
    merge: Merge,
    poll: Poll,
    /// The session keeps the push in a hot room, so news of heat changes nothing.
    keeps_push: bool,
    rejoin_at: Option<Mono>,
    wanted: VecDeque<(Gen, SlotNo)>,
    fetching: usize,
    bounds: Bounds,
    acts: VecDeque<Act>,
}

impl Room {
    pub(crate) fn new(id: RoomId, path: Path, tier: Tier, draws: Draws, bounds: Bounds) -> Self {
        Self {
            id,
            path,
            merge: Merge::new(bounds.merge),
            poll: Poll::new(draws, tier),
            keeps_push: false,
            rejoin_at: None,
            wanted: VecDeque::new(),
            fetching: 0,
            bounds,
            acts: VecDeque::new(),
        }
    }

    /// The wish to be in this room, from where the viewer is.
    pub(crate) fn join(&self) -> Join {
        Join { room: self.id.clone(), path: self.path, resume: self.merge.cursor() }
    }

    /// The next thing to do.
    pub(crate) fn poll(&mut self) -> Option<Act> {
        self.acts.pop_front()
    }

    /// The answer to a join.
    pub(crate) fn joined(&mut self, outcome: &JoinOutcome, now: Mono) {
        match *outcome {
            JoinOutcome::In { heat, path, resumed, .. } => {
                self.rejoin_at = None;
                self.keeps_push = path == Path::Push && heat == Heat::Hot;
                self.merge(merge::Input::Joined { path, resumed }, now);
                if path == Path::Segments {
                    self.start_polling(self.merge.reached(), now);
                } else {
                    self.schedule(poll::Input::Hide, now);
                }
            }
            JoinOutcome::Refused { code, retry_after_ms } => {
                let wait = Duration::from_millis(retry_after_ms.into()).max(REJOIN_WAIT);
                self.rejoin_at = code.comes_back().then(|| now + wait);
            }
        }
    }

    /// There is no connection; joins of it are void.
    pub(crate) const fn disconnected(&mut self) {
        self.rejoin_at = None;
    }

    /// Reads the room by segments, whatever its path: there is no link to be had.
    pub(crate) fn read_only(&mut self, now: Mono) {
        let resumed = proto::frame::Resumed::Fresh;
        if !self.poll.is_running() {
            self.merge(merge::Input::Joined { path: Path::Segments, resumed }, now);
            self.start_polling(self.merge.reached(), now);
        }
    }

    /// Starts at once what needs no connection: a room that is polled by choice.
    pub(crate) fn entered(&mut self, now: Mono) {
        if self.path == Path::Segments {
            self.read_only(now);
        }
    }

    pub(crate) fn heat(&mut self, heat: Heat, gen_no: Gen, slot: SlotNo, now: Mono) {
        if self.keeps_push || self.path == Path::Segments {
            return;
        }
        self.merge(merge::Input::Heat { heat, gen_no, slot }, now);
        // One slot of overlap: a push that is slower than the first segment is not overtaken.
        let before = SlotNo(slot.0.saturating_sub(1));
        match heat {
            Heat::Hot => self.start_polling(Some((gen_no, before)), now),
            Heat::Cold => self.schedule(poll::Input::Until { gen_no, slot: before }, now),
        }
    }

    /// The room is closed.
    pub(crate) fn closed(&mut self, now: Mono) {
        self.schedule(poll::Input::Hide, now);
    }

    pub(crate) fn clock(&mut self, offset: Offset, now: Mono) {
        self.schedule(poll::Input::Clock(offset), now);
    }

    pub(crate) fn head(&mut self, head: Head, now: Mono) {
        self.merge(merge::Input::Recalled(head.recalled.clone()), now);
        self.schedule(poll::Input::Head(Box::new(head)), now);
    }

    pub(crate) fn polled(&mut self, segment: Segment, now: Mono) {
        let header = Box::new(segment.header.clone());
        self.merge(merge::Input::Segment(segment), now);
        self.schedule(poll::Input::Segment(header), now);
    }

    pub(crate) fn missed(&mut self, why: Miss, draw: f64, now: Mono) {
        self.schedule(poll::Input::Missed { why, draw }, now);
    }

    /// A fetch that filled a gap ended.
    pub(crate) fn fetched(&mut self, key: (Gen, SlotNo), segment: Option<Segment>, now: Mono) {
        self.fetching = self.fetching.saturating_sub(1);
        let (gen_no, slot) = key;
        let lost = merge::Input::Lost { gen_no, slot };
        self.merge(segment.map_or(lost, merge::Input::Segment), now);
        self.fetch_wanted();
    }

    pub(crate) fn merge(&mut self, input: merge::Input, now: Mono) {
        self.merge.handle(input, now);
        self.drain_merge();
    }

    /// Acts on what came due; true if the join should be sent again.
    pub(crate) fn tick(&mut self, now: Mono) -> bool {
        self.merge.tick(now);
        self.drain_merge();
        self.poll.tick(now);
        self.drain_poll(now);
        let rejoins = self.rejoin_at.is_some_and(|it| now >= it);
        if rejoins {
            self.rejoin_at = None;
        }
        rejoins
    }

    pub(crate) fn deadline(&self) -> Option<Mono> {
        let deadlines = [self.merge.deadline(), self.poll.deadline(), self.rejoin_at];
        deadlines.into_iter().flatten().min()
    }

    fn start_polling(&mut self, from: Option<(Gen, SlotNo)>, now: Mono) {
        self.schedule(poll::Input::Start { from }, now);
    }

    fn schedule(&mut self, input: poll::Input, now: Mono) {
        self.poll.handle(input, now);
        self.drain_poll(now);
    }

    fn drain_merge(&mut self) {
        while let Some(output) = self.merge.poll() {
            let room = self.id.clone();
            self.acts.push_back(Act::Tell(match output {
                merge::Output::Show(merge::Shown { place, item, via, received }) => {
                    Event::Show { room, place, item, via, received }
                }
                merge::Output::Gap { from, to, items } => Event::Gap { room, from, to, items },
                merge::Output::Recall(id) => Event::Recall { room, id },
                merge::Output::Fetch { gen_no, slot } => {
                    self.wanted.push_back((gen_no, slot));
                    continue;
                }
            }));
        }
        self.fetch_wanted();
    }

    fn drain_poll(&mut self, now: Mono) {
        while let Some(output) = self.poll.poll() {
            match output {
                poll::Output::Head { attempt } => self.acts.push_back(Act::Head { attempt }),
                poll::Output::Segment { gen_no, slot, tier, attempt } => {
                    self.acts.push_back(Act::Poll { gen_no, slot, tier, attempt });
                }
                poll::Output::Lost { gen_no, slot } => {
                    self.merge(merge::Input::Lost { gen_no, slot }, now);
                }
            }
        }
    }

    /// The merge bounds how many slots it wants; this bounds how many are fetched at once.
    fn fetch_wanted(&mut self) {
        while self.fetching < self.bounds.fetches_max {
            let Some((gen_no, slot)) = self.wanted.pop_front() else {
                return;
            };
            self.fetching += 1;
            self.acts.push_back(Act::Fetch { gen_no, slot });
        }
    }
}
