//! A recording by media time: one segment a minute, as a player asks for them when it seeks.
//!
//! An item's media time is the position in the picture that its sender said, or else the time that
//! had passed since the recording's start when it was admitted. A first look ([`Survey`]) counts;
//! then [`Minutes`] collects some minutes at a time, so that a recording may be of any length.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use proto::head::Tier;
use proto::heat::Heat;
use proto::id::{Gen, RoomId, Seq, SlotNo};
use proto::item::{Body, Item, Placed};
use proto::limits::{SEGMENT_BYTES_MAX, SEGMENT_ITEMS_MAX};
use proto::segment::{Header, Segment};
use proto::time::{Wall, millis};

/// Milliseconds of a minute.
const MINUTE_MS: u32 = 60_000;
/// Minutes of one recording: a week. Media times beyond are no picture's, and their items are left
/// out.
pub const MINUTES_MAX: u64 = 7 * 24 * 60;
/// Items collected at a time, about 300 bytes each.
const COLLECTED_MAX: usize = 100_000;

/// The minute of media time in which an item is shown, in a recording that began at `start`.
#[must_use]
pub fn minute_of(item: &Item, start: Wall) -> u64 {
    media_ms(item, start) / u64::from(MINUTE_MS)
}

fn media_ms(item: &Item, start: Wall) -> u64 {
    let said = match &item.body {
        Body::Comment { media_ms, .. } => *media_ms,
        Body::Gift { .. }
        | Body::Like { .. }
        | Body::Entry
        | Body::Notice { .. }
        | Body::Tombstone { .. }
        | Body::System { .. }
        | Body::Effect { .. }
        | Body::Custom { .. }
        | Body::Erasure { .. } => None,
    };
    said.unwrap_or_else(|| millis(item.at.since(start)))
}

/// What stands in one minute.
#[derive(Clone, Copy, Debug, Default)]
struct Count {
    kept: usize,
    comments: usize,
}

impl Count {
    fn of(&mut self, item: &Item) -> &mut usize {
        if item.lane.is_protected() { &mut self.kept } else { &mut self.comments }
    }

    /// How many of each fit into a segment, protected ones first.
    fn quota(self) -> Self {
        let kept = self.kept.min(SEGMENT_ITEMS_MAX);
        Self { kept, comments: self.comments.min(SEGMENT_ITEMS_MAX - kept) }
    }
}

/// How many items stand in which minute.
#[derive(Clone, Debug, Default)]
pub struct Survey {
    minutes: BTreeMap<u64, Count>,
    beyond: u64,
}

impl Survey {
    /// Counts an item. Those that recall others are never to be given.
    pub fn add(&mut self, item: &Item, start: Wall) {
        let minute = minute_of(item, start);
        if minute < MINUTES_MAX {
            *self.minutes.entry(minute).or_default().of(item) += 1;
        } else {
            self.beyond += 1;
        }
    }

    /// Items whose media time is no picture's.
    #[must_use]
    pub const fn beyond(&self) -> u64 {
        self.beyond
    }

    /// The minutes that have items, cut into ranges that are collected at a time.
    #[must_use]
    pub fn ranges(&self) -> Vec<RangeInclusive<u64>> {
        let mut ranges: Vec<RangeInclusive<u64>> = Vec::new();
        let mut collected = 0;
        for (&minute, count) in &self.minutes {
            let quota = count.quota();
            collected += quota.kept + quota.comments;
            match ranges.last_mut() {
                Some(last) if collected <= COLLECTED_MAX => *last = *last.start()..=minute,
                _ => {
                    collected = quota.kept + quota.comments;
                    ranges.push(minute..=minute);
                }
            }
        }
        ranges
    }

    /// Runs of minutes that have items: each as its first and how many.
    #[must_use]
    pub fn runs(&self) -> Vec<[u64; 2]> {
        let mut runs: Vec<[u64; 2]> = Vec::new();
        for &minute in self.minutes.keys() {
            match runs.last_mut() {
                Some([first, count]) if *first + *count == minute => *count += 1,
                _ => runs.push([minute, 1]),
            }
        }
        runs
    }
}

/// Which recording is made.
#[derive(Clone, Debug)]
pub struct Recorded {
    /// The room.
    pub room: RoomId,
    /// When media time 0 was.
    pub start: Wall,
    /// When this is made.
    pub now: Wall,
}

