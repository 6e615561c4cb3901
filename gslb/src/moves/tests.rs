//! Moves that do not get to their nodes.

use bus::{Fault, FaultyBus, Limits, MemoryBus, Offset};
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

#[tokio::test]
async fn who_leads_next_keeps_what_was_promised_before() {
    let mut first = World::new();
    let (mut next, clock) = (World::new(), first.clock.clone());
    next.leads.send_replace(false);
    let mut fleet = fleet(&[]);
    let many = Load { sessions: 7_000, sessions_max: 7_000, ..besieged(1).load };
    fleet.handle(LoadReport { load: many, ..besieged(1) }, Mono(0)).unwrap();
    first.mover.look(&fleet, clock.mono());
    let order = order(&mut first.teller).unwrap();
    first.teller.tell(order).await;

    let told = first.bus.read(topic::control(), PartitionNo(0), Offset(0), 10, SECOND).await;
    let fact = Fact::decode(&told.unwrap()[0].value).unwrap();
    next.teller.promises().hear(&fact, Heard::Live);
    next.mover.look(&fleet, clock.mono());
    next.leads.send_replace(true);
    fleet.handle(LoadReport { load: many, ..besieged(2) }, Mono(0)).unwrap();
    // The window is over, but not all are taken to have arrived.
    next.mover.look(&fleet, clock.mono() + SECOND * 2);

    let orders: Vec<_> = std::iter::from_fn(|| self::order(&mut next.teller)).collect();
    let [order] = &orders[..] else { panic!("{orders:?}") };
    assert_eq!((order.node, order.sessions, order.staying), (NodeId(2), 3_000, 4_000));
}

#[tokio::test]
async fn a_node_that_drains_hears_an_answer_even_if_there_is_no_room() {
    let World { mut mover, mut teller, bus, clock, .. } = World::new();
    let mut fleet = Fleet::default();
    let draining = Load { draining: true, besieged: false, ..besieged(1).load };
    let report = LoadReport { load: draining, start: Wall(7), ..besieged(1) };
    fleet.handle(report, Mono(0)).unwrap();

    mover.look(&fleet, clock.mono());
    let first = order(&mut teller).unwrap();
    teller.tell(first).await;
    mover.look(&fleet, clock.mono() + SECOND * 60);

    let told = bus.read(topic::control(), PartitionNo(0), Offset(0), 10, SECOND).await.unwrap();
    let Ok(Fact::Move { addresses, drain, .. }) = Fact::decode(&told[0].value) else {
        panic!("{told:?}")
    };
    assert_eq!((addresses.len(), drain), (0, Some(Wall(7))));
    assert!(order(&mut teller).is_none(), "it is told once");
    assert_eq!((teller.nowhere.get(), teller.told.get(), mover.staying.get()), (1, 0, 0));
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
        reserve: vec![address("reserve")],
        load: Load { sessions_max: 10_000, handshakes_per_s_max: 10_000, ..Load::default() },
        ..besieged(1_000)
    };
    fleet.handle(refuge, Mono(0)).unwrap();
    fleet
}

fn address(host: &str) -> Address {
    Address {
        host: host.to_owned(),
        port: 443,
        transport: Transport::Tls,
        carrier: Carrier::Bgp,
        machine_room: String::new(),
    }
}

/// A node of ten sessions that is attacked, and has no reserve.
fn besieged(node: u32) -> LoadReport {
    LoadReport {
        node: NodeId(node),
        unit: UnitId(1),
        region: "north".to_owned(),
        counter: 1,
        start: Wall(0),
        addresses: vec![address("link")],
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
