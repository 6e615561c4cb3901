//! What is fetched over HTTP while the loop goes on.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use proto::dictionary::Dictionary;
use proto::enter::EnterResponse;
use proto::frame::{Report, Uplink};
use proto::head::{Base, Head};
use proto::id::{Gen, RoomId, SlotNo};
use proto::quality::BaseReport;
use proto::segment::Segment;
use proto::time::{Mono, Wall, millis};
use rand::RngExt;
use sdk_core::bases::Fetched;
use sdk_core::merge;
use sdk_core::poll::Miss;
use sdk_core::room::{Input, Output, Room};

use super::Driver;
use super::aside::{Form, fetch_smallest};
use crate::connect::request;
use crate::enter::enter;
use crate::event::Event;
use crate::options::{Entry, Options};
use crate::sealed::{Keys, Locked};
use crate::segments::{FetchError, Name, fetch_sealed, head};

/// Attempts to fetch a slot that a gap wants, over all bases.
const FETCH_ATTEMPTS_MAX: usize = 3;
/// Between two of them: caches keep "not there yet" for a second.
const FETCH_RETRY_WAIT: Duration = Duration::from_millis(1_000);

/// A job that ended.
pub(super) enum Done {
    Head {
        room: RoomId,
        outcome: Result<Box<Head>, Miss>,
        received: Mono,
    },
    Polled {
        name: Name,
        base: Option<String>,
        outcome: Result<Box<Segment>, Miss>,
        /// It is there, and there is no key for it.
        is_locked: bool,
        form: Form,
        asked: Mono,
        received: Mono,
    },
    Fetched {
        room: RoomId,
        gen_no: Gen,
        slot: SlotNo,
        segment: Option<Box<Segment>>,
    },
    Dictionary(Option<Dictionary>),
    /// The version, and the bytes if there is a catalogue.
    Catalogue {
        room: RoomId,
        found: Option<(u32, Option<Bytes>)>,
    },
    Renewed {
        authority: String,
        response: Option<Box<EnterResponse>>,
    },
}

/// How well segments arrive, since the last report.
#[derive(Debug, Default)]
pub(super) struct Statistics {
    fetches: u32,
    failures: u32,
    missed: u32,
    fetch_ms: u64,
}

impl Statistics {
    /// The report, if there is something in it; the count starts over.
    pub(super) fn take(&mut self, bases: Vec<BaseReport>) -> Option<Report> {
        let Self { fetches, failures, missed, fetch_ms } = std::mem::take(self);
        let mean_ms = fetch_ms / u64::from(fetches.max(1));
        let fetch_ms = u32::try_from(mean_ms).unwrap_or(u32::MAX);
        (fetches > 0 || !bases.is_empty()).then_some(Report {
            fetches,
            failures,
            missed,
            fetch_ms,
            bases,
        })
    }

    fn count(&mut self, outcome: &Result<Box<Segment>, Miss>, took: Duration) {
        self.fetches = self.fetches.saturating_add(1);
        self.fetch_ms = self.fetch_ms.saturating_add(millis(took));
        match outcome {
            Ok(_) => {}
            Err(Miss::Failed) => self.failures = self.failures.saturating_add(1),
            Err(Miss::NotYet | Miss::Gone) => self.missed = self.missed.saturating_add(1),
        }
    }
}

impl Driver {
    /// Does what the rooms want. Each room has one question of its schedule under way and a
    /// bounded number of others, so the jobs are bounded.
    pub(super) async fn carry_out(&mut self) {
        let mut wanted = Vec::new();
        for (id, room) in &mut self.rooms {
            wanted.extend(std::iter::from_fn(|| room.poll()).map(|it| (id.clone(), it)));
        }
        for (room, output) in wanted {
            match output {
                Output::Tell(told) => self.outbox.extend(event(room, told)),
                Output::Join => {
                    if let Some(join) = self.rooms.get(&room).map(Room::join) {
                        self.send(&Uplink::Join(join)).await;
                    }
                }
                Output::Head { attempt } => self.read_head(room, attempt),
                Output::Poll { gen_no, slot, tier, attempt } => {
                    self.poll_segment(Name { room, gen_no, tier, slot }, attempt);
                }
                Output::Fetch { gen_no, slot } => {
                    let tier = self.options.tier;
                    self.fetch_segment(Name { room, gen_no, tier, slot });
                }
            }
        }
    }

