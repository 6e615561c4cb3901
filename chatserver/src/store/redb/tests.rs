//! What the file does in good days and bad ones.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use proto::control::{Fact, RoomFact, RoomSettings};
use proto::id::{AppId, RoomId, ViewerId};
use proto::time::Wall;
use redb::StorageBackend;
use redb::backends::FileBackend;

use super::*;
use crate::store::{acts_key, contract, rooms_key};

#[tokio::test]
async fn a_file_keeps_the_contract() {
    let folder = tempfile::tempdir().unwrap();

    contract::check(Arc::new(RedbStore::open(&folder.path().join("rooms.redb")).unwrap())).await;
}

#[tokio::test]
async fn what_was_written_is_there_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rooms.redb");
    let store = RedbStore::open(&path).unwrap();
    store.write(vec![key().put(Expect::Absent, "open")]).await.unwrap();
    drop(store);

    let values = RedbStore::open(&path).unwrap().get(vec![key()]).await.unwrap();

    assert_eq!(values, [Some(Value { version: 1, bytes: "open".into() })]);
}

#[tokio::test]
async fn a_file_is_opened_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rooms.redb");
    let _first = RedbStore::open(&path).unwrap();

    assert!(RedbStore::open(&path).is_err());
}

#[tokio::test]
async fn a_full_disk_refuses_writes_and_is_taken_up_again_when_there_is_room() {
    let folder = tempfile::tempdir().unwrap();
    let is_full = Arc::<AtomicBool>::default();
    let disk = Disk { path: folder.path().join("rooms.redb"), is_full: Arc::clone(&is_full) };
    let open = || StoreFile::open(Source::Disk(disk.clone()));
    let store = RedbStore::over(open().unwrap()).unwrap();
    store.write(vec![key().put(Expect::Absent, "before")]).await.unwrap();
    let large = || Key::new(Table::Own, "large").put(Expect::Any, vec![7; 60_000]);

    is_full.store(true, Ordering::Relaxed);
    for _ in 0..3 {
        assert!(matches!(store.write(vec![large()]).await, Err(StoreError::Away { .. })));
    }
    is_full.store(false, Ordering::Relaxed);

    let before = Some(Value { version: 1, bytes: "before".into() });
    assert_eq!(store.get(vec![key()]).await.unwrap(), [before]);
    assert_eq!(store.write(vec![large()]).await, Ok(Written::Done));

    drop(store);
    is_full.store(true, Ordering::Relaxed);
    let text = format!("{:#}", open().unwrap_err());
    assert!(text.contains("disk is full") || text.contains("cannot be written"), "{text}");
}

#[tokio::test]
async fn a_damaged_file_is_refused_with_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rooms.redb");
    let store = RedbStore::open(&path).unwrap();
    for no in 0..200 {
        let row = Key::new(Table::Rooms, format!("room-{no}"));
        store.write(vec![row.put(Expect::Any, vec![1; 2000])]).await.unwrap();
    }
    drop(store);
    let whole = std::fs::read(&path).unwrap();
    let spoiled = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = whole.clone();
        change(&mut bytes);
        std::fs::write(&path, bytes).unwrap();
        format!("{:#}", RedbStore::open(&path).unwrap_err())
    };

    for text in [
        spoiled(&|it| it[..64].fill(b'x')),
        spoiled(&|it| it.truncate(whole.len() / 2)),
        spoiled(&|it| it[4096..whole.len() - 4096].fill(0)),
    ] {
        assert!(text.contains("rooms.redb") && text.contains("restore a backup"), "{text}");
    }
    std::fs::write(&path, &whole).unwrap();
    RedbStore::open(&path).unwrap();
}

#[tokio::test]
async fn an_empty_file_is_a_new_store() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rooms.redb");
    File::create(&path).unwrap();

    let store = RedbStore::open(&path).unwrap();

    assert_eq!(store.get(vec![key()]).await.unwrap(), [None]);
}

#[tokio::test]
async fn an_older_file_is_brought_to_this_schema_and_a_newer_one_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rooms.redb");
    write_first_schema(&path);

    let store = RedbStore::open(&path).unwrap();
    let counts = store.get(vec![rooms_key(AppId(1)), rooms_key(AppId(2))]).await.unwrap();
    let counts: Vec<_> = counts.into_iter().map(|it| it.map(|it| it.bytes.to_vec())).collect();
    assert_eq!(counts, [Some(2_u32.to_be_bytes().to_vec()), None]);
    let acts = store.get(vec![acts_key("1")]).await.unwrap().remove(0);
    assert_eq!(acts.unwrap().bytes, 1_u32.to_be_bytes().to_vec());
    let closed = store.list(Table::Own, "closed:".to_owned(), None, 9).await.unwrap();
    assert!(matches!(&closed[..], [(name, _)] if name.ends_with(":b")), "{closed:?}");
    drop(store);
    assert_eq!(schema_of(&path), schema::SCHEMA);

    write_schema(&path, schema::SCHEMA + 1);
    let text = format!("{:#}", RedbStore::open(&path).unwrap_err());
    assert!(text.contains("its schema is 3"), "{text}");
}

