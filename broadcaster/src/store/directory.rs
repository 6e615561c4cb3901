//! A store in a directory, which may be shared by several processes of one machine.
//!
//! A file appears complete or not at all: it is written beside its place and then linked or
//! renamed. Nothing is synced to the disk: a file lost with the machine is a slot lost with it.

use std::fs;
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use proto::id::{Gen, Term};
use tokio::sync::Semaphore;

use super::{Created, File, Replaced, SegmentStore, Stamp, StoreError};

/// Calls that a directory has running at a time. A mount that hangs takes so many of the threads
/// that the whole process blocks on, and no more.
const CALLS_MAX: usize = 16;
/// Longest time for a further call to wait for a place; many come and go within it on a disk that
/// works.
const PLACE_MAX: Duration = Duration::from_millis(250);
/// Folder of unfinished files, below the root.
const UNFINISHED: &str = ".unfinished";

/// The directory store. Its root may be served by a web server as it is.
#[derive(Debug)]
pub struct Directory {
    place: Arc<Place>,
    /// Places for calls, kept by each until its thread is free again.
    calls: Arc<Semaphore>,
}

#[derive(Debug)]
struct Place {
    root: PathBuf,
    free_bytes_min: u64,
    /// Makes names of unfinished files unique within the process.
    unfinished: AtomicU64,
}

impl Directory {
    /// Opens the directory, and creates it if it is not there. While fewer than `free_bytes_min`
    /// bytes are free on its disk, nothing more is written.
    ///
    /// # Errors
    /// When it cannot be created.
    pub fn open(root: &Path, free_bytes_min: u64) -> io::Result<Self> {
        fs::create_dir_all(root.join(UNFINISHED))?;
        Ok(Self::later(root, free_bytes_min))
    }

    /// The same for a directory that need not be there yet: it is created with the first write that
    /// can.
    #[must_use]
    pub fn later(root: &Path, free_bytes_min: u64) -> Self {
        let root = root.to_path_buf();
        let place = Place { root, free_bytes_min, unfinished: AtomicU64::new(0) };
        Self { place: Arc::new(place), calls: Arc::new(Semaphore::new(CALLS_MAX)) }
    }

    /// Whether there is room for more. Blocks for a system call.
    ///
    /// # Errors
    /// When the disk is too full, or cannot be asked.
    pub fn check_space(&self) -> Result<(), StoreError> {
        self.place.check_space()
    }

    /// Runs `work` where blocking is allowed.
    fn run<R: Send + 'static>(
        &self,
        work: impl FnOnce(&Place) -> R + Send + 'static,
    ) -> impl Future<Output = Result<R, StoreError>> + Send + 'static {
        let (place, calls) = (Arc::clone(&self.place), Arc::clone(&self.calls));
        async move {
            let Ok(Ok(call)) = tokio::time::timeout(PLACE_MAX, calls.acquire_owned()).await else {
                return Err(StoreError::Away(format!("{CALLS_MAX} calls are running already")));
            };
            let work = move || {
                let done = work(&place);
                drop(call);
                done
            };
            let done = tokio::task::spawn_blocking(work).await;
            done.map_err(|error| StoreError::Away(error.to_string()))
        }
    }
}

impl SegmentStore for Directory {
    fn create(&self, files: Vec<(File, Bytes)>) -> BoxFuture<'_, Vec<Result<Created, StoreError>>> {
        let count = files.len();
        let created = self.run(move |place| {
            files.into_iter().map(|(file, bytes)| place.create(&file, &bytes)).collect()
        });
        created.map(move |it| it.unwrap_or_else(|error| vec![Err(error); count])).boxed()
    }

    fn replace(
        &self,
        file: File,
        bytes: Bytes,
        stamp: Stamp,
    ) -> BoxFuture<'_, Result<Replaced, StoreError>> {
        self.run(move |place| place.replace(&file, &bytes, stamp)).map(|it| it?).boxed()
    }

    fn get(&self, file: File) -> BoxFuture<'_, Result<Option<Bytes>, StoreError>> {
        self.run(move |place| place.get(&file)).map(|it| it?).boxed()
    }

    fn remove(&self, files: Vec<File>) -> BoxFuture<'_, Vec<Result<(), StoreError>>> {
        let count = files.len();
        let removed =
            self.run(move |place| files.into_iter().map(|file| place.remove(&file)).collect());
        removed.map(move |it| it.unwrap_or_else(|error| vec![Err(error); count])).boxed()
    }
}

impl Place {
    /// A [`File`] has only names from its grammar, so this never leaves the root.
    fn path(&self, file: &File) -> PathBuf {
        self.root.join(file.to_string())
    }

