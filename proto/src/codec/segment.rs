//! Segments: `"DMS1" | CRC-32 u32, little-endian | FlatBuffer`, the checksum covers the FlatBuffer.

use bytes::Bytes;
use flatbuffers::{Vector, WIPOffset};

use super::columns::{self, Order};
use super::word::{self, Code};
use super::{Builder, check_length, refused, root};
use crate::decode::DecodeError;
use crate::generated as fb;
use crate::head::Tier;
use crate::heat::Heat;
use crate::id::{Gen, SlotNo};
use crate::item::Repeat;
use crate::limits;
use crate::segment::{Header, Segment};
use crate::time::Wall;

const MAGIC: [u8; 4] = *b"DMS1";

pub(super) fn write(segment: &Segment) -> Bytes {
    let items = segment.items.len() + segment.repeats.len();
    let mut builder = Builder::with_capacity(512 + items * 96);
    let root = table(&mut builder, segment);
    builder.finish_minimal(root);
    let table = builder.finished_data();
    let mut bytes = Vec::with_capacity(table.len() + 8);
    bytes.extend_from_slice(&MAGIC);
    bytes.extend_from_slice(&crc32fast::hash(table).to_le_bytes());
    bytes.extend_from_slice(table);
    bytes.into()
}

fn table(b: &mut Builder, segment: &Segment) -> WIPOffset<fb::Segment<'static>> {
    let header = &segment.header;
    let (repeats, repeat_gens) = write_repeats(b, &segment.repeats);
    let args = fb::SegmentArgs {
        room: Some(b.create_string(header.room.as_str())),
        gen_no: header.gen_no.0,
        slot: header.slot.0,
        tier: header.tier.wire(),
        epoch_ms: header.epoch_ms.0,
        interval_ms: header.interval_ms,
        now_ms: header.now_ms.0,
        spread_ms: header.spread_ms,
        next_tier: header.next_tier.map(Tier::wire),
        online: header.online,
        heat: header.heat.wire(),
        bases: word::write_bases(b, &header.bases),
        next: header.next.map(|it| word::write_gen_info(b, it)),
        end: header.end.map(|it| it.0),
        items: Some(columns::write_placed(b, segment.items.iter())),
        repeats,
        repeat_gens,
    };
    fb::Segment::create(b, &args)
}

type Repeats = (Option<WIPOffset<fb::Columns<'static>>>, Option<WIPOffset<Vector<'static, u32>>>);

/// The repeats and their gens; both absent if there are none.
fn write_repeats(b: &mut Builder, repeats: &[Repeat]) -> Repeats {
    if repeats.is_empty() {
        return (None, None);
    }
    let columns = columns::write_placed(b, repeats.iter().map(|it| &it.placed));
    let gens = b.create_vector_from_iter(repeats.iter().map(|it| it.gen_no.0));
    (Some(columns), Some(gens))
}

pub(super) fn read(bytes: &[u8]) -> Result<Segment, DecodeError> {
    check_length(bytes, 9, limits::SEGMENT_BYTES_MAX)?;
    let Some((head, table)) = bytes.split_first_chunk::<8>() else {
        return Err(DecodeError::TooShort { bytes: bytes.len() });
    };
    let [m0, m1, m2, m3, c0, c1, c2, c3] = *head;
    if [m0, m1, m2, m3] != MAGIC {
        return Err(DecodeError::Malformed);
    }
    if u32::from_le_bytes([c0, c1, c2, c3]) != crc32fast::hash(table) {
        return Err(DecodeError::Checksum);
    }
    let it = root::<fb::Segment<'_>>(table)?;
    Ok(Segment {
        header: header(it)?,
        items: columns::placed(it.items(), limits::SEGMENT_ITEMS_MAX, Order::Rising, Ok)?,
        repeats: repeats(it)?,
    })
}

fn header(it: fb::Segment<'_>) -> Result<Header, DecodeError> {
    Ok(Header {
        room: word::room(it.room())?,
        gen_no: Gen(it.gen_no()),
        slot: SlotNo(it.slot()),
        tier: Tier::read(it.tier(), "tier")?,
        epoch_ms: Wall(it.epoch_ms()),
        interval_ms: it.interval_ms(),
        now_ms: Wall(it.now_ms()),
        spread_ms: it.spread_ms(),
        next_tier: it.next_tier().map(|it| Tier::read(it, "next_tier")).transpose()?,
        online: it.online(),
        heat: Heat::read(it.heat(), "heat")?,
        bases: word::bases(it.bases())?,
        next: it.next().map(word::gen_info),
        end: it.end().map(SlotNo),
    })
}

fn repeats(it: fb::Segment<'_>) -> Result<Vec<Repeat>, DecodeError> {
    let mut gens = it.repeat_gens().into_iter().flatten();
    let repeats = it.repeats().map_or(Ok(Vec::new()), |columns| {
        columns::placed(columns, limits::SEGMENT_REPEATS_MAX, Order::Any, |placed| {
            let gen_no = gens.next().map_or_else(|| refused("repeat_gens"), Ok)?;
            Ok(Repeat { gen_no: Gen(gen_no), placed })
        })
    })?;
    if gens.next().is_some() { refused("repeat_gens") } else { Ok(repeats) }
}
