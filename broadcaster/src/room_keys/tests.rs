//! Keys that are held, and records that are cleared of sealed rooms.

use kit::meter::Meter;
use proto::envelope::{RoomEntry, RoomEvent};
use proto::keys;

use super::*;

const INFO: GenInfo = GenInfo {
    gen_no: Gen(1),
    epoch_ms: proto::time::Wall(0),
    interval_ms: 1000,
    layout: proto::head::SEALED,
};

fn room(name: &str) -> RoomId {
    RoomId::parse(name).unwrap()
}

fn held() -> RoomKeys {
    let held = RoomKeys::new(Counts::new(&Meter::new()));
    held.own(&room("paid"), AppId(1));
    held.begin(&room("paid"), &INFO);
    let key = keys::RoomKey { gen_no: Gen(1), kid: 0, key: "00".repeat(16) };
    let rooms = vec![keys::RoomKeys { room: room("paid"), keys: vec![key] }];
    held.take(RoomKeysAnswer { rooms }).unwrap();
    held
}

#[test]
fn a_name_that_another_app_takes_over_has_none_of_the_old_keys() {
    let held = held();

    held.own(&room("paid"), AppId(1));
    let same = held.sealing(&room("paid"), Gen(1)).is_some();
    held.own(&room("paid"), AppId(2));

    assert!(same && held.sealing(&room("paid"), Gen(1)).is_none());
    assert_eq!(held.question(Refresh::Nothing)[0].app, AppId(2));
}

#[test]
fn a_record_without_sealed_rooms_leaves_as_it_is() {
    let held = held();
    let of = |names: &[&str]| {
        let entry = |name: &&str| RoomEntry {
            app: AppId(1),
            room: room(name),
            event: RoomEvent::Fates { fates: Vec::new() },
        };
        RoomBatch { entries: names.iter().map(entry).collect() }.encode()
    };

    let (open, mixed) = (of(&["open"]), of(&["open", "paid"]));

    assert_eq!(held.clear(&open).map(|it| it.as_ptr()), Some(open.as_ptr()));
    assert_eq!(held.clear(&mixed), Some(open));
    assert_eq!(held.clear(&of(&["paid"])), None);
}
