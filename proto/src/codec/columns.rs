//! Items as columns: the one table that frames, flushes, accepted items and segments share.

use flatbuffers::{Follow, Push, Vector, WIPOffset};

use super::varint::{self, Differences, Varints};
use super::word::{self, Code};
use super::{Builder, refused};
use crate::decode::DecodeError;
use crate::generated as fb;
use crate::id::{ItemId, KindName, SenderRef, Seq};
use crate::item::{Body, Item, Lane, Placed, Role};
use crate::limits;
use crate::time::Wall;

/// What ends a text: a byte that UTF-8 never holds.
const TEXT_END: u8 = 0xff;

/// Writes items without places.
pub(super) fn write_items<'i>(
    b: &mut Builder,
    items: impl ExactSizeIterator<Item = &'i Item>,
) -> WIPOffset<fb::Columns<'static>> {
    let mut columns = Writer::of(items.len());
    items.for_each(|it| columns.add(it));
    columns.write(b)
}

/// Writes items with their places.
pub(super) fn write_placed<'i>(
    b: &mut Builder,
    placed: impl ExactSizeIterator<Item = &'i Placed>,
) -> WIPOffset<fb::Columns<'static>> {
    let mut columns = Writer::of(placed.len());
    let mut seq = Differences::default();
    for it in placed {
        varint::push(&mut columns.seqs, seq.write(it.seq.0));
        columns.add(&it.item);
    }
    columns.write(b)
}

/// The part of an id that its time gives.
const fn id_base(at: Wall) -> u64 {
    ItemId::compose(at.0, 0, 0).0
}

fn kind(body: &Body) -> fb::ItemKind {
    match body {
        Body::Comment { .. } => fb::ItemKind::Comment,
        Body::Gift { .. } => fb::ItemKind::Gift,
        Body::Like { .. } => fb::ItemKind::Like,
        Body::Entry => fb::ItemKind::Entry,
        Body::Notice { .. } => fb::ItemKind::Notice,
        Body::Tombstone { .. } => fb::ItemKind::Tombstone,
        Body::System { .. } => fb::ItemKind::System,
        Body::Effect { .. } => fb::ItemKind::Effect,
        Body::Custom { .. } => fb::ItemKind::Custom,
        Body::Erasure { .. } => fb::ItemKind::Erasure,
    }
}

/// The columns on their way out.
#[derive(Default)]
struct Writer {
    senders: Vec<u64>,
    ids: Vec<u8>,
    seqs: Vec<u8>,
    ats: Vec<u8>,
    kinds: Vec<u8>,
    lanes: Vec<u8>,
    roles: Vec<u8>,
    texts: Vec<u8>,
    styles: Vec<u32>,
    media_ms: Vec<u8>,
    gift_nos: Vec<u8>,
    counts: Vec<u8>,
    recalled: Vec<u64>,
    merged: Vec<u8>,
    at: Differences,
    media: Differences,
}

impl Writer {
    /// For about this many items.
    fn of(items: usize) -> Self {
        Self {
            senders: Vec::with_capacity(items),
            ids: Vec::with_capacity(items * 2),
            seqs: Vec::with_capacity(items),
            ats: Vec::with_capacity(items * 2),
            kinds: Vec::with_capacity(items),
            lanes: Vec::with_capacity(items),
            roles: Vec::with_capacity(items),
            texts: Vec::with_capacity(items * 32),
            ..Self::default()
        }
    }

    fn add(&mut self, item: &Item) {
        self.senders.push(item.sender.0);
        varint::push(&mut self.ids, item.id.0.wrapping_sub(id_base(item.at)));
        varint::push(&mut self.ats, self.at.write(item.at.0));
        self.kinds.push(kind(&item.body).0);
        self.lanes.push(item.lane.wire().0);
        self.roles.push(item.role.wire().0);
        if let Body::Custom { name, .. } = &item.body {
            self.text(name.as_str());
        }
        if let Some(text) = item.body.text() {
            self.text(text);
        }
        match &item.body {
            Body::Comment { style, media_ms, count, .. } => {
                self.styles.push(word::pack_style(*style));
                // A position so large that 1 more does not fit is refused on the other side.
                let code = media_ms.map_or(0, |ms| self.media.write(ms).saturating_add(1));
                varint::push(&mut self.media_ms, code);
                varint::push(&mut self.merged, u64::from(count.saturating_sub(1)));
            }
            Body::Gift { gift_no, count, .. } => {
                varint::push(&mut self.gift_nos, u64::from(*gift_no));
                varint::push(&mut self.counts, u64::from(*count));
            }
            Body::Like { count } => varint::push(&mut self.counts, u64::from(*count)),
            Body::Effect { effect_no, .. } => {
                varint::push(&mut self.gift_nos, u64::from(*effect_no));
            }
            Body::Entry | Body::Notice { .. } | Body::System { .. } | Body::Custom { .. } => {}
            Body::Tombstone { of } | Body::Erasure { of } => self.recalled.push(of.0),
        }
    }

