//! A running system with one room, on which drills and long runs play.

use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use anyhow::{Context, ensure};
use kit::clock::Clock;
use kit::health::Health;
use kit::meter::{Meter, list};
use kit::seed::derive;
use kit::task::Tasks;
use proto::address::Transport;
use proto::control::{RoomSettings, Segments};
use proto::enter::{Client, EnterRequest, Offer};
use proto::head::Head;
use proto::id::{RoomId, ViewerId};
use proto::item::Style;
use sdk::segments::FetchError;
use stack::crowd::{Crowd, Plan, signer, ticket_source};
use stack::replay::{Comment, Script};
use stack::{
    Addrs, AuthSwitch, Bus, BusFault, Business, Clocks, Config, FaultyBus, Identity, Stack, Trust,
};
use tokio_util::sync::CancellationToken;

/// The script that crowds play: comments of a hundred seconds.
const SAMPLE: &str = include_str!("../../stack/samples/concert.json");
/// The room.
pub const ROOM: &str = "stage";
/// A system is ready within this time.
const READY_MAX: Duration = Duration::from_secs(20);
/// A system ends within this time.
const END_MAX: Duration = Duration::from_secs(30);
/// One question to the system is answered within this time.
const ANSWER_MAX: Duration = Duration::from_secs(5);
/// How often something that changes by itself is looked at.
const LOOK: Duration = Duration::from_millis(20);

/// A running system with one room.
#[derive(Debug)]
pub struct Stage {
    /// The services' clock; stepping it steps all of them, unless the link has its own.
    pub clock: Clock,
    /// Ends, stops and starts the auth service.
    pub auth: AuthSwitch,
    /// The room.
    pub room: RoomId,
    /// The business server's hand.
    pub business: Business,
    /// Where everything listens.
    pub addrs: Addrs,
    /// Whom viewers believe.
    pub trust: Trust,
    /// Metrics of all services.
    pub meter: Meter,
    /// The viewers' HTTP client.
    pub http: reqwest::Client,
    /// What the services say of themselves.
    pub health: Health,
    faulty: Arc<FaultyBus>,
    /// The bus behind the faults: what it holds is what happened.
    bus: Arc<dyn Bus>,
    identity: Identity,
    seed: u64,
    stop: CancellationToken,
    services: Tasks,
}

/// Settings that let a drill speak as often as it likes: segments are always written.
#[must_use]
pub fn settings() -> RoomSettings {
    RoomSettings {
        segments: Segments::Always,
        viewer_burst: 100,
        viewer_refill_ms: 20,
        ..RoomSettings::default()
    }
}

impl Stage {
    /// Starts a system whose data is in `folder`, and makes the room. `adjust` changes the
    /// demonstration's configuration.
    ///
    /// # Errors
    /// When it does not start, or is not ready in time.
    pub async fn open(
        folder: &Path,
        seed: u64,
        settings: &RoomSettings,
        adjust: impl FnOnce(&mut Config),
    ) -> anyhow::Result<Self> {
        Self::open_with(folder, seed, settings, Clock::system(), adjust).await
    }

    /// As [`Stage::open`], with clocks of their own for single services.
    ///
    /// # Errors
    /// As [`Stage::open`].
    pub async fn open_with(
        folder: &Path,
        seed: u64,
        settings: &RoomSettings,
        clocks: impl Into<Clocks>,
        adjust: impl FnOnce(&mut Config),
    ) -> anyhow::Result<Self> {
        let mut config = Config::demo(folder);
        adjust(&mut config);
        let clocks = clocks.into();
        let clock = clocks.all.clone();
        let wrapped = Arc::new(OnceLock::new());
        let keep = Arc::clone(&wrapped);
        let wrap = move |bus: Arc<dyn Bus>| -> Arc<dyn Bus> {
            let faulty = FaultyBus::new(Arc::clone(&bus));
            let outer: Arc<dyn Bus> = Arc::<FaultyBus>::clone(&faulty);
            keep.get_or_init(|| (bus, faulty));
            outer
        };
        let stack = Box::pin(Stack::bind_with(config, clocks, seed, wrap)).await?;
        let (bus, faulty) = wrapped.get().cloned().context("the bus was not wrapped")?;
        let (addrs, identity) = (stack.addrs().clone(), stack.identity().clone());
        let (trust, shared) = (stack.trust().clone(), stack.shared().clone());
        let http = sdk::http::client(&trust.tls)?;
        let business = Business::new(http.clone(), addrs.api.clone(), identity.api_key.clone());
        let auth = stack.auth_switch();
        let stop = CancellationToken::new();
        let mut services = Tasks::default();
        services.spawn("stack", Box::pin(stack.run(stop.clone())));
        let stage = Self {
            clock,
            auth,
            room: RoomId::parse(ROOM)?,
            business,
            addrs,
            trust,
            meter: shared.meter,
            http,
            health: shared.health,
            faulty,
            bus,
            identity,
            seed,
            stop,
            services,
        };
        stage.wait(READY_MAX, "the system to be ready", || stage.is_ready()).await?;
        stage.business.create_room(&stage.room, settings).await?;
        Ok(stage)
    }

