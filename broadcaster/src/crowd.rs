//! How many people and sessions are in each room: the sum of what the links say.

use std::collections::BTreeMap;
use std::time::Duration;

use proto::envelope::LinkGauges;
use proto::id::{NodeId, RoomId};
use proto::time::Mono;

/// Rooms that are counted.
const ROOMS_MAX: usize = 100_000;
/// Links that are believed for one room.
const NODES_MAX: usize = 10_000;

/// The newest gauges, by room and link.
#[derive(Debug)]
pub(crate) struct Crowd {
    rooms: BTreeMap<RoomId, BTreeMap<NodeId, Gauge>>,
    keep: Duration,
}

#[derive(Debug)]
struct Gauge {
    people: u32,
    sessions: u32,
    since: Mono,
}

impl Crowd {
    /// A gauge counts for `keep`.
    pub(crate) const fn new(keep: Duration) -> Self {
        Self { rooms: BTreeMap::new(), keep }
    }

    /// Takes what a link counted.
    pub(crate) fn observe(&mut self, gauges: LinkGauges, now: Mono) {
        for it in gauges.rooms {
            if self.rooms.len() >= ROOMS_MAX && !self.rooms.contains_key(&it.room) {
                continue;
            }
            let nodes = self.rooms.entry(it.room).or_default();
            if nodes.len() < NODES_MAX || nodes.contains_key(&gauges.node) {
                let gauge = Gauge { people: it.people, sessions: it.sessions, since: now };
                nodes.insert(gauges.node, gauge);
            }
        }
    }

    /// Forgets what is too old.
    pub(crate) fn expire(&mut self, now: Mono) {
        self.rooms.retain(|_, nodes| {
            nodes.retain(|_, it| now.since(it.since) < self.keep);
            !nodes.is_empty()
        });
    }

    /// People and sessions of a room.
    pub(crate) fn count(&self, room: &RoomId) -> (u32, u32) {
        let nodes = self.rooms.get(room).into_iter().flat_map(BTreeMap::values);
        nodes.fold((0, 0), |(people, sessions), it| {
            (people.saturating_add(it.people), sessions.saturating_add(it.sessions))
        })
    }
}

#[cfg(test)]
mod tests {
    use proto::envelope::RoomGauge;
    use proto::id::{AppId, UnitId};
    use proto::time::Wall;

    use super::*;

    fn gauges(node: u32, people: u32) -> LinkGauges {
        let room = RoomId::parse("r").unwrap();
        let sessions = people + 1;
        let rooms = vec![RoomGauge { app: AppId(1), room, people, sessions, offered: 0 }];
        LinkGauges { node: NodeId(node), unit: UnitId(1), at: Wall(0), rooms }
    }

    #[test]
    fn links_are_summed_and_expire() {
        let room = RoomId::parse("r").unwrap();
        let mut crowd = Crowd::new(Duration::from_secs(4));

        crowd.observe(gauges(1, 10), Mono(0));
        crowd.observe(gauges(2, 5), Mono(1000));
        crowd.observe(gauges(2, 7), Mono(2000));
        assert_eq!(crowd.count(&room), (17, 19));

        crowd.expire(Mono(4000));
        assert_eq!(crowd.count(&room), (7, 8));
        crowd.expire(Mono(6000));
        assert_eq!(crowd.count(&room), (0, 0));
    }
}
