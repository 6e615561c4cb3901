//! Files of a ledger: written, cut off, removed, rewritten.

use std::fs::OpenOptions;
use std::io::Write;

use chatserver_core::ledger::{Erasure, Filter, Members};
use kit::task::Tasks;
use proto::id::{Cid, SessionId, ViewerId};
use proto::item::Role;
use tempfile::TempDir;

use super::export::Turn;
use super::files::{Erased, FILE_LIFE};
use super::*;

const APP: AppId = AppId(1);
const NOW: Wall = Wall(1_800_000_000_000);

struct World {
    root: TempDir,
    folder: Arc<Folder>,
    writer: Writer,
}

impl World {
    fn new(change: impl FnOnce(&mut EvidenceConfig)) -> Self {
        let root = TempDir::new().unwrap();
        let mut config = EvidenceConfig::default();
        change(&mut config);
        let folder = Arc::new(Folder::open(root.path()).unwrap());
        Self { writer: Writer::new(Arc::clone(&folder), config), folder, root }
    }

    fn write(&mut self, texts: &[&str], now: Wall) {
        let records = texts.iter().map(|it| (APP, record("v", it, now))).collect();
        self.writer.write(records, now).unwrap();
    }

    /// The texts that can be read, and the bytes that hold none.
    fn read(&self) -> (Vec<String>, u64) {
        let (mut texts, mut damaged) = (Vec::new(), 0);
        for file in self.folder.list().unwrap() {
            for member in Members::new(&file.read().unwrap()) {
                match member {
                    Ok(records) => texts.extend(records.iter().filter_map(text)),
                    Err(damage) => damaged += number(damage.bytes),
                }
            }
        }
        (texts, damaged)
    }
}

fn record(account: &str, text: &str, at: Wall) -> Record {
    let comment = Comment { node: NodeId(1), session: SessionId(2), cid: Cid(3) };
    let what = What::Said {
        comment,
        role: Role::Viewer,
        taken_at: at,
        address: None,
        device: None,
        text: text.to_owned(),
        outcome: None,
    };
    Record { at, room: None, account: ViewerId::parse(account).ok(), what }
}

fn text(record: &Record) -> Option<String> {
    match &record.what {
        What::Said { text, .. } => Some(text.clone()),
        What::Told { .. } | What::Recalled { .. } | What::Exported { .. } | What::Erased { .. } => {
            None
        }
    }
}

#[test]
fn what_was_written_is_read_by_the_next_process_but_for_a_torn_end() {
    let mut world = World::new(|_| {});
    world.write(&["one", "two"], NOW);
    world.write(&["three"], NOW);
    drop(world.writer);
    let file = world.folder.list().unwrap().remove(0);
    let whole = std::fs::read(&file.path).unwrap();
    let torn = OpenOptions::new().write(true).open(&file.path).unwrap();
    torn.set_len(file.bytes - 3).unwrap();

    let folder = Arc::new(Folder::open(world.root.path()).unwrap());
    world.writer = Writer::new(Arc::clone(&folder), EvidenceConfig::default());
    world.folder = folder;
    world.write(&["four"], NOW);

    let (texts, damaged) = world.read();
    assert_eq!(texts, ["one", "two", "four"]);
    assert!(damaged > 0 && damaged < whole.len() as u64, "{damaged}");
    assert_eq!(
        world.folder.list().unwrap().len(),
        2,
        "a file of another process is not gone on with"
    );
}

#[test]
fn files_are_for_their_owner_alone() {
    use std::os::unix::fs::PermissionsExt;

    let mut world = World::new(|_| {});
    world.write(&["one"], NOW);

    let file = world.folder.list().unwrap().remove(0);
    let mode = |path: &std::path::Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&file.path), mode(file.path.parent().unwrap())), (0o600, 0o700));
}

#[test]
fn a_file_is_closed_when_it_is_large_or_old() {
    let mut world = World::new(|it| it.file_bytes_max = 1);

    world.write(&["one"], NOW);
    world.write(&["two"], NOW);
    assert_eq!(world.folder.list().unwrap().len(), 2);

    let mut world = World::new(|_| {});
    world.write(&["one"], NOW);
    world.writer.sync(Wall(NOW.0 + 1000)).unwrap();
    world.write(&["two"], Wall(NOW.0 + 1000));
    assert_eq!(world.folder.list().unwrap().len(), 1);
    world.writer.sync(NOW + FILE_LIFE).unwrap();
    world.write(&["three"], NOW + FILE_LIFE);
    assert_eq!(world.folder.list().unwrap().len(), 2);
}

#[test]
fn records_are_kept_for_their_time_and_no_longer() {
    let other = AppId(2);
    let day = Duration::from_hours(24);
    let mut world = World::new(|it| it.retention = vec![Retention { app: other, days: 10 }]);
    world.writer.write(vec![(APP, record("v", "kept", NOW))], NOW).unwrap();
    world.writer.write(vec![(other, record("v", "short", NOW))], NOW).unwrap();
    world.writer.list(&closed()).unwrap();
    let purge = |world: &World, days| world.writer.purge(NOW + day * days).unwrap().over;

    // The last record of a file may be a day younger than its name.
    assert_eq!(purge(&world, 10), 0);
    assert_eq!(purge(&world, 11), 1);
    assert_eq!(world.read().0, ["kept"]);
    assert_eq!(purge(&world, 180), 0);
    assert_eq!(purge(&world, 181), 1);
}

