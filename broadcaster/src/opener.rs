//! What must be read and created before a room can go on: `sealed`, heads, segments, gens.
//!
//! Everything here may take long, so it runs beside the driver's loop. The bus is asked until it
//! answers. Stores that refuse hold a room up for a moment only: it goes on without what they would
//! have told, and under a number that they need not confirm.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use auth_core::room_key::Unopened;
use broadcaster_core::pack::expand;
use broadcaster_core::room::{Resume, Told};
use broadcaster_core::{Found, head};
use bus::{At, Bus, Offset, PartitionNo, Publish, PublishError, ReadError, topic};
use bytes::Bytes;
use futures_util::future::join_all;
use futures_util::{StreamExt, stream};
use kit::clock::Clock;
use proto::envelope::RoomBatch;
use proto::head::{GenInfo, Head, Tier};
use proto::heat::Heat;
use proto::id::{Gen, RoomId, SlotNo, Term};
use proto::item::Repeat;
use proto::segment::Segment;
use proto::verdict::Fate;

use crate::counts::Counts;
use crate::press::{gen_bytes, info_of};
use crate::room_keys::RoomKeys;
use crate::store::{Created, Ext, File, SegmentStore, StoreError};

/// A gen that no store took within this time is numbered by the clock. Longer than it takes for
/// another second to begin, so that two processes after each other never take the same number.
const UNCONFIRMED: Duration = Duration::from_millis(1_500);
/// Pause before the next attempt.
const PAUSE: Duration = Duration::from_millis(200);
/// Records of `sealed` read at once.
const RECORDS_MAX: usize = 500;
/// Longest time for one call to the bus.
const BUS_MAX: Duration = Duration::from_secs(1);
/// Segments read at once.
const READS_MAX: usize = 16;
/// Ids of this time are taken from the segments of a gen whose `sealed` was lost.
const RECALL_IDS: Duration = Duration::from_secs(600);
/// Slots that may have been written after the newest head.
const AHEAD_MAX: u64 = 8;

/// Reads and creates.
#[derive(Clone, Debug)]
pub(crate) struct Opener {
    pub(crate) bus: Arc<dyn Bus>,
    pub(crate) stores: Vec<Arc<dyn SegmentStore>>,
    pub(crate) clock: Clock,
    pub(crate) counts: Counts,
    pub(crate) keys: Arc<RoomKeys>,
    pub(crate) call_max: Duration,
    /// Stores that do not answer for so long are gone on without.
    pub(crate) wait_max: Duration,
    pub(crate) takeover: Duration,
}

/// How a room goes on.
#[derive(Debug)]
pub(crate) struct Start {
    /// Where `sealed` says it was.
    pub(crate) resume: Option<Resume>,
    /// The newest gen, when `sealed` says nothing.
    pub(crate) newest_gen: Gen,
    /// Items of that gen's segments.
    pub(crate) known: Vec<Told>,
    /// What the newest of them shows and repeats, of protected lanes.
    pub(crate) repeats: Vec<Repeat>,
    /// The newest head.
    pub(crate) head: Option<Head>,
    /// How the room was delivered.
    pub(crate) heat: Heat,
}

/// Another broadcaster has a newer term.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Fenced;

impl Opener {
    /// Shuts out earlier owners of a partition, then reads what they said last.
    pub(crate) async fn takeover(
        &self,
        partition: PartitionNo,
        term: Term,
    ) -> Result<BTreeMap<RoomId, Found>, Fenced> {
        let end = self.fence(partition, term).await?;
        loop {
            match self.read_sealed(partition, end).await {
                Ok(found) => return Ok(found),
                Err(error) => tracing::warn!(%error, "sealed could not be read"),
            }
            self.clock.sleep(PAUSE).await;
        }
    }