/// Some minutes, while they are collected.
#[derive(Debug)]
pub struct Minutes<'a> {
    survey: &'a Survey,
    start: Wall,
    range: RangeInclusive<u64>,
    seen: BTreeMap<u64, Count>,
    items: BTreeMap<u64, Vec<Item>>,
    left_out: u64,
}

impl<'a> Minutes<'a> {
    /// None yet; `range` is one of [`Survey::ranges`].
    #[must_use]
    pub fn new(survey: &'a Survey, start: Wall, range: RangeInclusive<u64>) -> Self {
        let (seen, items) = (BTreeMap::new(), BTreeMap::new());
        Self { survey, start, range, seen, items, left_out: 0 }
    }

    /// Takes an item, if it is of these minutes. Of more comments than fit, some are kept from all
    /// over the minute.
    pub fn add(&mut self, item: Item) {
        let minute = minute_of(&item, self.start);
        let Some(count) = self.survey.minutes.get(&minute) else {
            return;
        };
        if !self.range.contains(&minute) {
            return;
        }
        let (mut count, mut quota) = (*count, count.quota());
        let (all, fitting) = (*count.of(&item), *quota.of(&item));
        let seen = self.seen.entry(minute).or_default().of(&item);
        let before = share(*seen, fitting, all);
        *seen += 1;
        if share(*seen, fitting, all) > before {
            self.items.entry(minute).or_default().push(item);
        } else {
            self.left_out += 1;
        }
    }

    /// A segment a minute, as its number and what it holds; and how many items found no place. In
    /// one, `slot` is the minute, `interval_ms` a minute, `epoch_ms` the recording's start, and items
    /// are in the order of their media time, with seqs from 1 on.
    #[must_use]
    pub fn finish(self, recorded: &Recorded) -> (Vec<(u64, Segment)>, u64) {
        let mut left_out = self.left_out;
        let mut segments = Vec::new();
        for (minute, mut items) in self.items {
            items.sort_by_key(|it| media_ms(it, recorded.start));
            let mut segment = segment(recorded, minute, items);
            while segment.encode().len() > SEGMENT_BYTES_MAX {
                let before = segment.items.len();
                thin(&mut segment.items);
                left_out += u64::try_from(before - segment.items.len()).unwrap_or(u64::MAX);
            }
            segments.push((minute, segment));
        }
        (segments, left_out)
    }
}

/// How many of the first `seen` of `all` are kept, if `fitting` of them are.
fn share(seen: usize, fitting: usize, all: usize) -> usize {
    (seen * fitting).checked_div(all).map_or(fitting, |it| it.min(fitting))
}

/// Every second comment goes, or every second item where there is no comment.
fn thin(items: &mut Vec<Placed>) {
    let has_comments = items.iter().any(|it| !it.item.lane.is_protected());
    let mut number = 0_u64;
    items.retain(|it| {
        if has_comments && it.item.lane.is_protected() {
            return true;
        }
        number += 1;
        number.is_multiple_of(2)
    });
}

fn segment(recorded: &Recorded, minute: u64, items: Vec<Item>) -> Segment {
    let header = Header {
        room: recorded.room.clone(),
        gen_no: Gen(0),
        slot: SlotNo(minute),
        tier: Tier::Full,
        epoch_ms: recorded.start,
        interval_ms: MINUTE_MS,
        now_ms: recorded.now,
        spread_ms: 0,
        next_tier: None,
        online: 0,
        heat: Heat::Cold,
        bases: Vec::new(),
        next: None,
        end: None,
    };
    let items = (1..).map(Seq).zip(items).map(|(seq, item)| Placed { seq, item }).collect();
    Segment { header, items, repeats: Vec::new() }
}

#[cfg(test)]
mod tests {
    use proto::id::{ItemId, SenderRef};
    use proto::item::{Lane, Role, Style};

    use super::*;

    const START: Wall = Wall(1_000_000);

    fn comment(id: u64, media_ms: Option<u64>) -> Item {
        let text = "text".into();
        let body = Body::Comment { text, style: Style::default(), media_ms, count: 1 };
        item(id, Lane::Comment, body)
    }

    fn gift(id: u64) -> Item {
        item(id, Lane::HighGift, Body::Gift { gift_no: 1, count: 1, text: String::new() })
    }

