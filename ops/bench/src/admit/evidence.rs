//! What a chatserver puts down of a turn, as far as its core and its writer's thread go: not the
//! disk.

use std::collections::BTreeMap;

use chatserver_core::ledger::{Comment, Record, What, pack};
use chatserver_core::shard::Input;
use proto::envelope::{Act, UplinkEntry};
use proto::frame::Outcome;
use proto::time::Wall;

/// The comments of one turn, with what their senders were told.
pub(super) struct Turn {
    said: Vec<Record>,
    /// Where each of them stands.
    places: BTreeMap<Comment, usize>,
}

impl Turn {
    /// Hears what is about to be judged.
    pub(super) fn hear(comments: &[Input], at: Wall) -> Self {
        let (mut said, mut places) = (Vec::new(), BTreeMap::new());
        for comment in comments {
            let Input::Uplink { node, entry } = comment else { continue };
            let UplinkEntry { session, act: Act::Comment { cid, text, .. }, .. } = entry else {
                continue;
            };
            let comment = Comment { node: *node, session: *session, cid: *cid };
            places.insert(comment, said.len());
            said.push(Record {
                at,
                room: Some(entry.room.clone()),
                account: Some(entry.viewer.clone()),
                what: What::Said {
                    comment,
                    role: entry.role,
                    taken_at: entry.at,
                    address: entry.origin.as_ref().map(|it| it.address),
                    device: entry.origin.as_ref().and_then(|it| it.device.clone()),
                    text: text.clone(),
                    outcome: None,
                },
            });
        }
        Self { said, places }
    }

    /// Its sender was told this of a comment.
    pub(super) fn tell(&mut self, comment: Comment, told: Outcome) {
        if let Some(place) = self.places.remove(&comment)
            && let What::Said { outcome, .. } = &mut self.said[place].what
        {
            *outcome = Some(told);
        }
    }

    /// What the ledger's writer makes of it.
    pub(super) fn pack(&self) -> Vec<u8> {
        pack(&self.said)
    }
}
