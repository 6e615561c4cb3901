//! Items as columns: the one table that frames, flushes, accepted items and segments share.

use flatbuffers::{Follow, Vector, WIPOffset};

use super::word::{self, Code};
use super::{Builder, refused};
use crate::decode::DecodeError;
use crate::generated as fb;
use crate::id::{ItemId, SenderRef, Seq};
use crate::item::{Body, Item, Lane, Placed, Role, Style};
use crate::limits;
use crate::time::Wall;

/// Writes items without places.
pub(super) fn write_items<'i>(
    b: &mut Builder,
    items: impl ExactSizeIterator<Item = &'i Item> + DoubleEndedIterator + Clone,
) -> WIPOffset<fb::Columns<'static>> {
    let args = item_columns(b, items);
    fb::Columns::create(b, &args)
}

/// Writes items with their places.
pub(super) fn write_placed<'i>(
    b: &mut Builder,
    placed: impl ExactSizeIterator<Item = &'i Placed> + DoubleEndedIterator + Clone,
) -> WIPOffset<fb::Columns<'static>> {
    let mut args = item_columns(b, placed.clone().map(|it| &it.item));
    let seqs = Differences::of(placed.map(|it| it.seq.0));
    args.seq_first = seqs.first;
    (args.seqs, args.seqs_wide) = seqs.write(b);
    fb::Columns::create(b, &args)
}

fn item_columns<'i>(
    b: &mut Builder,
    items: impl ExactSizeIterator<Item = &'i Item> + DoubleEndedIterator + Clone,
) -> fb::ColumnsArgs<'static> {
    if items.len() == 0 {
        return fb::ColumnsArgs::default();
    }
    let mut bodies = Bodies::default();
    items.clone().for_each(|it| bodies.add(&it.body));
    let ats = Differences::of(items.clone().map(|it| it.at.0));
    let (narrow, wide) = ats.write(b);
    let mut args = fb::ColumnsArgs {
        ids: Some(b.create_vector_from_iter(items.clone().map(|it| it.id.0))),
        kinds: Some(b.create_vector_from_iter(items.clone().map(|it| kind(&it.body).0))),
        lanes: Some(b.create_vector_from_iter(items.clone().map(|it| it.lane.wire().0))),
        roles: Some(b.create_vector_from_iter(items.clone().map(|it| it.role.wire().0))),
        senders: Some(b.create_vector_from_iter(items.map(|it| it.sender.0))),
        at_first: ats.first,
        ats: narrow,
        ats_wide: wide,
        ..Default::default()
    };
    bodies.write(b, &mut args);
    args
}

fn kind(body: &Body) -> fb::ItemKind {
    match body {
        Body::Comment { .. } => fb::ItemKind::Comment,
        Body::Gift { .. } => fb::ItemKind::Gift,
        Body::Like { .. } => fb::ItemKind::Like,
        Body::Entry => fb::ItemKind::Entry,
        Body::Notice { .. } => fb::ItemKind::Notice,
        Body::Tombstone { .. } => fb::ItemKind::Tombstone,
    }
}

/// The columns that only some kinds have, on their way out.
#[derive(Default)]
struct Bodies {
    texts: Vec<u8>,
    text_bytes: Vec<u16>,
    styles: Vec<Style>,
    media_ms: Vec<u64>,
    gift_nos: Vec<u32>,
    counts: Vec<u32>,
    recalled: Vec<u64>,
}

impl Bodies {
    fn add(&mut self, body: &Body) {
        if let Some(text) = body.text() {
            self.texts.extend_from_slice(text.as_bytes());
            // A text this long is refused on the other side anyway.
            self.text_bytes.push(u16::try_from(text.len()).unwrap_or(u16::MAX));
        }
        match body {
            Body::Comment { style, media_ms, .. } => {
                self.styles.push(*style);
                self.media_ms.push(media_ms.map_or(0, |ms| ms.saturating_add(1)));
            }
            Body::Gift { gift_no, count, .. } => {
                self.gift_nos.push(*gift_no);
                self.counts.push(*count);
            }
            Body::Like { count } => self.counts.push(*count),
            Body::Entry | Body::Notice { .. } => {}
            Body::Tombstone { of } => self.recalled.push(of.0),
        }
    }

