//! What an operator may set.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::ensure;
use auth_core::secret::Secret;
use broadcaster_core::lane::Shares;
use broadcaster_core::settings::{Archived, House, INTERVAL_MS_MAX, INTERVAL_MS_MIN};
use proto::encoding::Encoding;
use proto::id::NodeId;
use serde::{Deserialize, Serialize};

use crate::purge;
use crate::push::target;
pub use crate::push::target::Push;

/// One of `[[broadcaster.mirrors]]`: a further directory that gets every segment, for a CDN of its
/// own. What is slow or fails there is late there alone.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields, rename_all = "snake_case")]
pub struct Mirror {
    /// The folder; give it a disk or a mount of its own.
    pub directory: PathBuf,
    /// Base URL under which its CDN serves it, everything before `/dm/1/…`: gslb gives it viewers,
    /// and fewer while the folder takes slots late. Empty: a copy that nobody is sent to.
    pub base: String,
}

/// The broadcaster's section.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields, rename_all = "snake_case")]
pub struct Config {
    /// This process's number among the broadcasters; no two live ones share it.
    pub node: NodeId,
    /// Base URL of the auth service: the keys of sealed rooms come from there. While it is empty or
    /// away, the slots of such rooms wait and are written nowhere; everything else goes on.
    pub auth_url: String,
    /// This node's own secret, with which it fetches them.
    pub secret: Secret,
    /// Where the origin listens.
    pub listen: SocketAddr,
    /// Base URL that is advertised for segments, everything before `/dm/1/…`; empty: this
    /// process's own address. Set it where a CDN stands before the origin.
    pub base: String,
    /// Length of a flush in milliseconds, 20 to 1000. Shorter is fresher and costs a write to every
    /// session of a room each time.
    pub flush_ms: u32,
    /// A comment that the budget could not show within this many milliseconds is given up.
    pub wait_ms_max: u32,
    /// Guaranteed percentages of a room's budget: notice, high gift, low gift, comment. At most 100
    /// together. The chatservers' gift quotas follow from it.
    pub shares: [u32; 4],
    /// Items waiting in one protected lane of one room, about 300 bytes each. Beyond it they are
    /// left to their journal, which sends them again.
    pub protected_waiting_max: usize,
    /// Comments a second that the lite tier carries.
    pub lite_comments_per_s: u32,
    /// Requests a second for one room's slots, counted as its sessions over the length of a slot,
    /// from which slots become twice and then five times as long. Each doubling halves what the
    /// CDN has to answer and shows everything so much later; lower it where requests are dear.
    pub polls_per_s_max: u32,
    /// Slots that become longer stay at most this long, in milliseconds, where a room does not say
    /// so. No more than a room's own slots: they never become longer.
    pub interval_ms_max: u32,
    /// A clock step or standstill up to this many milliseconds is filled with empty slots; a longer
    /// one opens a new gen.
    pub jump_ms_max: u32,
    /// How long a room must be full before it turns hot, in milliseconds.
    pub hot_hold_ms: u32,
    /// How long a room must be empty before it turns cold, in milliseconds.
    pub cold_hold_ms: u32,
    /// An empty room in which nothing happened for so long, and that writes no segments, does nothing
    /// more until somebody comes or something is to be shown, in seconds. What comes first then waits
    /// some milliseconds for a new gen.
    pub rest_s: u32,
    /// A link's count of people is believed for this many milliseconds.
    pub gauge_ms_max: u32,
    /// Whether rooms are recorded that do not say so themselves (their `archive`). A room that is
    /// recorded writes segments all the time.
    pub archive: bool,
    /// Days for which recordings and their minute files are kept; 0: nothing is recorded. A busy room
    /// takes an estimated 6 MB an hour, and its minute files twice as much.
    pub archive_days: u32,
    /// Slots are kept for this many seconds, about 15 KB a slot and busy room in four files.
    pub retention_s: u32,
    /// Clients spread their polls over this many milliseconds after a slot's end.
    pub spread_ms: u32,
    /// The next slot is held for its interval and this many milliseconds.
    pub hold_extra_ms: u32,
    /// Requests held at a time, about 38 KB each with their connections; more are answered
    /// "not yet" at once.
    pub held_max: usize,
    /// Whether slots are also written for HLS players, as `live.m3u8` and a fragment of MP4 each: a
    /// fifth file a slot, of the size of its JSON.
    pub hls: bool,
    /// How slots are compressed: `gzip`, which every reader of HTTP understands; `br`, about
    /// 3 % smaller for four times the work; `zstd`, which without a dictionary is 2 to 8 % larger for
    /// half as much work again. The last two are for houses whose readers are known to understand
    /// them: nobody is asked. HLS keeps gzip. It may change at any start: slots written before are
    /// served as they are.
    pub encoding: Encoding,
    /// File of a dictionary from `barrage dict train`; empty: none. With one, each slot is also
    /// written as `.zbin` for native clients: two further files a slot.
    pub dictionary: PathBuf,
    /// Viewers that read a room as an FLV stream, over all rooms, an estimated 38 KB each with
    /// their connections; more are answered 503.
    pub live_max: usize,
    /// Bytes of recent segments kept in memory; older ones are read from a store.
    pub recent_bytes_max: usize,
    /// Records waiting for one unit's bus; beyond it flushes are dropped for that unit and counted.
    pub queues_max: usize,
    /// The directory store leaves this many bytes of its disk free. With fewer it takes nothing
    /// more: `up` does not start, a running one fails `/readyz` and serves new slots from memory.
    /// Lower it only where nothing else needs the disk.
    pub free_bytes_min: u64,
    /// Caches before the origin that forget a file when told with `PURGE`, such as
    /// `http://10.0.0.5:80`: they are told when an item was erased. Others keep it for ten minutes.
    pub purge: Vec<String>,
    /// Segments waiting for one store, in each of its [`writers`](Self::writers).
    pub store_queue_max: usize,
    /// Rooms written to one store at a time.
    pub writers: u32,
    /// Longest time for one call to a store, in milliseconds.
    pub store_ms_max: u32,
    /// A slot is announced as sealed without a stored file after this many milliseconds, or at once
    /// while no store works; it is served from memory meanwhile, and `/readyz` fails.
    pub store_wait_ms_max: u32,
    /// How far back `sealed` is read when a room is taken over, in seconds.
    pub takeover_s: u32,
    /// Time for the open slots to be sealed when the process ends, in milliseconds.
    pub drain_ms_max: u32,
    /// Further stores beside the folder `segments` of the data. Each has writers, deadlines and
    /// health of its own; `/readyz` fails when none works.
    pub mirrors: Vec<Mirror>,
    /// Rooms that are pushed to live CDNs over RTMP.
    pub pushes: Vec<Push>,
    /// Bounds of the origin's HTTP server.
    pub http: kit::http::Limits,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            node: NodeId(1),
            auth_url: String::new(),
            secret: Secret::default(),
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            base: String::new(),
            flush_ms: 200,
            wait_ms_max: 3000,
            shares: [10, 30, 20, 40],
            protected_waiting_max: 10_000,
            lite_comments_per_s: 10,
            polls_per_s_max: 300_000,
            interval_ms_max: 5000,
            jump_ms_max: 30_000,
            hot_hold_ms: 2000,
            cold_hold_ms: 10_000,
            rest_s: 300,
            gauge_ms_max: 4000,
            archive: false,
            archive_days: 30,
            retention_s: 600,
            spread_ms: 300,
            hold_extra_ms: 500,
            held_max: 10_000,
            hls: false,
            encoding: Encoding::Gzip,
            dictionary: PathBuf::new(),
            live_max: 2_000,
            recent_bytes_max: 64 * 1024 * 1024,
            queues_max: 1024,
            free_bytes_min: 256 * 1024 * 1024,
            purge: Vec::new(),
            store_queue_max: 256,
            writers: 4,
            store_ms_max: 2000,
            store_wait_ms_max: 3000,
            takeover_s: 120,
            drain_ms_max: 3000,
            mirrors: Vec::new(),
            pushes: Vec::new(),
            // A CDN holds requests of many rooms over one connection.
            http: kit::http::Limits { streams_max: 128, ..kit::http::Limits::default() },
        }
    }
}

