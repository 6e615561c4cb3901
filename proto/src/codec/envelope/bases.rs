//! `gauges`: what is said of segment bases, in the table of [`super::gauges`].

use bytes::Bytes;
use flatbuffers::WIPOffset;

use super::{build, record};
use crate::codec::{Builder, refused, word};
use crate::decode::DecodeError;
use crate::generated as fb;
use crate::id::NodeId;
use crate::limits::{BASE_BYTES_MAX, BASES_MAX};
use crate::quality::{BaseGauge, BaseGauges, StoreGauge};
use crate::time::Wall;

pub(in crate::codec) fn write(gauges: &BaseGauges) -> Bytes {
    build(128 + gauges.bases.len() * 96, |b| {
        let bases: Vec<_> = gauges.bases.iter().map(|it| write_base(b, it)).collect();
        let args = fb::LinkGaugesArgs {
            node: gauges.node.0,
            at_ms: gauges.at.0,
            bases: Some(b.create_vector(&bases)),
            store: gauges.store.as_ref().map(|it| write_store(b, it)),
            ..fb::LinkGaugesArgs::default()
        };
        fb::LinkGauges::create(b, &args)
    })
}

fn write_base(b: &mut Builder, gauge: &BaseGauge) -> WIPOffset<fb::BaseGauge<'static>> {
    let base = Some(b.create_string(&gauge.base));
    let BaseGauge { base: _, reports, bad, fetch_ms } = *gauge;
    fb::BaseGauge::create(b, &fb::BaseGaugeArgs { base, reports, bad, fetch_ms })
}

fn write_store(b: &mut Builder, gauge: &StoreGauge) -> WIPOffset<fb::StoreGauge<'static>> {
    let base = Some(b.create_string(&gauge.base));
    let StoreGauge { base: _, weight, stored, unstored, store_ms } = *gauge;
    let args = fb::StoreGaugeArgs { base, weight, stored, unstored, store_ms };
    fb::StoreGauge::create(b, &args)
}

pub(in crate::codec) fn read(bytes: &[u8]) -> Result<BaseGauges, DecodeError> {
    let it = record::<fb::LinkGauges<'_>>(bytes)?;
    if it.bases().map_or(0, |it| it.len()) > BASES_MAX {
        return refused("bases");
    }
    Ok(BaseGauges {
        node: NodeId(it.node()),
        at: Wall(it.at_ms()),
        bases: it.bases().into_iter().flatten().map(read_base).collect::<Result<_, _>>()?,
        store: it.store().map(read_store).transpose()?,
    })
}

fn read_base(it: fb::BaseGauge<'_>) -> Result<BaseGauge, DecodeError> {
    Ok(BaseGauge {
        base: word::text(it.base(), BASE_BYTES_MAX, "base")?,
        reports: it.reports(),
        bad: it.bad(),
        fetch_ms: it.fetch_ms(),
    })
}

fn read_store(it: fb::StoreGauge<'_>) -> Result<StoreGauge, DecodeError> {
    Ok(StoreGauge {
        base: word::text(it.base(), BASE_BYTES_MAX, "base")?,
        weight: it.weight(),
        stored: it.stored(),
        unstored: it.unstored(),
        store_ms: it.store_ms(),
    })
}
