//! Turns that are under way: what they say has its time already, and is not yet put down.
//!
//! A turn lasts as long as the bus lets it wait, so that no length of time says when what was said
//! before some moment is in the files.

use std::collections::BTreeMap;
use std::sync::Arc;

use kit::clock::Clock;
use parking_lot::Mutex;
use proto::time::Wall;

/// All of them; as many as there are tasks that take turns.
#[derive(Debug, Default)]
pub(super) struct Turns(Mutex<Open>);

#[derive(Debug, Default)]
struct Open {
    begun: u64,
    at: BTreeMap<u64, Wall>,
}

/// One of them, until it is dropped.
#[derive(Debug)]
pub(super) struct Begun {
    turns: Arc<Turns>,
    no: u64,
    /// The time of what it says.
    pub(super) at: Wall,
}

impl Turns {
    /// A turn begins now.
    pub(super) fn begin(self: &Arc<Self>, clock: &Clock) -> Begun {
        let mut open = self.0.lock();
        // Under the lock: nobody may be told meanwhile that nothing earlier comes.
        let at = clock.wall();
        let no = open.begun;
        open.begun += 1;
        open.at.insert(no, at);
        Begun { turns: Arc::clone(self), no, at }
    }

    /// What a turn said before then is put down, or lost.
    pub(super) fn earliest(&self, clock: &Clock) -> Wall {
        let open = self.0.lock();
        open.at.values().copied().chain([clock.wall()]).min().unwrap_or_default()
    }
}

impl Drop for Begun {
    fn drop(&mut self) {
        self.turns.0.lock().at.remove(&self.no);
    }
}
