//! One room's machine: items in, flushes, seals and fates out.
//!
//! It asks for a gen with [`Output::WantGen`] when it has none, since only a shell can create one,
//! and goes on when it is told with [`Input::Gen`] or [`Input::Resume`]. Items wait meanwhile.
//! Every item that is not deferred gets exactly one fate: it stands in one flush, or in one
//! [`Output::Fates`] as shed. Ids that come again are only told again.

mod change;
mod exchange;
mod recall;
mod repeats;
mod rest;
mod sealing;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::time::Duration;

use proto::head::GenInfo;
use proto::heat::Heat;
use proto::id::{Gen, SlotNo};
use proto::item::{Item, Placed};
use proto::limits::{ENVELOPE_ENTRIES_MAX, FLUSH_ITEMS_MAX, SEGMENT_ITEMS_MAX};
use proto::time::{Mono, Wall};
use proto::verdict::{Fate, Reason};

use crate::Now;
use crate::budget::{Budget, Span};
use crate::pace::Pace;
use crate::recent::{Known, Recent};
use crate::room::repeats::Repeats;
use crate::room::rest::Rest;
use crate::scheduler::{Scheduler, Settled};
use crate::settings::Settings;
use crate::tempo::Tempo;
use crate::thermostat::Thermostat;
use crate::timeline::{Due, Flush, Timeline};

pub use exchange::{Input, Output, Resume, Sealed, Told};

/// Bytes of text in one flush: with [`FLUSH_ITEMS_MAX`] items it stays well below a frame.
pub const FLUSH_BYTES_MAX: u32 = 192 * 1024;
/// A heat switch is announced this many slots ahead of the open one.
pub const SWITCH_SLOTS: u64 = 2;
/// With `segments = auto`, files are still written this long after a room turned cold.
pub const COOLING: Duration = Duration::from_secs(60);
/// A change of interval is announced this many slots ahead.
const CHANGE_SLOTS: u64 = 2;

/// One room.
#[derive(Debug)]
pub struct Room {
    settings: Settings,
    scheduler: Scheduler,
    recent: Recent,
    thermostat: Thermostat,
    tempo: Tempo,
    timeline: Option<(Timeline, Pace)>,
    newest_gen: Gen,
    has_asked: bool,
    life: Life,
    online: u32,
    cooled_at: Option<Mono>,
    rest: Rest,
    repeats: Repeats,
    fates: VecDeque<Told>,
    outputs: VecDeque<Output>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Life {
    Open,
    Closing,
    Ended,
}

impl Room {
    /// A room without a gen; `newest_gen` and `heat` are what it had last, if that is known.
    #[must_use]
    pub fn new(settings: Settings, newest_gen: Gen, heat: Heat) -> Self {
        Self {
            scheduler: Scheduler::new(settings.scheduler),
            tempo: Tempo::new(&settings.tempo),
            settings,
            recent: Recent::default(),
            thermostat: Thermostat::new(heat),
            timeline: None,
            newest_gen,
            has_asked: false,
            life: Life::Open,
            online: 0,
            cooled_at: None,
            rest: Rest::default(),
            repeats: Repeats::default(),
            fates: VecDeque::new(),
            outputs: VecDeque::new(),
        }
    }

    /// Takes one input.
    pub fn handle(&mut self, input: Input, now: Now) {
        match input {
            Input::Item(item) => self.take_in(item, now),
            Input::Open(settings) => self.open(*settings),
            Input::Close => self.close(),
            Input::Gen(info) => self.begin(info, now),
            Input::Resume(resume) => self.resume(*resume, now),
            Input::Known(items) => self.know(items, now),
            Input::Carry(repeats) => self.repeats.carry(repeats, now.wall),
            Input::Gauge { people, sessions } => self.gauge(people, sessions, now),
        }
        self.tell_settled();
    }

    /// Does whatever came due at or before `now`.
    pub fn tick(&mut self, now: Now) {
        self.run(now);
        if self.timeline.is_none() {
            // The budget is not what they wait for: there is no gen to show them in.
            self.scheduler.expire(Reason::Late, now.mono);
            self.want_gen(now);
        }
        self.tell_settled();
    }

    /// The next thing that must happen.
    pub fn poll(&mut self) -> Option<Output> {
        if let Some(output) = self.outputs.pop_front() {
            return Some(output);
        }
        let told = self.fates.len().min(ENVELOPE_ENTRIES_MAX);
        (told > 0).then(|| Output::Fates(self.fates.drain(..told).collect()))
    }

