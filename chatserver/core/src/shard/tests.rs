//! The shard through its four verbs, in virtual time.

use proptest::prelude::*;
use proto::control::{RoomFact, RoomSettings};
use proto::envelope::RoomEvent;
use proto::id::{Cid, Gen, Seq, SessionId, SlotNo};
use proto::item::{Placed, Role, Style};
use proto::verdict::Fate;

use super::*;

#[path = "tests/again.rs"]
mod again;
#[path = "tests/held.rs"]
mod held;
#[path = "tests/rooms.rs"]
mod rooms;

const START: Wall = Wall(1_800_000_000_000);
const NODE: NodeId = NodeId(7);

#[test]
fn an_admitted_comment_is_published_and_answered_when_the_bus_has_it() {
    let mut shard = shard(RoomSettings::default());

    let published = say(&mut shard, "v", 1, "hello", 0);
    let [Output::Publish(accepted)] = &published[..] else { panic!("{published:?}") };
    let id = accepted.item.id;

    assert_eq!(accepted.item.body.text(), Some("hello"));
    assert_eq!(feed(&mut shard, Input::Published(id), 0), vec![ack(1, Verdict::Admit(id))]);
    assert_eq!(shard.asked(), 1);
}

#[test]
fn the_same_comment_again_gets_the_same_verdict_and_no_second_item() {
    let mut shard = shard(RoomSettings::default());
    let first = say_and_publish(&mut shard, "v", 1, "hello", 0);

    let again = say(&mut shard, "v", 1, "other content", 10);
    let refused = say(&mut shard, "v", 2, "\u{202E}", 20);
    let refused_again = say(&mut shard, "v", 2, "fine now", 30);

    assert_eq!(again, vec![ack(1, Verdict::Admit(first))]);
    assert_eq!(refused, vec![ack(2, drop(Reason::Shape, 0))]);
    assert_eq!(refused_again, refused);
}

#[test]
fn a_repeat_before_the_bus_answered_waits_for_the_first_answer() {
    let mut shard = shard(RoomSettings::default());
    say(&mut shard, "v", 1, "hello", 0);

    assert_eq!(say(&mut shard, "v", 1, "hello", 0), vec![]);
}

#[test]
fn a_full_bus_reaches_the_sender() {
    let mut shard = shard(RoomSettings::default());
    let published = say(&mut shard, "v", 1, "hello", 0);
    let [Output::Publish(accepted)] = &published[..] else { panic!("{published:?}") };

    let answer = feed(&mut shard, Input::Busy(accepted.item.id), 0);

    assert_eq!(answer, vec![ack(1, drop(Reason::Busy, BUSY_RETRY_MS))]);
    assert_eq!(say(&mut shard, "v", 1, "hello", 0), answer);
    assert_eq!(shard.asked(), 0);
}

#[test]
fn an_unknown_room_and_another_apps_room_do_not_exist() {
    let mut shard = shard(RoomSettings::default());
    let mut entry = entry("v", 1, "x");

    entry.app = AppId(2);
    let input = Input::Uplink { node: NODE, entry };

    assert_eq!(feed(&mut shard, input, 0), vec![ack(1, drop(Reason::NoRoom, 0))]);
}

#[test]
fn a_mute_bites_until_its_end_and_may_be_told_before_its_room() {
    let mut shard = Shard::new(LIMITS, SenderSecret::new([1; 32]), Wall(0));
    let until = START + Duration::from_secs(5);
    feed(&mut shard, mute("v", until), 0);
    feed(&mut shard, room_fact(1, RoomSettings::default()), 0);

    assert_eq!(say(&mut shard, "v", 1, "x", 1000), vec![ack(1, drop(Reason::Muted, 4000))]);
    say_and_publish(&mut shard, "w", 1, "x", 1000);
    say_and_publish(&mut shard, "v", 2, "x", 5000);
    feed(&mut shard, mute("v", START + Duration::from_secs(90)), 6000);
    assert_eq!(say(&mut shard, "v", 3, "x", 6000), vec![ack(3, drop(Reason::Muted, 84_000))]);
    feed(&mut shard, mute("v", Wall(0)), 6000);
    say_and_publish(&mut shard, "v", 4, "x", 6000);
}