    /// Makes the folder where it was not there when this was opened.
    fn prepare(&self) -> Result<(), StoreError> {
        let folder = self.root.join(UNFINISHED);
        if folder.exists() { Ok(()) } else { fs::create_dir_all(folder).map_err(away) }
    }

    fn create(&self, file: &File, bytes: &[u8]) -> Result<Created, StoreError> {
        let path = self.path(file);
        if path.exists() {
            return Ok(Created::Existed);
        }
        self.prepare()?;
        self.check_space()?;
        let unfinished = self.write_unfinished(bytes)?;
        let linked = link(&unfinished, &path);
        fs::remove_file(&unfinished).map_err(away)?;
        match linked {
            Ok(()) => Ok(Created::New),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(Created::Existed),
            Err(error) => Err(away(error)),
        }
    }

    fn replace(&self, file: &File, bytes: &[u8], stamp: Stamp) -> Result<Replaced, StoreError> {
        let path = self.path(file);
        let stamp_path = stamp_path(&path);
        self.prepare()?;
        // Reading the old stamp and writing the new one must be one step, also between processes.
        let lock = fs::File::create(self.root.join(UNFINISHED).join("lock")).map_err(away)?;
        lock.lock().map_err(away)?;
        if read_stamp(&stamp_path)? >= Some(stamp) {
            return Ok(Replaced::Stale);
        }
        self.check_space()?;
        self.put(&path, bytes)?;
        self.put(&stamp_path, write_stamp(stamp).as_bytes())?;
        Ok(Replaced::Done)
    }

    fn get(&self, file: &File) -> Result<Option<Bytes>, StoreError> {
        match fs::read(self.path(file)) {
            Ok(bytes) => Ok(Some(bytes.into())),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(away(error)),
        }
    }

    fn remove(&self, file: &File) -> Result<(), StoreError> {
        let path = self.path(file);
        for path in [stamp_path(&path), path] {
            match fs::remove_file(path) {
                Ok(()) => {}
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => return Err(away(error)),
            }
        }
        Ok(())
    }

    /// Writes a file over whatever is there.
    fn put(&self, path: &Path, bytes: &[u8]) -> Result<(), StoreError> {
        let unfinished = self.write_unfinished(bytes)?;
        let renamed = with_parent(path, || fs::rename(&unfinished, path));
        if renamed.is_err() {
            fs::remove_file(&unfinished).ok();
        }
        renamed.map_err(away)
    }

    fn write_unfinished(&self, bytes: &[u8]) -> Result<PathBuf, StoreError> {
        let folder = self.root.join(UNFINISHED);
        loop {
            let number = self.unfinished.fetch_add(1, Ordering::Relaxed);
            let path = folder.join(format!("{}-{number}", std::process::id()));
            // A name may be left from an earlier process with this id: take the next one.
            let mut file = match fs::File::create_new(&path) {
                Ok(file) => file,
                Err(error) if error.kind() == ErrorKind::AlreadyExists => continue,
                Err(error) => return Err(away(error)),
            };
            if let Err(error) = file.write_all(bytes) {
                fs::remove_file(&path).ok();
                return Err(away(error));
            }
            return Ok(path);
        }
    }

    fn check_space(&self) -> Result<(), StoreError> {
        check_space(&self.root, self.free_bytes_min)
    }
}

/// Whether so many bytes are free on a folder's disk.
pub(crate) fn check_space(folder: &Path, free_bytes_min: u64) -> Result<(), StoreError> {
    let disk = rustix::fs::statvfs(folder).map_err(|error| away(error.into()))?;
    let free_bytes = disk.f_bavail.saturating_mul(disk.f_frsize);
    if free_bytes < free_bytes_min {
        return Err(StoreError::Full { free_bytes, free_bytes_min });
    }
    Ok(())
}

fn link(from: &Path, to: &Path) -> io::Result<()> {
    with_parent(to, || fs::hard_link(from, to))
}

/// Tries again with the folder made, since most often it is there.
fn with_parent(path: &Path, act: impl Fn() -> io::Result<()>) -> io::Result<()> {
    match (act(), path.parent()) {
        (Err(error), Some(parent)) if error.kind() == ErrorKind::NotFound => {
            fs::create_dir_all(parent)?;
            act()
        }
        (acted, _) => acted,
    }
}

fn stamp_path(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".stamp");
    path.with_file_name(name)
}

fn write_stamp(stamp: Stamp) -> String {
    format!("{} {} {}", stamp.gen_no, stamp.term, stamp.version)
}

