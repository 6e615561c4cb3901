//! One step of the world, as everybody in it sees it.

use proto::time::{Mono, Wall};

use crate::check::Check;
use crate::network::Network;

/// When it is, whom to write to, and who watches.
pub(crate) struct Turn<'a> {
    pub(crate) now: Now,
    pub(crate) network: &'a mut Network,
    pub(crate) check: &'a mut Check,
}

/// One moment, in the words of each core.
#[derive(Clone, Copy)]
pub(crate) struct Now {
    pub(crate) mono: Mono,
    pub(crate) wall: Wall,
}

impl Now {
    pub(crate) const fn chatserver(self) -> chatserver_core::judge::Now {
        chatserver_core::judge::Now { mono: self.mono, wall: self.wall }
    }

    pub(crate) const fn broadcaster(self) -> broadcaster_core::Now {
        broadcaster_core::Now { mono: self.mono, wall: self.wall }
    }

    pub(crate) const fn link(self) -> link_core::Now {
        link_core::Now { mono: self.mono, wall: self.wall }
    }
}
