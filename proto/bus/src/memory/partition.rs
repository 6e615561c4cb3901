//! One partition's records, commits and newest term.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use proto::id::Term;
use proto::limits::RECORD_BYTES_MAX;
use proto::time::{Mono, Wall};

use super::{Limits, lapse};
use crate::topic::Keep;
use crate::{At, Offset, Publish, PublishError, ReadError, Record};

/// What keeping a record costs besides its key and value.
pub(super) const RECORD_OVERHEAD_BYTES: usize = 100;
/// Time between two searches of a full partition for records that nobody needs.
const SWEEP_PAUSE: Duration = Duration::from_secs(1);

/// Both kinds of now: age is measured with the clock that nobody can set.
#[derive(Clone, Copy, Debug)]
pub(super) struct Now {
    pub(super) mono: Mono,
    pub(super) wall: Wall,
}

#[derive(Debug)]
pub(super) struct Partition {
    keep: Keep,
    limits: Limits,
    /// By offset.
    records: BTreeMap<u64, Kept>,
    bytes: usize,
    /// Records before it are gone.
    start: u64,
    /// Offset of the next record.
    next: u64,
    newest_term: Option<Term>,
    commits: BTreeMap<Arc<str>, u64>,
    /// Offset of each key's newest record; compacted topics only.
    by_key: BTreeMap<Arc<str>, u64>,
    swept: Option<Mono>,
}

#[derive(Debug)]
struct Kept {
    record: Record,
    taken: Mono,
}

impl Kept {
    fn bytes(&self) -> usize {
        bytes_of(self.record.key.as_ref(), self.record.value.len())
    }
}

impl Partition {
    pub(super) fn new(keep: Keep, limits: Limits) -> Self {
        Self {
            keep,
            limits,
            records: BTreeMap::new(),
            bytes: 0,
            start: 0,
            next: 0,
            newest_term: None,
            commits: BTreeMap::new(),
            by_key: BTreeMap::new(),
            swept: None,
        }
    }

    /// A newer term counts even if the record is then refused: its holder exists.
    pub(super) fn append(&mut self, it: Publish, now: Now) -> Result<Offset, PublishError> {
        if it.value.len() > RECORD_BYTES_MAX {
            return Err(PublishError::TooLarge { bytes: it.value.len() });
        }
        self.fence(it.term)?;
        let bytes = bytes_of(it.key.as_ref(), it.value.len());
        match self.keep {
            Keep::UntilCommitted => self.refuse_beyond_limits(bytes)?,
            Keep::Recent => self.evict_for(bytes, now.mono),
            Keep::Compacted => self.replace(it.key.clone().unwrap_or_default(), bytes, now)?,
        }
        let offset = self.next;
        self.next += 1;
        self.bytes += bytes;
        let Publish { partition, key, value, .. } = it;
        let record = Record { partition, offset: Offset(offset), at: now.wall, key, value };
        self.records.insert(offset, Kept { record, taken: now.mono });
        Ok(Offset(offset))
    }

    pub(super) fn read(
        &mut self,
        from: Offset,
        records_max: usize,
        now: Now,
    ) -> Result<Vec<Record>, ReadError> {
        self.evict_old(now.mono);
        if from.0 < self.start {
            return Err(ReadError::Gone { oldest: Offset(self.start) });
        }
        let records = self.records.range(from.0..).take(records_max);
        Ok(records.map(|(_, it)| it.record.clone()).collect())
    }

    pub(super) fn locate(&mut self, at: &At, now: Now) -> Offset {
        self.evict_old(now.mono);
        Offset(match at {
            At::Oldest => self.start,
            At::End => self.next,
            At::Time(at) => {
                let found = self.records.iter().find(|(_, it)| it.record.at >= *at);
                found.map_or(self.next, |(&offset, _)| offset)
            }
            At::Committed(group) => {
                self.commits.get(group).map_or(self.start, |&next| next.max(self.start))
            }
        })
    }

