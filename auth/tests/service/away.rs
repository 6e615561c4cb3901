//! Both services away under a running link: logins go on for as long as its keys reach.

use std::sync::Arc;
use std::time::Duration;

use auth_core::keyring::Keyring;
use auth_core::link_id;
use auth_core::policy::Policies;
use auth_core::secret::Secret;
use auth_core::token::Claims;
use kit::health::Health;
use kit::meter::{Meter, list};
use kit::quota::MemoryQuota;
use kit::task::Tasks;
use link::{Binder, ListenerConfig};
use proto::address::{Address, Carrier, Transport};
use proto::close::CloseCode;
use proto::frame::{Credential, Downlink};
use proto::id::UnitId;
use proto::keys::Masters;
use sdk::raw;
use tokio_util::sync::CancellationToken;

use crate::two::Two;
use crate::world::{DEADLINE, GSLB, LINK, T, World, memory_bus, secret};

/// The part of the link's health that tells how long its keys reach.
const PART: &str = "link keys";

#[tokio::test]
async fn with_both_services_away_logins_go_on_to_the_horizon_and_an_alarm_comes_before() {
    let mut two = Two::start(|bus| bus).await;
    let place = Place::start(&two).await;
    let keyring = keyring(&two.first).await;
    let reach_s = 6 * u64::from(T);
    place.until("keys of all epochs", || place.horizon_s() >= reach_s).await;

    two.first.tasks.abort();
    two.second.tasks.abort();
    let (mut warned_at_s, mut token) = (None, String::new());
    while place.horizon_s() > 0 {
        token = place.token(&keyring, &two);
        assert_eq!(place.login(&token).await, None, "{} s before", place.horizon_s());
        if place.health.warnings().iter().any(|it| it.0 == PART) {
            warned_at_s = warned_at_s.or_else(|| Some(place.horizon_s()));
        }
        let before_s = place.horizon_s();
        two.clock.step(i64::from(T) * 1000 / 4);
        place.until("time is seen to pass", || place.horizon_s() < before_s).await;
    }

    let warned_at_s = warned_at_s.expect("no alarm before the horizon");
    assert!((1..reach_s / 2).contains(&warned_at_s), "{warned_at_s} s before");
    assert_eq!(place.login(&token).await, Some(CloseCode::Unavailable));
    place.until("the part fails", || place.failures().contains(&PART)).await;
}

/// A running link.
struct Place {
    address: Address,
    health: Health,
    meter: Meter,
    _data: tempfile::TempDir,
    _tasks: Tasks,
}

impl Place {
    /// A link that fetches its keys from the second service.
    async fn start(two: &Two) -> Self {
        let data = tempfile::tempdir().unwrap();
        let listener = ListenerConfig {
            listen: "127.0.0.1:0".parse().unwrap(),
            transport: Transport::Tcp,
            host: "link-07.example".to_owned(),
            port: 0,
            carrier: Carrier::Bgp,
            machine_room: String::new(),
            reserve: false,
            binder: Binder::Auto,
        };
        let config = link::Config {
            node: LINK,
            unit: UnitId(1),
            secret: Secret::new(secret(LINK)),
            data: data.path().to_owned(),
            auth_url: two.second.base.clone(),
            // A busy machine may stand still for a while.
            control_ms_max: 30_000,
            listeners: vec![listener],
            ..link::Config::default()
        };
        let (health, meter) = (Health::default(), Meter::new());
        let parts = link::Parts {
            clock: two.clock.clone(),
            meter: meter.clone(),
            health: health.clone(),
            seed: 1,
            global_bus: Arc::clone(&two.second.bus),
            unit_bus: memory_bus(&two.clock),
            policies: Policies::default(),
            quota: Arc::new(MemoryQuota::new(100)),
            auth_tls: two.second.certs.client().unwrap(),
            tls: None,
            national: None,
        };
        let service = link::Service::bind(config, parts).await.unwrap();
        let address = service.addrs().remove(0);
        let mut tasks = Tasks::default();
        tasks.spawn("link", service.run(CancellationToken::new()));
        let place = Self { address, health, meter, _data: data, _tasks: tasks };
        place.until("the link is well", || place.failures().is_empty()).await;
        place
    }

    fn failures(&self) -> Vec<&'static str> {
        self.health.failures().into_iter().map(|it| it.0).collect()
    }

    /// How long the link's keys still reach.
    fn horizon_s(&self) -> u64 {
        let gauge = self.meter.gauge(list::LINK_KEYS_HORIZON_SECONDS, &[]);
        gauge.get().try_into().unwrap()
    }

    async fn until(&self, what: &str, holds: impl Fn() -> bool) {
        let mut ticks = tokio::time::interval(Duration::from_millis(5));
        let waited = tokio::time::timeout(DEADLINE, async {
            while !holds() {
                ticks.tick().await;
            }
        });
        assert!(waited.await.is_ok(), "{what}; {:?}", self.health.failures());
    }

    /// A token of now.
    fn token(&self, keyring: &Keyring, two: &Two) -> String {
        let claims = Claims {
            link: link_id(&self.address.authority()),
            iat_s: two.clock.wall().unix_s().try_into().unwrap(),
            ..two.second.claims(0)
        };
        keyring.mint(&claims).unwrap()
    }

    /// Why a viewer with this token is not let in, if that is so.
    async fn login(&self, token: &str) -> Option<CloseCode> {
        let address = Address { host: "127.0.0.1".to_owned(), ..self.address.clone() };
        let mut raw = raw::connect(&address, None, DEADLINE).await.unwrap();
        raw.login(Credential::Token(token.to_owned()), None, Vec::new()).await.unwrap();
        loop {
            let frame = raw.recv().await.unwrap();
            if let Downlink::Refused(refused) = frame {
                return Some(refused.code);
            }
            if matches!(frame, Downlink::LoginOk(_)) {
                return None;
            }
        }
    }
}

/// What a gslb mints with: the masters, and the epochs that are drawn.
async fn keyring(world: &World) -> Keyring {
    let masters: Masters = world.masters(GSLB).await.json().await.unwrap();
    let mut keyring = Keyring::new(&masters).unwrap();
    for fact in world.epochs_until(world.epoch() + 6).await {
        keyring.handle(&fact, world.clock.wall()).unwrap();
    }
    keyring
}
