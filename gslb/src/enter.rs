//! `POST /v1/enter`: a ticket in, or an app and a room that ask for none; addresses with tokens out.
//!
//! An answer looks at what is known in this process and asks nobody.

mod entrant;
mod http;
mod peer;
mod refusal;

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use auth_core::app::App;
use auth_core::keyring::Keyring;
use auth_core::ticket::{self, TicketRefusal};
use auth_core::token::Claims;
use gslb_core::assign::{self, Request, Wants};
use gslb_core::listener::Listener;
use gslb_core::snapshot::Snapshot;
use kit::clock::Clock;
use kit::meter::{Meter, list};
use parking_lot::Mutex;
use prometheus::IntCounter;
use proto::address::Carrier;
use proto::enter::{Delivery, EnterRequest, EnterResponse, Offer};
use proto::id::{AppId, DeviceId};
use proto::time::Wall;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use sha2::{Digest, Sha256};

use crate::config::Config;
use crate::known::Known;
use crate::rate::Rate;
use entrant::{By, Entrant};

pub(crate) use http::router;
pub use refusal::Refusal;

/// Answers questions from what is known in this process.
#[derive(Debug)]
pub struct Answerer {
    config: Config,
    clock: Clock,
    meter: Meter,
    known: Arc<Known>,
    apps: BTreeSet<AppId>,
    /// By their hash: comparing hashes tells nobody how much of a key was right.
    api_keys: BTreeMap<[u8; 32], AppId>,
    rate: Option<Rate>,
    /// Token numbers and passing accounts must be unpredictable: seeded by the operating system,
    /// never by the root.
    rng: Mutex<StdRng>,
    counts: Counts,
}

/// A question, with what the connection says about who asks.
#[derive(Clone, Copy, Debug)]
pub struct Question<'a> {
    /// An [`EnterRequest`] as JSON.
    pub body: &'a [u8],
    /// Whose question it is.
    pub from: IpAddr,
    /// What a business server shows.
    pub api_key: Option<&'a str>,
}

#[derive(Debug)]
struct Counts {
    assigned: IntCounter,
    renewed: IntCounter,
    full: IntCounter,
    none_live: IntCounter,
    no_transport: IntCounter,
    by_ticket: IntCounter,
    by_open: IntCounter,
    by_guest: IntCounter,
}

impl Answerer {
    pub(crate) fn new(
        config: Config,
        apps: &[App],
        known: Arc<Known>,
        clock: Clock,
        meter: Meter,
    ) -> anyhow::Result<Self> {
        let keys = apps.iter().flat_map(|app| app.api_keys.iter().map(|key| (key, app.id)));
        Ok(Self {
            apps: apps.iter().map(|it| it.id).collect(),
            api_keys: keys.map(|(key, app)| (hash(key.expose()), app)).collect(),
            rate: Rate::new(&config.rate, clock.clone()),
            rng: Mutex::new(StdRng::from_seed(kit::seed::random_bytes()?)),
            counts: Counts::new(&meter),
            config,
            clock,
            meter,
            known,
        })
    }

    /// Writes the answer, an [`EnterResponse`] as JSON, behind what `answer` holds.
    ///
    /// # Errors
    /// [`Refusal`]; then nothing was written.
    pub fn answer(
        &self,
        question: &Question<'_>,
        now: Wall,
        answer: &mut Vec<u8>,
    ) -> Result<(), Refusal> {
        let response = self.decide(question, now)?;
        serde_json::to_writer(answer, &response).expect("an answer is JSON, and a Vec takes it");
        Ok(())
    }

    fn decide(&self, question: &Question<'_>, now: Wall) -> Result<EnterResponse, Refusal> {
        let request: EnterRequest =
            serde_json::from_slice(question.body).map_err(|_| Refusal::Malformed)?;
        let key_app = self.admit(question, request.client.ip)?;
        let device = request.client.device.as_deref().map(DeviceId::parse).transpose();
        let device = device.map_err(|_| Refusal::Device)?;
        // Before the kicks are looked at: one that is read meanwhile must not count as looked at.
        let control_age = self.known.control.age(self.clock.mono());
        let entrant = self.entrant(&request, now)?;
        if key_app.is_some_and(|it| it != entrant.app) {
            return Err(Refusal::OtherApp);
        }

        let keyring = self.known.keys.current().ok_or(Refusal::NoKeys)?;
        let from = counting_from(control_age, &entrant, now)?;
        let snapshot = self.known.snapshot.load();
        let (listeners, count) = self.choose(&snapshot, &request)?;
        let addresses = self.mint(&listeners, &entrant, device, &keyring, from)?;
        let answer = self.respond(addresses, now)?;
        count.inc();
        self.counts.by(entrant.by).inc();
        Ok(answer)
    }

