//! The poll schedule in virtual time, against a small server with a clock of its own.

mod gens;
mod heads;

use proptest::prelude::*;
use proto::head::{GenInfo, Head, Tier};
use proto::heat::Heat;
use proto::id::{Gen, RoomId, SlotNo};
use proto::segment::Header;
use proto::time::{Mono, Wall};
use sdk_core::poll::{CATCH_UP_SLOTS_MAX, Draws, Input, Miss, Output, Poll};
use sdk_core::server_clock::Offset;

use heads::{head, header};

const EPOCH: Wall = Wall(1_800_000_000_000);
const GEN: Gen = Gen(3);
const DRAWS: Draws = Draws { phase: 0.5, settle: 0.5 };

#[test]
fn a_slot_is_asked_for_after_its_end_and_this_client_s_phase() {
    let mut poll = started(100, Mono(101_500));

    assert_eq!(asked(&mut poll), Some(100), "the newest at once");
    poll.handle(arrived(100), Mono(101_550));

    // Slot 101 ends at 102,000; 250 to settle, half of the spread of 400.
    assert_eq!(poll.deadline(), Some(Mono(102_450)));
    poll.tick(Mono(102_449));
    assert_eq!(poll.poll(), None);
    poll.tick(Mono(102_450));
    assert_eq!(asked(&mut poll), Some(101));
}

#[test]
fn the_device_s_clock_does_not_matter() {
    let mut slow = Poll::new(DRAWS, Tier::Full);
    slow.handle(Input::Clock(Offset(EPOCH.0 as i64 + 120_000)), Mono(0));

    start_at(&mut slow, None, head(GEN, 200), Mono(82_000));
    assert_eq!(asked(&mut slow), Some(200));
    slow.handle(arrived(200), Mono(82_001));

    assert_eq!(slow.deadline(), Some(Mono(202_450 - 120_000)));
}

#[test]
fn a_failure_is_retried_on_the_next_bases_then_given_up() {
    let mut poll = started(100, Mono(101_450));
    asked(&mut poll);

    poll.handle(missed(Miss::Failed), Mono(101_460));
    let retry = poll.poll();
    poll.handle(missed(Miss::Failed), Mono(101_470));
    let head_asked = poll.poll();
    poll.handle(Input::Head(Box::new(head(GEN, 100))), Mono(101_480));
    let last = poll.poll();
    poll.handle(missed(Miss::Failed), Mono(101_490));

    let (gen_no, tier) = (GEN, Tier::Full);
    let segment = |attempt| Output::Segment { gen_no, slot: SlotNo(100), tier, attempt };
    assert_eq!((retry, last), (Some(segment(1)), Some(segment(2))));
    assert_eq!(head_asked, Some(Output::Head { attempt: 0 }));
    assert_eq!(poll.poll(), Some(Output::Lost { gen_no, slot: SlotNo(100) }));
    assert_eq!(poll.deadline(), Some(Mono(102_450)), "the next slot in its time");
}

#[test]
fn nothing_is_given_up_while_the_servers_are_away() {
    let mut poll = started(100, Mono(101_450));
    asked(&mut poll);

    poll.handle(missed(Miss::Failed), Mono(101_460));
    asked(&mut poll);
    poll.handle(missed(Miss::Failed), Mono(101_460));
    assert_eq!(poll.poll(), Some(Output::Head { attempt: 0 }));
    poll.handle(missed(Miss::Failed), Mono(101_460));
    poll.tick(Mono(102_460));
    assert_eq!(poll.poll(), Some(Output::Head { attempt: 1 }));
    poll.handle(Input::Head(Box::new(head(GEN, 102))), Mono(103_460));

    for slot in 100..=102 {
        let (gen_no, tier, attempt) = (GEN, Tier::Full, if slot == 100 { 2 } else { 0 });
        let expected = Output::Segment { gen_no, slot: SlotNo(slot), tier, attempt };
        assert_eq!(poll.poll(), Some(expected));
        poll.handle(arrived(slot), Mono(103_470));
    }
    assert_eq!(poll.deadline(), Some(Mono(104_450)), "it is on time again");
}

#[test]
fn three_slots_given_up_make_it_wait_and_read_the_head() {
    let mut poll = started(100, Mono(110_000));

    for _ in 0..3 {
        for _ in 0..2 {
            asked(&mut poll);
            poll.handle(missed(Miss::Failed), Mono(110_000));
        }
        assert_eq!(asked(&mut poll), None);
        poll.handle(Input::Head(Box::new(head(GEN, 109))), Mono(110_000));
        asked(&mut poll);
        poll.handle(missed(Miss::Failed), Mono(110_000));
    }

    while let Some(output) = poll.poll() {
        assert!(matches!(output, Output::Lost { .. }));
    }
    assert_eq!(poll.deadline(), Some(Mono(111_000)));
    poll.tick(Mono(111_000));
    assert_eq!(poll.poll(), Some(Output::Head { attempt: 0 }));
    poll.handle(missed(Miss::Failed), Mono(111_000));
    assert_eq!(poll.deadline(), Some(Mono(112_500)), "three quarters of two seconds");
}