    /// When to tick next, perhaps at once; `None` while nothing is due before the next input.
    #[must_use]
    pub fn deadline(&self) -> Option<Mono> {
        let Some((timeline, pace)) = &self.timeline else {
            let must_ask = !self.has_asked && self.life != Life::Ended && !self.rest.is_resting();
            return if must_ask { Some(Mono(0)) } else { self.scheduler.deadline() };
        };
        let time = pace.time();
        Some(pace.mono_of(timeline.next_at(time, !self.scheduler.is_empty())))
    }

    fn take_in(&mut self, mut item: Item, now: Now) {
        self.rest.wake();
        self.erase(&mut item);
        let (id, lane) = (item.id, item.lane);
        match self.recent.insert(id, lane, Known::Waiting, now.mono) {
            Some(Known::Waiting) => return,
            Some(Known::Fated(fate)) => return self.fates.push_back(Told { id, lane, fate }),
            None => {}
        }
        let is_refused = match self.life {
            Life::Open => false,
            Life::Closing => !lane.is_protected(),
            Life::Ended => true,
        };
        if is_refused {
            let fate = Fate::Shed { reason: Reason::RoomClosed };
            self.recent.settle(id, fate);
            self.fates.push_back(Told { id, lane, fate });
            return;
        }
        let recalls = item.body.recalls();
        if let Err(_full) = self.scheduler.push(item, now.mono) {
            self.recent.take_back(id);
            return self.outputs.push_back(Output::Deferred(id, lane));
        }
        if let Some(of) = recalls {
            self.recall(of, now);
        }
    }

    fn know(&mut self, items: Vec<Told>, now: Now) {
        for Told { id, lane, fate } in items {
            self.recent.insert(id, lane, Known::Fated(fate), now.mono);
        }
    }

    fn open(&mut self, settings: Settings) {
        self.scheduler.set(settings.scheduler);
        self.tempo.set(&self.settings.tempo, &settings.tempo);
        self.settings = settings;
        self.life = Life::Open;
        self.rest.wake();
    }

    fn close(&mut self) {
        if self.life == Life::Ended {
            return;
        }
        self.life = Life::Closing;
        self.scheduler.shed_comments(Reason::RoomClosed);
        if self.timeline.is_none() && self.scheduler.is_empty() {
            self.finish();
        }
    }

    fn finish(&mut self) {
        self.life = Life::Ended;
        self.outputs.push_back(Output::Ended);
    }

    /// A gen was created: begins at once, or follows the running one at its end.
    fn begin(&mut self, info: GenInfo, now: Now) {
        self.has_asked = false;
        self.newest_gen = self.newest_gen.max(info.gen_no);
        self.tempo.adopt(info.interval_ms, &self.settings.tempo);
        if self.life == Life::Ended {
            return;
        }
        let Some((timeline, _)) = &mut self.timeline else {
            self.start(info, now);
            return;
        };
        let old = timeline.info();
        let last_ms = info.epoch_ms.0.saturating_sub(old.epoch_ms.0).saturating_sub(1);
        timeline.end_with(SlotNo(last_ms / u64::from(old.interval_ms.max(1))), Some(info));
    }

    fn start(&mut self, info: GenInfo, now: Now) {
        let timeline = Timeline::open(info, self.settings.house.flush_ms);
        self.outputs.push_back(Output::Opened(info));
        let (heat, gen_no, online) = (self.thermostat.heat(), info.gen_no, self.online);
        if heat == Heat::Hot {
            // Links may have started anew, and they take an unknown room for a cold one.
            self.outputs.push_back(Output::Heat { heat, gen_no, slot: SlotNo(0), online });
        }
        self.drive(timeline, now);
    }

    fn drive(&mut self, timeline: Timeline, now: Now) {
        let back_ms_max = u64::from(self.settings.house.jump_ms_max);
        let pace = Pace::new(timeline.slot_start(), now, back_ms_max);
        self.timeline = Some((timeline, pace));
    }

    fn resume(&mut self, resume: Resume, now: Now) {
        let Resume { info, slot, next_seq, flushes, shown, told } = resume;
        self.has_asked = false;
        self.newest_gen = self.newest_gen.max(info.gen_no);
        self.tempo.adopt(info.interval_ms, &self.settings.tempo);
        for flush in &shown {
            for placed in &flush.items {
                let known = Known::Fated(fate(flush, placed));
                self.recent.insert(placed.item.id, placed.item.lane, known, now.mono);
            }
            if (flush.gen_no, flush.slot) < (info.gen_no, slot) {
                let is_previous = flush.gen_no == info.gen_no && flush.slot.0 + 1 == slot.0;
                self.repeats.restore(flush, is_previous);
            }
        }
        self.know(told, now);
        let flush_ms = self.settings.house.flush_ms;
        self.drive(Timeline::resume(info, flush_ms, slot, next_seq, flushes), now);
    }