    /// Lets a question pass, if there are not too many; the app of its API key, if it has one.
    fn admit(
        &self,
        question: &Question<'_>,
        named: Option<IpAddr>,
    ) -> Result<Option<AppId>, Refusal> {
        let key_app = question.api_key.and_then(|it| self.api_keys.get(&hash(it)).copied());
        let trusted = named.filter(|_| key_app.is_some());
        if let Some(rate) = &self.rate {
            let passed = rate.check(trusted.unwrap_or(question.from));
            passed.map_err(|retry_after_ms| Refusal::RateLimited { retry_after_ms })?;
        }
        if question.api_key.is_some() && key_app.is_none() {
            return Err(Refusal::ApiKey);
        }
        if named != trusted {
            return Err(Refusal::ApiKeyMissing);
        }
        Ok(key_app)
    }

    fn entrant(&self, request: &EnterRequest, now: Wall) -> Result<Entrant, Refusal> {
        if !request.ticket.is_empty() {
            if request.app.is_some() || request.room.is_some() {
                return Err(Refusal::Malformed);
            }
            let tickets = self.known.tickets.load();
            let revocations = self.known.revocations.read();
            let ticket = ticket::verify(&request.ticket, &tickets, &revocations, now)?;
            return Entrant::with_ticket(ticket, &self.known.policies.read());
        }
        let (Some(app), Some(room), None) = (request.app, &request.room, &request.renew) else {
            return Err(Refusal::TicketRequired);
        };
        if !self.apps.contains(&app) {
            return Err(TicketRefusal::UnknownApp { app }.into());
        }
        let mut number = [0; 16];
        self.rng.lock().fill_bytes(&mut number);
        Entrant::without_ticket(app, room.clone(), number, &self.known.policies.read())
    }

    /// The addresses to mint for, and what to count once that is done.
    fn choose<'a>(
        &self,
        snapshot: &'a Snapshot,
        request: &EnterRequest,
    ) -> Result<(Vec<&'a Listener>, &IntCounter), Refusal> {
        if let Some(authority) = &request.renew {
            let listener = snapshot.find(authority).ok_or(Refusal::UnknownAddress)?;
            return Ok((vec![listener], &self.counts.renewed));
        }
        let wants = Wants::new(&request.client.transports);
        let region = snapshot.region(&self.config.region);
        let request = Request { region, carrier: Carrier::Bgp, wants };
        Ok(match snapshot.assign(&request) {
            Ok(assignment) => (assignment.listeners().collect(), &self.counts.assigned),
            Err(assign::Refusal::Full) => (Vec::new(), &self.counts.full),
            Err(assign::Refusal::NoneLive) => (Vec::new(), &self.counts.none_live),
            Err(assign::Refusal::NoTransport | assign::Refusal::NoReserve) => {
                (Vec::new(), &self.counts.no_transport)
            }
        })
    }

    /// A token for each address.
    fn mint(
        &self,
        listeners: &[&Listener],
        entrant: &Entrant,
        device: Option<DeviceId>,
        keyring: &Keyring,
        from: Wall,
    ) -> Result<Vec<Offer>, Refusal> {
        let mut claims = Claims {
            app: entrant.app,
            link: [0; 16],
            iat_s: u32::try_from(from.unix_s()).unwrap_or(u32::MAX),
            ttl_s: entrant.ttl_s,
            flags: entrant.flags,
            caps: entrant.caps,
            jti: [0; 16],
            account: entrant.account.clone(),
            device,
            rooms: entrant.rooms.clone(),
        };
        let offers = listeners.iter().map(|listener| {
            claims.link = *listener.link_id();
            self.rng.lock().fill_bytes(&mut claims.jti);
            let token = keyring.mint(&claims).map_err(|_| Refusal::NoKeys)?;
            Ok(Offer { address: listener.address().clone(), token })
        });
        offers.collect()
    }

    /// Without addresses the segments alone: full is not locked out.
    fn respond(&self, addresses: Vec<Offer>, now: Wall) -> Result<EnterResponse, Refusal> {
        let segments = Vec::clone(&self.known.bases.load());
        let mut delivery = Vec::with_capacity(2);
        if !addresses.is_empty() {
            delivery.push(Delivery::Push);
        }
        if !segments.is_empty() {
            delivery.push(Delivery::Segments);
        }
        if delivery.is_empty() {
            return Err(Refusal::Nowhere);
        }
        Ok(EnterResponse {
            server_ms: now,
            addresses,
            delivery,
            segments,
            retry: self.config.retry,
        })
    }
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

impl Counts {
    fn new(meter: &Meter) -> Self {
        let answers = |outcome| meter.counter(list::GSLB_ANSWERS_TOTAL, &[outcome]);
        let entrants = |by| meter.counter(list::GSLB_ENTRANTS_TOTAL, &[by]);
        Self {
            assigned: answers("assigned"),
            renewed: answers("renewed"),
            full: answers("full"),
            none_live: answers("none_live"),
            no_transport: answers("no_transport"),
            by_ticket: entrants("ticket"),
            by_open: entrants("open"),
            by_guest: entrants("guest"),
        }
    }

    const fn by(&self, by: By) -> &IntCounter {
        match by {
            By::Ticket => &self.by_ticket,
            By::Open => &self.by_open,
            By::Guest => &self.by_guest,
        }
    }
}

fn hash(key: &str) -> [u8; 32] {
    Sha256::digest(key).into()
}