#[tokio::test]
async fn a_backup_is_a_store_with_the_same_rows_and_one_of_a_running_store_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (path, copy) = (folder.path().join("rooms.redb"), folder.path().join("copy.redb"));
    let store = RedbStore::open(&path).unwrap();
    store.write(vec![key().put(Expect::Absent, "a")]).await.unwrap();
    store.write(vec![key().put(Expect::Any, "b")]).await.unwrap();
    store.write(vec![Key::new(Table::Audit, "x").put(Expect::Any, "")]).await.unwrap();

    assert!(format!("{:#}", backup(&path, &copy).unwrap_err()).contains("in use"));
    drop(store);
    assert_eq!(backup(&path, &copy).unwrap(), 2);
    assert!(backup(&path, &copy).is_err(), "nothing is overwritten");
    assert!(backup(&folder.path().join("none.redb"), &folder.path().join("other")).is_err());

    let restored = RedbStore::open(&copy).unwrap();
    let kept = Value { version: 2, bytes: "b".into() };
    assert_eq!(restored.get(vec![key()]).await.unwrap(), [Some(kept)]);
}

/// Two rooms of one app, the second one closed, and a mute, as the first version of this program wrote them.
fn write_first_schema(path: &Path) {
    let database = Database::create(path).unwrap();
    let transaction = database.begin_write().unwrap();
    for name in ["a", "b"] {
        let room = RoomId::parse(name).unwrap();
        let settings = RoomSettings::default();
        let fact = RoomFact { app: AppId(1), room, version: 1, open: name == "a", settings };
        let row = pack(1, &Fact::Room(fact).encode());
        let mut rooms = transaction.open_table(definition(Table::Rooms)).unwrap();
        rooms.insert(name, &*row).unwrap();
    }
    let mute = Fact::Mute {
        app: AppId(1),
        room: RoomId::parse("a").unwrap(),
        viewer: ViewerId::parse("v").unwrap(),
        until: Wall(1),
    };
    let mut acts = transaction.open_table(definition(Table::Acts)).unwrap();
    acts.insert(mute.key().as_str(), &*pack(1, &mute.encode())).unwrap();
    drop(acts);
    transaction.commit().unwrap();
}

const META: TableDefinition<'_, &str, u32> = TableDefinition::new("meta");

fn schema_of(path: &Path) -> u32 {
    let database = Database::open(path).unwrap();
    let table = database.begin_read().unwrap().open_table(META).unwrap();
    table.get("schema").unwrap().unwrap().value()
}

fn write_schema(path: &Path, schema: u32) {
    let database = Database::open(path).unwrap();
    let transaction = database.begin_write().unwrap();
    transaction.open_table(META).unwrap().insert("schema", schema).unwrap();
    transaction.commit().unwrap();
}

fn key() -> Key {
    Key::new(Table::Rooms, "r")
}

/// A file on a disk that is full while the test wants it.
#[derive(Clone, Debug)]
pub(super) struct Disk {
    path: PathBuf,
    is_full: Arc<AtomicBool>,
}

impl Disk {
    pub(super) fn backend(&self) -> FullDisk {
        let mut options = OpenOptions::new();
        let file = options.read(true).write(true).create(true).truncate(false).open(&self.path);
        let file = FileBackend::new(file.unwrap()).unwrap();
        FullDisk { file, is_full: Arc::clone(&self.is_full) }
    }
}

#[derive(Debug)]
pub(super) struct FullDisk {
    file: FileBackend,
    is_full: Arc<AtomicBool>,
}

impl FullDisk {
    fn check(&self) -> io::Result<()> {
        if self.is_full.load(Ordering::Relaxed) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        Ok(())
    }
}

impl StorageBackend for FullDisk {
    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.file.read(offset, out)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.check()?;
        self.file.set_len(len)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.check()?;
        self.file.sync_data()
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.check()?;
        self.file.write(offset, data)
    }

    fn close(&self) -> io::Result<()> {
        self.file.close()
    }
}
