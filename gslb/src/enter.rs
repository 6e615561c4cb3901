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
mod nodes;
mod numbers;
mod peer;
mod plain;
mod refusal;
mod render;

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use auth_core::app::App;
use auth_core::ticket::{self, TicketRefusal};
use auth_core::token::{Claims, Draft};
use gslb_core::assign::{self, ADDRESSES_PER_ANSWER, Request};
use gslb_core::bases::Rotation;
use gslb_core::listener::Listener;
use gslb_core::snapshot::Snapshot;
use kit::clock::Clock;
use kit::http::Heading;
use kit::meter::Meter;
use proto::id::{AppId, DeviceId};
use proto::time::Wall;

use crate::config::Config;
use crate::known::{Known, Minter};
use crate::nodes::Desk;
use crate::place::{Carriers, Whereabouts};
use admission::{Admission, Admitted};
use ask::Ask;
use counts::{Counts, Outcome};
use entrant::Entrant;
use render::{Form, Paths, Written};

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
    pub fn answer(
        &self,
        question: &Question<'_>,
        now: Wall,
        answer: &mut Vec<u8>,
    ) -> Result<(), Refusal> {
        let &Question { body, from, api_key } = question;
        let ask: Ask<'_> = match ask::read(body) {
            Ok(ask) => ask,
            Err(refusal) => {
                self.admission.count(from)?;
                return Err(refusal);
            }
        };
        let admitted = self.admission.admit(from, api_key, ask.client.ip)?;
        self.answer_in(Form::Json, &ask, admitted, now, answer)
    }

    /// Writes a whole answer.
    fn answer_in(
        &self,
        form: Form,
        ask: &Ask<'_>,
        admitted: Admitted,
        now: Wall,
        answer: &mut Vec<u8>,
    ) -> Result<(), Refusal> {
        let start = answer.len();
        render::put_server(form, now, answer);
        if form == Form::Json {
            answer.push(b',');
        }
        let bases = self.known.bases.load();
        if let Err(refusal) = self.offer(form, ask, admitted, &bases, now, answer) {
            answer.truncate(start);
            return Err(refusal);
        }
        let segments = match bases.has_regions() {
            true => bases.next(
                self.known.place.load().of(admitted.address).region.unwrap_or(&self.config.region),
            ),
            false => bases.next(""),
        };
        match form {
            Form::Json => {
                self.written.common_json(segments, answer);
                answer.push(b'}');
            }
            Form::Text => self.written.common_text(segments, answer),
        }
        Ok(())
    }

    /// Writes what an answer has for this viewer alone: addresses with tokens, the order of the
    /// ways, and when to ask again where there are no addresses. After a refusal a part of it may
    /// be written.
    fn offer(
        &self,
        form: Form,
        ask: &Ask<'_>,
        admitted: Admitted,
        bases: &Rotation,
        now: Wall,
        answer: &mut Vec<u8>,
    ) -> Result<(), Refusal> {
        let device = ask.client.device.as_ref().map(|it| DeviceId::parse(&it.0)).transpose();
        let device = device.map_err(|_| Refusal::Device)?;
        // Before the kicks are looked at: one that is read meanwhile must not count as looked at.
        let control_age = self.known.control.age(self.clock.mono());
        let entrant = self.entrant(ask, now)?;
        admitted.check_app(entrant.app)?;

        let keys = self.known.keys.current();
        let minter = keys.as_ref().ok_or(Refusal::NoKeys)?;
        let from = counting_from(control_age, &entrant, now)?;
        let snapshot = self.known.snapshot.load();
        let (chosen, outcome) = self.choose(&snapshot, ask, admitted)?;
        let paths = Paths {
            class: ask.client.class,
            has_addresses: chosen[0].is_some(),
            has_segments: !bases.is_empty(),
        };
        let retry_after_ms = if paths.has_addresses { 0 } else { self.admission.returns.next_ms() };
        if !paths.has_addresses && !paths.has_segments {
            return Err(Refusal::Nowhere { retry_after_ms });
        }
        let by = entrant.by;
        put_offers(form, &chosen, minter, &entrant.claims(device, from), answer)?;
        self.written.delivery(form, paths, answer);
        render::put_retry_after(form, retry_after_ms, answer);
        self.counts.answered(outcome, by);
        Ok(())
    }

    fn entrant(&self, ask: &Ask<'_>, now: Wall) -> Result<Entrant, Refusal> {
        let ticket = &*ask.ticket.0;
        if !ticket.is_empty() {
            if ask.app.is_some() || ask.room.is_some() {
                return Err(Refusal::Malformed);
            }
            let tickets = self.known.tickets.load();
            let revocations = self.known.revocations.read();
            let ticket = ticket::verify(ticket, &tickets, &revocations, now)?;
            return Entrant::with_ticket(ticket, &self.known.policies.read());
        }
        let (Some(app), Some(room), None) = (ask.app, &ask.room, &ask.renew) else {
            return Err(Refusal::TicketRequired);
        };
        if !self.apps.contains(&app) {
            return Err(TicketRefusal::UnknownApp { app }.into());
        }
        let number = numbers::next().map_err(|_| Refusal::NoRandom)?;
        Entrant::without_ticket(app, room.0.clone(), number, &self.known.policies.read())
    }

    /// The addresses to mint for.
    fn choose<'a>(
        &self,
        snapshot: &'a Snapshot,
        ask: &Ask<'_>,
        admitted: Admitted,
    ) -> Result<(Chosen<'a>, Outcome), Refusal> {
        let mut chosen = Chosen::default();
        if let Some(authority) = &ask.renew {
            chosen[0] = Some(snapshot.find(&authority.0).ok_or(Refusal::UnknownAddress)?);
            return Ok((chosen, Outcome::Renewed));
        }
        let place = self.known.place.load();
        let Whereabouts { carrier, region } = place.of(admitted.address);
        self.counts.viewer(carrier);
        let region = snapshot.region(region.unwrap_or(&self.config.region));
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
        Ok((chosen, outcome))
    }
}

