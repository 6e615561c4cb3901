//! Frames.

use proptest::collection::vec;
use proptest::prelude::*;
use proto::attribute::{Attribute, COUNT_MAX, Value as AttributeValue};
use proto::frame::{
    Ack, Batch, Close, Comment, Control, Credential, Downlink, Hello, Join, JoinOutcome, Joined,
    Login, LoginOk, Path, Refused, Report, Resumed, Seal, Uplink, Welcome,
};
use proto::id::{AttributeName, Cid, DeviceId, SessionId, SlotNo};
use proto::keys::{ROOM_KEYS_MAX, RoomKey, RoomKeys};
use proto::limits::BASES_MAX;
use proto::quality::BaseReport;
use proto::time::Wall;

use super::{
    bases, close_code, gen_no, heat, media_ms, outcome, place, placed, role, room, style, text,
    word,
};

pub(crate) fn uplink() -> impl Strategy<Value = Uplink> {
    prop_oneof![
        hello().prop_map(Uplink::Hello),
        login().prop_map(Uplink::Login),
        comment().prop_map(Uplink::Comment),
        (room(), any::<u32>()).prop_map(|(room, count)| Uplink::Like { room, count }),
        join().prop_map(Uplink::Join),
        room().prop_map(|room| Uplink::Leave { room }),
        token().prop_map(|token| Uplink::Refresh { token }),
        report().prop_map(Uplink::Report),
        any::<u64>().prop_map(|nonce| Uplink::Ping { nonce }),
    ]
}

pub(crate) fn downlink() -> impl Strategy<Value = Downlink> {
    prop_oneof![
        welcome().prop_map(Downlink::Welcome),
        login_ok().prop_map(Downlink::LoginOk),
        refused().prop_map(Downlink::Refused),
        batch().prop_map(Downlink::Batch),
        seal().prop_map(Downlink::Seal),
        (room(), any::<u32>()).prop_map(|(room, items)| Downlink::Skipped { room, items }),
        (any::<u64>(), outcome())
            .prop_map(|(cid, outcome)| Downlink::Ack(Ack { cid: Cid(cid), outcome })),
        control().prop_map(Downlink::Control),
        joined().prop_map(Downlink::Joined),
        (any::<u64>(), any::<u64>())
            .prop_map(|(nonce, ms)| Downlink::Pong { nonce, server_ms: Wall(ms) }),
        close().prop_map(Downlink::Close),
    ]
}

fn token() -> impl Strategy<Value = String> {
    "[A-Za-z0-9_-]{0,1024}"
}

fn hello() -> impl Strategy<Value = Hello> {
    let versions = (any::<u16>(), any::<u16>());
    (word(), word(), versions, vec(word(), 0..=16), vec(word(), 0..=16), any::<u64>()).prop_map(
        |(sdk, sdk_version, (proto_min, proto_max), suites, codecs, nonce)| Hello {
            sdk,
            sdk_version,
            proto_min,
            proto_max,
            suites,
            codecs,
            nonce,
        },
    )
}

fn login() -> impl Strategy<Value = Login> {
    let credential = prop_oneof![
        token().prop_map(Credential::Token),
        token().prop_map(Credential::ResumeTicket),
    ];
    let device =
        "[!-~]{1,32}".prop_map(|it| DeviceId::parse(&it).expect("the pattern is the grammar"));
    (credential, any::<Option<[u8; 32]>>(), prop::option::of(device), vec(join(), 0..=8))
        .prop_map(|(credential, binder, device, joins)| Login { credential, binder, device, joins })
}

fn path() -> impl Strategy<Value = Path> {
    prop::sample::select(vec![Path::Auto, Path::Push, Path::Segments])
}

fn join() -> impl Strategy<Value = Join> {
    (room(), path(), prop::option::of(place())).prop_map(|(room, path, resume)| Join {
        room,
        path,
        resume,
    })
}

fn comment() -> impl Strategy<Value = Comment> {
    (any::<u64>(), room(), text(), style(), media_ms()).prop_map(
        |(cid, room, text, style, media_ms)| Comment { cid: Cid(cid), room, text, style, media_ms },
    )
}

fn report() -> impl Strategy<Value = Report> {
    let counts = || any::<(u32, u32, u32, u32)>();
    let base = (word(), counts(), any::<bool>()).prop_map(
        |(base, (fetches, failures, late, fetch_ms), is_bad)| BaseReport {
            base,
            fetches,
            failures,
            late,
            fetch_ms,
            is_bad,
        },
    );
    (counts(), vec(base, 0..=BASES_MAX)).prop_map(
        |((fetches, failures, missed, fetch_ms), bases)| Report {
            fetches,
            failures,
            missed,
            fetch_ms,
            bases,
        },
    )
}