    fn text(&mut self, text: &str) {
        self.texts.extend_from_slice(text.as_bytes());
        self.texts.push(TEXT_END);
    }

    fn write(&self, b: &mut Builder) -> WIPOffset<fb::Columns<'static>> {
        let args = fb::ColumnsArgs {
            senders: column(b, &self.senders),
            ids: column(b, &self.ids),
            seqs: column(b, &self.seqs),
            ats: column(b, &self.ats),
            kinds: unusual(b, &self.kinds, fb::ItemKind::Comment.0),
            lanes: unusual(b, &self.lanes, fb::Lane::Comment.0),
            roles: unusual(b, &self.roles, fb::Role::Viewer.0),
            texts: column(b, &self.texts),
            styles: unusual(b, &self.styles, 0),
            media_ms: unusual(b, &self.media_ms, 0),
            gift_nos: column(b, &self.gift_nos),
            counts: column(b, &self.counts),
            recalled: column(b, &self.recalled),
            merged: unusual(b, &self.merged, 0),
        };
        fb::Columns::create(b, &args)
    }
}

type Written<T> = Option<WIPOffset<Vector<'static, T>>>;

/// A column; absent if it has no entries.
fn column<T: Push + Copy>(b: &mut Builder, entries: &[T]) -> Written<T::Output> {
    (!entries.is_empty()).then(|| b.create_vector(entries))
}

/// A column that is absent if all its entries are `usual`.
fn unusual<T: Push + Copy + PartialEq>(
    b: &mut Builder,
    entries: &[T],
    usual: T,
) -> Written<T::Output> {
    entries.iter().any(|it| *it != usual).then(|| b.create_vector(entries))
}

/// Whether seqs must rise.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Order {
    /// Each is greater than the one before: items of one gen.
    Rising,
    /// Any: repeats, whose gens differ.
    Any,
}

/// Reads items with their places, at most `max`; `keep` makes of each what is kept.
pub(super) fn placed<T>(
    columns: fb::Columns<'_>,
    max: usize,
    order: Order,
    mut keep: impl FnMut(Placed) -> Result<T, DecodeError>,
) -> Result<Vec<T>, DecodeError> {
    let mut seqs = Varints::of(columns.seqs(), "seqs");
    let (mut seq, mut before) = (Differences::default(), None);
    let placed = items(columns, max, |item| {
        let seq = seq.read(seqs.next()?);
        if order == Order::Rising && before.replace(seq).is_some_and(|before| before >= seq) {
            return refused("seqs");
        }
        keep(Placed { seq: Seq(seq), item })
    })?;
    seqs.close()?;
    Ok(placed)
}

/// Reads items, at most `max`; `keep` makes of each what is kept.
///
/// Nothing else is held meanwhile: an item has 8 bytes of sender, and they bound what it costs.
pub(super) fn items<T>(
    columns: fb::Columns<'_>,
    max: usize,
    mut keep: impl FnMut(Item) -> Result<T, DecodeError>,
) -> Result<Vec<T>, DecodeError> {
    let count = length(columns.senders());
    if count > max {
        return refused("items");
    }
    let codes = |column, usual| Codes::of(column, usual, count);
    let kinds = codes(columns.kinds(), fb::ItemKind::Comment.0)?;
    let lanes = codes(columns.lanes(), fb::Lane::Comment.0)?;
    let roles = codes(columns.roles(), fb::Role::Viewer.0)?;
    let mut ids = Varints::of(columns.ids(), "ids");
    let mut ats = Varints::of(columns.ats(), "ats");
    let mut at = Differences::default();
    let mut bodies = BodyReader::open(columns);
    let mut kept = Vec::with_capacity(count);
    for (index, sender) in columns.senders().into_iter().flatten().enumerate() {
        let at = Wall(at.read(ats.next()?));
        kept.push(keep(Item {
            id: ItemId(ids.next()?.wrapping_add(id_base(at))),
            lane: Lane::read(fb::Lane(lanes.at(index)), "lane")?,
            sender: SenderRef(sender),
            role: Role::read(fb::Role(roles.at(index)), "role")?,
            at,
            body: bodies.next(fb::ItemKind(kinds.at(index)))?,
        })?);
    }
    ids.close()?;
    ats.close()?;
    bodies.close()?;
    Ok(kept)
}

fn length<'a, T: Follow<'a> + 'a>(column: Option<Vector<'a, T>>) -> usize {
    column.map_or(0, |it| it.len())
}

/// The bytes of a column; none if it is absent.
pub(super) fn bytes(column: Option<Vector<'_, u8>>) -> &[u8] {
    column.map_or(&[], |it| it.bytes())
}

/// A column of codes, one an item; absent if all are the usual one.
struct Codes<'a> {
    column: &'a [u8],
    usual: u8,
}

