//! Codes, names and the small structures that every message uses.

use flatbuffers::{ForwardsUOffset, Vector, WIPOffset};

use super::{Builder, refused};
use crate::address::{Carrier, Transport};
use crate::close::CloseCode;
use crate::decode::DecodeError;
use crate::frame::{Outcome, Path, Place};
use crate::generated as fb;
use crate::head::{Base, GenInfo, Tier};
use crate::heat::Heat;
use crate::id::{Gen, ItemId, RoomId, Seq};
use crate::item::{Lane, Mode, Role, Size, Style};
use crate::limits;
use crate::time::Wall;
use crate::verdict::{Reason, Verdict};

/// A vector of strings in a table.
pub(super) type Words<'a> = Option<Vector<'a, ForwardsUOffset<&'a str>>>;

/// A domain enum whose variants are a schema enum's, name by name.
pub(super) trait Code: Sized {
    /// The schema's enum.
    type Wire;

    /// To the schema.
    fn wire(self) -> Self::Wire;

    /// From the schema; `field` names the place of an unknown code.
    fn read(code: Self::Wire, field: &'static str) -> Result<Self, DecodeError>;
}

macro_rules! codes {
    ($($name:ident { $($variant:ident)+ })+) => {
        $(impl Code for $name {
            type Wire = fb::$name;

            fn wire(self) -> fb::$name {
                match self { $(Self::$variant => fb::$name::$variant,)+ }
            }

            fn read(code: fb::$name, field: &'static str) -> Result<Self, DecodeError> {
                match code {
                    $(fb::$name::$variant => Ok(Self::$variant),)+
                    _ => refused(field),
                }
            }
        })+
    };
}

codes! {
    Role { Guest Viewer Vip Moderator Host }
    Heat { Cold Hot }
    Path { Auto Push Segments }
    Tier { Full Lite }
    Lane { Notice HighGift LowGift Comment }
    Mode { Scroll Top Bottom Reverse }
    Size { Normal Small Large }
    Transport { Tcp Tls Ws Wss Quic National }
    Carrier { Bgp Telecom Unicom Mobile C4 C5 C6 C7 C8 C9 C10 C11 C12 C13 C14 C15 }
}

pub(super) fn room(name: &str) -> Result<RoomId, DecodeError> {
    RoomId::parse(name).or_else(|_| refused("room"))
}

pub(super) fn close_code(code: u16) -> Result<CloseCode, DecodeError> {
    CloseCode::from_code(code).map_or_else(|| refused("code"), Ok)
}

pub(super) fn reason(code: u8) -> Result<Reason, DecodeError> {
    Reason::from_code(code).map_or_else(|| refused("reason"), Ok)
}

/// A string of at most `max` bytes.
pub(super) fn text(text: &str, max: usize, field: &'static str) -> Result<String, DecodeError> {
    if text.len() > max { refused(field) } else { Ok(text.to_owned()) }
}

/// At most `count_max` strings of at most `bytes_max` bytes each.
pub(super) fn texts(
    words: Words<'_>,
    count_max: usize,
    bytes_max: usize,
    field: &'static str,
) -> Result<Vec<String>, DecodeError> {
    if words.map_or(0, |it| it.len()) > count_max {
        return refused(field);
    }
    words.into_iter().flatten().map(|it| text(it, bytes_max, field)).collect()
}

/// 32 bytes, or nothing.
pub(super) fn bytes32(
    bytes: Option<Vector<'_, u8>>,
    field: &'static str,
) -> Result<Option<[u8; 32]>, DecodeError> {
    let Some(bytes) = bytes else { return Ok(None) };
    bytes.bytes().try_into().map_or_else(|_| refused(field), |it| Ok(Some(it)))
}

pub(super) fn write_words<S: AsRef<str>>(
    b: &mut Builder,
    words: &[S],
) -> Option<WIPOffset<Vector<'static, ForwardsUOffset<&'static str>>>> {
    if words.is_empty() {
        return None;
    }
    let offsets: Vec<_> = words.iter().map(|it| b.create_string(it.as_ref())).collect();
    Some(b.create_vector(&offsets))
}

pub(super) fn write_style(style: Style) -> fb::Style {
    fb::Style::new(style.color, style.mode.wire(), style.size.wire())
}

pub(super) fn style(style: &fb::Style) -> Result<Style, DecodeError> {
    if style.color() > 0xff_ffff {
        return refused("color");
    }
    Ok(Style {
        color: style.color(),
        mode: Mode::read(style.mode(), "mode")?,
        size: Size::read(style.size(), "size")?,
    })
}

/// A style as one number: `color | mode << 24 | size << 28`; a color beyond its range gives one that
/// [`unpack_style`] refuses.
pub(super) fn pack_style(style: Style) -> u32 {
    if style.color > 0xff_ffff {
        return u32::MAX;
    }
    style.color | u32::from(style.mode.wire().0) << 24 | u32::from(style.size.wire().0) << 28
}

pub(super) fn unpack_style(packed: u32) -> Result<Style, DecodeError> {
    let [size_and_mode, r, g, b] = packed.to_be_bytes();
    Ok(Style {
        color: u32::from_be_bytes([0, r, g, b]),
        mode: Mode::read(fb::Mode(size_and_mode & 0xf), "mode")?,
        size: Size::read(fb::Size(size_and_mode >> 4), "size")?,
    })
}

/// A style where nothing stands for the default.
pub(super) fn optional_style(found: Option<&fb::Style>) -> Result<Style, DecodeError> {
    found.map_or_else(|| Ok(Style::default()), style)
}

pub(super) fn write_optional_style(style: Style) -> Option<fb::Style> {
    (style != Style::default()).then(|| write_style(style))
}

pub(super) fn media_ms(media_ms: Option<u64>) -> Result<Option<u64>, DecodeError> {
    match media_ms {
        Some(ms) if ms > limits::MEDIA_MS_MAX => refused("media_ms"),
        Some(_) | None => Ok(media_ms),
    }
}

pub(super) fn write_place(place: Place) -> fb::Place {
    fb::Place::new(place.seq.0, place.gen_no.0)
}

pub(super) fn place(place: &fb::Place) -> Place {
    Place { gen_no: Gen(place.gen_no()), seq: Seq(place.seq()) }
}

pub(super) fn write_outcome(outcome: Outcome) -> fb::Outcome {
    use fb::OutcomeKind as Kind;
    let (kind, item, reason, retry_after_ms) = match outcome {
        Outcome::Verdict(Verdict::Admit(id)) => (Kind::Admit, id.0, 0, 0),
        Outcome::Verdict(Verdict::Shadow(id)) => (Kind::Shadow, id.0, 0, 0),
        Outcome::Verdict(Verdict::Drop { reason, retry_after_ms }) => {
            (Kind::Drop, 0, reason as u8, retry_after_ms)
        }
        Outcome::Merged(into) => (Kind::Merged, into.0, 0, 0),
        Outcome::Shed(reason) => (Kind::Shed, 0, reason as u8, 0),
    };
    fb::Outcome::new(item, retry_after_ms, kind, reason)
}

pub(super) fn outcome(found: &fb::Outcome) -> Result<Outcome, DecodeError> {
    use fb::OutcomeKind as Kind;
    let id = ItemId(found.item());
    Ok(match found.kind() {
        Kind::Admit => Outcome::Verdict(Verdict::Admit(id)),
        Kind::Shadow => Outcome::Verdict(Verdict::Shadow(id)),
        Kind::Drop => Outcome::Verdict(Verdict::Drop {
            reason: reason(found.reason())?,
            retry_after_ms: found.retry_after_ms(),
        }),
        Kind::Merged => Outcome::Merged(id),
        Kind::Shed => Outcome::Shed(reason(found.reason())?),
        _ => return refused("outcome"),
    })
}

/// Segment bases in a table.
pub(super) type Bases<'a> = Vector<'a, ForwardsUOffset<fb::Base<'a>>>;

pub(super) fn write_bases(b: &mut Builder, bases: &[Base]) -> Option<WIPOffset<Bases<'static>>> {
    if bases.is_empty() {
        return None;
    }
    let offsets: Vec<_> = bases
        .iter()
        .map(|it| {
            let base = Some(b.create_string(&it.base));
            fb::Base::create(b, &fb::BaseArgs { base, weight: it.weight })
        })
        .collect();
    Some(b.create_vector(&offsets))
}

pub(super) fn bases(found: Option<Bases<'_>>) -> Result<Vec<Base>, DecodeError> {
    if found.map_or(0, |it| it.len()) > limits::BASES_MAX {
        return refused("bases");
    }
    found
        .into_iter()
        .flatten()
        .map(|it| {
            let base = text(it.base(), limits::BASE_BYTES_MAX, "base")?;
            Ok(Base { base, weight: it.weight() })
        })
        .collect()
}

pub(super) fn write_gen_info(b: &mut Builder, info: GenInfo) -> WIPOffset<fb::GenInfo<'static>> {
    let args = fb::GenInfoArgs {
        gen_no: info.gen_no.0,
        epoch_ms: info.epoch_ms.0,
        interval_ms: info.interval_ms,
        layout: info.layout,
    };
    fb::GenInfo::create(b, &args)
}

pub(super) fn gen_info(info: fb::GenInfo<'_>) -> GenInfo {
    GenInfo {
        gen_no: Gen(info.gen_no()),
        epoch_ms: Wall(info.epoch_ms()),
        interval_ms: info.interval_ms(),
        layout: info.layout(),
    }
}
