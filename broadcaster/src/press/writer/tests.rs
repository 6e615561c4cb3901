//! Writers over stores that refuse.

use std::collections::BTreeMap;

use broadcaster_core::{Packed, Packing};
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, pending, ready};
use kit::health::Health;
use kit::meter::Meter;
use parking_lot::Mutex;
use proto::head::{Base, Tier};
use proto::heat::Heat;
use proto::id::{Gen, ItemId, SenderRef, Seq, SlotNo};
use proto::item::{Item, Lane, Placed, Role};
use proto::segment::Header;
use proto::time::Wall;
use tokio::sync::watch;

use super::*;
use crate::store::{Created, Ext, Replaced};

const PATIENCE: Duration = Duration::from_secs(30);

#[tokio::test]
async fn a_disk_that_is_full_of_our_own_files_takes_slots_again() {
    let store = Arc::new(Brimful::default());
    let mut tasks = Tasks::default();
    let mut writers = start(&Config::default(), store, None, &mut tasks);

    let (work, mut first) = Work::new(files(601), Vec::new(), vec![file(0)], 1);
    writers.send(&room(), &work);

    drop(work);
    assert_eq!(in_time(first.recv()).await, Some(()));
}

#[tokio::test]
async fn what_is_to_be_removed_is_not_lost_with_a_full_queue() {
    let config = Config { store_queue_max: 1, writers: 1, ..Config::default() };
    let store = Arc::new(Brimful::default());
    let mut tasks = Tasks::default();
    let mut writers = start(&config, store, None, &mut tasks);
    let (work, mut first) = Work::new(files(601), Vec::new(), Vec::new(), 1);
    writers.send(&room(), &work);

    for _ in 0..3 {
        writers.send(&room(), &Work::remove(vec![file(0)]));
    }

    drop(work);
    assert_eq!(in_time(first.recv()).await, Some(()));
}

#[tokio::test]
async fn a_store_that_only_removes_is_not_well() {
    let store = Arc::new(Brimful::default());
    let mut tasks = Tasks::default();
    let mut writers = start(&Config::default(), store.clone(), None, &mut tasks);
    writers.wellness.refused(0, FULL);

    writers.send(&room(), &Work::remove(vec![file(1)]));
    until(|| !store.removed.lock().is_empty()).await;

    assert!(!writers.are_well());
}

#[tokio::test]
async fn slots_that_a_store_is_not_given_count_as_late() {
    let config = Config { store_queue_max: 1, writers: 1, ..Config::default() };
    let storing = Arc::new(Storing::default());
    let mut tasks = Tasks::default();
    let mut writers = start(&config, Arc::new(Dead), Some(Arc::clone(&storing)), &mut tasks);

    for slot in 0..5 {
        writers.send(&room(), &Work::new(files(slot), Vec::new(), Vec::new(), 1).0);
    }

    // One waits in the queue, and one may be the writer's.
    assert!(storing.take(&base()).unstored >= 3);
}

#[tokio::test]
async fn a_slot_that_stays_late_counts_again_and_again() {
    let config = Config { store_wait_ms_max: 1, store_ms_max: 1, ..Config::default() };
    let storing = Arc::new(Storing::default());
    let mut tasks = Tasks::default();
    let mut writers = start(&config, Arc::new(Dead), Some(Arc::clone(&storing)), &mut tasks);

    writers.send(&room(), &Work::new(files(0), Vec::new(), Vec::new(), 1).0);

    let unstored = std::cell::Cell::new(0);
    until(|| {
        unstored.set(unstored.get() + storing.take(&base()).unstored);
        unstored.get() >= 2
    })
    .await;
}

#[tokio::test]
async fn more_erasures_than_a_queue_holds_are_all_done() {
    let store = Arc::new(Brimful::default());
    let mut tasks = Tasks::default();
    let mut writers = start(&Config::default(), store.clone(), None, &mut tasks);
    let erasures = 2 * ERASURES_MAX;

    let done: Vec<_> = (0..erasures).map(|_| erase(&mut writers, 1)).collect();
    store.put_segments();

    in_time(async {
        for mut done in done {
            while !*done.borrow_and_update() {
                writers.hand_on();
                tokio::task::yield_now().await;
            }
        }
    })
    .await;
}

#[tokio::test]
async fn a_file_that_cannot_be_read_holds_up_no_other_and_no_slot() {
    let store = Arc::new(Brimful { unreadable: Some(file(1)), ..Brimful::default() });
    store.put_segments();
    let mut tasks = Tasks::default();
    let mut writers = start(&Config::default(), store.clone(), None, &mut tasks);

    let _done = erase(&mut writers, 1);
    let (work, mut first) = Work::new(files(3), Vec::new(), vec![file(0)], 1);
    writers.send(&room(), &work);

    drop(work);
    assert_eq!(in_time(first.recv()).await, Some(()));
    until(|| store.files.lock().get(&file(2)) != Some(&segment(2, Tier::Full))).await;
}

const FULL: StoreError = StoreError::Full { free_bytes: 7, free_bytes_min: 8 };

