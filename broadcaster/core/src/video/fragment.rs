//! A slot as a fragment of MP4: one grey frame, and before it an event message with the items.
//!
//! The message is an `emsg` of version 1 (ISO/IEC 23009-1, 5.10.3.3) under [`SCHEME`], whose data is
//! an ID3 tag with a private frame of [`OWNER`]; that is where HLS players look for timed metadata
//! ("Carriage of ID3 Timed Metadata in the Common Media Application Format", AOM, 2020). A rendition
//! with messages and no track is taken by few players, hence the frame.

use bytes::Bytes;
use mp4_atom::{
    Avc1, Avcc, Codec, Dinf, Dref, DrefEntry, Emsg, EmsgTimestamp, Encode, Ftyp, Hdlr, Mdat, Mdhd,
    Mdia, Mfhd, Minf, Moof, Moov, Mvex, Mvhd, Stbl, Stsd, Tfdt, Tfhd, Tkhd, Traf, Trak, Trex, Trun,
    TrunEntry, TrunSamples, Url, Visual, Vmhd,
};
use proto::id::SlotNo;

use super::{frame, id3};

/// Scheme of the messages: their data are ID3 tags.
pub const SCHEME: &str = "https://aomedia.org/emsg/ID3";
/// Owner of the private frame, whose bytes are a slot's `.json` as the CDN has it: gzip.
pub const OWNER: &str = "barrage/segment.json.gz";

/// The only track.
const TRACK: u32 = 1;
/// Times are in milliseconds.
const TIMESCALE: u32 = 1000;
/// Width and height in pixels.
const SIDE: u16 = 16;
/// Bytes before a box's content.
const BOX_HEAD: usize = 8;
/// Flags of a sample that depends on no other (ISO/IEC 14496-12, 8.8.3.1).
const SYNC: u32 = 0x0200_0000;

/// What comes before all fragments; the same for every room.
#[must_use]
pub fn init() -> Bytes {
    let ftyp = Ftyp {
        major_brand: b"iso6".into(),
        minor_version: 0,
        compatible_brands: vec![b"iso6".into(), b"cmfc".into(), b"mp41".into()],
    };
    let moov = Moov {
        mvhd: Mvhd { timescale: TIMESCALE, next_track_id: TRACK + 1, ..Mvhd::default() },
        mvex: Some(Mvex {
            mehd: None,
            trex: vec![Trex {
                track_id: TRACK,
                default_sample_description_index: 1,
                ..Trex::default()
            }],
        }),
        trak: vec![track()],
        ..Moov::default()
    };
    let mut bytes = Vec::new();
    encode(&ftyp, &mut bytes);
    encode(&moov, &mut bytes);
    bytes.into()
}

fn track() -> Trak {
    let [_, profile, constraints, level, ..] = frame::SPS;
    let avcc = Avcc {
        configuration_version: 1,
        avc_profile_indication: profile,
        profile_compatibility: constraints,
        avc_level_indication: level,
        length_size: 4,
        sequence_parameter_sets: vec![frame::SPS.to_vec()],
        picture_parameter_sets: vec![frame::PPS.to_vec()],
        ext: None,
    };
    let visual = Visual { data_reference_index: 1, width: SIDE, height: SIDE, ..Visual::default() };
    let avc1 = Avc1 { visual, avcc, ..Avc1::default() };
    Trak {
        tkhd: Tkhd {
            track_id: TRACK,
            enabled: true,
            in_movie: true,
            width: SIDE.into(),
            height: SIDE.into(),
            ..Tkhd::default()
        },
        mdia: Mdia {
            mdhd: Mdhd { timescale: TIMESCALE, language: "und".to_owned(), ..Mdhd::default() },
            hdlr: Hdlr { handler: b"vide".into(), name: "items".to_owned() },
            minf: Minf {
                vmhd: Some(Vmhd::default()),
                dinf: Dinf { dref: Dref { entries: vec![DrefEntry::Url(Url::default())] } },
                stbl: Stbl {
                    stsd: Stsd { codecs: vec![Codec::Avc1(avc1)] },
                    stco: Some(mp4_atom::Stco::default()),
                    ..Stbl::default()
                },
                ..Minf::default()
            },
        },
        ..Trak::default()
    }
}

