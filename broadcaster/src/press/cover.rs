//! Slots of sealed rooms: written under the key of their gen, or kept until it is there.
//!
//! Never is one of them written in the clear. What waits is given up, oldest first, beyond a bound:
//! it was pushed, and its file stays missing, which tells pollers that they missed something.

use std::collections::VecDeque;

use auth_core::room_key::{RoomKey, Unopened};
use broadcaster_core::erase::rewrite;
use broadcaster_core::pack::compress;
use broadcaster_core::room::Sealed;
use bytes::Bytes;
use futures_util::future::{BoxFuture, FutureExt};
use proto::head::{GenInfo, SEALED};
use proto::id::{ItemId, RoomId};
use proto::sealed::{NONCE_BYTES, is_sealed};
use proto::segment::{Header, Segment};

use super::{Press, Ticket};
use crate::press::files::Printer;
use crate::room_keys::RoomKeys;
use crate::store::{Ext, File};

/// Steps of one room that wait for a key: two minutes of the usual room.
const WAITING_MAX: usize = 120;

/// What a slot is written under.
#[derive(Debug)]
pub(super) enum Cover {
    /// Nothing: the room is open.
    Clear,
    /// The key of its gen, and a nonce for each tier.
    Sealed { key: RoomKey, nonces: [[u8; NONCE_BYTES]; 2] },
}

/// What happens to a room's files, in this order.
#[derive(Debug)]
pub(super) enum Step {
    /// A gen was opened.
    Opened(GenInfo),
    /// A slot is to be written.
    Seal(Ticket, Box<Sealed>),
}

/// Steps that wait for the key that the first of them needs.
#[derive(Debug, Default)]
pub(super) struct Waiting(VecDeque<Step>);

impl Waiting {
    fn slots(&self) -> usize {
        self.0.iter().filter(|it| matches!(it, Step::Seal(..))).count()
    }
}

impl Printer {
    /// The one file of a segment of a sealed room.
    pub(super) fn print_sealed(
        &self,
        segment: &Segment,
        key: &RoomKey,
        nonce: [u8; NONCE_BYTES],
    ) -> (File, Bytes) {
        let Header { room, gen_no, slot, tier, .. } = &segment.header;
        let (room, gen_no, tier, slot) = (room.clone(), *gen_no, *tier, *slot);
        let file = File::Segment { room, gen_no, tier, slot, ext: Ext::Bin };
        let packed = compress(&segment.encode(), self.packing.encoding);
        let sealed = key.seal(&file.to_string(), &packed, nonce);
        (file, sealed.into())
    }
}

/// Why a file cannot be written anew now.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the key of a sealed file is not held, or there is no randomness")]
pub(super) struct Unready;

/// The files of a slot without these items; none if none of them is in there. `file` is the binary
/// form, and `bytes` what lies there.
pub(super) fn without(
    ids: &[ItemId],
    file: &File,
    bytes: &Bytes,
    printer: &Printer,
    keys: &RoomKeys,
) -> Result<Vec<(File, Bytes)>, Unready> {
    let clear = match keys.open(file, bytes) {
        Ok(clear) => clear,
        Err(Unopened::NoKey { .. }) => return Err(Unready),
        Err(Unopened::NotSealed | Unopened::Closed) => return Ok(Vec::new()),
    };
    // Whatever is no segment holds no item that could be read.
    let Some(segment) = rewrite(&clear, ids).ok().flatten() else {
        return Ok(Vec::new());
    };
    if !is_sealed(bytes) {
        return Ok(printer.print(&segment));
    }
    let key = keys.sealing(&segment.header.room, segment.header.gen_no).ok_or(Unready)?;
    let nonce = kit::seed::random_bytes().map_err(|_| Unready)?;
    Ok(vec![printer.print_sealed(&segment, &key, nonce)])
}

impl Press {
    /// Does a step, or keeps it behind those that wait.
    pub(super) fn step(
        &mut self,
        room: &RoomId,
        step: Step,
    ) -> Option<BoxFuture<'static, Option<Ticket>>> {
        let printed = self.rooms.get_mut(room)?;
        printed.waiting.0.push_back(step);
        if printed.waiting.0.len() > 1 {
            return self.give_up(room);
        }
        let done = self.next(room);
        self.show_waiting(room);
        done
    }

    /// Goes on with what waited for keys that came.
    pub(super) fn catch_up(&mut self) -> Vec<BoxFuture<'static, Option<Ticket>>> {
        let mut done = Vec::new();
        let waits = self.rooms.iter().filter(|(_, it)| !it.waiting.0.is_empty());
        let rooms: Vec<RoomId> = waits.map(|(room, _)| room.clone()).collect();
        for room in rooms {
            done.extend(std::iter::from_fn(|| self.next(&room)));
            self.show_waiting(&room);
        }
        done
    }

    /// What waits now is written nowhere.
    pub(super) fn end_waiting(&mut self) {
        let slots: usize = self.rooms.values().map(|it| it.waiting.slots()).sum();
        self.counts.lost_slots(slots);
    }

    /// Does the first step of those that wait, if it can be done.
    fn next(&mut self, room: &RoomId) -> Option<BoxFuture<'static, Option<Ticket>>> {
        let first = self.rooms.get(room)?.waiting.0.front()?;
        let cover = match first {
            Step::Opened(_) => Cover::Clear,
            Step::Seal(_, sealed) => self.cover(room, sealed)?,
        };
        match self.rooms.get_mut(room)?.waiting.0.pop_front()? {
            Step::Opened(info) => self.open(room, info),
            Step::Seal(ticket, sealed) => self.seal(ticket, *sealed, &cover),
        }
    }

    /// What a slot is to be written under; none while the key is missing.
    fn cover(&self, room: &RoomId, sealed: &Sealed) -> Option<Cover> {
        if sealed.layout != SEALED {
            return Some(Cover::Clear);
        }
        let key = self.keys.sealing(room, sealed.full.header.gen_no)?;
        let nonces = kit::seed::random_bytes().and_then(|it| Ok([it, kit::seed::random_bytes()?]));
        match nonces {
            Ok(nonces) => Some(Cover::Sealed { key, nonces }),
            Err(error) => {
                tracing::error!(%error, "no randomness to seal a slot with");
                None
            }
        }
    }

    /// Gives up the oldest slot that waits, if there are too many.
    fn give_up(&mut self, room: &RoomId) -> Option<BoxFuture<'static, Option<Ticket>>> {
        let waiting = &mut self.rooms.get_mut(room)?.waiting.0;
        let oldest = waiting.iter().position(|it| matches!(it, Step::Seal(..)));
        let lost = oldest.filter(|_| waiting.len() > WAITING_MAX).and_then(|it| waiting.remove(it));
        self.show_waiting(room);
        let Step::Seal(ticket, _) = lost? else {
            return None;
        };
        self.counts.lost_slots(1);
        Some(std::future::ready(Some(ticket)).boxed())
    }

    fn show_waiting(&self, room: &RoomId) {
        if let Some(printed) = self.rooms.get(room) {
            self.keys.waits(room, printed.waiting.slots());
        }
    }

    /// The files of a slot.
    pub(super) fn files(&self, sealed: &Sealed, cover: &Cover) -> Vec<(File, Bytes)> {
        let tiers = [&sealed.full, &sealed.lite];
        match cover {
            Cover::Clear => tiers.into_iter().flat_map(|it| self.printer.print(it)).collect(),
            Cover::Sealed { key, nonces } => {
                let tiers = tiers.into_iter().zip(*nonces);
                tiers.map(|(it, nonce)| self.printer.print_sealed(it, key, nonce)).collect()
            }
        }
    }
}
