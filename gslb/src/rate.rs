//! How often one client address may ask, and all of them together.
//!
//! Addresses fall into a fixed number of slots by a hash with a random seed, so a flood from many
//! addresses takes no memory, and nobody can choose whose slot to share.

use std::hash::{BuildHasher, RandomState};
use std::net::IpAddr;
use std::num::NonZeroU32;
use std::time::Duration;

use governor::clock::Clock as _;
use governor::middleware::NoOpMiddleware;
use governor::nanos::Nanos;
use governor::state::{InMemoryState, NotKeyed, StateStore};
use governor::{Quota, RateLimiter};
use kit::clock::Clock;
use proto::time::millis;

use crate::config;
use crate::place::plain;

/// A rate for each slot, and one for all.
#[derive(Debug)]
pub(crate) struct Rate {
    each: Option<Each>,
    all: Option<RateLimiter<NotKeyed, InMemoryState, Lately, NoOpMiddleware<Duration>>>,
}

/// Which rate was exceeded.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Exceeded {
    /// That of the address, which may ask again after so many milliseconds.
    Address { retry_after_ms: u32 },
    /// That of all together.
    All,
}

/// One rate per slot.
#[derive(Debug)]
struct Each {
    limiter: RateLimiter<u32, Slots, Lately, NoOpMiddleware<Duration>>,
    hasher: RandomState,
    slots: NonZeroU32,
}

/// The process's clock, as governor reads it: told at the kernel's last tick, since questions are
/// counted over seconds, and a look at the clock for each would cost as much as counting them.
#[derive(Clone, Debug)]
struct Lately(Clock);

/// A state for each slot, there from the beginning: 8 bytes, and no lock.
#[derive(Debug)]
struct Slots(Box<[InMemoryState]>);

impl governor::clock::Clock for Lately {
    type Instant = Duration;

    fn now(&self) -> Duration {
        Duration::from_millis(self.0.mono_lately().0)
    }
}

impl StateStore for Slots {
    type Key = u32;

    fn measure_and_replace<T, F, E>(&self, slot: &u32, measure: F) -> Result<T, E>
    where
        F: Fn(Option<Nanos>) -> Result<(T, Nanos), E>,
    {
        self.0[*slot as usize].measure_and_replace(&NotKeyed::NonKey, measure)
    }
}

impl Rate {
    /// Zeros count as 1, but for `all_per_s`: there it is no limit.
    pub(crate) fn new(config: &config::Rate, clock: &Clock) -> Self {
        let lately = Lately(clock.clone());
        let all = NonZeroU32::new(config.all_per_s).filter(|_| config.enabled);
        let all =
            all.map(|it| RateLimiter::direct_with_clock(Quota::per_second(it), lately.clone()));
        Self { each: config.enabled.then(|| Each::new(config, lately)), all }
    }

    /// Lets one question of `address` pass, or says which rate is exceeded. A question that its
    /// address has no right to does not count for the others.
    pub(crate) fn check(&self, address: IpAddr) -> Result<(), Exceeded> {
        if let Some(each) = &self.each {
            each.check(address)?;
        }
        match &self.all {
            Some(all) => all.check().map_err(|_| Exceeded::All),
            None => Ok(()),
        }
    }
}

impl Each {
    fn new(config: &config::Rate, clock: Lately) -> Self {
        let at_least_1 = |it| NonZeroU32::new(it).unwrap_or(NonZeroU32::MIN);
        let quota = Quota::per_second(at_least_1(config.per_s));
        let quota = quota.allow_burst(at_least_1(config.burst));
        let slots = at_least_1(config.addresses_max);
        let states = (0..slots.get()).map(|_| InMemoryState::default()).collect();
        let limiter = RateLimiter::new(quota, Slots(states), clock);
        Self { limiter, hasher: RandomState::new(), slots }
    }

    fn check(&self, address: IpAddr) -> Result<(), Exceeded> {
        let hash = self.hasher.hash_one(subscriber(address));
        let slot = hash % u64::from(self.slots.get());
        let slot = u32::try_from(slot).expect("a remainder of a u32 fits a u32");
        self.limiter.check_key(&slot).map_err(|until| {
            let wait = millis(until.wait_time_from(self.limiter.clock().now()));
            Exceeded::Address { retry_after_ms: u32::try_from(wait).unwrap_or(u32::MAX).max(1) }
        })
    }
}

/// What one subscriber has: an IPv4 address, also one that IPv6 carries, or an IPv6 /64.
fn subscriber(address: IpAddr) -> u64 {
    match plain(address) {
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
        let rate = rate(limits(3, 65_536));

        for _ in 0..3 {
            assert_eq!(rate.check(ip("192.0.2.1")), Ok(()));
        }
        let refused = rate.check(ip("192.0.2.1"));

        let Err(Exceeded::Address { retry_after_ms: 1..=1_000 }) = refused else {
            panic!("{refused:?}")
        };
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
    fn who_comes_by_a_translator_is_the_ipv4_address_it_carries() {
        for carried in ["64:ff9b::192.0.2.1", "2002:c000:201::9", "::ffff:192.0.2.1"] {
            assert_eq!(subscriber(ip(carried)), subscriber(ip("192.0.2.1")), "{carried}");
        }
        assert_ne!(subscriber(ip("64:ff9b::192.0.2.1")), subscriber(ip("64:ff9b::192.0.2.2")));
    }

    #[test]
    fn any_number_of_addresses_has_a_slot() {
        let rate = rate(limits(1_000_000, 8));

        for it in 0..10_000 {
            assert_eq!(rate.check(IpAddr::V4(it.into())), Ok(()));
        }
    }

    #[test]
    fn all_together_are_limited_and_whoever_may_not_ask_takes_nothing_from_it() {
        let rate = rate(config::Rate { all_per_s: 5, ..limits(2, 65_536) });

        for _ in 0..1_000 {
            rate.check(ip("192.0.2.1")).ok();
        }
        let checks = (1..100).map(|it| rate.check(ip(&format!("198.51.100.{it}"))));
        let refused = checks.filter(|it| *it == Err(Exceeded::All)).count();

        // Of the five, two were taken; time goes on meanwhile.
        assert!((50..=96).contains(&refused), "{refused}");
    }

    #[test]
    fn limits_can_be_off() {
        let rate = rate(config::Rate { enabled: false, all_per_s: 1, ..limits(1, 1) });

        assert!((0..1_000).all(|_| rate.check(ip("192.0.2.1")).is_ok()));
    }

    fn rate(config: config::Rate) -> Rate {
        Rate::new(&config, &Clock::system())
    }

    fn limits(burst: u32, addresses_max: u32) -> config::Rate {
        config::Rate { enabled: true, per_s: 1, burst, addresses_max, all_per_s: 0 }
    }

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }
}