/// `None` if there is no stamp; a damaged one counts as the oldest.
fn read_stamp(path: &Path) -> Result<Option<Stamp>, StoreError> {
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(away(error)),
    };
    let mut numbers = text.split(' ').map_while(|it| it.parse::<u64>().ok());
    let mut next = || numbers.next().unwrap_or_default();
    let gen_no = Gen(u32::try_from(next()).unwrap_or_default());
    Ok(Some(Stamp { gen_no, term: Term(next()), version: next() }))
}

fn away(error: io::Error) -> StoreError {
    StoreError::Away(error.to_string())
}

#[cfg(test)]
mod tests {
    use proto::id::RoomId;

    use super::*;
    use crate::store::contract;

    #[tokio::test]
    async fn it_keeps_the_contract() {
        let folder = tempfile::tempdir().unwrap();
        let store = Arc::new(Directory::open(folder.path(), 0).unwrap());

        contract::check(store).await;

        let left = fs::read_dir(folder.path().join(UNFINISHED)).unwrap();
        let names: Vec<_> = left.map(|it| it.unwrap().file_name()).collect();
        assert_eq!(names, ["lock"]);
    }

    #[tokio::test]
    async fn two_processes_may_share_it() {
        let folder = tempfile::tempdir().unwrap();
        let one = Arc::new(Directory::open(folder.path(), 0).unwrap());
        let other = Arc::new(Directory::open(folder.path(), 0).unwrap());

        contract::check_race(one, other).await;
    }

    #[tokio::test]
    async fn a_disk_is_not_filled() {
        let folder = tempfile::tempdir().unwrap();
        let store = Directory::open(folder.path(), u64::MAX).unwrap();
        let file = File::Gen(RoomId::parse("r").unwrap(), Gen(1));

        let created = store.create(vec![(file.clone(), Bytes::from_static(b"x"))]).await;
        let replaced = store.replace(file.clone(), Bytes::new(), Stamp::default()).await;

        assert!(matches!(store.check_space(), Err(StoreError::Full { .. })));
        assert!(matches!(created[..], [Err(StoreError::Full { .. })]));
        assert!(matches!(replaced, Err(StoreError::Full { .. })));
        assert_eq!(store.get(file).await, Ok(None));
    }

    #[tokio::test]
    async fn a_directory_that_comes_later_takes_files_then() {
        let folder = tempfile::tempdir().unwrap();
        let (mount, root) = (folder.path().join("mount"), folder.path().join("mount/segments"));
        fs::write(&mount, "in the way").unwrap();
        let store = Directory::later(&root, 0);
        let file = File::Gen(RoomId::parse("r").unwrap(), Gen(1));
        let bytes = Bytes::from_static(b"x");

        let away = store.replace(file.clone(), bytes.clone(), Stamp::default()).await;
        fs::remove_file(&mount).unwrap();
        let done = store.replace(file.clone(), bytes.clone(), Stamp::default()).await;

        assert!(matches!(away, Err(StoreError::Away(_))), "{away:?}");
        assert_eq!(done, Ok(Replaced::Done));
        assert_eq!(store.get(file).await, Ok(Some(bytes)));
    }

    /// A pipe that nobody writes to is what a mount that hangs looks like.
    #[test]
    fn a_directory_that_hangs_leaves_threads_to_others() {
        let threads = CALLS_MAX + 1;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .max_blocking_threads(threads)
            .enable_time()
            .build()
            .unwrap();
        let (hung, well) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let file = File::Gen(RoomId::parse("r").unwrap(), Gen(1));
        let pipe = hung.path().join(file.to_string());
        fs::create_dir_all(pipe.parent().unwrap()).unwrap();
        let (kind, mode) = (rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU);
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, kind, mode, 0).unwrap();

        let got = runtime.block_on(async {
            let hung = Arc::new(Directory::open(hung.path(), 0).unwrap());
            for _ in 0..2 * threads {
                let mut get = hung.get(file.clone());
                assert!(futures_util::poll!(&mut get).is_pending());
            }
            let away = hung.get(file.clone()).await;
            assert!(matches!(away, Err(StoreError::Away(_))), "{away:?}");
            let well = Directory::open(well.path(), 0).unwrap();
            tokio::time::timeout(Duration::from_secs(30), well.get(file.clone())).await
        });

        // A reader of the pipe that was opened from both ends finds its end.
        drop(fs::File::options().read(true).write(true).open(&pipe).unwrap());
        runtime.shutdown_background();
        assert_eq!(got.expect("the other answers"), Ok(None));
    }
}
