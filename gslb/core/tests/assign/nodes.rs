//! Made-up nodes, one by one and at random.

use proptest::prelude::*;
use proto::address::{Address, Carrier, Transport};
use proto::id::{NodeId, UnitId};
use proto::load::{Load, LoadReport};
use proto::time::Wall;

use Transport::{National, Quic, Tcp, Tls, Ws, Wss};

#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) id: u32,
    pub(crate) region: &'static str,
    pub(crate) addresses: Vec<Address>,
    pub(crate) load: Load,
}

/// A node in the one region and room that speaks TLS, has 10,000 places, and can log in far more
/// viewers a second than a test asks for.
pub(crate) fn node(id: u32) -> Node {
    let load = Load { sessions_max: 10_000, handshakes_per_s_max: 1_000_000, ..Load::default() };
    Node { id, region: "north", addresses: Vec::new(), load }.listeners(&[Tls])
}

impl Node {
    pub(crate) fn load(mut self, change: impl FnOnce(&mut Load)) -> Self {
        change(&mut self.load);
        self
    }

    pub(crate) fn listeners(mut self, transports: &[Transport]) -> Self {
        let address = |(port, &transport)| Address {
            host: String::new(),
            port,
            transport,
            carrier: Carrier::Bgp,
            machine_room: "a".into(),
        };
        self.addresses = (100..).zip(transports).map(address).collect();
        self
    }

    pub(crate) fn carrier(mut self, carrier: Carrier) -> Self {
        self.addresses.iter_mut().for_each(|it| it.carrier = carrier);
        self
    }

    pub(crate) fn machine_room(mut self, machine_room: &str) -> Self {
        self.addresses.iter_mut().for_each(|it| it.machine_room = machine_room.into());
        self
    }

    pub(crate) fn has_places(&self) -> bool {
        let Load { sessions, sessions_max, draining, besieged, .. } = self.load;
        sessions < sessions_max && !draining && !besieged
    }

    pub(crate) fn report(&self, counter: u64) -> LoadReport {
        let host = format!("link-{}", self.id);
        let addresses = self.addresses.iter();
        LoadReport {
            node: NodeId(self.id),
            unit: UnitId(1),
            region: self.region.into(),
            counter,
            start: Wall(0),
            addresses: addresses.map(|it| Address { host: host.clone(), ..it.clone() }).collect(),
            reserve: Vec::new(),
            load: self.load,
        }
    }
}

pub(crate) fn any_transport() -> impl Strategy<Value = Transport> {
    prop::sample::select(vec![Tcp, Tls, Ws, Wss, Quic, National])
}

pub(crate) fn any_carrier() -> impl Strategy<Value = Carrier> {
    use Carrier::{Bgp, Mobile, Telecom, Unicom};
    prop::sample::select(vec![Bgp, Telecom, Unicom, Mobile])
}

pub(crate) fn any_node() -> impl Strategy<Value = Node> {
    let listeners = prop::collection::vec((any_transport(), any_carrier()), 1..5);
    let region = prop::sample::select(vec!["north", "south"]);
    let room = prop::sample::select(vec!["a", "b", "c"]);
    // Enough places that nobody is filled by the answers of one test.
    let places = prop_oneof![Just(0u32), 1_000u32..5_000];
    let flags = (prop::bool::weighted(0.1), prop::bool::weighted(0.1));
    (listeners, region, room, places, flags).prop_map(|(listeners, region, room, places, flags)| {
        let transports: Vec<Transport> = listeners.iter().map(|it| it.0).collect();
        let mut node = Node { region, ..node(0).listeners(&transports).machine_room(room) };
        node.addresses.iter_mut().zip(&listeners).for_each(|(it, of)| it.carrier = of.1);
        node.load(|it| {
            (it.sessions_max, it.sessions) = (5_000, 5_000 - places);
            (it.draining, it.besieged) = flags;
        })
    })
}