    fn write(&self, b: &mut Builder, args: &mut fb::ColumnsArgs<'static>) {
        if !self.text_bytes.is_empty() {
            args.texts = Some(b.create_vector(&self.texts));
            args.text_bytes = Some(b.create_vector(&self.text_bytes));
        }
        if self.styles.iter().any(|it| *it != Style::default()) {
            let styles = self.styles.iter().map(|it| word::write_style(*it));
            args.styles = Some(b.create_vector_from_iter(styles));
        }
        if self.media_ms.iter().any(|it| *it != 0) {
            args.media_ms = Some(b.create_vector(&self.media_ms));
        }
        if !self.gift_nos.is_empty() {
            args.gift_nos = Some(b.create_vector(&self.gift_nos));
        }
        if !self.counts.is_empty() {
            args.counts = Some(b.create_vector(&self.counts));
        }
        if !self.recalled.is_empty() {
            args.recalled = Some(b.create_vector(&self.recalled));
        }
    }
}

/// Numbers as differences, each to the one before and the first one to itself.
struct Differences {
    first: u64,
    wide: Vec<i64>,
}

type Narrow = Option<WIPOffset<Vector<'static, i32>>>;
type Wide = Option<WIPOffset<Vector<'static, i64>>>;

impl Differences {
    fn of(numbers: impl Iterator<Item = u64> + Clone) -> Self {
        let first = numbers.clone().next().unwrap_or_default();
        let mut before = first;
        let wide = numbers.map(|it| {
            let difference = it.wrapping_sub(before).cast_signed();
            before = it;
            difference
        });
        Self { first, wide: wide.collect() }
    }

    fn write(&self, b: &mut Builder) -> (Narrow, Wide) {
        if self.wide.is_empty() {
            return (None, None);
        }
        match self.wide.iter().map(|it| i32::try_from(*it)).collect::<Result<Vec<_>, _>>() {
            Ok(narrow) => (Some(b.create_vector(&narrow)), None),
            Err(_) => (None, Some(b.create_vector(&self.wide))),
        }
    }
}

fn numbers(
    first: u64,
    narrow: Option<Vector<'_, i32>>,
    wide: Option<Vector<'_, i64>>,
    count: usize,
    field: &'static str,
) -> Result<impl Iterator<Item = u64>, DecodeError> {
    if length(narrow) + length(wide) != count || (narrow.is_some() && wide.is_some()) {
        return refused(field);
    }
    let narrow = narrow.into_iter().flatten().map(i64::from);
    let wide = wide.into_iter().flatten();
    Ok(narrow.chain(wide).scan(first, |before, difference| {
        *before = before.wrapping_add_signed(difference);
        Some(*before)
    }))
}

fn length<'a, T: Follow<'a> + 'a>(column: Option<Vector<'a, T>>) -> usize {
    column.map_or(0, |it| it.len())
}

/// Whether seqs must rise.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Order {
    /// Each is greater than the one before: items of one gen.
    Rising,
    /// Any: repeats, whose gens differ.
    Any,
}

/// Reads items with their places, at most `max`.
pub(super) fn placed(
    columns: fb::Columns<'_>,
    max: usize,
    order: Order,
) -> Result<Vec<Placed>, DecodeError> {
    let count = length(columns.ids());
    let seqs = numbers(columns.seq_first(), columns.seqs(), columns.seqs_wide(), count, "seqs")?;
    let items = items(columns, max)?;
    let mut placed: Vec<Placed> = Vec::with_capacity(items.len());
    for (seq, item) in seqs.zip(items) {
        if order == Order::Rising && placed.last().is_some_and(|it| it.seq.0 >= seq) {
            return refused("seqs");
        }
        placed.push(Placed { seq: Seq(seq), item });
    }
    Ok(placed)
}

/// Reads items, at most `max`.
pub(super) fn items(columns: fb::Columns<'_>, max: usize) -> Result<Vec<Item>, DecodeError> {
    let count = length(columns.ids());
    if count > max {
        return refused("items");
    }
    let (kinds, lanes, roles) = (columns.kinds(), columns.lanes(), columns.roles());
    let equal = length(kinds) == count
        && length(lanes) == count
        && length(roles) == count
        && length(columns.senders()) == count;
    if !equal {
        return refused("columns");
    }
    let ats = numbers(columns.at_first(), columns.ats(), columns.ats_wide(), count, "ats")?;
    let ids = columns.ids().into_iter().flatten();
    let senders = columns.senders().into_iter().flatten();
    let codes = bytes(kinds).iter().zip(bytes(lanes)).zip(bytes(roles));
    let mut bodies = BodyReader::open(columns)?;
    let mut items = Vec::with_capacity(count);
    for (((id, sender), at), ((kind, lane), role)) in ids.zip(senders).zip(ats).zip(codes) {
        items.push(Item {
            id: ItemId(id),
            lane: Lane::read(fb::Lane(*lane), "lane")?,
            sender: SenderRef(sender),
            role: Role::read(fb::Role(*role), "role")?,
            at: Wall(at),
            body: bodies.next(fb::ItemKind(*kind))?,
        });
    }
    bodies.close()?;
    Ok(items)
}