#[test]
fn a_viewer_gets_a_burst_and_then_one_a_refill_on_all_sessions_together() {
    let mut shard = shard(RoomSettings::default());
    for cid in 0..5 {
        say_and_publish(&mut shard, "v", cid, "x", 0);
    }

    assert_eq!(say(&mut shard, "v", 5, "x", 0), vec![ack(5, drop(Reason::RateLimited, 1000))]);
    assert_eq!(say(&mut shard, "v", 6, "x", 999), vec![ack(6, drop(Reason::RateLimited, 1))]);
    say_and_publish(&mut shard, "v", 7, "x", 1000);
    say_and_publish(&mut shard, "w", 7, "x", 1000);
}

#[test]
fn slow_mode_counts_from_the_last_admitted_comment() {
    let mut shard = shard(RoomSettings { slow_mode_ms: 10_000, ..RoomSettings::default() });
    say_and_publish(&mut shard, "v", 1, "x", 0);

    assert_eq!(say(&mut shard, "v", 2, "x", 9000), vec![ack(2, drop(Reason::SlowMode, 1000))]);
    say_and_publish(&mut shard, "v", 3, "x", 10_000);
}

#[test]
fn slow_mode_outlives_the_memory_of_silent_senders() {
    let mut shard = shard(RoomSettings { slow_mode_ms: 600_000, ..RoomSettings::default() });
    say_and_publish(&mut shard, "v", 1, "x", 0);

    for second in 1..300 {
        shard.tick(at(second * 1000));
    }

    assert_eq!(
        say(&mut shard, "v", 2, "x", 300_000),
        vec![ack(2, drop(Reason::SlowMode, 300_000))]
    );
}

#[test]
fn the_sender_hears_of_shed_and_merged_items_once_and_not_of_shown_ones() {
    let mut shard = shard(RoomSettings::default());
    let shed = say_and_publish(&mut shard, "v", 1, "x", 0);
    let merged = say_and_publish(&mut shard, "v", 2, "x", 0);
    let shown = say_and_publish(&mut shard, "v", 3, "x", 0);
    let late = say_and_publish(&mut shard, "v", 4, "x", 0);
    let fates = event(RoomEvent::Fates {
        fates: vec![
            (shed, Fate::Shed { reason: Reason::OverBudget }),
            (merged, Fate::Merged { into: shed }),
            (ItemId(5), Fate::Shed { reason: Reason::Late }),
        ],
    });

    let told = feed(&mut shard, fates.clone(), 500);
    feed(&mut shard, flush(shown), 500);

    assert_eq!(
        told,
        vec![answer(1, Outcome::Shed(Reason::OverBudget)), answer(2, Outcome::Merged(shed))]
    );
    assert_eq!(feed(&mut shard, fates, 600), vec![]);
    assert_eq!(shard.asked(), 1);
    shard.tick(at(60_000));
    assert_eq!(shard.asked(), 0);
    let fates = vec![(late, Fate::Shed { reason: Reason::Late })];
    assert_eq!(feed(&mut shard, event(RoomEvent::Fates { fates }), 60_001), vec![]);
}

#[test]
fn a_fate_that_is_quicker_than_the_bus_comes_after_the_verdict() {
    let mut shard = shard(RoomSettings::default());
    let publish = |shard: &mut Shard, cid| {
        let published = say(shard, "v", cid, "x", 0);
        let [Output::Publish(accepted)] = &published[..] else { panic!("{published:?}") };
        accepted.item.id
    };
    let (shown, shed) = (publish(&mut shard, 1), publish(&mut shard, 2));
    let fates = vec![(shed, Fate::Shed { reason: Reason::RoomClosed })];

    assert_eq!(feed(&mut shard, flush(shown), 0), vec![ack(1, Verdict::Admit(shown))]);
    assert_eq!(
        feed(&mut shard, event(RoomEvent::Fates { fates }), 0),
        vec![ack(2, Verdict::Admit(shed)), answer(2, Outcome::Shed(Reason::RoomClosed))]
    );
    assert_eq!(feed(&mut shard, Input::Published(shown), 0), vec![]);
    assert_eq!(feed(&mut shard, Input::Published(shed), 0), vec![]);
    assert_eq!(say(&mut shard, "v", 1, "x", 0), vec![ack(1, Verdict::Admit(shown))]);
}

#[test]
fn a_room_full_of_busy_senders_takes_no_more_until_one_falls_silent() {
    let mut shard = shard(RoomSettings::default());
    for viewer in ["a", "b", "c"] {
        say_and_publish(&mut shard, viewer, 1, "x", 0);
    }

    assert_eq!(say(&mut shard, "d", 1, "x", 500), vec![ack(1, drop(Reason::RoomBusy, 1000))]);
    say_and_publish(&mut shard, "d", 2, "x", 1000);
}

