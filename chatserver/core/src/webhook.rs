//! Events on their way to a business server: gathered, sent in batches, and tried again.
//!
//! A [`Courier`] is one app's. One batch is under way at a time, so that batches arrive in order;
//! one that fails waits with full jitter, twice as long each time, until it is too old. What viewers
//! do comes in floods and has a rate of its own; what moderators do always has a place left. What
//! is not told is counted, and the next batch says how many.

use std::collections::VecDeque;
use std::time::Duration;

use proto::control::{Excluded, Fact};
use proto::id::{AppId, DeviceId, RoomId, ViewerId};
use proto::network::Network;
use proto::time::{Mono, Wall};
use proto::verdict::Reason;
use serde::{Deserialize, Serialize};

/// The shortest upper bound of a pause before another try.
pub const PAUSE_MIN: Duration = Duration::from_millis(500);
/// The longest one.
pub const PAUSE_MAX: Duration = Duration::from_secs(60);
/// Of the queue's places one in so many is for what moderators do.
const RESERVE: usize = 8;

/// What kind of thing happened.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A session came into a room.
    Join,
    /// A session left a room.
    Leave,
    /// A comment was refused.
    Refusal,
    /// A viewer may not send, or may again.
    Mute,
    /// A viewer, a device or a range of addresses may not be in a room, or may again.
    Ban,
    /// A viewer was sent out.
    Kick,
    /// A room was closed.
    Close,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Self; 7] =
        [Self::Join, Self::Leave, Self::Refusal, Self::Mute, Self::Ban, Self::Kick, Self::Close];

    /// Whether viewers do it, as often as they like.
    #[must_use]
    pub const fn is_viewers(self) -> bool {
        match self {
            Self::Join | Self::Leave | Self::Refusal => true,
            Self::Mute | Self::Ban | Self::Kick | Self::Close => false,
        }
    }
}

/// Something that happened.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct Event {
    /// What kind.
    pub kind: Kind,
    /// When, in milliseconds since 1970.
    #[serde(rename = "at_ms")]
    pub at: Wall,
    /// Where.
    pub room: RoomId,
    /// Who did it, or whom it hits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub account: Option<ViewerId>,
    /// The device that it hits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device: Option<DeviceId>,
    /// The addresses that it hits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub range: Option<Network>,
    /// Why a comment was refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<Reason>,
    /// Until when it holds; 0: no more.
    #[serde(rename = "until_ms", skip_serializing_if = "Option::is_none")]
    pub until: Option<Wall>,
}

impl Event {
    /// Something that happened to nobody in particular.
    #[must_use]
    pub const fn new(kind: Kind, room: RoomId, at: Wall) -> Self {
        let (account, device, range, reason, until) = (None, None, None, None, None);
        Self { kind, at, room, account, device, range, reason, until }
    }

    /// What a moderator did in which app, if the fact says so.
    #[must_use]
    pub fn of_fact(fact: &Fact, at: Wall) -> Option<(AppId, Self)> {
        let new = |kind, room: &RoomId| Self::new(kind, room.clone(), at);
        Some(match fact {
            Fact::Mute { app, room, viewer, until } => {
                let (account, until) = (Some(viewer.clone()), Some(*until));
                (*app, Self { account, until, ..new(Kind::Mute, room) })
            }
            Fact::Ban { app, room, viewer, until } => {
                let (account, until) = (Some(viewer.clone()), Some(*until));
                (*app, Self { account, until, ..new(Kind::Ban, room) })
            }
            Fact::Exclude { app, room, what, until } => {
                let (device, range) = match what {
                    Excluded::Device(device) => (Some(device.clone()), None),
                    Excluded::Range(range) => (None, Some(*range)),
                };
                (*app, Self { device, range, until: Some(*until), ..new(Kind::Ban, room) })
            }
            Fact::Kick { app, room, viewer, .. } => {
                (*app, Self { account: Some(viewer.clone()), ..new(Kind::Kick, room) })
            }
            Fact::Room(it) if !it.open => (it.app, new(Kind::Close, &it.room)),
            Fact::Room(_)
            | Fact::Epoch(_)
            | Fact::Close { .. }
            | Fact::Keep { .. }
            | Fact::Heat { .. }
            | Fact::Bases { .. }
            | Fact::Move { .. }
            | Fact::Lease(_)
            | Fact::Revoked { .. }
            | Fact::Policy(_)
            | Fact::Sdk(_)
            | Fact::Words { .. }
            | Fact::Catalogue(_)
            | Fact::Person { .. }
            | Fact::Attribute { .. }
            | Fact::Sealed { .. } => return None,
        })
    }
}

/// What a courier is held to.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Events that wait.
    pub events_max: usize,
    /// Events of one batch.
    pub batch_max: usize,
    /// How long the first event of a batch waits for others.
    pub linger: Duration,
    /// Joins, leaves and refusals a second; as many may come at once.
    pub viewers_per_s_max: u32,
    /// How long a batch is tried.
    pub age_max: Duration,
}

/// What a courier is told.
#[derive(Clone, Debug)]
pub enum Input {
    /// Something happened.
    Event(Event),
    /// So many events were lost on their way here; the next batch says so.
    Missed(u64),
    /// The batch under way arrived.
    Delivered,
    /// It did not; `roll` is any number, for the jitter.
    Failed {
        /// Drawn anew each time.
        roll: u64,
    },
}