    /// Publishes an empty record with the new term; nothing of an older term comes after it.
    async fn fence(&self, partition: PartitionNo, term: Term) -> Result<Offset, Fenced> {
        let record = Publish {
            topic: topic::sealed(),
            partition,
            term: Some(term),
            key: None,
            value: RoomBatch { entries: Vec::new() }.encode(),
        };
        loop {
            let publish = self.bus.publish(vec![record.clone()]);
            let results = tokio::time::timeout(BUS_MAX, publish).await.unwrap_or_default();
            match results.first() {
                Some(Ok(offset)) => return Ok(*offset),
                Some(Err(PublishError::Fenced { .. })) => return Err(Fenced),
                Some(Err(error)) => tracing::warn!(%error, "a partition could not be fenced"),
                None => tracing::warn!("the bus did not answer in time"),
            }
            self.clock.sleep(PAUSE).await;
        }
    }

    async fn read_sealed(
        &self,
        partition: PartitionNo,
        end: Offset,
    ) -> Result<BTreeMap<RoomId, Found>, ReadError> {
        let since = self.clock.wall() - self.takeover;
        let mut next = self.bus.locate(topic::sealed(), partition, At::Time(since)).await?;
        let mut found: BTreeMap<RoomId, Found> = BTreeMap::new();
        while next < end {
            let read = self.bus.read(topic::sealed(), partition, next, RECORDS_MAX, BUS_MAX);
            let records = match read.await {
                Ok(records) => records,
                Err(ReadError::Gone { oldest }) => {
                    next = oldest.max(Offset(next.0 + 1));
                    continue;
                }
                Err(error) => return Err(error),
            };
            let Some(last) = records.last() else {
                break;
            };
            next = Offset(last.offset.0 + 1);
            for record in &records {
                let Ok(batch) = RoomBatch::decode(&record.value) else {
                    self.counts.skipped("sealed");
                    continue;
                };
                for entry in batch.entries {
                    found.entry(entry.room).or_default().observe(entry.event);
                }
            }
        }
        Ok(found)
    }

    /// Finds out how a room goes on.
    pub(crate) async fn open(&self, room: &RoomId, found: Option<Found>) -> Start {
        let heads = self.read(File::Head(room.clone())).await;
        let head = newest(heads.iter().flatten());
        let heat = match (&found, &head) {
            (Some(found), _) => found.heat(),
            (None, Some(head)) => head.heat,
            (None, None) => Heat::Cold,
        };
        let of_head = match (&heads, &head) {
            (None, _) => self.gen_of_second(),
            (Some(_), head) => head.as_ref().map_or(Gen(0), newest_gen),
        };
        let newest_gen = found.as_ref().and_then(Found::gen_no).unwrap_or_default().max(of_head);
        let start =
            Start { resume: None, newest_gen, known: Vec::new(), repeats: Vec::new(), head, heat };
        if let Some(found) = found
            && let Some(info) = self.info_of(room, &found, start.head.as_ref()).await
        {
            return Start { resume: Some(found.resume(info)), ..start };
        }
        let Some(mut head) = start.head else {
            return start;
        };
        // The order of what was flushed but never sealed is lost: the gen ends here.
        self.look_ahead(room, &mut head).await;
        let (known, repeats) = self.known(room, &head).await;
        Start { known, repeats, head: Some(head), ..start }
    }

    /// Creates a gen with the first free number from that of `info` on; when no store takes it, it
    /// has the number of the second, which no count of gens reaches, and the press writes its file
    /// once a store works.
    pub(crate) async fn create_gen(&self, room: &RoomId, mut info: GenInfo) -> GenInfo {
        let started = self.clock.mono();
        loop {
            match self.create_everywhere(room, info).await {
                Ok(Created::New) => return info,
                Ok(Created::Existed) => info.gen_no.0 += 1,
                Err(error) if self.clock.mono().since(started) >= UNCONFIRMED => {
                    info.gen_no = info.gen_no.max(self.gen_of_second());
                    tracing::info!(%room, gen_no = %info.gen_no, %error, "a gen is in no store");
                    return info;
                }
                Err(_) => self.clock.sleep(PAUSE).await,
            }
        }
    }