#[test]
fn other_viewers_see_a_ref_and_never_the_account() {
    let mut shard = shard(RoomSettings::default());

    let published = say(&mut shard, "account-of-v", 1, "x", 0);

    assert!(matches!(&published[..], [Output::Publish(it)] if it.item.sender.0 != 0));
    let [Output::Publish(accepted)] = &published[..] else { panic!("{published:?}") };
    assert!(!format!("{:?}", accepted.item).contains("account-of-v"));
}

proptest! {
    /// Replays, repeats and a jumping wall clock: every cid is answered, one cid is one item, and
    /// no id comes twice.
    #[test]
    fn one_cid_is_one_item(
        acts in proptest::collection::vec((0..3_u8, 0..20_u64, 0..400_u64, -5000..5000_i64), 1..120)
    ) {
        let mut shard = shard(RoomSettings { viewer_refill_ms: 100, ..RoomSettings::default() });
        let mut admitted = BTreeMap::new();
        let (mut mono, mut said) = (0, BTreeMap::new());

        for (viewer, cid, wait, step) in acts {
            mono += wait;
            let now = Now { mono: Mono(mono), wall: Wall(START.0.saturating_add_signed(step)) };
            let name = ["a", "b", "c"][usize::from(viewer)];
            shard.tick(now);
            shard.handle(Input::Uplink { node: NODE, entry: entry(name, cid, "x") }, now);
            let mut outputs = drain(&mut shard);
            if let [Output::Publish(accepted)] = &outputs[..] {
                let id = accepted.item.id;
                prop_assert_eq!(admitted.insert(id, (name, cid)), None);
                shard.handle(Input::Published(id), now);
                outputs = drain(&mut shard);
            }
            prop_assert_eq!(outputs.len(), 1);
            let first = said.entry((name, cid)).or_insert_with(|| outputs[0].clone());
            prop_assert_eq!(&*first, &outputs[0]);
        }
    }
}

#[test]
fn what_is_sent_again_from_the_next_session_is_one_item_and_answered_there() {
    let mut shard = shard(RoomSettings::default());
    let again = |session, text: &str| {
        let entry = UplinkEntry { session: SessionId(session), ..entry("v", 1, text) };
        Input::Uplink { node: NodeId(8), entry }
    };
    let told = |outcome| {
        let reply = Reply::Ack { session: SessionId(9), cid: Cid(1), outcome };
        vec![Output::Reply { node: NodeId(8), reply, whom: anybody() }]
    };
    let published = say(&mut shard, "v", 1, "x", 0);
    let [Output::Publish(accepted)] = &published[..] else { panic!("{published:?}") };
    let (id, admitted) = (accepted.item.id, Verdict::Admit(accepted.item.id));

    assert_eq!(feed(&mut shard, again(9, "x"), 10), vec![]);
    assert_eq!(feed(&mut shard, Input::Published(id), 20), told(Outcome::Verdict(admitted)));
    assert_eq!(feed(&mut shard, again(9, "x"), 30), told(Outcome::Verdict(admitted)));

    let other = feed(&mut shard, again(10, "y"), 40);
    assert!(matches!(other[..], [Output::Publish(_)]), "a session may count anew: {other:?}");
}

#[test]
fn a_refused_comment_that_comes_again_takes_no_other_comments_fate_with_it() {
    let mut shard = shard(RoomSettings { graphemes_max: 3, ..RoomSettings::default() });
    let from = |session, text: &str| {
        let entry = UplinkEntry { session: SessionId(session), ..entry("v", 1, text) };
        Input::Uplink { node: NODE, entry }
    };
    // The number counts anew for the first session, which has another comment under it then.
    feed(&mut shard, from(1, "long"), 0);
    feed(&mut shard, from(9, "long"), 0);
    let shown = say_and_publish(&mut shard, "v", 1, "y", 0);
    feed(&mut shard, from(1, "long"), 0);
    feed(&mut shard, from(9, "long"), 0);

    let fates = vec![(shown, Fate::Shed { reason: Reason::OverBudget })];
    let told = feed(&mut shard, event(RoomEvent::Fates { fates }), 10);

    assert_eq!(told, vec![answer(1, Outcome::Shed(Reason::OverBudget))]);
}