    /// Drains the system and waits for its end.
    ///
    /// # Errors
    /// The first service's that failed, now or earlier, or too late an end.
    pub async fn close(self) -> anyhow::Result<()> {
        self.stop.cancel();
        kit::shutdown::drain(self.services, END_MAX).await
    }

    /// The demonstration's secrets, for viewers in other processes.
    #[must_use]
    pub const fn identity(&self) -> &Identity {
        &self.identity
    }

    /// The bus behind the faults, for a crowd in another process: what it holds is what happened.
    #[must_use]
    pub const fn bus(&self) -> &Arc<dyn Bus> {
        &self.bus
    }

    /// Breaks or mends the bus.
    pub fn set_bus(&self, fault: BusFault) {
        self.faulty.set(fault);
    }

    /// Brings a crowd into the room; its ledger is read behind the faults.
    ///
    /// # Errors
    /// As [`Crowd::start`].
    pub async fn crowd(&self, viewers: usize) -> anyhow::Result<Crowd> {
        let plan = Plan {
            viewers,
            room: self.room.clone(),
            enter_url: self.addrs.enter.clone(),
            app: self.identity.app(),
            tls: self.trust.tls.clone(),
            bus: Arc::clone(&self.bus),
            clock: self.clock.clone(),
            seed: derive(self.seed, "crowd"),
            faults: Vec::new(),
            log: None,
        };
        Box::pin(Crowd::start(plan)).await
    }

    /// A viewer's options; add a path with [`sdk::Options::rooms`].
    ///
    /// # Errors
    /// When no ticket can be signed.
    pub fn options(&self, account: &ViewerId) -> anyhow::Result<sdk::Options> {
        let app = self.identity.app();
        let signer = Arc::new(signer(&app)?);
        let ticket = ticket_source(&signer, &app, account, &self.room, &self.clock);
        let mut options = sdk::Options::new(
            self.addrs.enter.clone(),
            Arc::new(ticket),
            self.http.clone(),
            self.clock.clone(),
            derive(self.seed, account.as_str()),
        );
        options.tls = Some(self.trust.tls.clone());
        Ok(options)
    }

    /// An address and a token for a connection by hand.
    ///
    /// # Errors
    /// When `enter` gives none of that transport within some seconds: on a busy machine a link's
    /// report may be late, and then there is no address for a moment.
    pub async fn offer(&self, account: &ViewerId, transport: Transport) -> anyhow::Result<Offer> {
        let app = self.identity.app();
        let signer = Arc::new(signer(&app)?);
        let ticket = ticket_source(&signer, &app, account, &self.room, &self.clock)();
        let client = Client { transports: vec![transport], ..Client::default() };
        let request = EnterRequest { ticket, client, ..EnterRequest::default() };
        let deadline = self.clock.mono() + ANSWER_MAX;
        loop {
            let url = &self.addrs.enter;
            let answer = sdk::enter::enter(&self.http, url, &request, ANSWER_MAX).await?;
            let mut offers = answer.addresses.into_iter();
            if let Some(offer) = offers.find(|it| it.address.transport == transport) {
                return Ok(offer);
            }
            ensure!(self.clock.mono() < deadline, "enter gives no address");
            self.clock.sleep(LOOK).await;
        }
    }