#[test]
fn beyond_the_disks_bound_the_oldest_file_goes_and_is_counted() {
    let mut world = World::new(|it| {
        it.file_bytes_max = 1;
        // A file takes a block of the disk, however short it is.
        it.bytes_max = 2 * 4096;
    });
    for (no, text) in (0..).zip(["one", "two", "three", "four"]) {
        world.write(&[text], Wall(NOW.0 + no));
    }

    let removed = world.writer.purge(NOW).unwrap();

    assert_eq!(removed, Removed { over: 0, full: 2, bytes: 2 * 4096 });
    assert_eq!(world.read().0, ["three", "four"]);
}

#[test]
fn an_erasure_rewrites_files_without_the_account() {
    let mut world = World::new(|_| {});
    let records = ["v", "w", "v"].map(|it| (APP, record(it, it, NOW)));
    world.writer.write(records.to_vec(), NOW).unwrap();
    world.writer.list(&closed()).unwrap();
    let erasure = Erasure { app: APP, account: ViewerId::parse("v").unwrap(), until: NOW };

    world.folder.keep_erasure(&erasure).unwrap();
    assert_eq!(world.folder.erasures().unwrap(), std::slice::from_ref(&erasure));
    let file = world.folder.list().unwrap().remove(0);
    let erased = world.folder.erase(&file, std::slice::from_ref(&erasure)).unwrap();
    world.folder.forget_erasure(&erasure).unwrap();
    // One that is asked for twice is done twice.
    world.folder.forget_erasure(&erasure).unwrap();

    assert_eq!(erased, Erased { records: 2, damaged: 0 });
    assert_eq!(world.read(), (vec!["w".to_owned()], 0));
    assert!(world.folder.erasures().unwrap().is_empty());
}

#[test]
fn strange_files_are_left_alone() {
    let mut world = World::new(|_| {});
    world.write(&["one"], NOW);
    std::fs::create_dir(world.root.path().join("lost+found")).unwrap();
    let mut strange = std::fs::File::create(world.root.path().join("1/notes.txt")).unwrap();
    strange.write_all(b"not ours").unwrap();

    world.writer.purge(NOW + Duration::from_hours(24 * 4000)).unwrap();

    assert!(world.root.path().join("1/notes.txt").exists());
}

fn closed() -> BTreeSet<AppId> {
    BTreeSet::from([APP, AppId(2)])
}

#[test]
fn a_file_that_was_listed_as_closed_is_not_written_again() {
    let mut world = World::new(|_| {});
    world.write(&["one"], NOW);

    let listed = world.writer.list(&BTreeSet::new()).unwrap();
    world.write(&["two"], NOW);
    let closed = world.writer.list(&closed()).unwrap();
    world.write(&["three"], NOW);

    assert_eq!((listed.len(), closed.len(), world.folder.list().unwrap().len()), (1, 1, 2));
    assert!(listed[0].bytes < closed[0].bytes, "a list closes nothing by itself");
    assert_eq!(listed[0].read().unwrap().len() as u64, listed[0].bytes, "the rest is not read");
    assert_eq!(closed[0].bytes, closed[0].path.metadata().unwrap().len());
}

#[test]
fn what_a_cut_off_erasure_left_goes_with_the_next_start() {
    let mut world = World::new(|_| {});
    world.write(&["one"], NOW);
    let left = world.root.path().join("1/000001.jsonl.0123456789abcdef.new");
    std::fs::write(&left, b"half").unwrap();

    let folder = Folder::open(world.root.path()).unwrap();

    assert!(!left.exists());
    assert_eq!(folder.list().unwrap().len(), 1);
}

#[test]
fn an_app_has_one_export_at_a_time_and_keeps_no_other_from_its_own() {
    let apps = Arc::default();

    let ours = Turn::take(&apps, APP);
    let again = Turn::take(&apps, APP);
    let others = Turn::take(&apps, AppId(2));
    drop(ours);

    assert!(again.is_none() && others.is_some());
    assert!(Turn::take(&apps, APP).is_some());
}

#[tokio::test]
async fn an_erasure_waits_for_turns_that_began_before_it() {
    let root = TempDir::new().unwrap();
    let folder = root.path().to_owned();
    let config = EvidenceConfig { enabled: true, folder, ..EvidenceConfig::default() };
    let (clock, health) = (Clock::system(), Health::default());
    let parts = open(&config, NodeId(1), &clock, &Meter::new(), &health).unwrap();
    let (eraser, export) = (parts.eraser.unwrap(), parts.export.unwrap());
    let mut tasks = Tasks::default();
    tasks.spawn("scribe", parts.scribe.unwrap().run(CancellationToken::new()));
    let said = |at| vec![(APP, record("v", "said before", at))];

    let begun = parts.witness.turns.begin(&clock);
    let before = said(begun.at);
    parts.witness.note(said(begun.at));
    clock.step(1000);
    eraser.erase(APP, ViewerId::parse("v").unwrap()).await.unwrap();
    eraser.work().await.unwrap();
    assert_eq!(eraser.pending().len(), 1, "a turn is under way");
    parts.witness.note(before);
    drop(begun);
    clock.step(1000);
    while !eraser.pending().is_empty() {
        eraser.work().await.unwrap();
    }

    let mut given = export.give(APP, Filter { until: Wall(u64::MAX), ..Filter::default() }).await;
    let mut text = Vec::new();
    while let Some(part) = given.as_mut().unwrap().recv().await {
        text.extend(part);
    }
    let text = String::from_utf8(text).unwrap();
    assert!(!text.contains("said before") && text.contains("erased"), "{text}");
}
