//! Whatever lies within the limits comes back from its bytes unchanged.

mod known;
mod strategy;

use proptest::prelude::*;
use proto::envelope::{
    Accepted, AcceptedBatch, LinkGauges, ReplyBatch, RoomBatch, RoomEntry, RoomEvent, UplinkBatch,
};
use proto::frame::{Downlink, Uplink};
use proto::id::{AppId, Gen, ItemId, RoomId, SenderRef, SlotNo};
use proto::item::{Body, Item, Lane, Role, Style};
use proto::limits;
use proto::load::{LoadReport, RegionLoads, ReportView};
use proto::quality::BaseGauges;
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
    base_gauges: BaseGauges from strategy::envelope::base_gauges;
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

proptest! {
    #[test]
    fn reports_packed_as_they_came_are_the_region_of_the_decoded(
        at in any::<u64>(),
        nodes in prop::collection::vec(strategy::load::report(), 0..6),
        region in "[a-z]{0,9}",
    ) {
        let encoded: Vec<_> = nodes.iter().map(LoadReport::encode).collect();
        let reports: Vec<&[u8]> = encoded.iter().map(AsRef::as_ref).collect();

        let packed = RegionLoads::pack(&region, Wall(at), &reports);

        let loads = RegionLoads { region, at: Wall(at), nodes };
        prop_assert_eq!(RegionLoads::decode(&packed), Ok(loads));
    }

    #[test]
    fn a_report_repeats_what_differs_in_numbers_alone(
        (said, other) in (strategy::load::report(), strategy::load::report()),
    ) {
        let (counter, start) = (other.counter, other.start);
        let known = LoadReport { counter, start, load: other.load, ..said.clone() };
        let numbers = |it: &LoadReport| (it.node, it.start, it.counter, it.load);
        let fields: [fn(&mut LoadReport, &LoadReport); 5] = [
            |it, other| it.node = other.node,
            |it, other| it.unit = other.unit,
            |it, other| it.region.clone_from(&other.region),
            |it, other| it.addresses.clone_from(&other.addresses),
            |it, other| it.reserve.clone_from(&other.reserve),
        ];
        let bytes = said.encode();

        let view = ReportView::read(&bytes).unwrap();

        prop_assert_eq!((view.node(), view.start(), view.counter(), view.load()), numbers(&said));
        prop_assert!(view.repeats(&known));
        for change in fields {
            let mut changed = known.clone();
            change(&mut changed, &other);
            prop_assert_eq!(view.repeats(&changed), changed == known);
        }
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

/// A comment as admission makes it.
fn comment(number: u64, style: Style, media_ms: Option<u64>) -> Item {
    let at = 1_800_000_000_000 + number * 10;
    Item {
        id: ItemId::compose(at, 1000, 3),
        lane: Lane::Comment,
        sender: SenderRef(number),
        role: Role::Viewer,
        at: Wall(at),
        body: Body::Comment { text: "text".into(), style, media_ms, count: 1 },
    }
}

fn accepted(items: impl IntoIterator<Item = Item>) -> AcceptedBatch {
    let (app, room) = (AppId(1), RoomId::parse("room-1").expect("a valid name"));
    let entry = |item| Accepted { app, room: room.clone(), item };
    AcceptedBatch { entries: items.into_iter().map(entry).collect() }
}

#[test]
fn an_id_that_no_time_gives_makes_only_itself_large() {
    let mut items: Vec<Item> = (0..100).map(|it| comment(it, Style::default(), None)).collect();
    let before = accepted(items.clone()).encode().len();
    items[50].id = ItemId(u64::MAX - 7);

    let after = accepted(items).encode().len();

    assert!((before..before + 16).contains(&after), "{before} bytes, then {after}");
}

#[test]
fn a_color_or_position_beyond_its_range_is_refused_and_not_cut() {
    let read = |style, media_ms| {
        AcceptedBatch::decode(&accepted([comment(1, style, media_ms)]).encode()).map(drop)
    };
    let color = |color| Style { color, ..Style::default() };

    assert_eq!(read(color(0xff_ffff), Some(limits::MEDIA_MS_MAX)), Ok(()));
    for beyond in [0x0100_0000, 0x1100_0000, u32::MAX] {
        assert!(read(color(beyond), None).is_err(), "{beyond:x}");
    }
    for beyond in [limits::MEDIA_MS_MAX + 1, 1 << 63, u64::MAX - 1, u64::MAX] {
        assert!(read(color(0), Some(beyond)).is_err(), "{beyond}");
    }
}

#[test]
fn the_crc_of_no_ids_is_0_and_order_counts() {
    let crc = |ids: &[u64]| ids_crc(ids.iter().map(|it| ItemId(*it)));

    assert_eq!(crc(&[]), 0);
    assert_ne!(crc(&[1, 2]), crc(&[2, 1]));
    // CRC-32 of the eight bytes "12345678", as any other tool computes it.
    assert_eq!(crc(&[u64::from_le_bytes(*b"12345678")]), 0x9ae0_daaf);
}
