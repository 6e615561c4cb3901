//! `POST /v1/enter`: a ticket in, addresses with tokens out.
//!
//! An answer looks at what is known in this process and asks nobody.

mod http;
mod peer;
mod refusal;

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use auth_core::app::App;
use auth_core::keyring::Keyring;
use auth_core::ticket::{self, Ticket, TicketKeys};
use auth_core::token::{Claims, TTL_S_MAX, flag};
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
use refusal::Refusal;

pub(crate) use http::router;

/// Answers questions.
#[derive(Debug)]
pub(crate) struct Enter {
    config: Config,
    clock: Clock,
    meter: Meter,
    known: Arc<Known>,
    apps: BTreeMap<AppId, App>,
    tickets: TicketKeys,
    /// By their hash: comparing hashes tells nobody how much of a key was right.
    api_keys: BTreeMap<[u8; 32], AppId>,
    rate: Option<Rate>,
    /// Token numbers must be unpredictable: seeded by the operating system, never by the root.
    rng: Mutex<StdRng>,
    counts: Counts,
}

/// A question, with what the connection says about who asks.
#[derive(Debug)]
struct Question<'a> {
    body: &'a [u8],
    /// Whose question it is, see [`peer::address`].
    from: IpAddr,
    api_key: Option<&'a str>,
}

#[derive(Debug)]
struct Counts {
    assigned: IntCounter,
    renewed: IntCounter,
    full: IntCounter,
    none_live: IntCounter,
    no_transport: IntCounter,
}

impl Enter {
    pub(crate) fn new(
        config: Config,
        apps: &[App],
        known: Arc<Known>,
        clock: Clock,
        meter: Meter,
    ) -> anyhow::Result<Self> {
        let audience = Some(config.audience.clone()).filter(|it| !it.is_empty());
        let keys = apps.iter().flat_map(|app| app.api_keys.iter().map(|key| (key, app.id)));
        let count = |outcome| meter.counter(list::GSLB_ANSWERS_TOTAL, &[outcome]);
        Ok(Self {
            tickets: TicketKeys::new(apps, audience)?,
            api_keys: keys.map(|(key, app)| (hash(key.expose()), app)).collect(),
            apps: apps.iter().map(|it| (it.id, it.clone())).collect(),
            rate: Rate::new(&config.rate, clock.clone()),
            rng: Mutex::new(StdRng::from_seed(kit::seed::random_bytes()?)),
            counts: Counts {
                assigned: count("assigned"),
                renewed: count("renewed"),
                full: count("full"),
                none_live: count("none_live"),
                no_transport: count("no_transport"),
            },
            config,
            clock,
            meter,
            known,
        })
    }

    fn answer(&self, question: &Question<'_>, now: Wall) -> Result<EnterResponse, Refusal> {
        let request: EnterRequest =
            serde_json::from_slice(question.body).map_err(|_| Refusal::Malformed)?;
        let key_app = question.api_key.and_then(|it| self.api_keys.get(&hash(it)).copied());
        let named = request.client.ip.filter(|_| key_app.is_some());
        if let Some(rate) = &self.rate {
            let passed = rate.check(named.unwrap_or(question.from));
            passed.map_err(|retry_after_ms| Refusal::RateLimited { retry_after_ms })?;
        }
        if question.api_key.is_some() && key_app.is_none() {
            return Err(Refusal::ApiKey);
        }
        if request.client.ip != named {
            return Err(Refusal::ApiKeyMissing);
        }
        let device = request.client.device.as_deref().map(DeviceId::parse).transpose();
        let device = device.map_err(|_| Refusal::Device)?;
        let ticket = self.verify(&request.ticket, now)?;
        if key_app.is_some_and(|it| it != ticket.app) {
            return Err(Refusal::OtherApp);
        }

        let keyring = self.known.keys.current().ok_or(Refusal::NoKeys)?;
        let snapshot = self.known.snapshot.load();
        let (listeners, count) = self.choose(&snapshot, &request)?;
        let addresses = self.mint(&listeners, &ticket, device, &keyring, now)?;
        let answer = self.respond(addresses, now)?;
        count.inc();
        Ok(answer)
    }

    fn verify(&self, text: &str, now: Wall) -> Result<Ticket, Refusal> {
        let revocations = self.known.revocations.read();
        Ok(ticket::verify(text, &self.tickets, &revocations, now)?)
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
        let request = Request { region: &self.config.region, carrier: Carrier::Bgp, wants };
        Ok(match snapshot.assign(&request) {
            Ok(assignment) => (assignment.listeners().collect(), &self.counts.assigned),
            Err(assign::Refusal::Full) => (Vec::new(), &self.counts.full),
            Err(assign::Refusal::NoneLive) => (Vec::new(), &self.counts.none_live),
            Err(assign::Refusal::NoTransport) => (Vec::new(), &self.counts.no_transport),
        })
    }

    /// A token for each address.
    fn mint(
        &self,
        listeners: &[&Listener],
        ticket: &Ticket,
        device: Option<DeviceId>,
        keyring: &Keyring,
        now: Wall,
    ) -> Result<Vec<Offer>, Refusal> {
        let app = &self.apps[&ticket.app];
        let mut claims = Claims {
            app: ticket.app,
            link: [0; 16],
            iat_s: u32::try_from(now.unix_s()).unwrap_or(u32::MAX),
            ttl_s: app.policy.token_ttl_s.min(TTL_S_MAX),
            flags: ticket.flags() | if app.policy.single_use { flag::SINGLE_USE } else { 0 },
            caps: ticket.caps,
            jti: [0; 16],
            account: ticket.account.clone(),
            device,
            rooms: ticket.rooms.clone(),
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

fn hash(key: &str) -> [u8; 32] {
    Sha256::digest(key).into()
}