    /// The room's head; a new room has none before its first slot is sealed.
    ///
    /// # Errors
    /// When the origin does not give it within some seconds.
    pub async fn head(&self) -> anyhow::Result<Head> {
        let deadline = self.clock.mono() + ANSWER_MAX;
        loop {
            let (origin, room) = (&self.addrs.origin, &self.room);
            match sdk::segments::head(&self.http, origin, room, ANSWER_MAX).await {
                Err(FetchError::NotYet) if self.clock.mono() < deadline => {
                    self.clock.sleep(LOOK).await;
                }
                head => return head.context("the head cannot be read"),
            }
        }
    }

    /// What `/readyz` says: 200, or not.
    ///
    /// # Errors
    /// When there is no answer.
    pub async fn readyz(&self) -> anyhow::Result<u16> {
        let url = format!("{}/readyz", self.addrs.metrics);
        let answer = self.http.get(url).timeout(ANSWER_MAX).send().await;
        Ok(answer.context("/readyz does not answer")?.status().as_u16())
    }

    /// Waits until `/readyz` says `status`; gives the milliseconds that took.
    ///
    /// # Errors
    /// When it does not within `at_most`, or there is no answer.
    pub async fn readyz_turns(&self, status: u16, at_most: Duration) -> anyhow::Result<u64> {
        let start = self.clock.mono();
        loop {
            let now = self.readyz().await?;
            let waited = self.clock.mono().since(start);
            if now == status {
                return Ok(proto::time::millis(waited));
            }
            ensure!(waited < at_most, "/readyz still says {now} after {} s", at_most.as_secs());
            self.clock.sleep(LOOK).await;
        }
    }

    /// Waits until something holds; gives the milliseconds that took.
    ///
    /// # Errors
    /// When it does not hold within `at_most`: `what` says what was waited for.
    pub async fn wait(
        &self,
        at_most: Duration,
        what: &str,
        mut holds: impl FnMut() -> bool,
    ) -> anyhow::Result<u64> {
        let start = self.clock.mono();
        while !holds() {
            let waited = self.clock.mono().since(start);
            ensure!(
                waited < at_most,
                "waited {} s for {what}; not ready: {:?}",
                at_most.as_secs(),
                self.health.failures()
            );
            self.clock.sleep(LOOK).await;
        }
        Ok(proto::time::millis(self.clock.mono().since(start)))
    }

    /// Whether every part of every service says that it can do its job.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.health.failures().is_empty()
    }

    /// Sessions logged in at the link.
    #[must_use]
    pub fn sessions(&self) -> usize {
        self.meter.gauge(list::LINK_SESSIONS, &[]).get().try_into().unwrap_or(0)
    }
}

/// The sample.
///
/// # Errors
/// When it cannot be read.
pub fn sample() -> anyhow::Result<Script> {
    Script::read(SAMPLE.as_bytes()).context("the sample is damaged")
}

/// Comments at a steady rate, no two alike; texts grow to `graphemes`.
#[must_use]
pub fn steady(comments_per_s: u64, length: Duration, graphemes: usize) -> Script {
    let comments = proto::time::millis(length) * comments_per_s / 1000;
    let comment = |number: u64| {
        let text = format!("{number} ");
        let filler = graphemes.saturating_sub(text.len());
        let text = text + &"\u{5f39}".repeat(filler);
        Comment { media_ms: number * 1000 / comments_per_s, text, style: Style::default() }
    };
    Script { comments: (0..comments).map(comment).collect(), damaged: 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_steady_script_has_its_rate_and_length() {
        let script = steady(20, Duration::from_secs(3), 10);

        assert_eq!(script.comments.len(), 60);
        assert_eq!(script.length_ms(), 2950);
        assert!(script.comments.iter().all(|it| it.text.chars().count() == 10));
        let distinct: std::collections::BTreeSet<_> =
            script.comments.iter().map(|it| &it.text).collect();
        assert_eq!(distinct.len(), 60);
    }

    #[test]
    fn the_sample_is_sound() {
        let script = sample().unwrap();

        assert!(script.comments.len() > 100);
        assert_eq!(script.damaged, 0);
    }
}