fn start(
    config: &Config,
    store: Arc<dyn SegmentStore>,
    storing: Option<Arc<Storing>>,
    tasks: &mut Tasks,
) -> Writers {
    let (clock, counts) = (Clock::system(), Counts::new(&Meter::new()));
    let purges = Purges::start(&[], &clock, &counts, tasks);
    let (printer, keys) = (Printer::default(), Arc::new(RoomKeys::new(counts.clone())));
    let wellness = Wellness::new(Health::default().part("store"), clock, counts, 1);
    let tools = (&printer, &purges, &keys);
    Writers::start(config, wellness, std::iter::once((store, storing)), tools, tasks)
}

/// Erases an item from the slots 1 and 2.
fn erase(writers: &mut Writers, version: u64) -> watch::Receiver<bool> {
    let (done, told) = watch::channel(false);
    let slots = [1, 2].map(|slot| (Gen(1), SlotNo(slot)));
    writers.erase(&Erasure {
        ids: [ItemId(7)].into(),
        room: room(),
        slots: slots.into(),
        stamp: Stamp { version, ..Stamp::default() },
        since: Mono(0),
        done,
    });
    told
}

async fn in_time<R>(future: impl Future<Output = R>) -> R {
    tokio::time::timeout(PATIENCE, future).await.expect("it happens in time")
}

async fn until(is_so: impl Fn() -> bool) {
    in_time(async {
        while !is_so() {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

fn room() -> RoomId {
    RoomId::parse("r").unwrap()
}

fn base() -> Base {
    Base { base: "https://mirror.example".to_owned(), weight: 100 }
}

fn file(slot: u64) -> File {
    file_of(slot, Tier::Full)
}

fn file_of(slot: u64, tier: Tier) -> File {
    let (room, slot) = (room(), SlotNo(slot));
    File::Segment { room, gen_no: Gen(1), tier, slot, ext: Ext::Bin }
}

fn files(slot: u64) -> Vec<(File, Bytes)> {
    vec![(file(slot), Bytes::from_static(b"slot"))]
}

/// A store that takes nothing new while slot 0 lies in it.
#[derive(Debug, Default)]
struct Brimful {
    files: Mutex<BTreeMap<File, Bytes>>,
    removed: Mutex<Vec<File>>,
    unreadable: Option<File>,
}

impl Brimful {
    /// From now on the slots 1 and 2 lie there.
    fn put_segments(&self) {
        for (slot, tier) in [1, 2].into_iter().flat_map(|it| [(it, Tier::Full), (it, Tier::Lite)]) {
            self.files.lock().insert(file_of(slot, tier), segment(slot, tier));
        }
    }
}

impl SegmentStore for Brimful {
    fn create(&self, files: Vec<(File, Bytes)>) -> BoxFuture<'_, Vec<Result<Created, StoreError>>> {
        let has_space = self.removed.lock().contains(&file(0));
        let created = if has_space { Ok(Created::New) } else { Err(FULL) };
        ready(vec![created; files.len()]).boxed()
    }

    fn replace(
        &self,
        file: File,
        bytes: Bytes,
        _: Stamp,
    ) -> BoxFuture<'_, Result<Replaced, StoreError>> {
        self.files.lock().insert(file, bytes);
        ready(Ok(Replaced::Done)).boxed()
    }

    fn get(&self, file: File) -> BoxFuture<'_, Result<Option<Bytes>, StoreError>> {
        if self.unreadable.as_ref() == Some(&file) {
            return ready(Err(StoreError::Away("an unreadable file".to_owned()))).boxed();
        }
        ready(Ok(self.files.lock().get(&file).cloned())).boxed()
    }

    fn remove(&self, files: Vec<File>) -> BoxFuture<'_, Vec<Result<(), StoreError>>> {
        let count = files.len();
        self.removed.lock().extend(files);
        ready(vec![Ok(()); count]).boxed()
    }
}

/// A store that never answers.
#[derive(Debug)]
struct Dead;

impl SegmentStore for Dead {
    fn create(&self, _: Vec<(File, Bytes)>) -> BoxFuture<'_, Vec<Result<Created, StoreError>>> {
        pending().boxed()
    }

    fn replace(&self, _: File, _: Bytes, _: Stamp) -> BoxFuture<'_, Result<Replaced, StoreError>> {
        pending().boxed()
    }

    fn get(&self, _: File) -> BoxFuture<'_, Result<Option<Bytes>, StoreError>> {
        pending().boxed()
    }

    fn remove(&self, _: Vec<File>) -> BoxFuture<'_, Vec<Result<(), StoreError>>> {
        pending().boxed()
    }
}

/// A written segment that shows the item 7.
fn segment(slot: u64, tier: Tier) -> Bytes {
    let header = Header {
        room: room(),
        gen_no: Gen(1),
        slot: SlotNo(slot),
        tier,
        epoch_ms: Wall(0),
        interval_ms: 1000,
        now_ms: Wall(0),
        spread_ms: 0,
        next_tier: None,
        online: 0,
        heat: Heat::Hot,
        bases: Vec::new(),
        next: None,
        end: None,
    };
    let item = Item {
        id: ItemId(7),
        lane: Lane::Notice,
        sender: SenderRef(1),
        role: Role::Viewer,
        at: Wall(0),
        body: Body::Notice { text: "gone soon".to_owned() },
    };
    let items = vec![Placed { seq: Seq(1), item }];
    let segment = Segment { header, items, repeats: Vec::new() };
    Packed::of(&segment, &Packing::default()).bin
}
