//! What lies in a ring, and for whom.

use std::sync::Arc;

use proto::frame::Place;
use proto::id::{Gen, Seq, SlotNo};
use proto::time::Mono;

use crate::framing::Frames;

/// How a session reads a room.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Reading {
    /// Push while the room is cold, news only while it is hot.
    Auto,
    /// Push, whatever the heat.
    Promoted,
    /// News only.
    Segments,
}

/// Who a block is for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Audience {
    /// Every session of the room: news.
    Everyone = 0,
    /// Every session on push: a slot of a cold room.
    Push = 1,
    /// Sessions that keep the push: a slot of a hot room.
    Promoted = 2,
    /// Sessions that come back to push: what [`Audience::Promoted`] had already, when a switch to
    /// cold was announced after its first slot.
    Returning = 3,
}

pub(super) const AUDIENCES: usize = 4;

/// Something for each [`Audience`].
pub(super) type ByAudience<T> = [T; AUDIENCES];

impl Reading {
    pub(super) const fn sees(self, audience: Audience) -> bool {
        match (self, audience) {
            (_, Audience::Everyone)
            | (Self::Auto, Audience::Push | Audience::Returning)
            | (Self::Promoted, Audience::Push | Audience::Promoted) => true,
            (Self::Auto, Audience::Promoted)
            | (Self::Promoted, Audience::Returning)
            | (Self::Segments, Audience::Push | Audience::Promoted | Audience::Returning) => false,
        }
    }
}

/// Some frames of one event.
#[derive(Clone, Debug)]
pub(super) struct Block {
    pub(super) position: u64,
    pub(super) audience: Audience,
    pub(super) frames: Arc<Frames>,
    pub(super) since: Mono,
    pub(super) gen_no: Gen,
    pub(super) slot: SlotNo,
    /// First and last place of its items; none in seals and news.
    pub(super) seqs: Option<(Seq, Seq)>,
    pub(super) items: u32,
    /// Those of its items that are not protected.
    pub(super) plain: u32,
    /// Items that are not protected, in all blocks before this one. Such counts wrap around: only
    /// what lies between two of them is asked for.
    pub(super) plain_before: ByAudience<u32>,
}

impl Block {
    pub(super) fn bytes(&self) -> usize {
        self.frames.frame().len()
    }

    pub(super) fn last(&self) -> Option<Place> {
        self.seqs.map(|(_, seq)| Place { gen_no: self.gen_no, seq })
    }

    pub(super) fn first(&self) -> Option<Place> {
        self.seqs.map(|(seq, _)| Place { gen_no: self.gen_no, seq })
    }
}

impl Audience {
    pub(super) const fn wake(self) -> Wake {
        match self {
            Self::Everyone => Wake::Everyone,
            Self::Push | Self::Returning => Wake::Push,
            Self::Promoted => Wake::Promoted,
        }
    }
}

/// What a push changed, and so who must be woken.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Wake {
    /// Nothing new.
    Nobody,
    /// Sessions that keep the push.
    Promoted,
    /// Every session on push.
    Push,
    /// Every session.
    Everyone,
}

impl Wake {
    /// Whether a session that reads like this has something new.
    #[must_use]
    pub const fn concerns(self, reading: Reading) -> bool {
        match (self, reading) {
            (Self::Everyone, _)
            | (Self::Push, Reading::Auto | Reading::Promoted)
            | (Self::Promoted, Reading::Promoted) => true,
            (Self::Nobody, _)
            | (Self::Push | Self::Promoted, Reading::Segments)
            | (Self::Promoted, Reading::Auto) => false,
        }
    }
}
