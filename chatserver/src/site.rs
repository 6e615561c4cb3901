//! What every part of a chatserver works with: time, metrics, the two buses, the room store.

use chatserver_core::judge::Now;
use kit::clock::Clock;
use kit::health::Part;
use parking_lot::Mutex;

use crate::announce::Untold;
use crate::config::Config;
use crate::count::Counts;
use crate::mail::Mail;
use crate::store::rows::Rows;

/// What every part works with.
#[derive(Debug)]
pub(crate) struct Site {
    pub(crate) config: Config,
    pub(crate) clock: Clock,
    pub(crate) counts: Counts,
    /// The bus of `accepted`, `sealed`, `gauges` and `control`.
    pub(crate) global: Mail,
    /// The unit's bus, of `uplink` and `reply`.
    pub(crate) local: Mail,
    pub(crate) rows: Rows,
    /// Whether the store answers.
    pub(crate) store: Part,
    /// What waits to be told.
    pub(crate) untold: Mutex<Untold>,
    /// Whether everyone can be told everything.
    pub(crate) told: Part,
}

impl Site {
    /// Both kinds of time.
    pub(crate) fn now(&self) -> Now {
        Now { mono: self.clock.mono(), wall: self.clock.wall() }
    }
}
