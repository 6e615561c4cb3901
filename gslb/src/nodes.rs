//! What operators see of the fleet: every node under lease, and what its regions have left.
//!
//! Whoever keeps the fleet is asked for it, and looks between two snapshots: at 20,000 nodes that
//! takes some 20 ms, in which the snapshot stays as it is. One operator is served at a time.

use std::collections::{BTreeMap, BTreeSet};

use gslb_core::fleet::{Fleet, Look, Standing};
use gslb_core::snapshot::Snapshot;
use proto::address::{Address, Carrier, Transport};
use proto::id::{NodeId, UnitId};
use proto::load::Load;
use proto::time::{Mono, Wall, millis};
use serde::Serialize;
use tokio::sync::{mpsc, oneshot};

use crate::place::Carriers;

/// Asks whoever keeps the fleet.
#[derive(Clone, Debug)]
pub(crate) struct Desk(mpsc::Sender<oneshot::Sender<View>>);

/// Where the keeper of the fleet is asked.
pub(crate) type Asked = mpsc::Receiver<oneshot::Sender<View>>;

/// Nobody looks at the fleet now: another operator is served, or the service ends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Occupied;

/// The fleet at one moment.
#[derive(Debug, Serialize)]
pub(crate) struct View {
    /// Since the loads were planned with.
    snapshot_age_ms: u64,
    nodes: Vec<Node>,
    regions: Vec<RegionSum>,
    pools: Vec<Pool>,
}

#[derive(Debug, Serialize)]
struct Node {
    node: NodeId,
    unit: UnitId,
    region: String,
    state: Standing,
    /// Since its last report: its lease ends when it is silent for as long as leases hold.
    lease_age_ms: u64,
    started_ms: Wall,
    /// Answers since its last report that sent a viewer there first.
    answers: u32,
    /// Viewers that this process may send there before the next snapshot.
    answers_left: u32,
    addresses: Vec<Listener>,
    /// Told to operators alone.
    reserve: Vec<Listener>,
    load: Load,
}

/// An [`Address`] whose carrier has the name that the configuration gives it.
#[derive(Debug, Serialize)]
struct Listener {
    host: String,
    port: u16,
    transport: Transport,
    carrier: String,
    machine_room: String,
}

/// A region's nodes together.
#[derive(Debug, Default, Serialize)]
struct RegionSum {
    region: String,
    nodes: u32,
    /// Those that take viewers.
    taking: u32,
    sessions: u64,
    sessions_max: u64,
    egress_bps: u64,
}

/// What is left on one carrier's network in a region, of nodes that take viewers.
#[derive(Debug, Serialize)]
struct Pool {
    region: String,
    carrier: String,
    nodes: u32,
    /// Viewers that have a place yet.
    places: u64,
    /// Logins a second that are not used yet, of the nodes that say what they can do.
    logins_per_s: u64,
}

/// A desk, and where its questions come out.
pub(crate) fn desk() -> (Desk, Asked) {
    let (asking, asked) = mpsc::channel(1);
    (Desk(asking), asked)
}

impl Desk {
    /// The fleet as it is now.
    pub(crate) async fn view(&self) -> Result<View, Occupied> {
        let (answer, view) = oneshot::channel();
        self.0.try_send(answer).map_err(|_| Occupied)?;
        view.await.map_err(|_| Occupied)
    }
}

impl View {
    /// Looks at every node.
    pub(crate) fn of(fleet: &Fleet, snapshot: &Snapshot, carriers: &Carriers, now: Mono) -> Self {
        let mut regions: BTreeMap<String, RegionSum> = BTreeMap::new();
        let mut pools: BTreeMap<(String, Carrier), Pool> = BTreeMap::new();
        let mut nodes = Vec::with_capacity(fleet.len());
        for look in fleet.look(snapshot, now) {
            let region = &look.report.region;
            let sum = regions.entry(region.clone()).or_default();
            sum.region.clone_from(region);
            sum.add(&look);
            if matches!(look.standing, Standing::Taking | Standing::Growing) {
                let networks: BTreeSet<_> =
                    look.report.addresses.iter().map(|it| it.carrier).collect();
                for carrier in networks {
                    let pool = pools.entry((region.clone(), carrier));
                    let new = || Pool::new(region, carriers.name(carrier));
                    pool.or_insert_with(new).add(&look.report.load);
                }
            }
            nodes.push(Node::of(&look, carriers));
        }
        Self {
            snapshot_age_ms: millis(now.since(snapshot.planned_at())),
            nodes,
            regions: regions.into_values().collect(),
            pools: pools.into_values().collect(),
        }
    }
}

