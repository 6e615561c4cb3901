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
const NODES_MANY: u32 = 20_000;
const MACHINE_ROOMS: u32 = 3;
/// Nodes of a region: four carriers' and three machine rooms'.
const NODES_PER_REGION: u32 = 500;
/// So many that the decisions of all rounds fill nobody.
const SESSIONS_MAX: u32 = 1_000_000;
/// So many that no login has to wait.
const LOGINS_PER_S_MAX: u32 = 50_000_000;
const NOW: Mono = Mono(1_000);

/// `gslb.decide`, `gslb.plan.2000` and `gslb.plan.20000`.
pub(crate) fn run() -> anyhow::Result<Vec<Line>> {
    let fleet = fleet(NODES)?;
    let policy = Policy::default();
    let snapshot = plan(&fleet, &policy, &Snapshot::default(), NOW);
    ensure!(snapshot.taking() == NODES as usize, "{} nodes take viewers", snapshot.taking());

    let wants = Wants::default();
    let requests: Vec<Request> = (0..NODES / NODES_PER_REGION)
        .map(|it| snapshot.region(&region(it)))
        .flat_map(|region| [Carrier::Telecom, Carrier::Bgp].map(|it| (region, it)))
        .map(|(region, carrier)| Request { region, carrier, wants })
        .collect();
    let mut cycle = requests.iter().cycle();
    let mut refused = 0;
    let decided = per_second(|| {
        let request = cycle.next().unwrap_or_else(|| unreachable!("a cycle does not end"));
        let assigned = snapshot.assign(black_box(request));
        refused += u32::from(black_box(assigned).is_err());
    });
    ensure!(refused == 0, "{refused} viewers were refused");
    Ok(vec![
        Line::alone("gslb.decide", decided, "1/s/core"),
        Line::alone("gslb.plan.2000", plan_us(&fleet), "us"),
        Line::alone("gslb.plan.20000", plan_us(&self::fleet(NODES_MANY)?), "us"),
    ])
}

/// Microseconds of a plan that follows another, of a fleet at rest: nobody reports or is sent a
/// viewer in between.
fn plan_us(fleet: &Fleet) -> f64 {
    let policy = Policy::default();
    let mut snapshot = Snapshot::default();
    let planned = per_second(|| {
        snapshot = plan(black_box(fleet), &policy, &snapshot, NOW);
    });
    black_box(snapshot);
    1e6 / planned
}

/// Nodes of several regions with three machine rooms each, on their carriers' networks and on BGP.
fn fleet(nodes: u32) -> anyhow::Result<Fleet> {
    let mut fleet = Fleet::new(Limits::default());
    for number in 0..nodes {
        fleet.handle(report(number, nodes / NODES_PER_REGION), NOW)?;
    }
    Ok(fleet)
}

fn region(number: u32) -> String {
    format!("region-{number}")
}

fn report(number: u32, regions: u32) -> LoadReport {
    let region = region(number % regions);
    let carrier = [Carrier::Telecom, Carrier::Unicom, Carrier::Mobile, Carrier::Bgp]
        [(number / regions % 4) as usize];
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
        region,
        counter: 1,
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
