//! Who is told to try again may.

use super::*;

#[test]
fn what_a_full_bus_refused_is_no_repeat_and_does_not_slow_its_sender() {
    let mut shard = shard(RoomSettings {
        slow_mode_ms: 10_000,
        repeat_ms: 60_000,
        echo_max: 1,
        ..RoomSettings::default()
    });

    let busy = refuse(&mut shard, 1, 0);
    let again = say(&mut shard, "v", 2, "hello", 1000);

    assert_eq!(busy, BUSY_RETRY_MS);
    assert!(matches!(again[..], [Output::Publish(_)]), "{again:?}");
    let other = say(&mut shard, "w", 1, "hello", 1000);
    assert_eq!(other, vec![ack(1, drop(Reason::Repeated, 10_000))], "what is shown still counts");
}

#[test]
fn the_time_to_try_again_is_one_at_which_the_senders_rate_allows_it() {
    let slow = RoomSettings { viewer_burst: 1, viewer_refill_ms: 7000, ..RoomSettings::default() };
    let mut shard = shard(slow);

    let retry_after_ms = refuse(&mut shard, 1, 0);

    assert_eq!(retry_after_ms, 7000);
    say_and_publish(&mut shard, "v", 2, "hello", 7000);
}

/// Says `hello` to a full bus; gives the time to try again.
fn refuse(shard: &mut Shard, cid: u64, ms: u64) -> u32 {
    let published = say(shard, "v", cid, "hello", ms);
    let [Output::Publish(accepted)] = &published[..] else { panic!("{published:?}") };
    let told = feed(shard, Input::Busy(accepted.item.id), ms);
    let [Output::Reply { reply: Reply::Ack { outcome, .. }, .. }] = &told[..] else {
        panic!("{told:?}")
    };
    let Outcome::Verdict(Verdict::Drop { reason: Reason::Busy, retry_after_ms }) = *outcome else {
        panic!("{outcome:?}")
    };
    retry_after_ms
}