    fn gauge(&mut self, people: u32, sessions: u32, now: Now) {
        self.online = people;
        self.watch_rest(sessions, now.mono);
        let Some((timeline, _)) = &self.timeline else {
            return;
        };
        let (gen_no, open) = (timeline.info().gen_no, timeline.slot());
        let changed = self.thermostat.observe(sessions, &self.settings.thermostat, now.mono);
        let fetching = match self.thermostat.heat() {
            Heat::Hot => sessions,
            Heat::Cold => 0,
        };
        self.tempo.observe(fetching, &self.settings.tempo, now.mono);
        let Some(heat) = changed else {
            return;
        };
        self.cooled_at = (heat == Heat::Cold).then_some(now.mono);
        let slot = SlotNo(open.0 + SWITCH_SLOTS);
        self.outputs.push_back(Output::Heat { heat, gen_no, slot, online: people });
    }

    /// Flushes and seals up to `now`; gives the gen up when the clock or the process jumped.
    fn run(&mut self, now: Now) {
        while let Some((timeline, pace)) = &mut self.timeline {
            let time = match pace.steer(now) {
                Ok(time) if time.since(timeline.slot_end()) <= self.jump_max() => time,
                Ok(_) | Err(_) => return self.abandon(now),
            };
            self.want_change();
            let Some((timeline, _)) = &self.timeline else {
                return;
            };
            match timeline.due(time, !self.scheduler.is_empty()) {
                None => return,
                Some(Due::Flush(span)) => self.flush(span, time, now),
                Some(Due::Seal(span)) => {
                    if let Some(span) = span {
                        self.flush(span, time, now);
                    }
                    self.seal(time, now);
                }
            }
        }
    }

    fn jump_max(&self) -> Duration {
        Duration::from_millis(self.settings.house.jump_ms_max.into())
    }

    fn flush(&mut self, span: Span, time: Wall, now: Now) {
        let Some((timeline, _)) = &mut self.timeline else {
            return;
        };
        let room = SEGMENT_ITEMS_MAX.saturating_sub(timeline.items()).min(FLUSH_ITEMS_MAX);
        let caps = Budget {
            items_max: u32::try_from(room).unwrap_or(u32::MAX),
            bytes_max: FLUSH_BYTES_MAX,
        };
        let items = self.scheduler.take(span, caps, now.mono);
        let Some(flush) = timeline.place(items, time) else {
            return;
        };
        for placed in &flush.items {
            self.recent.settle(placed.item.id, fate(&flush, placed));
        }
        self.outputs.push_back(Output::Flush(flush));
    }

    fn seal(&mut self, time: Wall, now: Now) {
        let is_empty = self.scheduler.is_empty();
        let Some((timeline, _)) = &mut self.timeline else {
            return;
        };
        if self.life == Life::Closing && is_empty {
            timeline.end_with(timeline.slot(), None);
        }
        let info = timeline.info();
        let slot = timeline.seal();
        let is_last = slot.end.is_some_and(|it| it <= slot.slot);
        let next = slot.next;
        self.emit(info, slot, time, now);
        if !is_last {
            return;
        }
        self.timeline = None;
        match (self.life, next) {
            (Life::Closing, _) if is_empty => self.finish(),
            (_, Some(info)) => self.start(info, now),
            (_, None) => {}
        }
    }

    /// Seals what was flushed and leaves the gen: its time cannot be followed any more.
    fn abandon(&mut self, now: Now) {
        if let Some((timeline, _)) = &mut self.timeline {
            timeline.end_with(timeline.slot(), None);
        }
        while let Some((timeline, pace)) = &self.timeline {
            let time = pace.time().max(timeline.slot_start());
            self.seal(time, now);
        }
    }

    fn tell_settled(&mut self) {
        while let Some(Settled { id, lane, fate }) = self.scheduler.poll() {
            self.recent.settle(id, fate);
            self.fates.push_back(Told { id, lane, fate });
        }
    }
}

fn fate(flush: &Flush, placed: &Placed) -> Fate {
    Fate::Sealed { gen_no: flush.gen_no, seq: placed.seq, slot: flush.slot }
}