impl Node {
    fn of(look: &Look<'_>, carriers: &Carriers) -> Self {
        let report = look.report;
        let listeners =
            |addresses: &[Address]| addresses.iter().map(|it| Listener::of(it, carriers)).collect();
        Self {
            node: report.node,
            unit: report.unit,
            region: report.region.clone(),
            state: look.standing,
            lease_age_ms: millis(look.age),
            started_ms: report.start,
            answers: look.answers,
            answers_left: look.left,
            addresses: listeners(&report.addresses),
            reserve: listeners(&report.reserve),
            load: report.load,
        }
    }
}

impl Listener {
    fn of(address: &Address, carriers: &Carriers) -> Self {
        let Address { host, port, transport, carrier, machine_room } = address.clone();
        Self { host, port, transport, carrier: carriers.name(carrier).to_owned(), machine_room }
    }
}

impl RegionSum {
    fn add(&mut self, look: &Look<'_>) {
        let load = look.report.load;
        self.nodes += 1;
        self.taking += u32::from(matches!(look.standing, Standing::Taking | Standing::Growing));
        self.sessions += u64::from(load.sessions);
        self.sessions_max += u64::from(load.sessions_max);
        self.egress_bps = self.egress_bps.saturating_add(load.egress_bps);
    }
}

impl Pool {
    fn new(region: &str, carrier: &str) -> Self {
        let (region, carrier) = (region.to_owned(), carrier.to_owned());
        Self { region, carrier, nodes: 0, places: 0, logins_per_s: 0 }
    }

    fn add(&mut self, load: &Load) {
        self.nodes += 1;
        self.places += u64::from(load.sessions_max.saturating_sub(load.sessions));
        self.logins_per_s +=
            u64::from(load.handshakes_per_s_max.saturating_sub(load.handshakes_per_s));
    }
}

#[cfg(test)]
mod tests {
    use gslb_core::policy::Policy;
    use gslb_core::snapshot::plan;
    use proto::load::LoadReport;

    use super::*;
    use crate::place::Network;

    #[test]
    fn operators_see_carriers_by_the_names_they_gave_them() {
        let own = Network { number: 12, name: "acme".to_owned(), asns: Vec::new() };
        let carriers = Carriers::new(&[own]).unwrap();
        let address = Address {
            host: "link.example".to_owned(),
            port: 443,
            transport: Transport::Tls,
            carrier: Carrier::C12,
            machine_room: String::new(),
        };
        let report = LoadReport {
            node: NodeId(1),
            unit: UnitId(1),
            region: "north".to_owned(),
            counter: 1,
            start: Wall(1),
            addresses: vec![address.clone()],
            reserve: vec![address],
            load: Load { sessions_max: 10, ..Load::default() },
        };
        let mut fleet = Fleet::default();
        fleet.handle(report, Mono(0)).unwrap();
        let snapshot = plan(&fleet, &Policy::default(), &Snapshot::default(), Mono(1));

        let view = View::of(&fleet, &snapshot, &carriers, Mono(1));

        let shown = serde_json::to_value(view).unwrap();
        let address = &shown["nodes"][0]["addresses"][0];
        assert_eq!((&address["carrier"], &address["transport"]), (&"acme".into(), &"tls".into()));
        assert_eq!(shown["nodes"][0]["reserve"][0]["carrier"], "acme");
        assert_eq!(shown["pools"][0]["carrier"], "acme");
    }
}
