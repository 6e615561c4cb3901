//! Sessions that come back.

use super::*;

#[test]
fn a_returning_session_gets_all_it_missed_and_nothing_twice() {
    let mut ring = ring(LIMITS);
    ring.flush(comments(0, 1..=3), Mono(0));
    ring.flush(comments(0, 4..=6), Mono(0));
    ring.flush(comments(1, 7..=9), Mono(0));

    let (resumed, read) = resume_at(&ring, 5);

    assert_eq!(resumed, Resumed::Recovered { items: 4 });
    assert_eq!(read, ["6", "7 8 9"]);
    assert_eq!(resume_at(&ring, 9), (Resumed::Recovered { items: 0 }, vec![]));
    assert_eq!(resume_at(&ring, 99), (Resumed::Recovered { items: 0 }, vec![]));
}

#[test]
fn what_is_older_than_the_ring_is_a_gap() {
    let mut ring = ring(Limits { keep: Duration::from_secs(60), ..LIMITS });
    ring.flush(comments(0, 5..=6), Mono(0));
    ring.flush(comments(0, 7..=8), Mono(30_000));
    ring.flush(comments(0, 9..=9), Mono(61_000));

    assert_eq!(
        resume_at(&ring, 5),
        (Resumed::Gap { from: place(6), to: place(7) }, vec!["7 8".to_owned(), "9".to_owned()])
    );
    assert_eq!(resume_at(&ring, 6).0, Resumed::Recovered { items: 3 });
}

#[test]
fn a_quiet_room_is_recovered_after_any_time() {
    let mut ring = ring(LIMITS);
    for minute in 0..10 {
        ring.flush(comments(minute, minute + 1..=minute + 1), Mono(minute * 60_000));
        ring.tick(Mono(minute * 60_000 + 59_999));

        assert_eq!(resume_at(&ring, minute + 1).0, Resumed::Recovered { items: 0 });
    }

    ring.tick(Mono(700_000));
    assert_eq!(resume_at(&ring, 10).0, Resumed::Recovered { items: 0 });
    assert_eq!(resume_at(&ring, 9).0, Resumed::Gap { from: place(10), to: place(11) });
}

#[test]
fn a_gen_that_began_in_silence_is_known_from_its_start() {
    let mut silent = ring(LIMITS);
    silent.seal(seal(0), Mono(0));
    let mut late = ring(LIMITS);
    late.seal(seal(1), Mono(0));

    assert_eq!(resume_at(&silent, 0).0, Resumed::Recovered { items: 0 });
    assert_eq!(resume_at(&late, 0).0, Resumed::Gap { from: place(1), to: place(1) });

    silent.flush(Batch { gen_no: Gen(2), ..comments(0, 1..=2) }, Mono(0));
    assert_eq!(resume_at(&silent, 0).0, Resumed::Recovered { items: 2 });
}

#[test]
fn a_ring_that_lost_records_admits_the_gap() {
    let mut ring = ring(LIMITS);
    ring.flush(comments(0, 1..=3), Mono(0));

    ring.cut();
    assert_eq!(resume_at(&ring, 3).0, Resumed::Gap { from: place(4), to: place(4) });
    ring.flush(comments(0, 8..=9), Mono(0));

    let gap = Resumed::Gap { from: place(4), to: place(8) };
    assert_eq!(resume_at(&ring, 3), (gap, vec!["8 9".to_owned()]));
}

#[test]
fn a_new_gen_follows_the_old_one() {
    let mut ring = ring(LIMITS);
    ring.flush(comments(0, 1..=3), Mono(0));
    ring.flush(Batch { gen_no: Gen(2), ..comments(0, 1..=2) }, Mono(0));

    assert_eq!(
        resume_at(&ring, 2),
        (Resumed::Recovered { items: 3 }, vec!["3".into(), "1 2".into()])
    );
}

#[test]
fn a_session_that_is_ahead_of_the_ring_gets_nothing_twice() {
    for known in [0..=0, 1..=3] {
        let mut ring = ring(LIMITS);
        if known != (0..=0) {
            ring.flush(comments(0, known), Mono(0));
        }
        let plan = resume::plan(&ring, place(8), Reading::Auto);
        let mut reader = Reader::at(plan.cursor, 1 << 20);

        let mut read = reader.read(&ring);
        for seqs in [4..=5, 6..=7, 8..=8, 9..=9, 10..=12] {
            ring.flush(comments(1, seqs), Mono(0));
            read.extend(reader.read(&ring));
        }
        ring.seal(seal(1), Mono(0));
        read.extend(reader.read(&ring));

        assert_eq!(read, ["9", "10 11 12", "seal 1"]);
    }
}

#[test]
fn a_flush_that_a_session_ahead_of_the_ring_knows_in_part_is_cut() {
    let mut ring = ring(LIMITS);
    ring.flush(comments(0, 1..=3), Mono(0));
    let plan = resume::plan(&ring, place(6), Reading::Auto);
    let mut reader = Reader::at(plan.cursor, 1 << 20);

    ring.flush(comments(1, 4..=9), Mono(0));
    ring.flush(Batch { gen_no: Gen(2), ..comments(0, 1..=2) }, Mono(0));

    assert_eq!(plan.resumed, Resumed::Recovered { items: 0 });
    assert_eq!(reader.read(&ring), ["7 8 9", "1 2"]);
}
