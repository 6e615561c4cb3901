//! The chatserver's shell in the world: the bus may be busy, and may deliver twice.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use chatserver_core::gift;
use chatserver_core::journal::{self, Journal, Open};
use chatserver_core::sender::SenderSecret;
use chatserver_core::shard::{Input, Limits, Output, Shard};
use proto::control::{Fact, RoomFact};
use proto::envelope::{Accepted, RoomEntry, RoomEvent, UplinkEntry};
use proto::id::{AppId, ItemId, NodeId, RoomId, SenderRef};
use proto::item::{Body, Item, Lane, Role};
use proto::time::Mono;

use crate::network::{Message, Network};
use crate::turn::{Now, Turn};

/// How often open entries are looked at.
const SCAN: Duration = Duration::from_secs(1);

pub(crate) struct Chatserver {
    app: AppId,
    room: RoomId,
    shard: Shard,
    journal: Journal,
    scan_at: Mono,
    /// The room store: keys that were used, and entries that are open.
    keys: BTreeSet<ItemId>,
    open: BTreeMap<ItemId, Open>,
}

impl Chatserver {
    pub(crate) fn new(fact: &RoomFact, now: Now) -> Self {
        let (senders_max, asked_max) = (1000, 10_000);
        let limits = Limits { shard: 1, rooms_max: 4, senders_max, asked_max, nodes_min: 1 };
        let mut shard = Shard::new(limits, SenderSecret::new([7; 32]), now.wall);
        shard.handle(Input::Fact(Fact::Room(fact.clone())), now.chatserver());
        Self {
            app: fact.app,
            room: fact.room.clone(),
            shard,
            journal: Journal::default(),
            scan_at: Mono(0),
            keys: BTreeSet::new(),
            open: BTreeMap::new(),
        }
    }

    pub(crate) fn uplink(&mut self, entry: UplinkEntry, turn: &mut Turn<'_>) {
        self.shard.handle(Input::Uplink { node: NodeId(1), entry }, turn.now.chatserver());
        self.drain(turn);
    }

    /// A gift is written to the journal, then published if the bus has a place, then acknowledged.
    pub(crate) fn gift(&mut self, key: u32, turn: &mut Turn<'_>) {
        let id = gift::id(self.app, &self.room, &key.to_string());
        if self.keys.insert(id) {
            let lane = [Lane::Notice, Lane::HighGift, Lane::LowGift][key as usize % 3];
            let body = Body::Gift { gift_no: key, count: 1, text: String::new() };
            let (sender, role, at) = (SenderRef(1), Role::Viewer, turn.now.wall);
            let item = Item { id, lane, sender, role, at, body };
            let accepted = Accepted { app: self.app, room: self.room.clone(), item };
            self.open.insert(id, Open { accepted: accepted.clone(), written_at: turn.now.wall });
            if !turn.network.chance(50) {
                publish(accepted, turn.network);
            }
        }
        turn.network.send(Message::Receipt(key, id));
    }

    /// An event of `sealed`.
    pub(crate) fn event(&mut self, event: RoomEvent, turn: &mut Turn<'_>) {
        let room = self.room.clone();
        self.journal
            .handle(journal::Input::Event { room, event: event.clone() }, turn.now.chatserver());
        let entry = RoomEntry { app: self.app, room: self.room.clone(), event };
        self.shard.handle(Input::Event(entry), turn.now.chatserver());
        self.drain(turn);
    }

    pub(crate) fn tick(&mut self, turn: &mut Turn<'_>) {
        if self.scan_at <= turn.now.mono {
            self.scan_at = turn.now.mono + SCAN;
            let open = self.open.values().cloned().collect();
            self.journal.handle(journal::Input::Scan(open), turn.now.chatserver());
        }
        if self.journal.deadline().is_some_and(|it| it <= turn.now.mono) {
            self.journal.tick(turn.now.chatserver());
        }
        if self.shard.deadline().is_some_and(|it| it <= turn.now.mono) {
            self.shard.tick(turn.now.chatserver());
        }
        self.drain(turn);
    }

    /// Whether every gift was shown and is kept.
    pub(crate) fn is_idle(&self) -> bool {
        self.open.is_empty()
    }

    fn drain(&mut self, turn: &mut Turn<'_>) {
        while let Some(output) = self.journal.poll() {
            match output {
                journal::Output::Republish(accepted) => publish(accepted, turn.network),
                journal::Output::Forget { id, .. } => drop(self.open.remove(&id)),
            }
        }
        while let Some(output) = self.shard.poll() {
            match output {
                Output::Publish(accepted) => {
                    let id = accepted.item.id;
                    if turn.network.chance(20) {
                        self.shard.handle(Input::Busy(id), turn.now.chatserver());
                        continue;
                    }
                    publish(accepted, turn.network);
                    self.shard.handle(Input::Published(id), turn.now.chatserver());
                }
                Output::Reply { reply, .. } => turn.network.send(Message::Reply(reply)),
                // No link says here what it was offered, and nothing is reviewed.
                Output::Tell(_) | Output::Review(_) | Output::Unasked(_) => {}
            }
        }
    }
}

fn publish(accepted: Accepted, network: &mut Network) {
    if network.chance(20) {
        network.send(Message::Accepted(Box::new(accepted.clone())));
    }
    network.send(Message::Accepted(Box::new(accepted)));
}