/// Writes the addresses, each with a token of its own.
fn put_offers(
    form: Form,
    chosen: &Chosen<'_>,
    minter: &Minter,
    claims: &Claims,
    answer: &mut Vec<u8>,
) -> Result<(), Refusal> {
    let numbers: [u8; 16 * ADDRESSES_PER_ANSWER] =
        numbers::next().map_err(|_| Refusal::NoRandom)?;
    let offers = chosen.iter().flatten().zip(numbers.as_chunks().0);
    if form == Form::Json {
        answer.extend_from_slice(b"\"addresses\":[");
    }
    let (epoch, mut draft) = (minter.epoch(claims.iat_s), Draft::new(claims));
    for (at, (listener, number)) in offers.enumerate() {
        if at > 0 && form == Form::Json {
            answer.push(b',');
        }
        render::put_address(form, listener, answer);
        let link = listener.link_id();
        let minted =
            minter.with_key(claims.app, link, epoch, |key| draft.mint(link, number, key, answer));
        minted.map_err(|_| Refusal::NoKeys)?;
        render::put_offer_end(form, answer);
    }
    if form == Form::Json {
        answer.push(b']');
    }
    Ok(())
}

/// The moment that the tokens count from: the one up to which all kicks are known. A link refuses
/// a token from before a kick, so one that this process has not heard of holds there.
///
/// There is none if half of the time for which links take the token would be over.
fn counting_from(
    control_age: Option<Duration>,
    entrant: &Entrant,
    now: Wall,
) -> Result<Wall, Refusal> {
    let age = control_age.ok_or(Refusal::Behind)?;
    let taken_s = u64::from(entrant.ttl_s) + u64::from(entrant.skew_s);
    if age > Duration::from_secs(taken_s) / 2 {
        return Err(Refusal::Behind);
    }
    Ok(now - age)
}