    /// New if at least one store made the file and none had it.
    async fn create_everywhere(&self, room: &RoomId, info: GenInfo) -> Result<Created, StoreError> {
        let bytes = gen_bytes(&info);
        let file = File::Gen(room.clone(), info.gen_no);
        let creates = self.stores.iter().enumerate().map(|(number, store)| {
            let create = store.create(vec![(file.clone(), bytes.clone())]);
            async move {
                let created: Result<Vec<Created>, _> =
                    self.in_time(number, "create", create).await?.into_iter().collect();
                created.inspect_err(|_| self.counts.store_error(number, "create"))
            }
        });
        let created: Vec<Result<Vec<Created>, StoreError>> = join_all(creates).await;
        if created.iter().flatten().flatten().any(|it| *it == Created::Existed) {
            return Ok(Created::Existed);
        }
        match created.into_iter().collect::<Vec<_>>() {
            all if all.is_empty() || all.iter().any(Result::is_ok) => Ok(Created::New),
            all => all.into_iter().find_map(Result::err).map_or(Ok(Created::New), Err),
        }
    }

    /// A number that no count of gens reaches, and no other second has.
    fn gen_of_second(&self) -> Gen {
        Gen(u32::try_from(self.clock.wall().unix_s()).unwrap_or(u32::MAX))
    }

    async fn info_of(&self, room: &RoomId, found: &Found, head: Option<&Head>) -> Option<GenInfo> {
        let gen_no = found.gen_no()?;
        if head.is_some_and(|it| it.gen_no > gen_no) {
            return None;
        }
        if let Some(info) = found.info() {
            return Some(info);
        }
        if let Some(head) = head.filter(|it| it.gen_no == gen_no) {
            return Some(info_of(head));
        }
        let files = self.read(File::Gen(room.clone(), gen_no)).await;
        files.iter().flatten().find_map(|it| serde_json::from_slice(it).ok())
    }

    /// Moves `head` to the newest slot that was written, which may be newer than the head.
    async fn look_ahead(&self, room: &RoomId, head: &mut Head) {
        for _ in 0..AHEAD_MAX {
            let slot = SlotNo(head.slot.0 + 1);
            if self.read(segment(room, head.gen_no, slot)).await.is_none_or(|it| it.is_empty()) {
                return;
            }
            head.slot = slot;
            if let Some(place) = &mut head.hls {
                place.number += 1;
            }
        }
    }

    /// Items in the newest segments of a gen, and what the last one shows and repeats, of protected
    /// lanes.
    pub(crate) async fn known(&self, room: &RoomId, head: &Head) -> (Vec<Told>, Vec<Repeat>) {
        let interval_ms = u128::from(head.interval_ms.max(1));
        let slots = u64::try_from(RECALL_IDS.as_millis() / interval_ms).unwrap_or(u64::MAX);
        let oldest = head.oldest.0.max((head.slot.0 + 1).saturating_sub(slots));
        if head.sealed {
            self.keys.wait(room, head.gen_no, self.wait_max).await;
        }
        let reads = stream::iter((oldest..=head.slot.0).map(SlotNo)).map(|slot| async move {
            let file = segment(room, head.gen_no, slot);
            let files = self.read(file.clone()).await?;
            let opened = files.iter().map(|it| self.keys.open(&file, it));
            Some(opened.filter_map(|it| self.readable(it)).collect::<Vec<_>>())
        });
        let mut reads = pin!(reads.buffered(READS_MAX));
        let (mut known, mut repeats) = (Vec::new(), Vec::new());
        while let Some(Some(files)) = reads.next().await {
            let bytes = files.iter().find_map(|it| expand(it).ok());
            let segment = bytes.and_then(|it| Segment::decode(&it).ok());
            if let Some(segment) = segment {
                known.extend(told(&segment));
                repeats = carried(segment);
            }
        }
        (known, repeats)
    }