    /// Admitted so many seconds after the start as its id says.
    fn item(id: u64, lane: Lane, body: Body) -> Item {
        let (sender, role, at) = (SenderRef(1), Role::Viewer, Wall(START.0 + id * 1000));
        Item { id: ItemId(id), lane, sender, role, at, body }
    }

    fn make(items: &[Item]) -> (Survey, Vec<(u64, Segment)>, u64) {
        let mut survey = Survey::default();
        for item in items {
            survey.add(item, START);
        }
        let recorded = Recorded { room: RoomId::parse("r").unwrap(), start: START, now: Wall(7) };
        let (mut segments, mut left_out) = (Vec::new(), 0);
        for range in survey.ranges() {
            let mut minutes = Minutes::new(&survey, START, range);
            for item in items {
                minutes.add(item.clone());
            }
            let (made, left) = minutes.finish(&recorded);
            segments.extend(made);
            left_out += left;
        }
        (survey, segments, left_out)
    }

    #[test]
    fn a_minute_holds_what_is_shown_within_it_in_the_order_of_media_time() {
        let items = [
            comment(1, Some(59_999)),
            comment(2, Some(60_000)),
            comment(3, Some(10)),
            gift(59),
            gift(60),
            comment(200, None),
        ];

        let (survey, segments, left_out) = make(&items);

        let ids = |it: &Segment| it.items.iter().map(|it| it.item.id.0).collect::<Vec<_>>();
        let made: Vec<_> = segments.iter().map(|(minute, it)| (*minute, ids(it))).collect();
        assert_eq!(made, [(0, vec![3, 59, 1]), (1, vec![2, 60]), (3, vec![200])]);
        assert_eq!((survey.runs(), left_out), (vec![[0, 2], [3, 1]], 0));
        let header = &segments[1].1.header;
        assert_eq!((header.slot, header.interval_ms, header.epoch_ms), (SlotNo(1), 60_000, START));
        for (_, segment) in &segments {
            assert_eq!(Segment::decode(&segment.encode()).as_ref(), Ok(segment));
        }
    }

    #[test]
    fn a_media_time_that_is_no_pictures_makes_no_file() {
        let (survey, segments, _) = make(&[comment(1, Some(proto::limits::MEDIA_MS_MAX))]);

        assert_eq!((survey.beyond(), segments.len(), survey.runs()), (1, 0, vec![]));
    }

    #[test]
    fn of_a_minute_with_too_much_gifts_stay_and_comments_from_all_over_it() {
        let mut items: Vec<_> = (1..=9000).map(|it| comment(it, Some(it))).collect();
        items.extend((0..100).map(|it| comment(it, Some(70_000))));
        items.push(gift(30));

        let (_, segments, left_out) = make(&items);

        let full = &segments[0].1.items;
        assert_eq!((full.len(), left_out), (SEGMENT_ITEMS_MAX, 9001 - 4000));
        assert!(full.iter().any(|it| it.item.lane == Lane::HighGift));
        let early = full.iter().filter(|it| it.item.id.0 <= 4500).count();
        assert!((1990..=2010).contains(&early), "{early} of the first half");
        assert_eq!(segments[1].1.items.len(), 100);
    }

    #[test]
    fn a_minute_with_too_many_bytes_is_thinned_until_it_is_a_segment() {
        let long = |id| {
            let text = "好".repeat(600).into();
            let body = Body::Comment { text, style: Style::default(), media_ms: Some(0), count: 1 };
            item(id, Lane::Comment, body)
        };
        let items: Vec<_> = (0..4000).map(long).collect();

        let (_, segments, left_out) = make(&items);

        let kept = segments[0].1.items.len();
        assert!((1000..4000).contains(&kept), "{kept}");
        assert_eq!(left_out, 4000 - kept as u64);
        assert!(Segment::decode(&segments[0].1.encode()).is_ok());
    }

    #[test]
    fn a_long_recording_is_collected_in_several_ranges() {
        let mut survey = Survey::default();
        for minute in 0..60 {
            for _ in 0..4000 {
                survey.add(&comment(1, Some(minute * 60_000)), START);
            }
        }

        assert_eq!(survey.ranges(), [0..=24, 25..=49, 50..=59]);
    }
}
