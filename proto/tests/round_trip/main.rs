//! Whatever lies within the limits comes back from its bytes unchanged.

mod strategy;

use proptest::prelude::*;
use proto::envelope::{AcceptedBatch, LinkGauges, ReplyBatch, RoomBatch, UplinkBatch};
use proto::frame::{Downlink, Uplink};
use proto::load::{LoadReport, RegionLoads};
use proto::segment::Segment;

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
