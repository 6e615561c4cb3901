//! How often one client address may ask.
//!
//! Addresses fall into a fixed number of slots by a hash with a random seed, so a flood from many
//! addresses takes no memory, and nobody can choose whose slot to share.

use std::hash::{BuildHasher, RandomState};
use std::net::IpAddr;
use std::num::NonZeroU32;
use std::time::Duration;

use governor::clock::Clock as _;
use governor::middleware::NoOpMiddleware;
use governor::state::keyed::HashMapStateStore;
use governor::{Quota, RateLimiter};
use kit::clock::Clock;
use proto::time::millis;

use crate::config;

/// One rate per slot.
#[derive(Debug)]
pub(crate) struct Rate {
    limiter: Limiter,
    clock: Micros,
    hasher: RandomState,
    slots: NonZeroU32,
}

type Limiter = RateLimiter<u32, HashMapStateStore<u32>, Micros, NoOpMiddleware<Duration>>;

/// The process's clock, as governor reads it.
#[derive(Clone, Debug)]
struct Micros(Clock);

impl governor::clock::Clock for Micros {
    type Instant = Duration;

    fn now(&self) -> Duration {
        Duration::from_micros(self.0.micros())
    }
}

impl Rate {
    /// `None` if there is no limit. Zeros count as 1.
    pub(crate) fn new(config: &config::Rate, clock: Clock) -> Option<Self> {
        if !config.enabled {
            return None;
        }
        let at_least_1 = |it| NonZeroU32::new(it).unwrap_or(NonZeroU32::MIN);
        let quota = Quota::per_second(at_least_1(config.per_s));
        let quota = quota.allow_burst(at_least_1(config.burst));
        let clock = Micros(clock);
        let limiter = RateLimiter::hashmap_with_clock(quota, clock.clone());
        let slots = at_least_1(config.addresses_max);
        Some(Self { limiter, clock, hasher: RandomState::new(), slots })
    }

    /// Lets one question of `address` pass, or says when to try again, in milliseconds.
    pub(crate) fn check(&self, address: IpAddr) -> Result<(), u32> {
        let hash = self.hasher.hash_one(subscriber(address));
        let slot = hash % u64::from(self.slots.get());
        let slot = u32::try_from(slot).expect("a remainder of a u32 fits a u32");
        self.limiter.check_key(&slot).map_err(|until| {
            let wait = millis(until.wait_time_from(self.clock.now()));
            u32::try_from(wait).unwrap_or(u32::MAX).max(1)
        })
    }
}

/// What one subscriber has: an IPv4 address, or an IPv6 /64.
fn subscriber(address: IpAddr) -> u64 {
    match address.to_canonical() {
        IpAddr::V4(it) => u64::from(it.to_bits()),
        IpAddr::V6(it) => {
            let [a, b, c, d, ..] = it.segments();
            [a, b, c, d].iter().fold(0, |bits, &it| bits << 16 | u64::from(it))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_address_is_limited_and_another_is_not() {
        let rate = Rate::new(&limits(3, 65_536), Clock::system()).unwrap();

        for _ in 0..3 {
            assert_eq!(rate.check(ip("192.0.2.1")), Ok(()));
        }
        let refused = rate.check(ip("192.0.2.1"));

        assert!(refused.is_err_and(|it| it > 0 && it <= 1_000), "{refused:?}");
        assert!(rate.check(ip("::ffff:192.0.2.1")).is_err());
        assert_eq!(
            (1..9).filter(|it| rate.check(ip(&format!("198.51.100.{it}"))).is_ok()).count(),
            8
        );
    }

    #[test]
    fn an_ipv6_subscriber_is_a_64() {
        assert_eq!(subscriber(ip("2001:db8:1:2::1")), subscriber(ip("2001:db8:1:2:ffff::9")));
        assert_ne!(subscriber(ip("2001:db8:1:2::1")), subscriber(ip("2001:db8:1:3::1")));
    }

    #[test]
    fn any_number_of_addresses_takes_the_memory_of_its_slots() {
        let rate = Rate::new(&limits(1_000_000, 8), Clock::system()).unwrap();

        for it in 0..10_000 {
            assert_eq!(rate.check(IpAddr::V4(it.into())), Ok(()));
        }

        assert_eq!(rate.limiter.len(), 8);
    }

    #[test]
    fn a_limit_can_be_off() {
        let off = config::Rate { enabled: false, ..config::Rate::default() };

        assert!(Rate::new(&off, Clock::system()).is_none());
    }

    fn limits(burst: u32, addresses_max: u32) -> config::Rate {
        config::Rate { enabled: true, per_s: 1, burst, addresses_max }
    }

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }
}