impl<'a> Codes<'a> {
    fn of(column: Option<Vector<'a, u8>>, usual: u8, items: usize) -> Result<Self, DecodeError> {
        let is_whole = column.is_none_or(|it| it.len() == items);
        if is_whole { Ok(Self { column: bytes(column), usual }) } else { refused("columns") }
    }

    fn at(&self, index: usize) -> u8 {
        self.column.get(index).copied().unwrap_or(self.usual)
    }
}

/// The columns that only some kinds have, on their way in.
struct BodyReader<'a> {
    texts: &'a [u8],
    styles: Entries<'a, u32>,
    media_ms: Option<Varints<'a>>,
    media: Differences,
    gift_nos: Varints<'a>,
    counts: Varints<'a>,
    recalled: Entries<'a, u64>,
    merged: Option<Varints<'a>>,
}

impl<'a> BodyReader<'a> {
    fn open(columns: fb::Columns<'a>) -> Self {
        Self {
            texts: bytes(columns.texts()),
            styles: Entries::of(columns.styles(), "styles"),
            media_ms: columns.media_ms().map(|it| Varints::of(Some(it), "media_ms")),
            media: Differences::default(),
            gift_nos: Varints::of(columns.gift_nos(), "gift_nos"),
            counts: Varints::of(columns.counts(), "counts"),
            recalled: Entries::of(columns.recalled(), "recalled"),
            merged: columns.merged().map(|it| Varints::of(Some(it), "merged")),
        }
    }

    fn next(&mut self, kind: fb::ItemKind) -> Result<Body, DecodeError> {
        Ok(match kind {
            fb::ItemKind::Comment => Body::Comment {
                text: self.text()?.into(),
                style: self.styles.next_or(0).and_then(word::unpack_style)?,
                media_ms: self.media()?,
                count: self.count()?,
            },
            fb::ItemKind::Gift => Body::Gift {
                gift_no: self.gift_nos.next_u32()?,
                count: self.counts.next_u32()?,
                text: self.text()?.to_owned(),
            },
            fb::ItemKind::Like => Body::Like { count: self.counts.next_u32()? },
            fb::ItemKind::Entry => Body::Entry,
            fb::ItemKind::Notice => Body::Notice { text: self.text()?.to_owned() },
            fb::ItemKind::Tombstone => Body::Tombstone { of: ItemId(self.recalled.next()?) },
            fb::ItemKind::System => Body::System { text: self.text()?.to_owned() },
            fb::ItemKind::Effect => {
                Body::Effect { effect_no: self.gift_nos.next_u32()?, text: self.text()?.to_owned() }
            }
            fb::ItemKind::Custom => {
                let name = KindName::parse(self.text()?).or_else(|_| refused("texts"))?;
                Body::Custom { name, text: self.text()?.to_owned() }
            }
            fb::ItemKind::Erasure => Body::Erasure { of: ItemId(self.recalled.next()?) },
            _ => return refused("kind"),
        })
    }

    fn text(&mut self) -> Result<&'a str, DecodeError> {
        let Some(length) = memchr::memchr(TEXT_END, self.texts) else {
            return refused("texts");
        };
        let (text, rest) = self.texts.split_at(length);
        self.texts = &rest[1..];
        if length > limits::TEXT_BYTES_MAX {
            return refused("text");
        }
        std::str::from_utf8(text).or_else(|_| refused("texts"))
    }

    fn media(&mut self) -> Result<Option<u64>, DecodeError> {
        let Some(column) = &mut self.media_ms else { return Ok(None) };
        let difference = column.next()?.checked_sub(1);
        word::media_ms(difference.map(|it| self.media.read(it)))
    }

    /// How many said it: one more than were merged.
    fn count(&mut self) -> Result<u32, DecodeError> {
        let Some(column) = &mut self.merged else { return Ok(1) };
        column.next_u32()?.checked_add(1).map_or_else(|| refused("merged"), Ok)
    }

    /// Nothing may be left over.
    fn close(self) -> Result<(), DecodeError> {
        if !self.texts.is_empty() {
            return refused("texts");
        }
        self.styles.close()?;
        self.media_ms.map_or(Ok(()), Varints::close)?;
        self.gift_nos.close()?;
        self.counts.close()?;
        self.merged.map_or(Ok(()), Varints::close)?;
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

    fn next(&mut self) -> Result<T::Inner, DecodeError> {
        match self.column {
            Some(column) if self.read < column.len() => {
                self.read += 1;
                Ok(column.get(self.read - 1))
            }
            Some(_) | None => refused(self.field),
        }
    }

    /// The next entry, or `usual` if the column is absent.
    fn next_or(&mut self, usual: T::Inner) -> Result<T::Inner, DecodeError> {
        if self.column.is_none() { Ok(usual) } else { self.next() }
    }

    fn close(self) -> Result<(), DecodeError> {
        if self.read == length(self.column) { Ok(()) } else { refused(self.field) }
    }
}
