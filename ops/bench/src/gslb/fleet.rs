//! Made-up fleets.

use gslb_core::fleet::{Fleet, Limits};
use proto::address::{Address, Carrier, Transport};
use proto::id::{NodeId, UnitId};
use proto::load::{Load, LoadReport};
use proto::time::{Mono, Wall};

/// Machine rooms of a region.
const MACHINE_ROOMS: u32 = 3;
/// Nodes of a region: four carriers' and three machine rooms'.
pub(super) const NODES_PER_REGION: u32 = 500;
/// So many that the decisions of all rounds fill nobody.
const SESSIONS_MAX: u32 = 1_000_000;
/// So many that no login has to wait.
const LOGINS_PER_S_MAX: u32 = 50_000_000;
/// When all nodes reported.
pub(super) const NOW: Mono = Mono(1_000);

/// Nodes of several regions with three machine rooms each, on their carriers' networks and on BGP.
pub(super) fn fleet(nodes: u32) -> anyhow::Result<Fleet> {
    let mut fleet = Fleet::new(Limits::default());
    for number in 0..nodes {
        fleet.handle(report(number, nodes / NODES_PER_REGION, 1), NOW)?;
    }
    Ok(fleet)
}

/// The name of a region.
pub(super) fn region(number: u32) -> String {
    format!("region-{number}")
}

/// The host of a node.
pub(super) fn host(number: u32) -> String {
    format!("link-{number}.example")
}

/// What node `number` reports for the `counter`th time.
pub(super) fn report(number: u32, regions: u32, counter: u64) -> LoadReport {
    let region = region(number % regions);
    let carrier = [Carrier::Telecom, Carrier::Unicom, Carrier::Mobile, Carrier::Bgp]
        [(number / regions % 4) as usize];
    let listeners = [(443, Transport::Tls), (8443, Transport::Wss)];
    let addresses = listeners.map(|(port, transport)| Address {
        host: host(number),
        port,
        transport,
        carrier,
        machine_room: format!("{region}-{}", number % MACHINE_ROOMS),
    });
    LoadReport {
        node: NodeId(number),
        unit: UnitId(0),
        region,
        counter,
        start: Wall(1),
        addresses: addresses.into(),
        reserve: Vec::new(),
        load: Load {
            sessions: number * 7 % 5_000,
            sessions_max: SESSIONS_MAX,
            handshakes_per_s_max: LOGINS_PER_S_MAX,
            cpu_permille: u16::try_from(number * 13 % 700).unwrap_or(0),
            ..Load::default()
        },
    }
}
