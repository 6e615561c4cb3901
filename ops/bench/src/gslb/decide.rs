//! Decisions of one core, and the time of a plan.

use std::hint::black_box;

use anyhow::ensure;
use gslb_core::assign::{Request, Wants};
use gslb_core::fleet::Fleet;
use gslb_core::policy::Policy;
use gslb_core::snapshot::{Snapshot, plan};
use proto::address::Carrier;

use super::fleet::{NODES_PER_REGION, NOW, fleet, region};
use crate::line::Line;
use crate::timing::per_second;

const NODES: u32 = 2_000;
const NODES_MANY: u32 = 20_000;

/// `gslb.decide`, `gslb.plan.2000` and `gslb.plan.20000`.
pub(super) fn run() -> anyhow::Result<Vec<Line>> {
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