    /// A commit never goes back: a late one of a former owner changes nothing.
    pub(super) fn commit(&mut self, group: Arc<str>, next: Offset) {
        let committed = self.commits.entry(group).or_default();
        *committed = next.0.min(self.next).max(*committed);
        if self.keep == Keep::UntilCommitted {
            let done = self.commits.values().copied().min().unwrap_or_default();
            while self.start < done {
                self.remove_first();
            }
        }
    }

    fn fence(&mut self, term: Option<Term>) -> Result<(), PublishError> {
        let Some(given) = term else { return Ok(()) };
        match self.newest_term {
            Some(newest) if given < newest => Err(PublishError::Fenced { given, newest }),
            Some(_) | None => {
                self.newest_term = Some(given);
                Ok(())
            }
        }
    }

    fn refuse_beyond_limits(&self, bytes: usize) -> Result<(), PublishError> {
        let is_full = self.records.len() >= self.limits.records_max
            || self.bytes + bytes > self.limits.bytes_max;
        if is_full { Err(PublishError::Busy) } else { Ok(()) }
    }

    fn evict_for(&mut self, bytes: usize, now: Mono) {
        self.evict_old(now);
        while self.refuse_beyond_limits(bytes).is_err() && !self.records.is_empty() {
            self.remove_first();
        }
    }

    fn evict_old(&mut self, now: Mono) {
        if self.keep != Keep::Recent {
            return;
        }
        let kept = Duration::from_millis(self.limits.recent_ms);
        while self.records.first_key_value().is_some_and(|(_, it)| now.since(it.taken) > kept) {
            self.remove_first();
        }
    }

    /// Removes the record at `start`, which only uncompacted partitions do: theirs have no holes.
    fn remove_first(&mut self) {
        if let Some(kept) = self.records.remove(&self.start) {
            self.bytes -= kept.bytes();
        }
        self.start += 1;
    }

    /// Removes the record that a new one of the same key replaces.
    fn replace(&mut self, key: Arc<str>, bytes: usize, now: Now) -> Result<(), PublishError> {
        if self.would_overflow(&key, bytes) {
            self.sweep(now);
            if self.would_overflow(&key, bytes) {
                return Err(PublishError::Busy);
            }
        }
        if let Some(old) = self.by_key.insert(key, self.next) {
            self.remove(old);
        }
        Ok(())
    }

    fn would_overflow(&self, key: &Arc<str>, bytes: usize) -> bool {
        let old = self.by_key.get(key).and_then(|offset| self.records.get(offset));
        let is_new = old.is_none();
        let freed = old.map_or(0, Kept::bytes);
        (is_new && self.by_key.len() >= self.limits.keys_max)
            || self.bytes - freed + bytes > self.limits.compacted_bytes_max
    }

    fn sweep(&mut self, now: Now) {
        if self.swept.is_some_and(|it| now.mono.since(it) < SWEEP_PAUSE) {
            return;
        }
        self.swept = Some(now.mono);
        let lapsed: Vec<_> = self
            .by_key
            .iter()
            .filter(|(_, offset)| {
                self.records.get(offset).is_none_or(|it| {
                    lapse::has_lapsed(&it.record.value, now.mono.since(it.taken), now.wall)
                })
            })
            .map(|(key, &offset)| (Arc::clone(key), offset))
            .collect();
        for (key, offset) in lapsed {
            self.by_key.remove(&key);
            self.remove(offset);
        }
    }

    fn remove(&mut self, offset: u64) {
        if let Some(kept) = self.records.remove(&offset) {
            self.bytes -= kept.bytes();
        }
    }
}

fn bytes_of(key: Option<&Arc<str>>, value: usize) -> usize {
    key.map_or(0, |it| it.len()) + value + RECORD_OVERHEAD_BYTES
}

#[cfg(test)]
mod tests;
