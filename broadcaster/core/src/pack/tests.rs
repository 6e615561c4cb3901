//! Segments to bytes and back.

use proptest::prelude::*;
use proptest::{collection, sample};
use proto::decode::DecodeError;
use proto::heat::Heat;
use proto::id::{Gen, ItemId, RoomId, SenderRef, Seq, SlotNo};
use proto::item::{Body, Lane, Role, Style};
use proto::limits::SEGMENT_BYTES_MAX;
use proto::time::Wall;

use super::train::{Saving, TrainError, train};
use super::*;

pub(crate) fn header() -> Header {
    Header {
        room: RoomId::parse("room-1").unwrap(),
        gen_no: Gen(1),
        slot: SlotNo(7),
        tier: Tier::Full,
        epoch_ms: Wall(1_800_000_000_000),
        interval_ms: 1000,
        now_ms: Wall(1_800_000_008_000),
        spread_ms: 300,
        next_tier: None,
        online: 1200,
        heat: Heat::Hot,
        bases: Vec::new(),
        next: None,
        end: None,
    }
}

pub(crate) fn placed(seq: u64, lane: Lane) -> Placed {
    let text = format!("comment number {seq}").into();
    let body = Body::Comment { text, style: Style::default(), media_ms: None, count: 1 };
    let item = Item {
        id: ItemId(1000 + seq),
        lane,
        sender: SenderRef(seq % 5),
        role: Role::Viewer,
        at: Wall(1_800_000_007_000 + seq),
        body,
    };
    Placed { seq: Seq(seq), item }
}

fn segment() -> Segment {
    let flushes = [vec![placed(1, Lane::Comment)], vec![placed(2, Lane::Notice)]];
    pack(header(), flushes.into(), Vec::new())
}

#[test]
fn a_packed_segment_expands_to_itself_in_every_encoding() {
    let segment = segment();
    for encoding in Encoding::ALL {
        let packing = Packing { encoding, lexicon: None };

        let packed = Packed::of(&segment, &packing);

        assert_eq!(Segment::decode(&expand(&packed.bin).unwrap()), Ok(segment.clone()));
        assert_eq!(expand(&packed.json).unwrap(), segment.to_json().into_bytes());
        assert_eq!(Packed::of(&segment, &packing), packed);
    }
}

#[test]
fn the_lite_tier_is_a_subset_of_each_flush_with_the_same_places() {
    let first = vec![placed(1, Lane::Notice), placed(2, Lane::Comment), placed(3, Lane::Comment)];
    let second = vec![placed(4, Lane::Comment), placed(5, Lane::Comment)];

    let segment = lite(header(), &[first, second], Vec::new(), 1);

    let seqs: Vec<u64> = segment.items.iter().map(|it| it.seq.0).collect();
    assert_eq!(seqs, [1, 2, 4]);
    assert_eq!(segment.header.tier, Tier::Lite);
}

#[test]
fn bytes_say_their_own_encoding() {
    for encoding in Encoding::ALL {
        for length in [0_u32, 1, 2, 100, 10_000, 60_000] {
            let bytes: Vec<u8> = (0..length).map(|it| (it * it % 251).to_le_bytes()[0]).collect();

            let compressed = compress(&bytes, encoding);

            assert_eq!(Encoding::of(&compressed), Some(encoding), "{length}");
            assert_eq!(expand(&compressed), Ok(bytes), "{length}");
        }
    }
}

#[test]
fn damaged_bytes_are_refused() {
    for encoding in Encoding::ALL {
        let bytes = compress(b"a text with a text in it", encoding);

        let cut = expand(&bytes[..bytes.len() - 1]);

        assert_eq!(cut, Err(DecodeError::Malformed), "{encoding:?}");
    }
    assert_eq!(expand(b"not compressed"), Err(DecodeError::Malformed));
}

#[test]
fn bytes_that_expand_beyond_the_limit_are_refused() {
    let most = vec![0; SEGMENT_BYTES_MAX];
    let more = vec![0; SEGMENT_BYTES_MAX + 1];
    for encoding in Encoding::ALL {
        assert_eq!(expand(&compress(&most, encoding)).map(|it| it.len()), Ok(SEGMENT_BYTES_MAX));
        assert!(expand(&compress(&more, encoding)).is_err(), "{encoding:?}");
    }
}

proptest! {
    #[test]
    fn spoiled_bytes_expand_to_a_segment_s_length_at_most_or_to_an_error(
        encoding in sample::select(Encoding::ALL.to_vec()),
        spoils in collection::vec((any::<sample::Index>(), any::<u8>()), 1..6),
        length in any::<sample::Index>(),
    ) {
        let mut bytes = compress(&segment().encode(), encoding).to_vec();
        for (at, byte) in spoils {
            let at = at.index(bytes.len());
            bytes[at] ^= byte;
        }
        bytes.truncate(1 + length.index(bytes.len()));

        for expanded in [expand(&bytes), encoding.expand(&bytes)] {
            prop_assert!(expanded.is_err() || expanded.is_ok_and(|it| it.len() <= SEGMENT_BYTES_MAX));
        }
    }
}

/// 200 slots of a few comments each.
fn slots() -> Vec<Bytes> {
    let slot = |number: u64| {
        let items = (number * 7..number * 7 + 7).map(|seq| placed(seq, Lane::Comment)).collect();
        pack(header(), vec![items], Vec::new()).encode()
    };
    (0..200).map(slot).collect()
}

#[test]
fn a_dictionary_saves_bytes_of_slots_that_it_was_not_made_of() {
    let trained = train(&slots(), Encoding::Gzip).unwrap();

    let Saving { slots, without, with } = trained.saving;
    assert_eq!(slots, 40);
    assert!(with < without / 2, "{with} of {without}");
}

#[test]
fn a_file_with_a_dictionary_is_read_with_that_one_only() {
    let slots = slots();
    let [one, other] = [&slots[..100], &slots[100..]]
        .map(|it| Lexicon::new(train(it, Encoding::Gzip).unwrap().dictionary));
    assert_ne!(one.info().id, other.info().id);
    let packing = Packing { encoding: Encoding::Br, lexicon: Some(one.clone()) };

    let packed = Packed::of(&segment(), &packing);

    let zbin = packed.zbin.clone().unwrap();
    let read = one.dictionary().expand(&zbin).unwrap();
    assert_eq!(Segment::decode(&read), Ok(segment()));
    assert_eq!(other.dictionary().expand(&zbin), Err(DecodeError::Malformed));
    assert_eq!(expand(&zbin), Err(DecodeError::Malformed));
    assert_eq!(Packed::of(&segment(), &packing), packed);
}

#[test]
fn a_dictionary_is_not_made_of_too_little() {
    let few = train(&slots()[..99], Encoding::Gzip).map(|it| it.saving);
    let noise = vec![Bytes::new(); 100];

    assert_eq!(few, Err(TrainError::TooFew { slots: 99 }));
    assert_eq!(train(&noise, Encoding::Gzip).map(|it| it.saving), Err(TrainError::NothingLearned));
}

#[test]
fn the_seal_counts_ids_in_order() {
    let items = [placed(1, Lane::Comment).item, placed(2, Lane::Comment).item];

    let mut bytes = Vec::new();
    for item in &items {
        bytes.extend_from_slice(&item.id.0.to_le_bytes());
    }

    assert_eq!(crc(&items), crc32fast::hash(&bytes));
    assert_ne!(crc(&items), crc(items.iter().rev()));
}
