//! Load reports, one by one and packed by region.

mod known;
mod pack;
mod view;

use bytes::Bytes;
use flatbuffers::WIPOffset;

use super::word::{self, Code};
use super::{Builder, build, refused};
use crate::address::{Address, Carrier, Transport};
use crate::decode::DecodeError;
use crate::generated as fb;
use crate::id::{NodeId, UnitId};
use crate::limits;
use crate::load::{Load, LoadReport, RegionLoads};
use crate::time::Wall;

pub use known::{KnownRegion, KnownReport, Numbers};
pub use view::{RegionView, ReportView};

pub(super) fn write_report(report: &LoadReport) -> Bytes {
    build(512, |b| report_table(b, report))
}

pub(super) fn write_region(loads: &RegionLoads) -> Bytes {
    build(64 + loads.nodes.len() * 400, |b| {
        let nodes: Vec<_> = loads.nodes.iter().map(|it| report_table(b, it)).collect();
        let args = fb::RegionLoadsArgs {
            region: Some(b.create_string(&loads.region)),
            at_ms: loads.at.0,
            nodes: Some(b.create_vector(&nodes)),
        };
        fb::RegionLoads::create(b, &args)
    })
}

fn report_table(b: &mut Builder, report: &LoadReport) -> WIPOffset<fb::LoadReport<'static>> {
    let addresses: Vec<&Address> = report.addresses.iter().chain(&report.reserve).collect();
    let hosts: Vec<&str> = addresses.iter().map(|it| it.host.as_str()).collect();
    let machine_rooms: Vec<&str> = addresses.iter().map(|it| it.machine_room.as_str()).collect();
    let transports = addresses.iter().map(|it| it.transport.wire().0);
    let carriers = addresses.iter().map(|it| it.carrier.wire().0);
    let load = load_struct(report.load);
    let args = fb::LoadReportArgs {
        node: report.node.0,
        unit: report.unit.0,
        region: Some(b.create_string(&report.region)),
        counter: report.counter,
        start_ms: report.start.0,
        load: Some(&load),
        hosts: word::write_words(b, &hosts),
        ports: Some(b.create_vector_from_iter(addresses.iter().map(|it| it.port))),
        transports: Some(b.create_vector_from_iter(transports)),
        carriers: Some(b.create_vector_from_iter(carriers)),
        machine_rooms: word::write_words(b, &machine_rooms),
        handshakes_per_s_max: report.load.handshakes_per_s_max,
        reserves: u8::try_from(report.reserve.len()).unwrap_or(u8::MAX),
    };
    fb::LoadReport::create(b, &args)
}

fn load_struct(load: Load) -> fb::Load {
    fb::Load::new(
        load.egress_bps,
        load.sessions,
        load.sessions_max,
        load.handshakes,
        load.handshakes_per_s,
        load.accept_queue,
        load.cpu_permille,
        load.draining,
        load.besieged,
    )
}

pub(super) fn read_report(bytes: &[u8]) -> Result<LoadReport, DecodeError> {
    ReportView::read(bytes)?.to_report()
}

pub(super) fn read_region(bytes: &[u8]) -> Result<RegionLoads, DecodeError> {
    let it = RegionView::read(bytes)?;
    Ok(RegionLoads {
        region: it.region()?,
        at: it.at(),
        nodes: it.nodes().map(ReportView::to_report).collect::<Result<_, _>>()?,
    })
}

impl RegionLoads {
    /// The value of reports that [`ReportView::read`] takes, as it would be if they were decoded
    /// and then encoded.
    #[must_use]
    pub fn pack(region: &str, at: Wall, reports: &[&[u8]]) -> Bytes {
        pack::pack(region, at, reports)
    }
}

/// An address as it is on the wire.
#[derive(Clone, Copy, Debug)]
struct Column<'a> {
    host: &'a str,
    machine_room: &'a str,
    transport: fb::Transport,
    carrier: fb::Carrier,
    port: u16,
}

impl Column<'_> {
    fn is(self, known: &Address) -> bool {
        self.host == known.host
            && self.machine_room == known.machine_room
            && self.transport == known.transport.wire()
            && self.carrier == known.carrier.wire()
            && self.port == known.port
    }

    fn address(self) -> Result<Address, DecodeError> {
        Ok(Address {
            host: word::text(self.host, limits::HOST_BYTES_MAX, "host")?,
            port: self.port,
            transport: Transport::read(self.transport, "transport")?,
            carrier: Carrier::read(self.carrier, "carrier")?,
            machine_room: word::text(self.machine_room, limits::WORD_BYTES_MAX, "machine_room")?,
        })
    }
}

fn report(it: fb::LoadReport<'_>) -> Result<LoadReport, DecodeError> {
    let mut addresses = columns(it)?.map(Column::address).collect::<Result<Vec<_>, _>>()?;
    let Some(published) = addresses.len().checked_sub(it.reserves().into()) else {
        return refused("reserves");
    };
    let reserve = addresses.split_off(published);
    Ok(LoadReport {
        node: NodeId(it.node()),
        unit: UnitId(it.unit()),
        region: word::text(it.region(), limits::WORD_BYTES_MAX, "region")?,
        counter: it.counter(),
        start: Wall(it.start_ms()),
        addresses,
        reserve,
        load: load(it),
    })
}

fn load(it: fb::LoadReport<'_>) -> Load {
    load_of(it.load(), it.handshakes_per_s_max())
}

fn load_of(load: &fb::Load, handshakes_per_s_max: u32) -> Load {
    Load {
        sessions: load.sessions(),
        sessions_max: load.sessions_max(),
        handshakes: load.handshakes(),
        handshakes_per_s: load.handshakes_per_s(),
        handshakes_per_s_max,
        egress_bps: load.egress_bps(),
        cpu_permille: load.cpu_permille(),
        accept_queue: load.accept_queue(),
        draining: load.draining(),
        besieged: load.besieged(),
    }
}

fn columns(it: fb::LoadReport<'_>) -> Result<impl Iterator<Item = Column<'_>>, DecodeError> {
    let count = it.hosts().map_or(0, |it| it.len());
    let equal = it.ports().map_or(0, |it| it.len()) == count
        && it.transports().map_or(0, |it| it.len()) == count
        && it.carriers().map_or(0, |it| it.len()) == count
        && it.machine_rooms().map_or(0, |it| it.len()) == count;
    if count > limits::ADDRESSES_MAX || !equal {
        return refused("addresses");
    }
    let names = it.hosts().into_iter().flatten().zip(it.machine_rooms().into_iter().flatten());
    let codes = it.transports().into_iter().flatten().zip(it.carriers().into_iter().flatten());
    let columns = names.zip(codes).zip(it.ports().into_iter().flatten());
    Ok(columns.map(|(((host, machine_room), (transport, carrier)), port)| Column {
        host,
        machine_room,
        transport: fb::Transport(transport),
        carrier: fb::Carrier(carrier),
        port,
    }))
}