impl Config {
    /// Whether keys come over TLS, or stay on this machine.
    fn is_auth_private(&self) -> bool {
        let plain = self.auth_url.strip_prefix("http://").map(str::parse::<SocketAddr>);
        let is_loopback = plain.is_some_and(|it| it.is_ok_and(|it| it.ip().is_loopback()));
        self.auth_url.is_empty() || self.auth_url.starts_with("https://") || is_loopback
    }

    /// Refuses values that cannot work.
    ///
    /// # Errors
    /// Says which value, and why.
    pub fn check(&self) -> anyhow::Result<()> {
        ensure!(self.is_auth_private(), "auth_url is neither https:// nor loopback");
        ensure!(Shares::new(self.shares).is_some(), "shares promise more than 100 %");
        ensure!((20..=1000).contains(&self.flush_ms), "flush_ms is not between 20 and 1000");
        ensure!(self.retention_s > 0, "retention_s is 0");
        ensure!(self.rest_s > 0, "rest_s is 0");
        ensure!(self.writers > 0, "writers is 0");
        ensure!(self.queues_max > 0 && self.store_queue_max > 0, "a queue has no place");
        ensure!(!self.base.ends_with('/'), "base ends with a slash");
        for mirror in &self.mirrors {
            ensure!(!mirror.directory.as_os_str().is_empty(), "a mirror has no directory");
            ensure!(!mirror.base.ends_with('/'), "a mirror's base ends with a slash");
        }
        for cache in &self.purge {
            let is_well = purge::authority(cache).is_some();
            ensure!(is_well, "purge names {cache:?}, which is no http://host:port");
        }
        target::targets(&self.pushes)?;
        let hold_ms = INTERVAL_MS_MAX.saturating_add(self.hold_extra_ms);
        ensure!(hold_ms < self.http.answer_ms_max, "http.answer_ms_max is shorter than a hold");
        ensure!(self.polls_per_s_max > 0, "polls_per_s_max is 0");
        let jump = "jump_ms_max is shorter than a slot";
        ensure!(self.jump_ms_max >= INTERVAL_MS_MIN, jump);
        Ok(())
    }

