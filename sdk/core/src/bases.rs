//! Which segment base a client asks: by weight, by its own draw, and by what it lives through.
//!
//! Every client has a draw for each base, fixed for its life, and orders the bases by these draws
//! and the weights (weighted rendezvous hashing): the first ones of all clients together follow the
//! weights, and a change of weights moves only as many clients as it must. The draws are such that
//! the first base that `enter` hands out comes first, as long as the weights stay.
//!
//! A base that is bad for this client twice in a row is left at once, whatever the weights say, and
//! tried again after a wait. The base that served last stays second until another one served.

mod quality;
mod rank;

use std::collections::VecDeque;
use std::time::Duration;

use proto::head::Base;
use proto::id::{Gen, RoomId, SlotNo};
use proto::limits::BASES_MAX;
use proto::quality::BaseReport;
use proto::time::{Mono, Wall};

use quality::Quality;

/// A fetch that takes longer is late: what is in it is shown later than it should be.
pub const LATE: Duration = Duration::from_secs(1);

/// A base is not left for others that all weigh less than its own weight by this: the servers know
/// that those are worse, and it is what everybody else uses.
const REFUGE_WEIGHTS_MAX: u32 = 20;

/// Files remembered that a base did not have; a client has one question for each of its rooms.
const ABSENT_MAX: usize = 16;

/// Which file of a base: a room's slot.
pub type Place = (RoomId, Gen, SlotNo);

/// How a fetch ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Fetched {
    /// With what was asked for.
    Whole {
        /// How long it took, without the time before it was there to be fetched.
        took: Duration,
    },
    /// Without an answer, with a server's error, or with damaged bytes.
    Failed,
    /// The base says that there is no such file, which may well be: it counts neither way, unless
    /// another base has it ([`Bases::found`]).
    NotThere,
}

/// The bases that a client knows.
#[derive(Debug)]
pub struct Bases {
    draw: u64,
    is_settled: bool,
    known: Vec<Known>,
    /// The server's time when the newest weights were said: those in older segments are passed over.
    as_of: Wall,
    /// Which one served last.
    served: Option<String>,
    /// What bases did not have lately, the oldest first.
    absent: VecDeque<Absent>,
}

/// A base had no such file when it was asked.
#[derive(Debug)]
struct Absent {
    base: String,
    place: Place,
    asked: Mono,
}

#[derive(Debug)]
struct Known {
    base: String,
    weight: u32,
    /// The largest weight heard: when it is well.
    weight_max: u32,
    /// Handed out to be used, not only for retries: near this client.
    is_near: bool,
    quality: Quality,
}

impl Bases {
    /// None yet. `draw` is uniform over all its values.
    #[must_use]
    pub const fn new(draw: u64) -> Self {
        Self {
            draw,
            is_settled: false,
            known: Vec::new(),
            as_of: Wall(0),
            served: None,
            absent: VecDeque::new(),
        }
    }

    /// Takes what `enter` handed out at the server's time `as_of`: what has a weight there is near,
    /// the rest is for retries.
    pub fn entered(&mut self, bases: &[Base], as_of: Wall) {
        let has_weight = bases.iter().any(|it| it.weight > 0);
        self.replace(bases, as_of);
        for (known, told) in self.known.iter_mut().zip(bases) {
            known.is_near = told.weight > 0 || !has_weight;
        }
        if let (false, Some(first)) = (self.is_settled, bases.first()) {
            self.draw = rank::settle(self.draw, bases, &first.base);
            self.is_settled = true;
        }
    }

    /// Takes weights that were said later, by a link, a head or a segment, at the server's time
    /// `as_of`, which counts as `server_now` at most: a server whose clock is ahead must not have
    /// the last word for as long. None at all change nothing.
    pub fn weigh(&mut self, bases: &[Base], as_of: Wall, server_now: Wall) {
        let as_of = as_of.min(server_now);
        if !bases.is_empty() && as_of >= self.as_of {
            self.replace(bases, as_of);
        }
    }