#[test]
fn a_slot_that_is_late_is_not_given_up_while_the_head_says_so() {
    let mut poll = started(100, Mono(101_450));
    asked(&mut poll);
    poll.handle(arrived(100), Mono(101_460));
    poll.tick(Mono(102_450));
    asked(&mut poll);

    poll.handle(missed(Miss::NotYet), Mono(102_500));
    assert_eq!(poll.deadline(), Some(Mono(103_500)));
    poll.tick(Mono(103_500));
    asked(&mut poll);
    poll.handle(missed(Miss::NotYet), Mono(103_600));
    assert_eq!(poll.poll(), Some(Output::Head { attempt: 0 }));
    poll.handle(Input::Head(Box::new(head(GEN, 100))), Mono(103_700));

    assert_eq!(poll.deadline(), Some(Mono(104_700)));
    poll.tick(Mono(104_700));
    assert_eq!(asked(&mut poll), Some(101));
}

#[test]
fn a_slot_that_should_be_there_and_is_not_is_given_up() {
    let mut poll = started(100, Mono(105_000));
    asked(&mut poll);

    poll.handle(missed(Miss::NotYet), Mono(105_000));
    poll.tick(Mono(106_000));
    asked(&mut poll);
    poll.handle(missed(Miss::NotYet), Mono(106_000));
    assert_eq!(poll.poll(), Some(Output::Head { attempt: 0 }));
    poll.handle(Input::Head(Box::new(head(GEN, 104))), Mono(106_100));
    assert_eq!(asked(&mut poll), Some(100));
    poll.handle(missed(Miss::NotYet), Mono(106_200));

    assert_eq!(poll.poll(), Some(Output::Lost { gen_no: GEN, slot: SlotNo(100) }));
    assert_eq!(asked(&mut poll), Some(101));
}

#[test]
fn a_viewer_who_comes_back_goes_on_where_it_was_unless_that_is_too_old() {
    let near = SlotNo(300 - CATCH_UP_SLOTS_MAX);
    let far = SlotNo(near.0 - 1);

    for (from, expected) in [(near, near), (far, SlotNo(300)), (SlotNo(302), SlotNo(302))] {
        let mut poll = Poll::new(DRAWS, Tier::Full);
        poll.handle(Input::Clock(Offset(EPOCH.0 as i64)), Mono(0));
        start_at(&mut poll, Some((GEN, from)), head(GEN, 300), Mono(304_000));

        assert_eq!(asked(&mut poll), Some(expected.0));
    }
}

#[test]
fn a_hidden_tab_asks_for_nothing_and_comes_back_at_the_newest_slot() {
    let mut poll = started(100, Mono(101_450));
    asked(&mut poll);

    poll.handle(Input::Hide, Mono(101_460));
    poll.handle(arrived(100), Mono(101_460));
    assert_eq!(poll.deadline(), None);
    start_at(&mut poll, None, head(GEN, 500), Mono(501_500));

    assert_eq!(asked(&mut poll), Some(500));
}

#[test]
fn an_answer_from_before_a_stop_is_not_taken_for_the_current_question() {
    let mut poll = started(100, Mono(101_450));
    asked(&mut poll);
    poll.handle(Input::Hide, Mono(101_460));
    start_at(&mut poll, None, head(GEN, 110), Mono(111_460));
    assert_eq!(asked(&mut poll), Some(110));

    poll.handle(arrived(100), Mono(111_470));
    poll.handle(arrived(110), Mono(111_480));

    assert_eq!(poll.deadline(), Some(Mono(112_450)), "the slot behind the current one");
}

#[test]
fn a_device_that_slept_asks_the_head_before_it_asks_for_hundreds_of_slots() {
    let mut poll = started(100, Mono(101_450));
    asked(&mut poll);
    poll.handle(arrived(100), Mono(101_460));

    poll.tick(Mono(900_000));
    assert_eq!(poll.poll(), Some(Output::Head { attempt: 0 }));
    poll.handle(Input::Head(Box::new(head(GEN, 899))), Mono(900_000));

    let lost = |slot| Some(Output::Lost { gen_no: GEN, slot: SlotNo(slot) });
    assert_eq!(poll.poll(), lost(101));
    assert_eq!(poll.poll(), lost(898));
    poll.tick(Mono(900_450));
    assert_eq!(asked(&mut poll), Some(899));
}

#[test]
fn polling_stops_behind_the_last_slot_of_a_hot_time() {
    let mut poll = started(100, Mono(101_450));
    asked(&mut poll);
    poll.handle(Input::Until { gen_no: GEN, slot: SlotNo(101) }, Mono(101_460));

    poll.handle(arrived(100), Mono(101_460));
    poll.tick(Mono(102_450));
    assert_eq!(asked(&mut poll), Some(101));
    poll.handle(arrived(101), Mono(102_500));

    assert!(!poll.is_running());
    assert_eq!(poll.deadline(), None);
}

