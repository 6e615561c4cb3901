//! From one gen to the next.

use super::*;

#[test]
fn an_announced_gen_follows_the_last_slot_of_the_old_one() {
    let mut poll = started(100, Mono(101_450));
    asked(&mut poll);
    let following =
        GenInfo { gen_no: Gen(4), epoch_ms: EPOCH + ms(102_000), interval_ms: 500, layout: 1 };

    let mut last_but_one = header(100);
    last_but_one.next = Some(following);
    last_but_one.end = Some(SlotNo(101));
    poll.handle(Input::Segment(Box::new(last_but_one)), Mono(101_460));
    poll.tick(Mono(102_450));
    assert_eq!(asked(&mut poll), Some(101));
    poll.handle(arrived(101), Mono(102_460));

    assert_eq!(poll.deadline(), Some(Mono(102_000 + 500 + 450)));
    poll.tick(Mono(102_950));
    let (slot, tier) = (SlotNo(0), Tier::Full);
    assert_eq!(poll.poll(), Some(Output::Segment { gen_no: Gen(4), slot, tier, attempt: 0 }));
}

#[test]
fn a_gen_that_nobody_announced_is_found_through_the_head() {
    for why in [Miss::NotYet, Miss::Gone] {
        let mut poll = started(100, Mono(101_450));
        asked(&mut poll);

        poll.handle(missed(why), Mono(101_460));
        while poll.poll() != Some(Output::Head { attempt: 0 }) {
            let due = poll.deadline().unwrap();
            poll.tick(due);
            assert_eq!(asked(&mut poll), Some(100));
            poll.handle(missed(why), due);
        }
        let unannounced = Head { epoch_ms: EPOCH + ms(101_000), ..head(Gen(4), 2) };
        poll.handle(Input::Head(Box::new(unannounced.clone())), Mono(104_500));
        if why == Miss::NotYet {
            assert_eq!(asked(&mut poll), Some(100), "once more, since it may have come last");
            poll.handle(missed(why), Mono(104_600));
            assert_eq!(poll.poll(), Some(Output::Head { attempt: 0 }));
            poll.handle(Input::Head(Box::new(unannounced)), Mono(104_700));
        }

        assert_eq!(poll.poll(), Some(Output::Ended { gen_no: GEN, slot: SlotNo(100) }));
        assert_eq!(poll.poll(), Some(segment(Gen(4), 0)), "from its start, and nothing was lost");
    }
}

#[test]
fn a_gen_between_two_heads_is_gone_through_from_its_start() {
    let mut poll = gone_at(100);

    poll.handle(Input::Head(Box::new(head(Gen(5), 2))), Mono(103_000));
    assert_eq!(poll.poll(), Some(Output::Ended { gen_no: GEN, slot: SlotNo(100) }));
    assert_eq!(poll.poll(), Some(segment(Gen(4), 0)), "at once, whenever it was");
    let of_gen_4 = Header { gen_no: Gen(4), epoch_ms: EPOCH + ms(101_000), ..header(0) };
    poll.handle(Input::Segment(Box::new(of_gen_4)), Mono(103_010));

    assert_eq!(poll.deadline(), Some(Mono(103_450)), "its segments say when it was");
    poll.tick(Mono(103_450));
    assert_eq!(poll.poll(), Some(segment(Gen(4), 1)));
    poll.handle(missed(Miss::Gone), Mono(103_460));
    assert_eq!(poll.poll(), Some(Output::Head { attempt: 0 }));
    poll.handle(Input::Head(Box::new(head(Gen(5), 3))), Mono(103_500));
    assert_eq!(poll.poll(), Some(Output::Ended { gen_no: Gen(4), slot: SlotNo(1) }));
    assert_eq!(poll.poll(), Some(segment(Gen(5), 0)), "and nothing was lost");
}

#[test]
fn too_many_gens_at_once_are_lost_and_told() {
    let mut poll = gone_at(100);

    poll.handle(Input::Head(Box::new(head(Gen(9), 2))), Mono(103_000));

    assert_eq!(poll.poll(), Some(Output::Ended { gen_no: GEN, slot: SlotNo(100) }));
    assert!(matches!(poll.poll(), Some(Output::Lost { gen_no: Gen(4), .. })));
    assert_eq!(asked(&mut poll), Some(2), "the newest");
}

#[test]
fn what_was_not_asked_for_of_a_gen_that_is_over_is_lost_and_told() {
    let mut poll = started(100, Mono(101_450));
    asked(&mut poll);
    poll.handle(arrived(100), Mono(101_460));
    poll.tick(Mono(900_000));
    assert_eq!(poll.poll(), Some(Output::Head { attempt: 0 }));

    poll.handle(Input::Head(Box::new(head(Gen(4), 2))), Mono(900_000));
    assert_eq!(asked(&mut poll), Some(101));
    poll.handle(arrived(101), Mono(900_000));
    assert_eq!(poll.poll(), Some(Output::Head { attempt: 0 }));
    poll.handle(Input::Head(Box::new(head(Gen(4), 2))), Mono(900_000));

    assert_eq!(poll.poll(), Some(Output::Lost { gen_no: GEN, slot: SlotNo(102) }));
    assert_eq!(poll.poll(), Some(segment(Gen(4), 0)));
}

#[test]
fn a_viewer_who_comes_back_in_a_later_gen_first_reads_the_old_one_to_its_end() {
    let mut poll = Poll::new(DRAWS, Tier::Full);
    poll.handle(Input::Clock(Offset(EPOCH.0 as i64)), Mono(0));

    start_at(&mut poll, Some((GEN, SlotNo(50))), head(Gen(4), 7), Mono(104_000));

    assert_eq!(poll.poll(), Some(segment(GEN, 50)));
}