    /// A file that does not open is as good as none, and counted.
    fn readable(&self, opened: Result<Bytes, Unopened>) -> Option<Bytes> {
        opened.inspect_err(|_| self.counts.unopened()).ok()
    }

    /// What the stores have under this name; `None` if none of them answered for a while.
    async fn read(&self, file: File) -> Option<Vec<Bytes>> {
        let started = self.clock.mono();
        loop {
            let reads = self.stores.iter().enumerate().map(|(number, store)| {
                let get = store.get(file.clone());
                async move { self.in_time(number, "get", get).await? }
            });
            let answers: Vec<Result<Option<Bytes>, StoreError>> = join_all(reads).await;
            if self.stores.is_empty() || answers.iter().any(Result::is_ok) {
                return Some(answers.into_iter().flatten().flatten().collect());
            }
            if self.clock.mono().since(started) >= self.wait_max {
                tracing::warn!(%file, "no store answers: a room goes on without what it holds");
                return None;
            }
            self.clock.sleep(PAUSE).await;
        }
    }

    async fn in_time<R>(
        &self,
        number: usize,
        call: &str,
        future: impl Future<Output = R>,
    ) -> Result<R, StoreError> {
        tokio::time::timeout(self.call_max, future).await.map_err(|_| {
            self.counts.store_error(number, call);
            StoreError::Away("it did not answer in time".to_owned())
        })
    }
}

/// The newest head; of several, the one that reaches back farthest: a store with a gap has one that
/// names less than is there.
fn newest<'a>(heads: impl Iterator<Item = &'a Bytes>) -> Option<Head> {
    let heads = heads.filter_map(|it| serde_json::from_slice::<Head>(it).ok());
    heads.max_by_key(|it| (it.gen_no, it.slot, Reverse(head::first(it))))
}

fn newest_gen(head: &Head) -> Gen {
    head.next.map_or(head.gen_no, |it| it.gen_no.max(head.gen_no))
}

fn segment(room: &RoomId, gen_no: Gen, slot: SlotNo) -> File {
    File::Segment { room: room.clone(), gen_no, tier: Tier::Full, slot, ext: Ext::Bin }
}

fn carried(segment: Segment) -> Vec<Repeat> {
    let Segment { header, items, repeats } = segment;
    let items = items.into_iter().filter(|it| it.item.lane.is_protected());
    let items = items.map(|placed| Repeat { gen_no: header.gen_no, placed });
    repeats.into_iter().chain(items).collect()
}

fn told(segment: &Segment) -> impl Iterator<Item = Told> {
    let header = &segment.header;
    segment.items.iter().map(|it| Told {
        id: it.item.id,
        lane: it.item.lane,
        fate: Fate::Sealed { gen_no: header.gen_no, seq: it.seq, slot: header.slot },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_heads_of_the_same_slot_the_one_that_names_most_goes_on() {
        let head = |slot: u64, oldest: u64, past: serde_json::Value| {
            let head = serde_json::json!({
                "v": 1, "gen": 2, "epoch_ms": 0, "interval_ms": 1000, "slot": slot,
                "oldest": oldest, "now_ms": 0, "spread_ms": 0, "tiers": ["full"], "heat": "hot",
                "online": 0, "sealed": false, "recalled": [], "catalogue": 0, "past": past,
            });
            Bytes::from(head.to_string())
        };
        let past = serde_json::json!([{
            "gen": 1, "epoch_ms": 0, "interval_ms": 1000, "layout": 1, "oldest": 3, "end": 9,
        }]);
        let heads = [
            head(8, 0, serde_json::json!([])),
            head(9, 5, past),
            head(9, 4, serde_json::json!([])),
            head(9, 8, serde_json::json!([])),
        ];

        let found = newest(heads.iter()).unwrap();

        assert_eq!((found.slot, found.oldest), (SlotNo(9), SlotNo(5)));
        assert_eq!(head::first(&found), (Gen(1), SlotNo(3)));
        assert_eq!(newest(heads[2..].iter()).map(|it| it.oldest), Some(SlotNo(4)));
    }
}