fn welcome() -> impl Strategy<Value = Welcome> {
    (word(), word(), any::<(u16, u32, u32, u32)>(), any::<(u64, u64, bool)>()).prop_map(
        |(
            suite,
            codec,
            (proto, heartbeat_ms, silence_ms, frame_bytes_max),
            (ms, nonce, upgrade),
        )| Welcome {
            proto,
            suite,
            codec,
            heartbeat_ms,
            silence_ms,
            frame_bytes_max,
            server_ms: Wall(ms),
            nonce,
            upgrade,
        },
    )
}

fn login_ok() -> impl Strategy<Value = LoginOk> {
    let ids = any::<(u64, u64)>();
    (ids, role(), any::<Option<[u8; 32]>>(), vec(joined(), 0..=8), token()).prop_map(
        |((session, expires), role, confirm, rooms, resume_ticket)| LoginOk {
            session: SessionId(session),
            role,
            confirm,
            rooms,
            expires: Wall(expires),
            resume_ticket,
        },
    )
}

fn joined() -> impl Strategy<Value = Joined> {
    let resumed = prop_oneof![
        Just(Resumed::Fresh),
        any::<u32>().prop_map(|items| Resumed::Recovered { items }),
        (place(), place()).prop_map(|(from, to)| Resumed::Gap { from, to }),
    ];
    let inside = (heat(), path(), resumed, prop::option::of(place()), any::<u32>()).prop_map(
        |(heat, path, resumed, latest, online)| JoinOutcome::In {
            heat,
            path,
            resumed,
            latest,
            online,
        },
    );
    let outside = (close_code(), any::<u32>())
        .prop_map(|(code, retry_after_ms)| JoinOutcome::Refused { code, retry_after_ms });
    (room(), prop_oneof![inside, outside]).prop_map(|(room, outcome)| Joined { room, outcome })
}

fn refused() -> impl Strategy<Value = Refused> {
    (close_code(), ".{0,100}", any::<u32>(), any::<u64>()).prop_map(
        |(code, reason, retry_after_ms, ms)| Refused {
            code,
            reason,
            retry_after_ms,
            server_ms: Wall(ms),
        },
    )
}

fn batch() -> impl Strategy<Value = Batch> {
    (room(), gen_no(), any::<u64>(), any::<u32>(), placed()).prop_map(
        |(room, gen_no, slot, part, items)| Batch { room, gen_no, slot: SlotNo(slot), part, items },
    )
}

fn seal() -> impl Strategy<Value = Seal> {
    (room(), gen_no(), any::<u64>(), any::<u32>(), any::<u32>()).prop_map(
        |(room, gen_no, slot, items, crc)| Seal { room, gen_no, slot: SlotNo(slot), items, crc },
    )
}

fn control() -> impl Strategy<Value = Control> {
    prop_oneof![
        (room(), heat(), gen_no(), any::<u64>()).prop_map(|(room, heat, gen_no, slot)| {
            Control::Heat { room, heat, gen_no, slot: SlotNo(slot) }
        }),
        bases().prop_map(|bases| Control::Bases { bases }),
        room().prop_map(|room| Control::Closed { room }),
        (room(), any::<u64>())
            .prop_map(|(room, until)| Control::Muted { room, until: Wall(until) }),
        (room(), vec(attribute(), 0..5))
            .prop_map(|(room, attributes)| Control::Attributes { room, attributes }),
        (room(), vec(room_key(), 0..=ROOM_KEYS_MAX))
            .prop_map(|(room, keys)| Control::Keys(RoomKeys { room, keys })),
    ]
}

fn room_key() -> impl Strategy<Value = RoomKey> {
    (gen_no(), any::<u8>(), "[0-9a-f]{32}").prop_map(|(gen_no, kid, key)| RoomKey {
        gen_no,
        kid,
        key,
    })
}

fn attribute() -> impl Strategy<Value = Attribute> {
    let value = prop_oneof![
        (-COUNT_MAX..=COUNT_MAX).prop_map(AttributeValue::Count),
        ".{0,60}".prop_map(AttributeValue::Text),
    ];
    let name = prop_oneof![Just("notice".to_owned()), "[A-Za-z0-9_-]{1,32}"];
    (name, any::<u64>(), prop::option::of(value)).prop_map(|(name, version, value)| Attribute {
        name: AttributeName::parse(&name).expect("the pattern is the grammar"),
        version,
        value,
    })
}

fn close() -> impl Strategy<Value = Close> {
    (close_code(), ".{0,100}", any::<u32>(), vec("[a-z.]{1,40}:[0-9]{1,5}", 0..4)).prop_map(
        |(code, reason, retry_after_ms, addresses)| Close {
            code,
            reason,
            retry_after_ms,
            addresses,
        },
    )
}
