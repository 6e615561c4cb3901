//! Tells caches before the origin to forget files, with `PURGE` over HTTP.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use kit::clock::Clock;
use kit::task::Tasks;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::mpsc;

use crate::counts::Counts;
use crate::store::File;

/// Files that wait to be forgotten, about 100 bytes each: those of a room's ten minutes, twice.
const FILES_MAX: usize = 5_000;
/// Longest time for one question.
const ASK_MAX: Duration = Duration::from_secs(2);
/// Pause before the next attempt.
const PAUSE: Duration = Duration::from_secs(1);
/// Attempts for each file; then the file's lifetime ends by itself, within ten minutes.
const ATTEMPTS_MAX: u32 = 5;
/// Bytes of an answer that are looked at: its first line.
const ANSWER_BYTES: u64 = 64;

/// Where a cache is: the `host:port` of `http://host:port`; `None` if it is spelled otherwise.
pub(crate) fn authority(base: &str) -> Option<&str> {
    let authority = base.strip_prefix("http://")?;
    let (host, port) = authority.rsplit_once(':')?;
    (!host.is_empty() && !authority.contains('/') && port.parse::<u16>().is_ok())
        .then_some(authority)
}

/// Where files go that caches must forget.
#[derive(Clone, Debug)]
pub(crate) struct Purges {
    caches: Arc<[mpsc::Sender<File>]>,
    counts: Counts,
}

impl Purges {
    /// Starts one task for each cache, so that one that is away delays no other. They end when all
    /// clones of this are dropped.
    pub(crate) fn start(
        caches: &[String],
        clock: &Clock,
        counts: &Counts,
        tasks: &mut Tasks,
    ) -> Self {
        let caches = caches.iter().filter_map(|it| authority(it)).map(|it| {
            let (sender, files) = mpsc::channel(FILES_MAX);
            let (authority, is_away) = (it.to_owned(), false);
            let (clock, counts) = (clock.clone(), counts.clone());
            tasks.spawn("purge", Cache { authority, is_away, clock, counts }.run(files));
            sender
        });
        Self { caches: caches.collect(), counts: counts.clone() }
    }

    /// Has every cache forget a file. Where it finds no place, the file goes when its lifetime ends.
    pub(crate) fn forget(&self, file: &File) {
        for cache in self.caches.iter() {
            if cache.try_send(file.clone()).is_err() {
                self.counts.purge("queue_full");
            }
        }
    }
}

/// One cache.
struct Cache {
    authority: String,
    /// Whether it could not be told of the file before.
    is_away: bool,
    clock: Clock,
    counts: Counts,
}

impl Cache {
    /// Has it forget what comes, until nothing more can. When the process ends, a cache that is
    /// away is not waited for.
    async fn run(mut self, mut files: mpsc::Receiver<File>) -> anyhow::Result<()> {
        while let Some(file) = files.recv().await {
            let outcome = self.forget(&file, &files).await;
            self.counts.purge(outcome);
            self.is_away = outcome == "away";
            if self.is_away && !files.is_closed() {
                self.clock.sleep(PAUSE).await;
            }
        }
        Ok(())
    }

    /// How it went, as a label. One that is away is asked once for each file until it answers.
    async fn forget(&self, file: &File, files: &mpsc::Receiver<File>) -> &'static str {
        let cache = &*self.authority;
        if self.is_away && files.is_closed() {
            return "away";
        }
        let attempts_max = if self.is_away { 1 } else { ATTEMPTS_MAX };
        for attempt in 1..=attempts_max {
            match tokio::time::timeout(ASK_MAX, ask(cache, file)).await {
                // Whoever does not have it has forgotten it.
                Ok(Ok(200..=299 | 404 | 410)) => return "done",
                Ok(Ok(status)) => {
                    tracing::warn!(cache, status, "a cache does not forget: see broadcaster.purge");
                    return "refused";
                }
                Ok(Err(error)) => tracing::debug!(cache, %error, "a cache cannot be reached"),
                Err(_) => tracing::debug!(cache, "a cache does not answer"),
            }
            if files.is_closed() {
                break;
            }
            if attempt < attempts_max {
                self.clock.sleep(PAUSE).await;
            }
        }
        if !self.is_away {
            tracing::warn!(cache, "a cache cannot be told to forget: see broadcaster.purge");
        }
        "away"
    }
}

async fn ask(cache: &str, file: &File) -> io::Result<u16> {
    let mut stream = TcpStream::connect(cache).await?;
    let request = format!("PURGE /{file} HTTP/1.1\r\nhost: {cache}\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut answer = Vec::new();
    stream.take(ANSWER_BYTES).read_to_end(&mut answer).await?;
    let line = String::from_utf8_lossy(&answer);
    let status = line.split(' ').nth(1).and_then(|it| it.get(..3)?.parse().ok());
    status.ok_or_else(|| io::Error::other("it answers something else than HTTP"))
}

#[cfg(test)]
mod tests {
    use kit::meter::Meter;
    use proto::id::{Gen, RoomId};
    use tokio::net::TcpListener;

    use super::*;

    #[tokio::test]
    async fn a_cache_that_never_answers_delays_no_other() {
        let [silent, well] = [TcpListener::bind("127.0.0.1:0"), TcpListener::bind("127.0.0.1:0")];
        let (silent, well) = (silent.await.unwrap(), well.await.unwrap());
        let caches = [&silent, &well].map(|it| format!("http://{}", it.local_addr().unwrap()));
        let (clock, counts) = (Clock::system(), Counts::new(&Meter::new()));
        let mut tasks = Tasks::default();
        let purges = Purges::start(&caches, &clock, &counts, &mut tasks);
        let started = clock.mono();

        for gen_no in 0..3 {
            purges.forget(&File::Gen(RoomId::parse("r").unwrap(), Gen(gen_no)));
        }
        for _ in 0..3 {
            let (mut stream, _) = well.accept().await.unwrap();
            stream.write_all(b"HTTP/1.1 200 Purged\r\n\r\n").await.unwrap();
        }

        assert!(clock.mono().since(started) < ASK_MAX);
        tasks.abort();
    }

    #[test]
    fn a_cache_is_a_host_and_a_port() {
        assert_eq!(authority("http://127.0.0.1:80"), Some("127.0.0.1:80"));
        assert_eq!(authority("http://edge.example:8080"), Some("edge.example:8080"));
        for other in
            ["", "http://", "http://:80", "http://edge", "http://edge:80/", "https://a:443"]
        {
            assert_eq!(authority(other), None, "{other}");
        }
    }
}
