//! gslb: decisions of one core, and the time of a plan.

use std::hint::black_box;

use anyhow::ensure;
use gslb_core::assign::{Request, Wants};
use gslb_core::fleet::{Fleet, Limits};
use gslb_core::policy::Policy;
use gslb_core::snapshot::{Snapshot, plan};
use proto::address::{Address, Carrier, Transport};
use proto::id::{NodeId, UnitId};
use proto::load::{Load, LoadReport};
use proto::time::{Mono, Wall};

use crate::line::Line;
use crate::timing::per_second;

const NODES: u32 = 2_000;
const REGIONS: [&str; 4] = ["north", "east", "south", "west"];
const MACHINE_ROOMS: u32 = 3;
/// So many that the decisions of all rounds fill nobody.
const SESSIONS_MAX: u32 = 1_000_000;
const NOW: Mono = Mono(1_000);

/// `gslb.assign` and `gslb.plan.2000`.
pub(crate) fn run() -> anyhow::Result<Vec<Line>> {
    let fleet = fleet()?;
    let policy = Policy::default();
    let snapshot = plan(&fleet, &policy, &Snapshot::default(), NOW);
    ensure!(snapshot.taking() == NODES as usize, "{} nodes take viewers", snapshot.taking());

    let wants = Wants::default();
    let mut requests = REGIONS
        .into_iter()
        .map(|it| snapshot.region(it))
        .flat_map(|region| [Carrier::Telecom, Carrier::Bgp].map(|it| (region, it)))
        .map(|(region, carrier)| Request { region, carrier, wants })
        .cycle();
    let mut refused = 0;
    let decided = per_second(|| {
        let request = requests.next().unwrap_or_else(|| unreachable!("a cycle does not end"));
        let assigned = snapshot.assign(black_box(&request));
        refused += u32::from(black_box(assigned).is_err());
    });
    ensure!(refused == 0, "{refused} viewers were refused");
    let planned = per_second(|| {
        black_box(plan(black_box(&fleet), &policy, &snapshot, NOW));
    });
    Ok(vec![
        Line::alone("gslb.assign", decided, "1/s/core"),
        Line::alone("gslb.plan.2000", 1e6 / planned, "us"),
    ])
}

/// Nodes of four regions with three machine rooms each, on their carriers' networks and on BGP.
fn fleet() -> anyhow::Result<Fleet> {
    let mut fleet = Fleet::new(Limits::default());
    for number in 0..NODES {
        fleet.handle(report(number), NOW)?;
    }
    Ok(fleet)
}

fn report(number: u32) -> LoadReport {
    let region = REGIONS[number as usize % REGIONS.len()];
    let carrier = [Carrier::Telecom, Carrier::Unicom, Carrier::Mobile, Carrier::Bgp]
        [number as usize / REGIONS.len() % 4];
    let listeners = [(443, Transport::Tls), (8443, Transport::Wss)];
    let addresses = listeners.map(|(port, transport)| Address {
        host: format!("link-{number}.example"),
        port,
        transport,
        carrier,
        machine_room: format!("{region}-{}", number % MACHINE_ROOMS),
    });
    LoadReport {
        node: NodeId(number),
        unit: UnitId(0),
        region: region.to_owned(),
        counter: 1,
        start: Wall(1),
        addresses: addresses.into(),
        reserve: Vec::new(),
        load: Load {
            sessions: number * 7 % 5_000,
            sessions_max: SESSIONS_MAX,
            cpu_permille: u16::try_from(number * 13 % 700).unwrap_or(0),
            ..Load::default()
        },
    }
}
