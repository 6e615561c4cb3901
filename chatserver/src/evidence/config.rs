//! `[chatserver.evidence]`: the ledger of comments.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::ensure;
use proto::id::AppId;
use serde::{Deserialize, Serialize};

/// The ledger of comments.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields, rename_all = "snake_case")]
pub struct EvidenceConfig {
    /// Whether comments are put down, with who sent them and from where.
    pub enabled: bool,
    /// Folder of the files, for its owner alone; a chatserver has one in it by its node's number.
    pub folder: PathBuf,
    /// Days that an app's records are kept, unless `retention` says otherwise.
    pub retention_days: u32,
    /// Apps whose records are kept for another time.
    pub retention: Vec<Retention>,
    /// Bytes of all files. A comment takes 60 to 100, compressed: the default has place for some
    /// 200 million. Beyond it the oldest file is removed before its time, and counted: watch
    /// `chatserver_evidence_files_removed_total{why="full"}`.
    pub bytes_max: u64,
    /// Bytes of one file; it is closed a day after it was opened in any case. Each of up
    /// to four exports, of different apps, holds one file at a time in memory.
    pub file_bytes_max: u64,
    /// Records that wait for the disk, about 500 bytes each. Beyond it records are lost, and
    /// counted; comments never wait.
    pub waiting_max: u32,
}

/// How long the records of one app are kept.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub struct Retention {
    /// Which app.
    pub app: AppId,
    /// How long.
    pub days: u32,
}

impl Default for EvidenceConfig {
    fn default() -> Self {
        Self {
            enabled: false,
            folder: PathBuf::from("evidence"),
            retention_days: 180,
            retention: Vec::new(),
            bytes_max: 20 * 1024 * 1024 * 1024,
            file_bytes_max: 32 * 1024 * 1024,
            waiting_max: 200_000,
        }
    }
}

impl EvidenceConfig {
    /// Checks what the types do not.
    ///
    /// # Errors
    /// Says which value, and why.
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        const MIB: u64 = 1024 * 1024;
        let days = self.retention.iter().map(|it| it.days).chain([self.retention_days]);
        ensure!(
            days.into_iter().all(|it| (1..=36_500).contains(&it)),
            "evidence is kept for 1 to 36,500 days"
        );
        ensure!(
            (MIB..=1024 * MIB).contains(&self.file_bytes_max),
            "evidence.file_bytes_max must be 1 MiB to 1 GiB"
        );
        ensure!(
            self.bytes_max >= self.file_bytes_max.saturating_mul(2),
            "evidence.bytes_max must have place for two files"
        );
        ensure!(self.waiting_max > 0, "evidence.waiting_max must be > 0");
        Ok(())
    }

    /// How long an app's records are kept.
    pub(super) fn retention(&self, app: AppId) -> Duration {
        let own = self.retention.iter().find(|it| it.app == app);
        let days = own.map_or(self.retention_days, |it| it.days);
        Duration::from_hours(24 * u64::from(days))
    }
}