/// The bytes of a column; none if it is absent.
pub(super) fn bytes(column: Option<Vector<'_, u8>>) -> &[u8] {
    column.map_or(&[], |it| it.bytes())
}

/// The columns that only some kinds have, on their way in.
struct BodyReader<'a> {
    texts: &'a str,
    text_bytes: Entries<'a, u16>,
    styles: Entries<'a, fb::Style>,
    media_ms: Entries<'a, u64>,
    gift_nos: Entries<'a, u32>,
    counts: Entries<'a, u32>,
    recalled: Entries<'a, u64>,
}

impl<'a> BodyReader<'a> {
    fn open(columns: fb::Columns<'a>) -> Result<Self, DecodeError> {
        let texts = std::str::from_utf8(bytes(columns.texts())).or_else(|_| refused("texts"))?;
        Ok(Self {
            texts,
            text_bytes: Entries::of(columns.text_bytes(), "text_bytes"),
            styles: Entries::of(columns.styles(), "styles"),
            media_ms: Entries::of(columns.media_ms(), "media_ms"),
            gift_nos: Entries::of(columns.gift_nos(), "gift_nos"),
            counts: Entries::of(columns.counts(), "counts"),
            recalled: Entries::of(columns.recalled(), "recalled"),
        })
    }

    fn next(&mut self, kind: fb::ItemKind) -> Result<Body, DecodeError> {
        Ok(match kind {
            fb::ItemKind::Comment => {
                Body::Comment { text: self.text()?, style: self.style()?, media_ms: self.media()? }
            }
            fb::ItemKind::Gift => Body::Gift {
                gift_no: self.gift_nos.next()?,
                count: self.counts.next()?,
                text: self.text()?,
            },
            fb::ItemKind::Like => Body::Like { count: self.counts.next()? },
            fb::ItemKind::Entry => Body::Entry,
            fb::ItemKind::Notice => Body::Notice { text: self.text()? },
            fb::ItemKind::Tombstone => Body::Tombstone { of: ItemId(self.recalled.next()?) },
            _ => return refused("kind"),
        })
    }

    fn text(&mut self) -> Result<String, DecodeError> {
        let length = usize::from(self.text_bytes.next()?);
        if length > limits::TEXT_BYTES_MAX {
            return refused("text");
        }
        let Some((text, rest)) = self.texts.split_at_checked(length) else {
            return refused("texts");
        };
        self.texts = rest;
        Ok(text.to_owned())
    }

    fn style(&mut self) -> Result<Style, DecodeError> {
        if self.styles.is_absent() {
            return Ok(Style::default());
        }
        word::style(self.styles.next()?)
    }

    fn media(&mut self) -> Result<Option<u64>, DecodeError> {
        if self.media_ms.is_absent() {
            return Ok(None);
        }
        word::media_ms(self.media_ms.next()?.checked_sub(1))
    }

    /// Nothing may be left over.
    fn close(self) -> Result<(), DecodeError> {
        if !self.texts.is_empty() {
            return refused("texts");
        }
        self.text_bytes.close()?;
        self.styles.close()?;
        self.media_ms.close()?;
        self.gift_nos.close()?;
        self.counts.close()?;
        self.recalled.close()
    }
}

/// A column that is read entry by entry.
struct Entries<'a, T: Follow<'a> + 'a> {
    column: Option<Vector<'a, T>>,
    read: usize,
    field: &'static str,
}

impl<'a, T: Follow<'a> + 'a> Entries<'a, T> {
    fn of(column: Option<Vector<'a, T>>, field: &'static str) -> Self {
        Self { column, read: 0, field }
    }

    fn is_absent(&self) -> bool {
        self.column.is_none()
    }

    fn next(&mut self) -> Result<T::Inner, DecodeError> {
        match self.column {
            Some(column) if self.read < column.len() => {
                self.read += 1;
                Ok(column.get(self.read - 1))
            }
            Some(_) | None => refused(self.field),
        }
    }

    fn close(self) -> Result<(), DecodeError> {
        if self.read == length(self.column) { Ok(()) } else { refused(self.field) }
    }
}
