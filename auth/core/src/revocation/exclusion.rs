//! Devices and ranges of addresses that may not be in rooms.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use proto::control::Excluded;
use proto::id::{AppId, DeviceId, RoomId};
use proto::time::Wall;

/// What is excluded from where.
type Place = (AppId, RoomId, Excluded);

/// Until when each is excluded. The ranges of a room are compared one by one: chatservers keep to a
/// few hundred a room.
#[derive(Clone, Debug, Default)]
pub(super) struct Exclusions {
    until: BTreeMap<Place, Wall>,
    order: BTreeSet<(Wall, Place)>,
}

impl Exclusions {
    /// Excludes something until then, or not any more. Past `entries_max` the one that ends first
    /// gives way.
    pub(super) fn set(&mut self, place: Place, until: Wall, entries_max: usize, now: Wall) {
        if let Some(before) = self.until.remove(&place) {
            self.order.remove(&(before, place.clone()));
        }
        if until + super::SLACK <= now {
            return;
        }
        self.order.insert((until, place.clone()));
        self.until.insert(place, until);
        if self.until.len() > entries_max {
            self.pop_first();
        }
    }

    pub(super) fn forget_before(&mut self, before: Wall) {
        while self.order.first().is_some_and(|it| it.0 < before) {
            self.pop_first();
        }
    }

    pub(super) fn holds(
        &self,
        app: AppId,
        room: &RoomId,
        device: Option<&DeviceId>,
        address: Option<IpAddr>,
        now: Wall,
    ) -> bool {
        let by_device = device.is_some_and(|device| {
            let place = (app, room.clone(), Excluded::Device(device.clone()));
            self.until.get(&place).is_some_and(|until| now < *until)
        });
        by_device || address.is_some_and(|it| self.holds_address(app, room, it, now))
    }

    pub(super) fn len(&self) -> usize {
        self.until.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.until.is_empty()
    }

    fn holds_address(&self, app: AppId, room: &RoomId, address: IpAddr, now: Wall) -> bool {
        // Devices come before ranges, and no range before the one of all of IPv4.
        let first = (app, room.clone(), Excluded::Range(proto::network::FIRST));
        let of_room = self.until.range(first..).take_while(|it| (it.0.0, &it.0.1) == (app, room));
        of_room.into_iter().any(|((_, _, what), until)| match what {
            Excluded::Range(range) => now < *until && range.contains(address),
            Excluded::Device(_) => false,
        })
    }

    fn pop_first(&mut self) {
        if let Some((_, place)) = self.order.pop_first() {
            self.until.remove(&place);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Wall = Wall(1_800_000_000_000);
    const LATER: Wall = Wall(1_800_000_060_000);

    fn room(name: &str) -> RoomId {
        RoomId::parse(name).unwrap()
    }

    fn range(text: &str) -> Place {
        (AppId(1), room("r"), Excluded::Range(text.parse().unwrap()))
    }

    fn device(name: &str) -> Place {
        (AppId(1), room("r"), Excluded::Device(DeviceId::parse(name).unwrap()))
    }

    fn holds(all: &Exclusions, name: &str, device: &str, address: &str, now: Wall) -> bool {
        let device = DeviceId::parse(device).unwrap();
        let address = Some(address.parse().unwrap());
        all.holds(AppId(1), &room(name), Some(&device), address, now)
    }

    #[test]
    fn a_device_and_a_range_are_excluded_from_their_room_until_their_end() {
        let mut all = Exclusions::default();
        for place in [device("d"), range("203.0.113.0/24"), range("2001:db8::/32")] {
            all.set(place, LATER, 10, NOW);
        }

        assert!(holds(&all, "r", "d", "192.0.2.1", NOW));
        assert!(holds(&all, "r", "x", "203.0.113.9", NOW));
        assert!(holds(&all, "r", "x", "::ffff:203.0.113.9", NOW));
        assert!(holds(&all, "r", "x", "2001:db8::1", NOW));
        assert!(!holds(&all, "r", "x", "192.0.2.1", NOW));
        assert!(!holds(&all, "q", "d", "203.0.113.9", NOW));
        assert!(!holds(&all, "r", "d", "203.0.113.9", LATER));
        all.set(device("d"), Wall(0), 10, NOW);
        assert!(!holds(&all, "r", "d", "192.0.2.1", NOW));
        assert_eq!(all.len(), 2);
    }

    #[test]
    fn the_one_that_ends_first_gives_way_and_what_is_over_is_forgotten() {
        let mut all = Exclusions::default();
        all.set(device("a"), NOW, 2, NOW);
        all.set(device("b"), LATER, 2, NOW);
        all.set(device("c"), LATER, 2, NOW);

        assert_eq!(all.len(), 2);
        assert!(!holds(&all, "r", "a", "192.0.2.1", Wall(0)));
        all.forget_before(LATER + std::time::Duration::from_millis(1));
        assert!(all.is_empty() && all.order.is_empty());
    }
}
