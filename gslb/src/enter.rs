//! `POST /v1/enter`: a ticket in, or an app and a room that ask for none; addresses with tokens out.
//!
//! The same for many viewers is `POST /v1/enter:batch`, and as lines of text `GET /v1/enter.txt`.
//! An answer looks at what is known in this process and asks nobody.

mod admission;
mod ask;
mod batch;
mod counts;
mod entrant;
mod http;
mod listing;
mod nodes;
mod numbers;
mod offers;
mod peer;
mod plain;
mod refusal;
mod render;

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::Guard;
use auth_core::app::App;
use auth_core::ticket::{self, TicketRefusal};
use auth_core::token::flag;
use gslb_core::assign::{self, ADDRESSES_PER_ANSWER, Request};
use gslb_core::listener::Listener;
use kit::clock::Clock;
use kit::http::Heading;
use kit::meter::Meter;
use proto::address::Carrier;
use proto::id::{AppId, DeviceId, RoomId};
use proto::time::Wall;

use crate::config::Config;
use crate::known::{Keyholder, Known, Sight};
use crate::nodes::Desk;
use crate::place::{Carriers, Whereabouts};
use admission::{Admission, Admitted};
use ask::Room;
use counts::{Counts, Outcome};
use entrant::{Account, Asker, Entrant};
use offers::Makings;
use render::{Form, Paths, Written};

pub use ask::Ask;
pub(crate) use http::router;
pub use refusal::Refusal;

/// Answers questions from what is known in this process.
#[derive(Debug)]
pub struct Answerer {
    config: Config,
    clock: Clock,
    known: Arc<Known>,
    apps: BTreeSet<AppId>,
    admission: Admission,
    written: Written,
    counts: Counts,
    desk: Desk,
    heading: Heading,
}

/// A question, with what the connection says about who asks.
#[derive(Clone, Copy, Debug)]
pub struct Question<'a> {
    /// An [`EnterRequest`](proto::enter::EnterRequest) as JSON.
    pub body: &'a [u8],
    /// Whose question it is.
    pub from: IpAddr,
    /// What a business server shows.
    pub api_key: Option<&'a str>,
}

/// The addresses to mint for, in the order to try them.
type Chosen<'a> = [Option<&'a Listener>; ADDRESSES_PER_ANSWER];

/// What is known at one moment. The answers of one batch are made of the same.
struct Moment {
    now: Wall,
    /// Since everything on `control` was known.
    control_age: Option<Duration>,
    sight: Guard<Arc<Sight>>,
}

impl Answerer {
    pub(crate) fn new(
        config: &Config,
        apps: &[App],
        carriers: &Carriers,
        known: Arc<Known>,
        clock: Clock,
        meter: &Meter,
        desk: Desk,
    ) -> Self {
        Self {
            apps: apps.iter().map(|it| it.id).collect(),
            admission: Admission::new(config, apps, &clock),
            written: Written::new(&config.retry, &config.delivery),
            counts: Counts::new(carriers, meter),
            desk,
            heading: http::heading(),
            config: config.clone(),
            clock,
            known,
        }
    }

    /// Writes the answer, an [`EnterResponse`](proto::enter::EnterResponse) as JSON, behind what
    /// `answer` holds.
    ///
    /// # Errors
    /// [`Refusal`]; then nothing was written.
    pub fn answer(&self, question: &Question<'_>, answer: &mut Vec<u8>) -> Result<(), Refusal> {
        match Ask::read(question.body) {
            Ok(ask) => self.answer_read(&ask, question, answer),
            Err(refusal) => Err(self.admission.unread(question.from, refusal)),
        }
    }

    /// The same where the body of `question` is read already, as `ask`.
    ///
    /// # Errors
    /// As [`answer`](Self::answer).
    pub fn answer_read(
        &self,
        ask: &Ask<'_>,
        question: &Question<'_>,
        answer: &mut Vec<u8>,
    ) -> Result<(), Refusal> {
        let admitted = self.admission.admit(question.from, question.api_key, ask.client.ip)?;
        self.answer_in(Form::Json, ask, admitted, answer)
    }

    /// Writes a whole answer.
    fn answer_in(
        &self,
        mut form: Form<'_>,
        ask: &Ask<'_>,
        admitted: Admitted,
        answer: &mut Vec<u8>,
    ) -> Result<(), Refusal> {
        let start = answer.len();
        let known = self.look();
        render::put_server(&form, known.now, answer);
        render::put_between(&form, answer);
        if let Err(refusal) = self.offer(&mut form, ask, admitted, &known, answer) {
            answer.truncate(start);
            return Err(refusal);
        }
        let bases = &known.sight.bases;
        let region = match bases.has_regions() {
            true => self.region_of(admitted.address, &known),
            false => "",
        };
        let segments = bases.next(region);
        match form {
            Form::Json | Form::Listed(_) => {
                self.written.common_json(segments, answer);
                answer.push(b'}');
            }
            Form::Text => self.written.common_text(segments, answer),
        }
        Ok(())
    }

    /// What is known now.
    fn look(&self) -> Moment {
        Moment {
            // The one time before the other, and both before the kicks are looked at: one that is
            // read meanwhile must not count as looked at.
            now: self.clock.wall_lately(),
            control_age: self.known.control.age(self.clock.mono_lately()),
            sight: self.known.sight(),
        }
    }

    /// The region of this address; the own one where no file says it.
    fn region_of<'a>(&'a self, address: IpAddr, known: &'a Moment) -> &'a str {
        known.sight.place.of(address).region.unwrap_or(&self.config.region)
    }