    const fn archived(&self) -> Archived {
        match (self.archive_days, self.archive) {
            (0, _) => Archived::None,
            (_, false) => Archived::Asked,
            (_, true) => Archived::All,
        }
    }

    /// What the rooms' machines keep to.
    pub(crate) fn house(&self) -> House {
        House {
            flush_ms: self.flush_ms,
            wait_ms_max: self.wait_ms_max,
            protected_waiting_max: self.protected_waiting_max,
            shares: Shares::new(self.shares).unwrap_or_default(),
            jump_ms_max: self.jump_ms_max,
            spread_ms: self.spread_ms,
            lite_comments_per_s: self.lite_comments_per_s,
            hot_hold: millis(self.hot_hold_ms),
            cold_hold: millis(self.cold_hold_ms),
            rest: Duration::from_secs(self.rest_s.into()),
            interval_ms_max: self.interval_ms_max,
            polls_per_s_max: self.polls_per_s_max,
            archived: self.archived(),
        }
    }
}

/// Milliseconds as a duration.
pub(crate) fn millis(ms: u32) -> Duration {
    Duration::from_millis(ms.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_work() {
        Config::default().check().unwrap();
    }

    #[test]
    fn values_that_cannot_work_are_refused() {
        let refused = [
            Config { shares: [50, 50, 1, 0], ..Config::default() },
            Config { flush_ms: 19, ..Config::default() },
            Config { retention_s: 0, ..Config::default() },
            Config { auth_url: "http://192.0.2.1:8003".to_owned(), ..Config::default() },
            Config { auth_url: "http://127.0.0.1.example:8003".to_owned(), ..Config::default() },
            Config { writers: 0, ..Config::default() },
            Config { polls_per_s_max: 0, ..Config::default() },
            Config { base: "https://cdn.example/".to_owned(), ..Config::default() },
            Config { purge: vec!["edge:80".to_owned()], ..Config::default() },
            Config { hold_extra_ms: 10_000, ..Config::default() },
        ];

        for config in refused {
            assert!(config.check().is_err(), "{config:?}");
        }
    }
}