    fn replace(&mut self, bases: &[Base], as_of: Wall) {
        self.as_of = self.as_of.max(as_of);
        let mut before = std::mem::take(&mut self.known);
        let has_far = before.iter().any(|it| !it.is_near);
        for Base { base, weight } in bases.iter().take(BASES_MAX) {
            let known = match before.iter().position(|it| it.base == *base) {
                Some(index) => before.swap_remove(index),
                None => Known {
                    base: base.clone(),
                    weight: 0,
                    weight_max: 0,
                    is_near: !has_far,
                    quality: Quality::default(),
                },
            };
            let weight_max = known.weight_max.max(*weight);
            self.known.push(Known { weight: *weight, weight_max, ..known });
        }
    }

    /// The base for an attempt: the next one in this client's order each time.
    #[must_use]
    pub fn pick(&self, attempt: u32, now: Mono) -> Option<String> {
        let order = self.order(now);
        let attempt = usize::try_from(attempt).unwrap_or(0).checked_rem(order.len())?;
        Some(order[attempt].to_owned())
    }

    /// All bases in this client's order.
    #[must_use]
    pub fn order(&self, now: Mono) -> Vec<&str> {
        let stays_near = self.stays_near();
        let well = self.known.iter().filter(|it| !it.quality.is_left(now));
        let refuge = well.map(|it| it.weight).max().unwrap_or(0);
        let is_left =
            |it: &Known| it.quality.is_left(now) && it.weight / REFUGE_WEIGHTS_MAX <= refuge;
        let mut order: Vec<_> = self
            .known
            .iter()
            .map(|it| {
                let score = rank::score(self.draw, &it.base, it.weight);
                let key = (is_left(it), it.weight == 0, it.is_near != stays_near);
                (key, score, it.base.as_str())
            })
            .collect();
        order.sort_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
        let mut order: Vec<&str> = order.into_iter().map(|(_, _, base)| base).collect();
        let served = self.served.as_deref();
        if let Some(index @ 1..) = order.iter().position(|it| Some(*it) == served) {
            order[1..=index].rotate_right(1);
        }
        order
    }

    /// Whether this client asks near bases first: as many clients go elsewhere as these are
    /// drained.
    fn stays_near(&self) -> bool {
        let near = || self.known.iter().filter(|it| it.is_near);
        let weight: u64 = near().map(|it| u64::from(it.weight)).sum();
        let weight_max: u64 = near().map(|it| u64::from(it.weight_max)).sum();
        rank::is_within(self.draw, weight, weight_max)
    }

    /// A question goes to a base.
    pub fn asked(&mut self, base: &str, now: Mono) {
        if let Some(quality) = self.quality(base) {
            quality.ask(now);
        }
    }

    /// The question of `asked` has ended at `now`.
    pub fn ended(&mut self, base: &str, asked: Mono, fetched: Fetched, now: Mono) {
        if let Some(quality) = self.quality(base) {
            quality.end(asked, fetched, now);
            if matches!(fetched, Fetched::Whole { .. }) {
                self.served = Some(base.to_owned());
            }
        }
    }

    /// A base did not have this file when it was `asked`. Call it after [`Bases::ended`].
    pub fn absent(&mut self, base: &str, place: Place, asked: Mono) {
        if self.absent.len() >= ABSENT_MAX {
            self.absent.pop_front();
        }
        self.absent.push_back(Absent { base: base.to_owned(), place, asked });
    }

    /// A file is found that was `sealed` then: whichever base was asked for it since and did not
    /// have it has failed.
    pub fn found(&mut self, place: &Place, sealed: Mono, now: Mono) {
        for it in std::mem::take(&mut self.absent) {
            if it.place != *place {
                self.absent.push_back(it);
            } else if sealed <= it.asked
                && let Some(quality) = self.quality(&it.base)
            {
                quality.fail(Duration::ZERO, now);
            }
        }
    }

    /// What was lived through since the last report, by base.
    pub fn report(&mut self, now: Mono) -> Vec<BaseReport> {
        self.known.iter_mut().filter_map(|it| it.quality.report(&it.base, now)).collect()
    }

    fn quality(&mut self, base: &str) -> Option<&mut Quality> {
        self.known.iter_mut().find(|it| it.base == base).map(|it| &mut it.quality)
    }
}
