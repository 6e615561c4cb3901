//! Load reports.

use proptest::collection::vec;
use proptest::prelude::*;
use proto::address::{Address, Carrier, Transport};
use proto::id::{NodeId, UnitId};
use proto::load::{Load, LoadReport, RegionLoads};
use proto::time::Wall;

use super::word;

pub(crate) fn report() -> impl Strategy<Value = LoadReport> {
    let ids = any::<(u32, u16, u64, u64)>();
    let addresses = (vec(address(), 0..4), vec(address(), 0..3));
    (ids, "[a-z0-9-]{0,16}", addresses, load()).prop_map(
        |((node, unit, counter, start), region, (addresses, reserve), load)| LoadReport {
            node: NodeId(node),
            unit: UnitId(unit),
            region,
            counter,
            start: Wall(start),
            addresses,
            reserve,
            load,
        },
    )
}

fn address() -> impl Strategy<Value = Address> {
    let transports = vec![
        Transport::Tcp,
        Transport::Tls,
        Transport::Ws,
        Transport::Wss,
        Transport::Quic,
        Transport::National,
    ];
    let codes = (prop::sample::select(transports), prop::sample::select(Carrier::ALL.to_vec()));
    ("[a-z0-9.:-]{0,60}", any::<u16>(), codes, "[a-z0-9-]{0,16}").prop_map(
        |(host, port, (transport, carrier), machine_room)| Address {
            host,
            port,
            transport,
            carrier,
            machine_room,
        },
    )
}

fn load() -> impl Strategy<Value = Load> {
    let counts = any::<(u32, u32, u32, u32, u32, u32)>();
    (counts, any::<(u64, u16, bool, bool)>()).prop_map(
        |(
            (sessions, sessions_max, handshakes, per_s, per_s_max, accept_queue),
            (egress_bps, cpu_permille, draining, besieged),
        )| Load {
            sessions,
            sessions_max,
            handshakes,
            handshakes_per_s: per_s,
            handshakes_per_s_max: per_s_max,
            egress_bps,
            cpu_permille,
            accept_queue,
            draining,
            besieged,
        },
    )
}

pub(crate) fn region() -> impl Strategy<Value = RegionLoads> {
    let few = vec(report(), 0..6);
    let many = report().prop_map(|it| vec![it; 1000]);
    (word(), any::<u64>(), prop_oneof![8 => few, 1 => many])
        .prop_map(|(region, at, nodes)| RegionLoads { region, at: Wall(at), nodes })
}