#[test]
fn the_fate_of_what_was_admitted_goes_to_the_session_that_sent_it_last() {
    let mut shard = shard(RoomSettings::default());
    let shown = say_and_publish(&mut shard, "v", 1, "x", 0);
    let again = UplinkEntry { session: SessionId(9), ..entry("v", 1, "x") };
    feed(&mut shard, Input::Uplink { node: NodeId(8), entry: again }, 10);

    let fates = vec![(shown, Fate::Shed { reason: Reason::OverBudget })];
    let told = feed(&mut shard, event(RoomEvent::Fates { fates }), 20);

    let outcome = Outcome::Shed(Reason::OverBudget);
    let reply = Reply::Ack { session: SessionId(9), cid: Cid(1), outcome };
    assert_eq!(told, vec![Output::Reply { node: NodeId(8), reply, whom: anybody() }]);
}

const LIMITS: Limits =
    Limits { shard: 5, rooms_max: 3, senders_max: 3, asked_max: 100, nodes_min: 1 };

fn at(ms: u64) -> Now {
    Now { mono: Mono(ms), wall: START + Duration::from_millis(ms) }
}

fn shard(settings: RoomSettings) -> Shard {
    let mut shard = Shard::new(LIMITS, SenderSecret::new([1; 32]), Wall(0));
    feed(&mut shard, room_fact(1, settings), 0);
    shard
}

fn room() -> RoomId {
    RoomId::parse("r").unwrap()
}

fn room_fact(version: u64, settings: RoomSettings) -> Input {
    Input::Fact(Fact::Room(RoomFact { app: AppId(1), room: room(), version, open: true, settings }))
}

fn mute(viewer: &str, until: Wall) -> Input {
    let viewer = ViewerId::parse(viewer).unwrap();
    Input::Fact(Fact::Mute { app: AppId(1), room: room(), viewer, until })
}

fn entry(viewer: &str, cid: u64, text: &str) -> UplinkEntry {
    let style = Style::default();
    UplinkEntry {
        session: SessionId(1),
        app: AppId(1),
        room: room(),
        viewer: ViewerId::parse(viewer).unwrap(),
        role: Role::Viewer,
        may_send: true,
        at: START,
        origin: None,
        act: Act::Comment { cid: Cid(cid), text: text.into(), style, media_ms: None },
    }
}

fn flush(id: ItemId) -> Input {
    let item = Item {
        id,
        lane: Lane::Comment,
        sender: proto::id::SenderRef(1),
        role: Role::Viewer,
        at: START,
        body: Body::Entry,
    };
    let items = vec![Placed { seq: Seq(1), item }];
    event(RoomEvent::Flush { gen_no: Gen(1), slot: SlotNo(1), part: 0, at: START, items })
}

fn event(event: RoomEvent) -> Input {
    Input::Event(RoomEntry { app: AppId(1), room: room(), event })
}

fn feed(shard: &mut Shard, input: Input, ms: u64) -> Vec<Output> {
    shard.handle(input, at(ms));
    drain(shard)
}

/// Whom a reply is for is looked at by one test.
fn drain(shard: &mut Shard) -> Vec<Output> {
    let anybodys = |mut output| {
        if let Output::Reply { whom, .. } = &mut output {
            *whom = anybody();
        }
        output
    };
    std::iter::from_fn(|| shard.poll()).map(anybodys).collect()
}

fn anybody() -> Whom {
    Whom { app: AppId(1), room: room(), viewer: ViewerId::parse("anybody").unwrap() }
}

fn say(shard: &mut Shard, viewer: &str, cid: u64, text: &str, ms: u64) -> Vec<Output> {
    feed(shard, Input::Uplink { node: NODE, entry: entry(viewer, cid, text) }, ms)
}

fn say_and_publish(shard: &mut Shard, viewer: &str, cid: u64, text: &str, ms: u64) -> ItemId {
    let published = say(shard, viewer, cid, text, ms);
    let [Output::Publish(accepted)] = &published[..] else { panic!("{published:?}") };
    let id = accepted.item.id;
    assert_eq!(feed(shard, Input::Published(id), ms), vec![ack(cid, Verdict::Admit(id))]);
    id
}

fn ack(cid: u64, verdict: Verdict) -> Output {
    answer(cid, Outcome::Verdict(verdict))
}

fn answer(cid: u64, outcome: Outcome) -> Output {
    Output::Reply {
        node: NODE,
        reply: Reply::Ack { session: SessionId(1), cid: Cid(cid), outcome },
        whom: anybody(),
    }
}

fn drop(reason: Reason, retry_after_ms: u32) -> Verdict {
    Verdict::Drop { reason, retry_after_ms }
}
