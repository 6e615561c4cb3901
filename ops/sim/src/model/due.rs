//! What a session must get from a room, and whether what it got is that.

use std::collections::VecDeque;

use link_core::ring::Reading;
use proto::frame::{Control, Downlink, Place};
use proto::id::{Gen, SlotNo};
use proto::time::Mono;

use super::subject::RING;

/// One thing that a session must get.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum What {
    Item { place: Place, is_protected: bool },
    Seal { gen_no: Gen, slot: SlotNo },
    News(Control),
}

/// What waits for a session in a room.
#[derive(Debug)]
pub(super) struct Due {
    pub(super) reading: Reading,
    queue: VecDeque<What>,
    /// Bytes that came into the ring since the session last read, and those of them that must not
    /// be missed.
    bytes: usize,
    kept_bytes: usize,
    /// When the first of them came.
    since: Option<Mono>,
    /// Records were lost meanwhile.
    is_cut: bool,
    /// It comes back: seals of what it missed may be told again.
    replays: bool,
}

/// What a reading came to.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Read {
    pub(super) items: u64,
    pub(super) skipped: u64,
    /// The last item.
    pub(super) shown: Option<Place>,
}

impl Due {
    pub(super) const fn new(reading: Reading) -> Self {
        Self {
            reading,
            queue: VecDeque::new(),
            bytes: 0,
            kept_bytes: 0,
            since: None,
            is_cut: false,
            replays: false,
        }
    }

    /// What lies in the ring already, and is given to a session that comes back.
    pub(super) const fn replay(&mut self) {
        self.replays = true;
    }

    pub(super) fn push(&mut self, what: What) {
        self.queue.push_back(what);
    }

    /// So many bytes came into the ring, whether they are for this session or not.
    pub(super) fn grow(&mut self, bytes: usize, kept_bytes: usize, at: Mono) {
        self.bytes += bytes;
        self.kept_bytes += kept_bytes;
        self.since = Some(self.since.map_or(at, |it| it.min(at)));
    }

    pub(super) const fn cut(&mut self) {
        self.is_cut = true;
    }

    /// Whether what must not be missed may have been lost, so that the session has to go.
    pub(super) const fn may_be_slow(&self) -> bool {
        self.kept_bytes > RING.kept_bytes_max
    }

    /// Whether the session may have to skip: more waits than its share, or it fell off the ring.
    fn may_skip(&self, share: usize, now: Mono) -> bool {
        let is_old = self.since.is_some_and(|it| now.since(it) > RING.keep);
        self.bytes > share || self.is_cut || is_old
    }

    /// The session read all that waited; `share` is what may wait for it.
    pub(super) fn check(
        &mut self,
        frames: Vec<Downlink>,
        share: usize,
        now: Mono,
    ) -> Result<Read, String> {
        let mut passed = Passed::default();
        let mut read = Read::default();
        for frame in frames {
            match frame {
                Downlink::Batch(batch) => {
                    for placed in &batch.items {
                        let place = Place { gen_no: batch.gen_no, seq: placed.seq };
                        let is_protected = placed.item.lane.is_protected();
                        self.got(&What::Item { place, is_protected }, &mut passed)?;
                        read.items += 1;
                        read.shown = Some(place);
                    }
                }
                Downlink::Seal(seal) => {
                    let what = What::Seal { gen_no: seal.gen_no, slot: seal.slot };
                    if !self.replays || self.queue.contains(&what) {
                        self.got(&what, &mut passed)?;
                    }
                }
                Downlink::Control(control) => self.got(&What::News(control), &mut passed)?,
                Downlink::Skipped { items, .. } => read.skipped += u64::from(items),
                other @ (Downlink::Welcome(_)
                | Downlink::LoginOk(_)
                | Downlink::Refused(_)
                | Downlink::Ack(_)
                | Downlink::Joined(_)
                | Downlink::Pong { .. }
                | Downlink::Close(_)) => return Err(format!("a room sent {other:?}")),
            }
        }
        while let Some(what) = self.queue.pop_front() {
            passed.over(&what)?;
        }
        if read.skipped != passed.items {
            return Err(format!("skipped {}, but {} are missing", read.skipped, passed.items));
        }
        let has_left_out = passed.items > 0 || passed.seals > 0 && !self.replays;
        if has_left_out && !self.may_skip(share, now) {
            return Err(format!("left out, though only {} of {share} bytes waited", self.bytes));
        }
        *self = Self::new(self.reading);
        Ok(read)
    }

    fn got(&mut self, what: &What, passed: &mut Passed) -> Result<(), String> {
        if !self.queue.contains(what) {
            return Err(format!("got {what:?}, which was not due: again, or out of order"));
        }
        while let Some(next) = self.queue.pop_front() {
            if next == *what {
                return Ok(());
            }
            passed.over(&next)?;
        }
        Ok(())
    }
}

/// What was left out.
#[derive(Default)]
struct Passed {
    items: u64,
    seals: u64,
}

impl Passed {
    fn over(&mut self, what: &What) -> Result<(), String> {
        match what {
            What::Item { is_protected: false, .. } => self.items += 1,
            What::Seal { .. } => self.seals += 1,
            What::Item { is_protected: true, .. } | What::News(_) => {
                return Err(format!("{what:?} never came"));
            }
        }
        Ok(())
    }
}
