//! Moves that do not get to their nodes.

use bus::{Fault, FaultyBus, Limits, MemoryBus};
use proto::address::{Address, Carrier, Transport};
use proto::id::{NodeId, UnitId};
use proto::load::{Load, LoadReport};
use proto::time::Wall;

use super::*;

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test]
async fn a_move_that_the_bus_does_not_take_is_told_a_second_later() {
    let World { mut mover, mut teller, bus, clock, .. } = World::new();
    let fleet = fleet(&[1]);

    let now = clock.mono();
    bus.set(Fault::Away);
    mover.look(&fleet, now);
    let first = order(&mut teller).unwrap();
    teller.tell(first).await;
    mover.look(&fleet, now);
    assert!(order(&mut teller).is_none());

    bus.set(Fault::None);
    mover.look(&fleet, clock.mono() + SECOND);
    let again = order(&mut teller).unwrap();
    teller.tell(again).await;

    assert_eq!((teller.failed.get(), teller.told.get()), (1, 1));
    mover.look(&fleet, now + SECOND * 5);
    assert!(order(&mut teller).is_none(), "it was told");
}

#[tokio::test]
async fn a_move_that_finds_no_place_in_the_queue_is_told_a_second_later() {
    let World { mut mover, mut teller, .. } = World::new();
    let nodes: Vec<_> = (1..).take(ORDERS_MAX + 1).collect();
    let fleet = fleet(&nodes);

    mover.look(&fleet, Mono(0));
    let queued: Vec<_> = std::iter::from_fn(|| order(&mut teller)).collect();
    mover.look(&fleet, Mono(999));
    assert!(order(&mut teller).is_none());
    mover.look(&fleet, Mono(1_000));
    let late = order(&mut teller).unwrap();

    assert_eq!(queued.len(), ORDERS_MAX);
    assert!(queued.iter().all(|it| it.node != late.node));
    assert!(order(&mut teller).is_none());
}

#[test]
fn the_sessions_that_stay_are_shown_once_however_often_they_are_planned() {
    let World { mut mover, leads, .. } = World::new();
    let mut fleet = Fleet::default();
    fleet.handle(besieged(1), Mono(0)).unwrap();

    for seconds in 0..20 {
        mover.look(&fleet, Mono(0) + SECOND * seconds);
        assert_eq!(mover.staying.get(), 10);
    }
    leads.send_replace(false);
    mover.look(&fleet, Mono(20_000));

    assert_eq!(mover.staying.get(), 0);
}

/// A mover that leads, and what it tells by.
struct World {
    mover: Mover,
    teller: Teller,
    bus: Arc<FaultyBus>,
    clock: Clock,
    leads: watch::Sender<bool>,
}

impl World {
    fn new() -> Self {
        let clock = Clock::system();
        let bus = FaultyBus::new(MemoryBus::new(clock.clone(), Limits::default()));
        let shared: Arc<dyn Bus> = Arc::<FaultyBus>::clone(&bus);
        let meter = Meter::default();
        let lead = Lead::new(Arc::clone(&shared), clock.clone(), &meter).unwrap();
        let (mut mover, teller) = mover(&lead, shared, clock.clone(), &meter);
        let leads = watch::Sender::new(true);
        mover.leads = leads.subscribe();
        Self { mover, teller, bus, clock, leads }
    }
}

fn order(teller: &mut Teller) -> Option<Move> {
    teller.orders.try_recv().ok()
}

/// These besieged nodes, and one that takes all their sessions in.
fn fleet(nodes: &[u32]) -> Fleet {
    let mut fleet = Fleet::default();
    for node in nodes {
        fleet.handle(besieged(*node), Mono(0)).unwrap();
    }
    let refuge = LoadReport {
        reserve: vec![Address {
            host: "reserve".to_owned(),
            port: 443,
            transport: Transport::Tls,
            carrier: Carrier::Bgp,
            machine_room: String::new(),
        }],
        load: Load { sessions_max: 10_000, handshakes_per_s_max: 10_000, ..Load::default() },
        ..besieged(1_000)
    };
    fleet.handle(refuge, Mono(0)).unwrap();
    fleet
}

/// A node of ten sessions that is attacked, and has no reserve.
fn besieged(node: u32) -> LoadReport {
    LoadReport {
        node: NodeId(node),
        unit: UnitId(1),
        region: "north".to_owned(),
        counter: 1,
        start: Wall(0),
        addresses: Vec::new(),
        reserve: Vec::new(),
        load: Load {
            sessions: 10,
            sessions_max: 1_000,
            handshakes_per_s_max: 100,
            besieged: true,
            ..Load::default()
        },
    }
}
