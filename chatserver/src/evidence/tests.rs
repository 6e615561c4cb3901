//! Files of a ledger: written, cut off, removed, rewritten.

use std::fs::OpenOptions;
use std::io::Write;

use chatserver_core::ledger::{Erasure, Members};
use proto::id::{Cid, SessionId, ViewerId};
use proto::item::Role;
use tempfile::TempDir;

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
    world.writer.seal().unwrap();
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
        it.bytes_max = 300;
    });
    for (no, text) in (0..).zip(["one", "two", "three", "four"]) {
        world.write(&[text], Wall(NOW.0 + no));
    }

    let removed = world.writer.purge(NOW).unwrap();

    assert!(removed.full >= 2 && removed.over == 0, "{removed:?}");
    assert!(removed.bytes <= 300, "{removed:?}");
    let left = world.read().0;
    assert_eq!(left.last().map(String::as_str), Some("four"));
    assert_eq!(left.len() as u64, 4 - removed.full);
}

#[test]
fn an_erasure_rewrites_files_without_the_account() {
    let mut world = World::new(|_| {});
    let records = ["v", "w", "v"].map(|it| (APP, record(it, it, NOW)));
    world.writer.write(records.to_vec(), NOW).unwrap();
    world.writer.seal().unwrap();
    let erasure = Erasure { app: APP, account: ViewerId::parse("v").unwrap(), until: NOW };

    world.folder.keep_erasure(&erasure).unwrap();
    assert_eq!(world.folder.erasures().unwrap(), std::slice::from_ref(&erasure));
    let file = world.folder.list().unwrap().remove(0);
    let erased = world.folder.erase(&file, std::slice::from_ref(&erasure)).unwrap();
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