/// What a courier wants done.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Output {
    /// Send this, then say [`Input::Delivered`] or [`Input::Failed`].
    Send(Batch),
    /// So many events are told to nobody, for this reason.
    Lost(Lost, u64),
}

/// Why events are told to nobody.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Lost {
    /// Viewers do more than may be told.
    Rate,
    /// Too many wait.
    Full,
    /// Nobody took them for too long.
    Old,
}

/// Events that are sent together.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Batch {
    /// Rises by one with each batch, and is the same for one that is sent again.
    pub no: u64,
    /// In the order in which they were taken in.
    pub events: Vec<Event>,
    /// Events before these that are told to nobody.
    pub missed: u64,
}

/// The machine.
#[derive(Debug)]
pub struct Courier {
    limits: Limits,
    waiting: VecDeque<(Mono, Event)>,
    /// What viewers may do now, in thousandths of events, and since when.
    allowance: (u64, Mono),
    missed: u64,
    batches: u64,
    under_way: Option<UnderWay>,
    outputs: VecDeque<Output>,
}

#[derive(Debug)]
struct UnderWay {
    batch: Batch,
    /// When it was made.
    since: Mono,
    tries: u32,
    /// When it is to be sent again; none: it is being sent.
    again_at: Option<Mono>,
}

impl Courier {
    /// Nothing happened yet.
    #[must_use]
    pub fn new(limits: Limits, now: Mono) -> Self {
        Self {
            allowance: (u64::from(limits.viewers_per_s_max) * 1000, now),
            limits,
            waiting: VecDeque::new(),
            missed: 0,
            batches: 0,
            under_way: None,
            outputs: VecDeque::new(),
        }
    }

    /// Takes in what happened.
    pub fn handle(&mut self, input: Input, now: Mono) {
        match input {
            Input::Event(event) => self.take(event, now),
            Input::Missed(events) => self.missed += events,
            Input::Delivered => self.under_way = None,
            Input::Failed { roll } => self.fail(roll, now),
        }
        self.tick(now);
    }

    /// Sends what is due.
    pub fn tick(&mut self, now: Mono) {
        if let Some(UnderWay { batch, again_at, .. }) = &mut self.under_way {
            if again_at.take_if(|it| *it <= now).is_some() {
                self.outputs.push_back(Output::Send(batch.clone()));
            }
        } else if self.is_due(now) {
            self.pack(now);
        }
    }

    /// What is to be done next.
    pub fn poll(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// When [`Courier::tick`] has something to do.
    #[must_use]
    pub fn deadline(&self) -> Option<Mono> {
        match &self.under_way {
            Some(it) => it.again_at,
            None => self.waiting.front().map(|it| it.0 + self.limits.linger),
        }
    }

    /// Events that wait, those of the batch under way included.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.waiting.len() + self.under_way.as_ref().map_or(0, |it| it.batch.events.len())
    }

    fn take(&mut self, event: Event, now: Mono) {
        let events_max = self.limits.events_max;
        if event.kind.is_viewers() {
            if !self.allow(now) {
                return self.lose(Lost::Rate, 1);
            }
            if self.waiting() >= events_max - events_max / RESERVE {
                return self.lose(Lost::Full, 1);
            }
        }
        if self.waiting() >= events_max {
            return self.lose(Lost::Full, 1);
        }
        self.waiting.push_back((now, event));
    }

    fn allow(&mut self, now: Mono) -> bool {
        let per_s = u64::from(self.limits.viewers_per_s_max);
        let (there, since) = self.allowance;
        let grown = now.0.saturating_sub(since.0).saturating_mul(per_s);
        let there = there.saturating_add(grown).min(per_s * 1000);
        let left = there.checked_sub(1000);
        self.allowance = (left.unwrap_or(there), now);
        left.is_some()
    }

    fn is_due(&self, now: Mono) -> bool {
        self.waiting.len() >= self.limits.batch_max
            || self.waiting.front().is_some_and(|it| it.0 + self.limits.linger <= now)
    }

    fn pack(&mut self, now: Mono) {
        let count = self.waiting.len().min(self.limits.batch_max);
        let events = self.waiting.drain(..count).map(|it| it.1).collect();
        let missed = std::mem::take(&mut self.missed);
        let batch = Batch { no: self.batches, events, missed };
        self.batches += 1;
        self.outputs.push_back(Output::Send(batch.clone()));
        self.under_way = Some(UnderWay { batch, since: now, tries: 0, again_at: None });
    }

    fn fail(&mut self, roll: u64, now: Mono) {
        let Some(under_way) = &mut self.under_way else { return };
        let most = PAUSE_MIN.saturating_mul(1 << under_way.tries.min(16)).min(PAUSE_MAX);
        under_way.tries += 1;
        let most_ms = u64::try_from(most.as_millis()).unwrap_or(u64::MAX);
        let again_at = now + Duration::from_millis(roll % most_ms.max(1));
        if again_at.since(under_way.since) < self.limits.age_max {
            under_way.again_at = Some(again_at);
            return;
        }
        let events = u64::try_from(under_way.batch.events.len()).unwrap_or(u64::MAX);
        // What it would have said is said by the next one.
        self.missed += under_way.batch.missed;
        self.under_way = None;
        self.lose(Lost::Old, events);
    }

    fn lose(&mut self, why: Lost, events: u64) {
        self.missed += events;
        self.outputs.push_back(Output::Lost(why, events));
    }
}

#[cfg(test)]
mod tests;