    fn read_head(&self, room: RoomId, attempt: u32) {
        let (options, base) = (Arc::clone(&self.options), self.bases.pick(attempt, self.now()));
        self.jobs.push(Box::pin(async move {
            let outcome = match base {
                Some(base) => head(&options.http, &base, &room, options.waits.fetch).await,
                None => Err(FetchError::NotYet),
            };
            let outcome = outcome.map(Box::new).map_err(|error| miss(&error));
            Done::Head { room, outcome, received: options.clock.mono() }
        }));
    }

    fn poll_segment(&mut self, name: Name, attempt: u32) {
        let asked = self.now();
        let (options, base) = (Arc::clone(&self.options), self.bases.pick(attempt, asked));
        if let Some(base) = &base {
            self.bases.asked(base, asked);
        }
        let dictionary = self.aside.dictionary(&name.room);
        let keys = self.rings.of(&name.room);
        self.jobs.push(Box::pin(async move {
            let (outcome, form) = match &base {
                Some(base) => {
                    fetch_smallest(&options, base, &name, &keys, dictionary.as_ref()).await
                }
                None => (Err(FetchError::NotYet), Form::Plain),
            };
            let is_locked = matches!(outcome, Err(FetchError::Locked(Locked::NoKey)));
            let outcome = outcome.map(Box::new).map_err(|error| miss(&error));
            let received = options.clock.mono();
            Done::Polled { name, base, outcome, is_locked, form, asked, received }
        }));
    }

    fn fetch_segment(&self, name: Name) {
        let options = Arc::clone(&self.options);
        let order = self.bases.order(self.now());
        let bases: Vec<String> = order.into_iter().map(str::to_owned).collect();
        let keys = self.rings.of(&name.room);
        self.jobs.push(Box::pin(async move {
            let segment = fetch_with_retries(&options, &bases, &name, &keys).await;
            let Name { room, gen_no, slot, .. } = name;
            Done::Fetched { room, gen_no, slot, segment }
        }));
    }

    /// Gets a new token for the running session. Without a ticket there is none to be had: nothing
    /// proves whose session it is.
    pub(super) fn renew(&self, authority: String) {
        if matches!(self.options.entry, Entry::NoTicket { .. }) {
            return;
        }
        let options = Arc::clone(&self.options);
        self.jobs.push(Box::pin(async move {
            let response = match request(&options, Some(authority.clone())).await {
                Ok(request) => {
                    let wait = options.waits.enter;
                    enter(&options.http, &options.enter_url, &request, wait).await.ok()
                }
                Err(_) => None,
            };
            Done::Renewed { authority, response: response.map(Box::new) }
        }));
    }

    pub(super) async fn done(&mut self, done: Done) {
        let now = self.now();
        match done {
            Done::Head { room, outcome, received } => {
                if let Ok(head) = &outcome {
                    self.weigh(&head.bases, head.now_ms, received);
                    self.server_clock.sample(head.now_ms, received);
                    self.spread_clock();
                    self.look_aside(&room, head);
                }
                let draw = self.rng.random();
                let missed = |why| Input::Missed { why, draw };
                self.tell_room(&room, outcome.map_or_else(missed, Input::Head), now);
            }
            Done::Polled { name, base, outcome, is_locked, form, asked, received } => {
                if is_locked && self.rings.lacks(&name.room, name.gen_no) {
                    let (room, gen_no) = (name.room.clone(), name.gen_no);
                    self.outbox.push_back(Event::Locked { room, gen_no });
                }
                if !is_locked {
                    self.statistics.count(&outcome, received.since(asked));
                }
                self.aside.came(form);
                if let Ok(segment) = &outcome {
                    self.weigh(&segment.header.bases, segment.header.now_ms, received);
                    self.server_clock.sample(segment.header.now_ms, received);
                    self.spread_clock();
                }
                if let (Some(base), true) = (&base, is_locked) {
                    // It has the file: that the key is missing is not its fault.
                    self.bases.ended(base, asked, Fetched::NotThere, received);
                } else if let Some(base) = base {
                    self.judge(&base, &name, &outcome, asked, received);
                }
                let draw = self.rng.random();
                let missed = |why| Input::Missed { why, draw };
                self.tell_room(&name.room, outcome.map_or_else(missed, Input::Polled), now);
            }
            Done::Fetched { room, gen_no, slot, segment } => {
                self.tell_room(&room, Input::Fetched { gen_no, slot, segment }, now);
            }
            Done::Dictionary(dictionary) => self.has_dictionary(dictionary),
            Done::Catalogue { room, found } => self.has_catalogue(room, found),
            Done::Renewed { authority, response } => self.renewed(&authority, response).await,
        }
    }

