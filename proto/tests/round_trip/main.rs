//! Whatever lies within the limits comes back from its bytes unchanged.

mod strategy;

use proptest::prelude::*;
use proto::envelope::{
    AcceptedBatch, LinkGauges, ReplyBatch, RoomBatch, RoomEntry, RoomEvent, UplinkBatch,
};
use proto::frame::{Downlink, Uplink};
use proto::id::{AppId, Gen, ItemId, RoomId, SlotNo};
use proto::limits;
use proto::load::{LoadReport, RegionLoads};
use proto::segment::{Segment, ids_crc};
use proto::time::Wall;

macro_rules! round_trips {
    ($($name:ident: $type:ident from $strategy:path;)+) => {
        proptest! {
            $(#[test]
            fn $name(value in $strategy()) {
                let bytes = value.encode();

                let decoded = $type::decode(&bytes);

                prop_assert_eq!(decoded, Ok(value));
            })+
        }
    };
}

round_trips! {
    an_uplink_frame: Uplink from strategy::frame::uplink;
    a_downlink_frame: Downlink from strategy::frame::downlink;
    an_uplink_batch: UplinkBatch from strategy::envelope::uplink_batch;
    a_reply_batch: ReplyBatch from strategy::envelope::reply_batch;
    an_accepted_batch: AcceptedBatch from strategy::envelope::accepted_batch;
    a_room_batch: RoomBatch from strategy::envelope::room_batch;
    link_gauges: LinkGauges from strategy::envelope::link_gauges;
    a_load_report: LoadReport from strategy::load::report;
    region_loads: RegionLoads from strategy::load::region;
    a_segment: Segment from strategy::segment::segment;
}

proptest! {
    #[test]
    fn a_segment_as_json_holds_every_item_once(segment in strategy::segment::segment()) {
        let json: serde_json::Value = serde_json::from_str(&segment.to_json()).unwrap();

        let ids: Vec<&str> =
            json["items"].as_array().unwrap().iter().map(|it| it["id"].as_str().unwrap()).collect();

        let expected: Vec<String> =
            segment.items.iter().map(|it| it.item.id.to_string()).collect();
        prop_assert_eq!(ids, expected);
        prop_assert_eq!(json["repeats"].as_array().unwrap().len(), segment.repeats.len());
        prop_assert_eq!(&json["room"], segment.header.room.as_str());
    }
}

#[test]
fn a_flush_in_each_of_as_many_rooms_as_a_record_may_name() {
    let entry = |it: usize| RoomEntry {
        app: AppId(1),
        room: RoomId::parse(&format!("r{it}")).unwrap(),
        event: RoomEvent::Flush {
            gen_no: Gen(1),
            slot: SlotNo(1),
            part: 0,
            at: Wall(1),
            items: Vec::new(),
        },
    };
    let batch = RoomBatch { entries: (0..limits::ENVELOPE_ENTRIES_MAX).map(entry).collect() };

    assert_eq!(RoomBatch::decode(&batch.encode()), Ok(batch));
}

#[test]
fn the_crc_of_no_ids_is_0_and_order_counts() {
    let crc = |ids: &[u64]| ids_crc(ids.iter().map(|it| ItemId(*it)));

    assert_eq!(crc(&[]), 0);
    assert_ne!(crc(&[1, 2]), crc(&[2, 1]));
    // CRC-32 of the eight bytes "12345678", as any other tool computes it.
    assert_eq!(crc(&[u64::from_le_bytes(*b"12345678")]), 0x9ae0_daaf);
}
