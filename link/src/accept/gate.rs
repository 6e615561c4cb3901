//! How often one address may knock, and all of them together.

use std::net::IpAddr;
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use governor::clock::Clock as GovernorClock;
use governor::middleware::NoOpMiddleware;
use governor::state::keyed::HashMapStateStore;
use governor::state::{InMemoryState, NotKeyed};
use governor::{Quota, RateLimiter};
use kit::clock::Clock;
use link_core::places::Site;

use super::origin::Origin;

/// Lets an address knock so often, and no oftener.
pub(crate) struct Gate {
    /// Of all addresses together.
    all: Option<RateLimiter<NotKeyed, InMemoryState, Ticks, NoOpMiddleware<Duration>>>,
    limiter: Option<Limiter>,
    addresses_max: usize,
    /// When the memory was last searched for addresses that count no more, in microseconds.
    cleared: AtomicU64,
}

/// A full memory is searched once in so many microseconds: searching costs milliseconds.
const CLEAR_EVERY_MICROS: u64 = 1_000_000;

impl std::fmt::Debug for Gate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Gate")
    }
}

type Limiter = RateLimiter<IpAddr, HashMapStateStore<IpAddr>, Ticks, NoOpMiddleware<Duration>>;

/// Our clock, as governor reads it.
#[derive(Clone, Debug)]
struct Ticks(Clock);

impl GovernorClock for Ticks {
    type Instant = Duration;

    fn now(&self) -> Duration {
        Duration::from_micros(self.0.micros())
    }
}

impl Gate {
    /// A gate for `per_s` connections a second and `burst` at once; 0 a second is no limit.
    pub(crate) fn new(per_s: u32, burst: u32, addresses_max: usize, clock: &Clock) -> Self {
        let limiter = NonZeroU32::new(per_s).map(|per_s| {
            let burst = NonZeroU32::new(burst).unwrap_or(NonZeroU32::MIN);
            let quota = Quota::per_second(per_s).allow_burst(burst);
            RateLimiter::new(quota, HashMapStateStore::default(), Ticks(clock.clone()))
        });
        Self { all: None, limiter, addresses_max, cleared: AtomicU64::new(0) }
    }

    /// Takes `per_s` connections a second of all addresses together, and as many at once; 0 is no
    /// limit.
    pub(crate) fn taking(mut self, per_s: u32, clock: &Clock) -> Self {
        self.all = NonZeroU32::new(per_s)
            .map(|it| RateLimiter::direct_with_clock(Quota::per_second(it), Ticks(clock.clone())));
        self
    }

    /// Whether a connection from here may go on; if not, why. Those that an address has too many
    /// of take nothing from what all have together.
    pub(super) fn knock(&self, origin: Origin) -> Result<(), &'static str> {
        if !self.admit(origin) {
            return Err("address");
        }
        let may_more = self.all.as_ref().is_none_or(|it| it.check().is_ok());
        may_more.then_some(()).ok_or("node")
    }

    /// Whether an address has not too many of them.
    pub(super) fn admit(&self, origin: Origin) -> bool {
        let Some(limiter) = &self.limiter else {
            return true;
        };
        let Site::Own(address) = origin.site() else {
            return true;
        };
        if limiter.len() >= self.addresses_max {
            let now = limiter.clock().0.micros();
            let cleared = self.cleared.load(Ordering::Relaxed);
            if now.saturating_sub(cleared) < CLEAR_EVERY_MICROS {
                return false;
            }
            self.cleared.store(now, Ordering::Relaxed);
            limiter.retain_recent();
            if limiter.len() >= self.addresses_max {
                return false;
            }
        }
        limiter.check_key(&address).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use super::*;

    #[test]
    fn an_address_that_knocks_too_often_waits_and_others_do_not() {
        let gate = Gate::new(1, 2, 10, &Clock::system());
        let knock = |from: &str| gate.admit(peer(from));

        assert_eq!(
            [knock("192.0.2.1"), knock("192.0.2.1"), knock("192.0.2.1")],
            [true, true, false]
        );
        assert!(knock("192.0.2.2"));
        assert!(knock("::ffff:192.0.2.2"));
        assert!(!knock("192.0.2.2"), "mapped addresses are the same address");
        assert!((0..100).all(|_| knock("127.0.0.1")));
    }

    #[test]
    fn who_is_named_counts_on_loopback_too() {
        let gate = Gate::new(1, 2, 10, &Clock::system());
        let client = Origin::Named("127.0.0.1:4711".parse().unwrap());

        assert_eq!([(); 3].map(|()| gate.admit(client)), [true, true, false]);
    }

    #[test]
    fn all_addresses_together_knock_so_often_and_loopback_too() {
        let gate = Gate::new(0, 0, 10, &Clock::system()).taking(3, &Clock::system());
        let open = Gate::new(0, 0, 10, &Clock::system());
        let knock = |gate: &Gate| gate.knock(peer("127.0.0.1"));

        assert_eq!([(); 4].map(|()| knock(&gate)), [Ok(()), Ok(()), Ok(()), Err("node")]);
        assert!((0..1000).all(|_| knock(&open).is_ok()));
    }

    #[test]
    fn one_address_does_not_take_what_all_have_together() {
        let gate = Gate::new(1, 2, 10, &Clock::system()).taking(3, &Clock::system());

        let of_one = [(); 10].map(|()| gate.knock(peer("192.0.2.1")));

        assert_eq!(of_one[..3], [Ok(()), Ok(()), Err("address")]);
        assert_eq!(gate.knock(peer("192.0.2.2")), Ok(()));
        assert_eq!(gate.knock(peer("192.0.2.3")), Err("node"));
    }

    #[test]
    fn all_of_a_subscribers_ipv6_addresses_are_one() {
        let gate = Gate::new(1, 1, 10, &Clock::system());

        assert!(gate.admit(peer("2001:db8::1")));
        assert!(!gate.admit(peer("2001:db8::2")));
        assert!(gate.admit(peer("2001:db8:0:1::1")));
    }

    #[test]
    fn more_addresses_than_can_be_remembered_are_refused() {
        let gate = Gate::new(1, 1, 1, &Clock::system());

        assert!(gate.admit(peer("192.0.2.1")));
        assert!(!gate.admit(peer("192.0.2.2")));
    }

    fn peer(address: &str) -> Origin {
        Origin::Peer(SocketAddr::new(address.parse().unwrap(), 4711))
    }
}