    /// Writes what an answer has for this viewer alone: addresses with tokens, the order of the
    /// ways, and when to ask again where there are no addresses. After a refusal a part of it may
    /// be written.
    fn offer(
        &self,
        form: &mut Form<'_>,
        ask: &Ask<'_>,
        admitted: Admitted,
        known: &Moment,
        answer: &mut Vec<u8>,
    ) -> Result<(), Refusal> {
        let device = ask.client.device.as_ref().map(|it| DeviceId::parse(&it.0)).transpose();
        let device = device.map_err(|_| Refusal::Device)?;
        let mut account = Account::ROOM;
        let asker = self.asker(ask, known, &mut account)?;
        let entrant = asker.enter(&known.sight.policies)?;
        admitted.check_app(entrant.app)?;

        let minter = known.sight.minter.as_ref().ok_or(Refusal::NoKeys)?;
        let from = counting_from(known, &entrant)?;
        let (chosen, outcome, carrier) = self.choose(known, ask, admitted)?;
        let paths = Paths {
            class: ask.client.class,
            has_addresses: chosen[0].is_some(),
            has_segments: !known.sight.bases.is_empty(),
        };
        let retry_after_ms = if paths.has_addresses { 0 } else { self.admission.returns.next_ms() };
        if !paths.has_addresses && !paths.has_segments {
            return Err(Refusal::Nowhere { retry_after_ms });
        }
        let shared = entrant.shared(device.as_ref(), from);
        offers::put(form, &chosen, Makings { minter, shared }, answer)?;
        self.written.delivery(form, paths, answer);
        let is_excluded = |room: &RoomId| {
            let (rooms, from) = (std::slice::from_ref(room), Some(admitted.address));
            let revocations = self.known.revocations.read();
            revocations.is_excluded(entrant.app, rooms, device.as_ref(), from, known.now)
        };
        // Whom a room lists in spite of that gets its keys from a link, which knows the list.
        let holder = Keyholder {
            app: entrant.app,
            rooms: entrant.rooms,
            is_guest: entrant.flags & flag::GUEST != 0,
            is_excluded: &is_excluded,
        };
        let keys = known.sight.sealed.keys(minter.keyring(), &holder, known.now);
        render::put_keys(form, &keys, answer);
        render::put_retry_after(form, retry_after_ms, answer);
        self.counts.answered(outcome, entrant.by, carrier);
        Ok(())
    }

    /// Who asks; without a ticket with a passing account.
    #[inline]
    fn asker<'a>(
        &self,
        ask: &'a Ask<'_>,
        known: &Moment,
        account: &'a mut Account,
    ) -> Result<Asker<'a>, Refusal> {
        let ticket = &*ask.ticket.0;
        if !ticket.is_empty() {
            if ask.app.is_some() || ask.room.is_some() {
                return Err(Refusal::Malformed);
            }
            let (tickets, now) = (&known.sight.tickets, known.now);
            let revocations = self.known.revocations.read();
            return Ok(Asker::Known(ticket::verify(ticket, tickets, &revocations, now)?));
        }
        let (Some(app), Some(Room(room)), None) = (ask.app, &ask.room, &ask.renew) else {
            return Err(Refusal::TicketRequired);
        };
        if !self.apps.contains(&app) {
            return Err(TicketRefusal::UnknownApp { app }.into());
        }
        let mut numbers = [[0; 16]];
        numbers::draw(&mut numbers)?;
        account.write(&numbers[0]);
        Ok(Asker::Passing { app, room, account })
    }

    /// The addresses to mint for, and the carrier whose addresses were looked for.
    fn choose<'a>(
        &self,
        known: &'a Moment,
        ask: &Ask<'_>,
        admitted: Admitted,
    ) -> Result<(Chosen<'a>, Outcome, Option<Carrier>), Refusal> {
        let Sight { snapshot, home, place, .. } = &**known.sight;
        let mut chosen = Chosen::default();
        // Also a reserve address: its sessions were moved there by their links, and no gslb knows
        // which. Whoever holds a ticket can so find out whether a guess at its whole name is one, as
        // could a connection to it; here each guess counts for the guesser's rate.
        if let Some(authority) = &ask.renew {
            chosen[0] = Some(snapshot.find(&authority.0).ok_or(Refusal::UnknownAddress)?);
            return Ok((chosen, Outcome::Renewed, None));
        }
        let Whereabouts { carrier, region } = place.of(admitted.address);
        let region = region.map_or(*home, |it| snapshot.region(it));
        let request = Request { region, carrier, wants: ask.client.wants() };
        let outcome = match snapshot.assign(&request) {
            Ok(assignment) => {
                chosen.iter_mut().zip(assignment.listeners()).for_each(|(it, of)| *it = Some(of));
                Outcome::Assigned
            }
            Err(assign::Refusal::Full) => Outcome::Full,
            Err(assign::Refusal::NoneLive) => Outcome::NoneLive,
            Err(assign::Refusal::NoTransport | assign::Refusal::NoReserve) => Outcome::NoTransport,
        };
        Ok((chosen, outcome, Some(carrier)))
    }
}

/// The moment that the tokens count from: the one up to which all kicks are known. A link refuses
/// a token from before a kick, so one that this process has not heard of holds there.
///
/// There is none if half of the time for which links take the token would be over.
fn counting_from(known: &Moment, entrant: &Entrant<'_>) -> Result<Wall, Refusal> {
    let age = known.control_age.ok_or(Refusal::Behind)?;
    let taken_s = u64::from(entrant.ttl_s) + u64::from(entrant.skew_s);
    if age > Duration::from_secs(taken_s) / 2 {
        return Err(Refusal::Behind);
    }
    Ok(known.now - age)
}
