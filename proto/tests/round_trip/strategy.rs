//! Arbitrary values of every type, within the limits.

pub(crate) mod envelope;
pub(crate) mod frame;
pub(crate) mod load;
pub(crate) mod segment;

use proptest::collection::vec;
use proptest::prelude::*;
use proto::close::CloseCode;
use proto::frame::{Outcome, Place};
use proto::head::{Base, GenInfo};
use proto::heat::Heat;
use proto::id::{Gen, ItemId, KindName, RoomId, SenderRef, Seq};
use proto::item::{Body, Item, Lane, Mode, Placed, Role, Size, Style};
use proto::limits;
use proto::time::Wall;
use proto::verdict::{Reason, Verdict};

pub(crate) fn room() -> impl Strategy<Value = RoomId> {
    "[A-Za-z0-9_-]{1,64}".prop_map(|it| RoomId::parse(&it).expect("the pattern is the grammar"))
}

pub(crate) fn word() -> impl Strategy<Value = String> {
    "[a-z0-9_.-]{0,64}"
}

pub(crate) fn gen_no() -> impl Strategy<Value = Gen> {
    any::<u32>().prop_map(Gen)
}

pub(crate) fn role() -> impl Strategy<Value = Role> {
    prop::sample::select(vec![Role::Guest, Role::Viewer, Role::Vip, Role::Moderator, Role::Host])
}

pub(crate) fn heat() -> impl Strategy<Value = Heat> {
    prop::sample::select(vec![Heat::Cold, Heat::Hot])
}

pub(crate) fn close_code() -> impl Strategy<Value = CloseCode> {
    prop::sample::select(CloseCode::ALL.to_vec())
}

pub(crate) fn reason() -> impl Strategy<Value = Reason> {
    prop::sample::select(Reason::ALL.to_vec())
}

pub(crate) fn place() -> impl Strategy<Value = Place> {
    (gen_no(), any::<u64>()).prop_map(|(gen_no, seq)| Place { gen_no, seq: Seq(seq) })
}

pub(crate) fn outcome() -> impl Strategy<Value = Outcome> {
    let id = any::<u64>().prop_map(ItemId);
    prop_oneof![
        id.clone().prop_map(|it| Outcome::Verdict(Verdict::Admit(it))),
        id.clone().prop_map(|it| Outcome::Verdict(Verdict::Shadow(it))),
        (reason(), any::<u32>()).prop_map(|(reason, retry_after_ms)| {
            Outcome::Verdict(Verdict::Drop { reason, retry_after_ms })
        }),
        id.prop_map(Outcome::Merged),
        reason().prop_map(Outcome::Shed),
    ]
}

pub(crate) fn bases() -> impl Strategy<Value = Vec<Base>> {
    let base =
        ("https://[a-z.]{1,40}", any::<u32>()).prop_map(|(base, weight)| Base { base, weight });
    vec(base, 0..4)
}

pub(crate) fn gen_info() -> impl Strategy<Value = GenInfo> {
    (gen_no(), any::<u64>(), any::<u32>(), any::<u32>()).prop_map(
        |(gen_no, epoch_ms, interval_ms, layout)| GenInfo {
            gen_no,
            epoch_ms: Wall(epoch_ms),
            interval_ms,
            layout,
        },
    )
}

pub(crate) fn style() -> impl Strategy<Value = Style> {
    let mode = prop::sample::select(vec![Mode::Scroll, Mode::Top, Mode::Bottom, Mode::Reverse]);
    let size = prop::sample::select(vec![Size::Normal, Size::Small, Size::Large]);
    let given =
        (0..=0xff_ffff_u32, mode, size).prop_map(|(color, mode, size)| Style { color, mode, size });
    prop_oneof![Just(Style::default()), given]
}

pub(crate) fn media_ms() -> impl Strategy<Value = Option<u64>> {
    prop::option::of(0..=limits::MEDIA_MS_MAX)
}

fn count() -> impl Strategy<Value = u32> {
    prop_oneof![Just(1), 1..=u32::MAX]
}

pub(crate) fn text() -> impl Strategy<Value = String> {
    prop_oneof![".{0,40}", "哈{1,600}", Just("x".repeat(limits::TEXT_BYTES_MAX))]
}

pub(crate) fn body() -> impl Strategy<Value = Body> {
    prop_oneof![
        (text(), style(), media_ms(), count()).prop_map(|(text, style, media_ms, count)| {
            Body::Comment { text: text.into(), style, media_ms, count }
        }),
        (any::<u32>(), any::<u32>(), text()).prop_map(|(gift_no, count, text)| Body::Gift {
            gift_no,
            count,
            text
        }),
        any::<u32>().prop_map(|count| Body::Like { count }),
        Just(Body::Entry),
        text().prop_map(|text| Body::Notice { text }),
        any::<u64>().prop_map(|of| Body::Tombstone { of: ItemId(of) }),
        any::<u64>().prop_map(|of| Body::Erasure { of: ItemId(of) }),
        text().prop_map(|text| Body::System { text }),
        (any::<u32>(), text()).prop_map(|(effect_no, text)| Body::Effect { effect_no, text }),
        ("[A-Za-z0-9_-]{1,32}", text()).prop_map(|(name, text)| Body::Custom {
            name: KindName::parse(&name).expect("it is in the grammar"),
            text
        }),
    ]
}

/// Times close together, as in life, or anywhere.
fn at() -> impl Strategy<Value = Wall> {
    prop_oneof![4 => 1_800_000_000_000..1_800_000_600_000_u64, 1 => any::<u64>()].prop_map(Wall)
}

pub(crate) fn item() -> impl Strategy<Value = Item> {
    (any::<u64>(), prop::sample::select(Lane::ALL.to_vec()), any::<u64>(), role(), at(), body())
        .prop_map(|(id, lane, sender, role, at, body)| Item {
            id: ItemId(id),
            lane,
            sender: SenderRef(sender),
            role,
            at,
            body,
        })
}

/// Items with rising seqs, with holes small and large.
pub(crate) fn placed() -> impl Strategy<Value = Vec<Placed>> {
    let step = prop_oneof![8 => 1..5_u64, 1 => 1..1_u64 << 40];
    (any::<u32>(), vec((step, item()), 0..20)).prop_map(|(start, steps)| {
        let mut seq = u64::from(start);
        let place = |(step, item)| {
            seq += step;
            Placed { seq: Seq(seq), item }
        };
        steps.into_iter().map(place).collect()
    })
}