proptest! {
    #![proptest_config(cases(400))]

    /// However often the servers are away for some seconds, every slot comes, in order.
    #[test]
    fn what_servers_have_is_caught_up_with(
        times in prop::collection::vec((20_000_u64..40_000, 0_u64..10_000), 1..10),
        draw in 0.0..1.0,
    ) {
        let mut poll = started(1_000, Mono(1_001_500));
        let mut now = Mono(1_001_500);
        let mut next = 1_000;

        for (well_ms, away_ms) in times.into_iter().chain([(60_000, 0)]) {
            let well = now.0 + well_ms;
            let end = well + away_ms;
            while now.0 < end {
                while let Some(output) = poll.poll() {
                    let newest = now.0 / 1_000 - 1;
                    let input = match output {
                        _ if now.0 >= well => Input::Missed { why: Miss::Failed, draw },
                        Output::Head { .. } => Input::Head(Box::new(head(GEN, newest))),
                        Output::Segment { slot, .. } if slot.0 > newest => missed(Miss::NotYet),
                        Output::Segment { slot, .. } => {
                            prop_assert_eq!(slot.0, next);
                            next += 1;
                            arrived(slot.0)
                        }
                        Output::Lost { slot, .. } | Output::Ended { slot, .. } => {
                            prop_assert!(false, "slot {} is given up", slot.0);
                            continue;
                        }
                    };
                    poll.handle(input, now);
                }
                let Some(due) = poll.deadline() else { break };
                now = Mono(now.0.max(due.0) + 1);
                poll.tick(now);
            }
        }
        prop_assert!(next + 2 > now.0 / 1_000, "it is at {next} at {now:?}");
    }

    /// Whatever is answered, it asks one thing at a time and not without end.
    #[test]
    fn no_answers_make_it_ask_in_a_tight_loop(answers in prop::collection::vec(0_u8..8, 1..60)) {
        let mut poll = Poll::new(DRAWS, Tier::Full);
        poll.handle(Input::Clock(Offset(EPOCH.0 as i64)), Mono(0));
        poll.handle(Input::Start { from: None }, Mono(1_000_000));
        let mut now = Mono(1_000_000);
        let mut answers = answers.into_iter().cycle();
        let mut asks = 0_u32;

        while now < Mono(1_300_000) {
            while let Some(output) = poll.poll() {
                let answer = answers.next();
                let newest = (now.0 / 1_000).saturating_sub(1);
                let input = match (output, answer) {
                    (Output::Lost { .. } | Output::Ended { .. }, _) => continue,
                    (Output::Segment { slot, gen_no, .. }, Some(0..=2)) if gen_no == GEN => {
                        arrived(slot.0)
                    }
                    (Output::Head { .. }, Some(0..=2)) => Input::Head(Box::new(head(GEN, newest))),
                    (Output::Head { .. }, Some(3)) => Input::Head(Box::new(head(GEN, 10))),
                    (_, Some(4)) => missed(Miss::Gone),
                    (_, Some(5)) => missed(Miss::NotYet),
                    _ => missed(Miss::Failed),
                };
                asks += 1;
                prop_assert!(asks < 3_000, "{asks} questions in five minutes");
                poll.handle(input, now);
            }
            let Some(due) = poll.deadline() else { break };
            now = Mono(now.0.max(due.0) + 1);
            poll.tick(now);
        }
        prop_assert!(poll.is_running());
    }
}

fn started(newest: u64, now: Mono) -> Poll {
    let mut poll = Poll::new(DRAWS, Tier::Full);
    poll.handle(Input::Clock(Offset(EPOCH.0 as i64)), now);
    start_at(&mut poll, None, head(GEN, newest), now);
    poll
}

/// A schedule that was told that slot `newest` and all behind it are gone, and asks the head why.
fn gone_at(newest: u64) -> Poll {
    let mut poll = started(newest, Mono(102_000));
    asked(&mut poll);
    poll.handle(missed(Miss::Gone), Mono(102_010));
    assert_eq!(poll.poll(), Some(Output::Head { attempt: 0 }));
    poll
}

fn start_at(poll: &mut Poll, from: Option<(Gen, SlotNo)>, head: Head, now: Mono) {
    poll.handle(Input::Start { from }, now);
    assert_eq!(poll.poll(), Some(Output::Head { attempt: 0 }));
    poll.handle(Input::Head(Box::new(head)), now);
}

/// The slot that is asked for next; losses told before it are passed over.
fn asked(poll: &mut Poll) -> Option<u64> {
    loop {
        match poll.poll()? {
            Output::Segment { slot, .. } => return Some(slot.0),
            Output::Lost { .. } | Output::Ended { .. } => {}
            Output::Head { .. } => return None,
        }
    }
}

const fn segment(gen_no: Gen, slot: u64) -> Output {
    Output::Segment { gen_no, slot: SlotNo(slot), tier: Tier::Full, attempt: 0 }
}

fn arrived(slot: u64) -> Input {
    Input::Segment(Box::new(header(slot)))
}

fn missed(why: Miss) -> Input {
    Input::Missed { why, draw: 0.5 }
}

const fn ms(ms: u64) -> std::time::Duration {
    std::time::Duration::from_millis(ms)
}

/// A failing case is printed; it is written down as a test, not as a file.
fn cases(cases: u32) -> ProptestConfig {
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}