    /// Takes weights that a server said in an answer received then.
    fn weigh(&mut self, bases: &[Base], said: Wall, received: Mono) {
        let server_now = self.server_clock.offset().map_or(said, |it| it.wall(received));
        self.bases.weigh(bases, said, server_now);
    }

    /// What a fetch says of its base, and of those that did not have the file before. An origin
    /// holds a question until the slot is sealed; that time is not the base's.
    fn judge(
        &mut self,
        base: &str,
        name: &Name,
        outcome: &Result<Box<Segment>, Miss>,
        asked: Mono,
        received: Mono,
    ) {
        let place = (name.room.clone(), name.gen_no, name.slot);
        match outcome {
            Ok(segment) => {
                let sealed = segment.header.now_ms;
                let sealed = self.server_clock.offset().map_or(asked, |it| it.mono(sealed));
                let took = received.since(asked.max(sealed));
                self.bases.ended(base, asked, Fetched::Whole { took }, received);
                self.bases.found(&place, sealed, received);
            }
            Err(Miss::Failed) => self.bases.ended(base, asked, Fetched::Failed, received),
            Err(Miss::NotYet | Miss::Gone) => {
                self.bases.ended(base, asked, Fetched::NotThere, received);
                self.bases.absent(base, place, asked);
            }
        }
    }

    async fn renewed(&mut self, authority: &str, response: Option<Box<EnterResponse>>) {
        if let Some(response) = &response {
            self.learn_keys(&response.keys);
        }
        let offers = response.map(|it| it.addresses).unwrap_or_default();
        let offer = offers.into_iter().find(|it| it.address.authority() == authority);
        if let Some(offer) = offer {
            self.send(&Uplink::Refresh { token: offer.token }).await;
        }
    }
}

/// What the application hears of a room's items.
fn event(room: RoomId, told: merge::Output) -> Option<Event> {
    match told {
        merge::Output::Show(merge::Shown { place, item, via, received }) => {
            Some(Event::Show { room, place, item, via, received })
        }
        merge::Output::Gap { from, to, items } => Some(Event::Gap { room, from, to, items }),
        merge::Output::Recall(id) => Some(Event::Recall { room, id }),
        merge::Output::Fetch { .. } => None,
    }
}

/// Fetches a slot that a gap wants: all bases in turn, with waits between.
async fn fetch_with_retries(
    options: &Options,
    bases: &[String],
    name: &Name,
    keys: &Keys,
) -> Option<Box<Segment>> {
    for (attempt, base) in bases.iter().cycle().take(FETCH_ATTEMPTS_MAX).enumerate() {
        if attempt > 0 {
            options.clock.sleep(FETCH_RETRY_WAIT).await;
        }
        match fetch_sealed(&options.http, base, name, keys, options.waits.fetch).await {
            Ok(segment) => return Some(Box::new(segment)),
            Err(FetchError::Gone) => return None,
            Err(error) => {
                miss(&error);
            }
        }
    }
    None
}

fn miss(error: &FetchError) -> Miss {
    tracing::debug!(error = format!("{error:#}"), "no file");
    error.miss()
}
