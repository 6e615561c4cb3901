//! Recordings that were cut off, damaged, or changed by others.

use proto::head::Tier;
use proto::heat::Heat;
use proto::id::{ItemId, RoomId, SenderRef, Seq};
use proto::item::{Body, Item, Lane, Placed, Role};
use proto::segment::Header;

use super::*;

/// A slot of a gen that began in an hour, with so many items.
fn slot(gen_no: u32, hour: u64, slot: u64, items: u64) -> Segment {
    let header = Header {
        room: RoomId::parse("r").unwrap(),
        gen_no: Gen(gen_no),
        slot: SlotNo(slot),
        tier: Tier::Full,
        epoch_ms: Wall(hour * HOUR_MS),
        interval_ms: 1000,
        now_ms: Wall(0),
        spread_ms: 0,
        next_tier: None,
        online: 0,
        heat: Heat::Cold,
        bases: Vec::new(),
        next: None,
        end: None,
    };
    let item = |number| Item {
        id: ItemId(slot * 100 + number),
        lane: Lane::Notice,
        sender: SenderRef(1),
        role: Role::Host,
        at: header.epoch_ms,
        body: Body::Notice { text: "notice".to_owned() },
    };
    let items = (1..=items).map(|it| Placed { seq: Seq(slot * 100 + it), item: item(it) });
    Segment { items: items.collect(), header: header.clone(), repeats: Vec::new() }
}

fn begin(room: &Path) -> Tape {
    Tape::begin(room, Wall(7)).unwrap()
}

/// Gen, slot and items of all that can be read.
fn read(tape: &Tape) -> Vec<(u32, u64, usize)> {
    let slots = tape.recording().slots().unwrap();
    slots
        .map(|it| it.unwrap())
        .map(|it| (it.header.gen_no.0, it.header.slot.0, it.items.len()))
        .collect()
}

#[test]
fn slots_are_read_in_their_order_and_empty_ones_only_where_a_gen_begins() {
    let room = tempfile::tempdir().unwrap();
    let mut tape = begin(room.path());

    let first = [slot(1, 10, 0, 0), slot(1, 10, 1, 2), slot(1, 10, 2, 0), slot(1, 10, 3, 1)];
    tape.append(&first).unwrap();
    tape.append(&first[1..]).unwrap();
    // The clock was set back by an hour, then forward by three.
    tape.append(&[slot(2, 9, 0, 1), slot(3, 12, 0, 0), slot(3, 12, 1, 1)]).unwrap();

    let all = [(1, 0, 0), (1, 1, 2), (1, 3, 1), (2, 0, 1), (3, 0, 0), (3, 1, 1)];
    assert_eq!(read(&tape), all);
    let hours = tape.recording().hours().unwrap();
    assert_eq!(hours.iter().map(|it| it.0).collect::<Vec<_>>(), [10, 12]);
    assert_eq!(tape.last(), Some((Gen(3), SlotNo(1))));
}

#[test]
fn a_file_that_was_cut_off_anywhere_is_gone_on_with() {
    let room = tempfile::tempdir().unwrap();
    let mut tape = begin(room.path());
    let slots = [slot(1, 10, 0, 1), slot(1, 10, 1, 1)];
    tape.append(&slots).unwrap();
    let path = tape.recording().file(10);
    let whole = fs::read(&path).unwrap();

    for cut in 0..whole.len() {
        fs::write(&path, &whole[..cut]).unwrap();
        let mut tape = Tape::resume(tape.recording().clone()).unwrap();
        tape.append(&slots).unwrap();

        assert_eq!(fs::read(&path).unwrap(), whole, "cut at {cut}");
        assert_eq!(tape.last(), Some((Gen(1), SlotNo(1))));
    }
}

#[test]
fn what_is_damaged_amid_a_file_hides_nothing_behind_it() {
    let room = tempfile::tempdir().unwrap();
    let mut tape = begin(room.path());
    tape.append(&[slot(1, 10, 0, 1)]).unwrap();
    let path = tape.recording().file(10);
    let middle = fs::read(&path).unwrap().len() + HEADING_BYTES + 2;
    tape.append(&[slot(1, 10, 1, 1), slot(1, 10, 2, 1)]).unwrap();

    let mut bytes = fs::read(&path).unwrap();
    bytes[middle] ^= 1;
    fs::write(&path, &bytes).unwrap();

    assert_eq!(read(&tape), [(1, 0, 1), (1, 2, 1)]);
    let mut records = Records::open(&path).unwrap();
    while records.step().unwrap().is_some() {}
    assert_eq!(records.damaged(), 1);
    let resumed = Tape::resume(tape.recording().clone()).unwrap();
    assert_eq!(fs::read(&path).unwrap(), bytes, "nothing is cut off");
    assert_eq!(resumed.last(), Some((Gen(1), SlotNo(2))));
}

#[test]
fn a_file_that_another_wrote_is_looked_at_before_more_is_appended() {
    let room = tempfile::tempdir().unwrap();
    let mut tape = begin(room.path());
    tape.append(&[slot(1, 10, 0, 1)]).unwrap();
    let mut other = Tape::resume(tape.recording().clone()).unwrap();
    other.append(&[slot(1, 10, 1, 1)]).unwrap();

    let third = [slot(1, 10, 1, 1), slot(1, 10, 2, 1)];
    assert!(tape.append(&third).is_err());
    tape.reload().unwrap();
    tape.append(&third).unwrap();

    assert_eq!(read(&tape), [(1, 0, 1), (1, 1, 1), (1, 2, 1)]);
}