/// The fragment of `slot` of a gen with this interval; `json` is the slot's `.json`, compressed.
#[must_use]
pub fn fragment(slot: SlotNo, interval_ms: u32, json: &[u8]) -> Bytes {
    let SlotNo(number) = slot;
    let start_ms = number.saturating_mul(interval_ms.into());
    // Numbers that wrap after 2^32: they only have to differ from their neighbours'.
    let low = u32::try_from(number & u64::from(u32::MAX)).expect("32 bits");
    let emsg = Emsg {
        timescale: TIMESCALE,
        presentation_time: EmsgTimestamp::Absolute(start_ms),
        event_duration: interval_ms,
        id: low,
        scheme_id_uri: SCHEME.to_owned(),
        value: String::new(),
        message_data: id3::private(OWNER, json),
    };
    let slice = frame::slice(number);
    let length = u32::try_from(slice.len()).expect("a slice has five bytes");
    let mut data = length.to_be_bytes().to_vec();
    data.extend_from_slice(slice);

    let mut bytes = Vec::with_capacity(json.len() + 512);
    encode(&emsg, &mut bytes);
    let size = Some(length + 4);
    let mut moof = moof(low, start_ms, interval_ms, size);
    let start = bytes.len();
    encode(&moof, &mut bytes);
    // The frame's place counts from the moof's first byte: only now its length is known.
    let offset = i32::try_from(bytes.len() - start + BOX_HEAD).expect("a moof has 100 bytes");
    for run in moof.traf.iter_mut().flat_map(|it| &mut it.trun) {
        run.data_offset = Some(offset);
    }
    bytes.truncate(start);
    encode(&moof, &mut bytes);
    encode(&Mdat { data }, &mut bytes);
    bytes.into()
}

fn moof(number: u32, start_ms: u64, interval_ms: u32, size: Option<u32>) -> Moof {
    let frame = TrunEntry { duration: Some(interval_ms), size, flags: Some(SYNC), cts: None };
    Moof {
        mfhd: Mfhd { sequence_number: number.wrapping_add(1) },
        traf: vec![Traf {
            tfhd: Tfhd { track_id: TRACK, default_base_is_moof: true, ..Tfhd::default() },
            tfdt: Some(Tfdt { base_media_decode_time: start_ms }),
            trun: vec![Trun { data_offset: Some(0), samples: TrunSamples::Explicit(vec![frame]) }],
            ..Traf::default()
        }],
    }
}

fn encode(it: &impl Encode, bytes: &mut Vec<u8>) {
    it.encode(bytes).expect("writing into a Vec does not fail");
}

#[cfg(test)]
mod tests {
    use mp4_atom::{Any, Decode};

    use super::*;

    fn boxes(bytes: &Bytes) -> Vec<Any> {
        let mut rest = bytes.clone();
        std::iter::from_fn(|| (!rest.is_empty()).then(|| Any::decode(&mut rest).unwrap())).collect()
    }

    #[test]
    fn a_fragment_carries_the_slot_before_its_frame() {
        let boxes = boxes(&fragment(SlotNo(7), 2000, b"items"));

        let [Any::Emsg(emsg), Any::Moof(moof), Any::Mdat(mdat)] = &boxes[..] else {
            panic!("{boxes:?}");
        };
        assert_eq!(emsg.presentation_time, EmsgTimestamp::Absolute(14_000));
        assert!(emsg.message_data.ends_with(b"\0items"));
        let traf = &moof.traf[0];
        assert_eq!(traf.tfdt.as_ref().unwrap().base_media_decode_time, 14_000);
        assert_eq!(mdat.data[4..], *frame::slice(7));
    }

    #[test]
    fn the_run_points_at_the_frame() {
        let bytes = fragment(SlotNo(8), 1000, b"items");

        let Any::Moof(moof) = &boxes(&bytes)[1] else { panic!("no moof") };
        let offset = usize::try_from(moof.traf[0].trun[0].data_offset.unwrap()).unwrap();
        let start = bytes.windows(4).position(|it| it == b"moof").unwrap() - 4;
        assert_eq!(bytes[start + offset..start + offset + 4], [0, 0, 0, 5]);
        assert_eq!(bytes[start + offset + 4..], *frame::slice(8));
    }

    #[test]
    fn the_beginning_names_one_track() {
        let boxes = boxes(&init());

        let [Any::Ftyp(_), Any::Moov(moov)] = &boxes[..] else { panic!("{boxes:?}") };
        assert_eq!(moov.trak.len(), 1);
        assert_eq!(moov.trak[0].mdia.mdhd.timescale, TIMESCALE);
    }
}
