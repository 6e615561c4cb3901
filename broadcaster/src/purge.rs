//! Tells caches before the origin to forget files, with `PURGE` over HTTP.

use std::io;
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
/// Attempts at each cache; then the file's lifetime ends by itself, within ten minutes.
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

/// Where files go that caches must forget; nowhere without caches.
pub(crate) fn start(
    caches: &[String],
    clock: &Clock,
    counts: &Counts,
    tasks: &mut Tasks,
) -> Option<mpsc::Sender<File>> {
    if caches.is_empty() {
        return None;
    }
    let (sender, files) = mpsc::channel(FILES_MAX);
    tasks.spawn("purge", run(caches.to_vec(), files, clock.clone(), counts.clone()));
    Some(sender)
}

/// Has every cache forget what comes, until nothing more can.
async fn run(
    caches: Vec<String>,
    mut files: mpsc::Receiver<File>,
    clock: Clock,
    counts: Counts,
) -> anyhow::Result<()> {
    while let Some(file) = files.recv().await {
        for cache in caches.iter().filter_map(|it| authority(it)) {
            let outcome = forget(cache, &file, &clock).await;
            counts.purge(outcome);
        }
    }
    Ok(())
}

/// How it went, as a label.
async fn forget(cache: &str, file: &File, clock: &Clock) -> &'static str {
    for attempt in 1..=ATTEMPTS_MAX {
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
        if attempt < ATTEMPTS_MAX {
            clock.sleep(PAUSE).await;
        }
    }
    tracing::warn!(cache, "a cache cannot be told to forget: see broadcaster.purge");
    "away"
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
    use super::*;

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
