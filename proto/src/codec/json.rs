//! A segment as the JSON that integrators read.

use serde::Serialize;

use crate::envelope::RoomEvent;
use crate::id::{Gen, ItemId, SenderRef, Seq, SlotNo};
use crate::item::{Body, Lane, Placed, Repeat, Role, Style};
use crate::segment::{Header, Segment};
use crate::time::Wall;

#[derive(Serialize)]
struct Page<'a> {
    #[serde(flatten)]
    header: &'a Header,
    items: Vec<Line<'a>>,
    repeats: Vec<Line<'a>>,
}

/// One item as integrators read it, in a segment's JSON and elsewhere. 64-bit ids are strings, since
/// many readers keep only 53 bits.
#[derive(Debug, Serialize)]
pub struct Line<'a> {
    id: ItemId,
    #[serde(rename = "gen", skip_serializing_if = "Option::is_none")]
    gen_no: Option<Gen>,
    seq: Seq,
    kind: &'static str,
    lane: Lane,
    #[serde(serialize_with = "as_text")]
    sender: SenderRef,
    role: Role,
    at_ms: Wall,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    style: Option<Style>,
    #[serde(skip_serializing_if = "Option::is_none")]
    media_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    gift: Option<Gift>,
    #[serde(skip_serializing_if = "Option::is_none")]
    count: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    of: Option<ItemId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    effect_no: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
}

#[derive(Debug, Serialize)]
struct Gift {
    gift_no: u32,
    count: u32,
}

impl<'a> Line<'a> {
    /// An item that stands by itself, with its gen.
    #[must_use]
    pub fn of(repeat: &'a Repeat) -> Self {
        line(Some(repeat.gen_no), &repeat.placed)
    }
}

fn as_text<S: serde::Serializer>(sender: &SenderRef, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(sender)
}

pub(super) fn segment(segment: &Segment) -> String {
    let page = Page {
        header: &segment.header,
        items: segment.items.iter().map(|it| line(None, it)).collect(),
        repeats: segment.repeats.iter().map(Line::of).collect(),
    };
    serde_json::to_string(&page).expect("a page has string keys only and no failing serializer")
}

/// What a reader of single flushes is told, as JSON.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub enum Moment<'a> {
    /// A flush.
    Flush {
        /// Gen of the places.
        #[serde(rename = "gen")]
        gen_no: Gen,
        /// Slot it belongs to.
        slot: SlotNo,
        /// Its number within the slot, from 0.
        part: u32,
        /// When.
        at_ms: Wall,
        /// Its items, seq rising; may be empty.
        items: Vec<Line<'a>>,
    },
    /// The end of a slot.
    Seal {
        /// Gen.
        #[serde(rename = "gen")]
        gen_no: Gen,
        /// Which slot.
        slot: SlotNo,
        /// Items in it: in its flushes together.
        sealed: u32,
        /// As in [`crate::frame::Seal`].
        crc: u32,
    },
}

impl<'a> Moment<'a> {
    /// What an event says; none for those that are not for viewers.
    #[must_use]
    pub fn of(event: &'a RoomEvent) -> Option<Self> {
        match event {
            RoomEvent::Flush { gen_no, slot, part, at, items } => Some(Self::Flush {
                gen_no: *gen_no,
                slot: *slot,
                part: *part,
                at_ms: *at,
                items: items.iter().map(|it| line(None, it)).collect(),
            }),
            RoomEvent::Seal { gen_no, slot, items, crc } => {
                Some(Self::Seal { gen_no: *gen_no, slot: *slot, sealed: *items, crc: *crc })
            }
            RoomEvent::Opened { .. } | RoomEvent::Fates { .. } | RoomEvent::Heat { .. } => None,
        }
    }

    /// The JSON.
    #[must_use]
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("string keys only, and no failing serializer")
    }
}

fn line(gen_no: Option<Gen>, placed: &Placed) -> Line<'_> {
    let item = &placed.item;
    let mut line = Line {
        id: item.id,
        gen_no,
        seq: placed.seq,
        kind: "",
        lane: item.lane,
        sender: item.sender,
        role: item.role,
        at_ms: item.at,
        text: item.body.text(),
        style: None,
        media_ms: None,
        gift: None,
        count: None,
        of: None,
        effect_no: None,
        name: None,
    };
    line.kind = match &item.body {
        Body::Comment { style, media_ms, count, .. } => {
            (line.style, line.media_ms) = (Some(*style), *media_ms);
            line.count = (*count > 1).then_some(*count);
            "comment"
        }
        Body::Gift { gift_no, count, .. } => {
            line.gift = Some(Gift { gift_no: *gift_no, count: *count });
            "gift"
        }
        Body::Like { count } => {
            line.count = Some(*count);
            "like"
        }
        Body::Entry => "entry",
        Body::Notice { .. } => "notice",
        Body::Tombstone { of } | Body::Erasure { of } => {
            line.of = Some(*of);
            "tombstone"
        }
        Body::System { .. } => "system",
        Body::Effect { effect_no, .. } => {
            line.effect_no = Some(*effect_no);
            "effect"
        }
        Body::Custom { name, .. } => {
            line.name = Some(name.as_str());
            "custom"
        }
    };
    line
}
