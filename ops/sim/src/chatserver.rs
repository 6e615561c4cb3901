//! The chatserver's shell in the world: the bus may be busy, and may deliver twice.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use chatserver_core::gift;
use chatserver_core::journal::{self, Journal, Open};
use chatserver_core::judge::Now;
use chatserver_core::sender::SenderSecret;
use chatserver_core::shard::{Input, Limits, Output, Shard};
use proto::control::{Fact, RoomFact};
use proto::envelope::{Accepted, RoomEvent, UplinkEntry};
use proto::id::{AppId, ItemId, NodeId, RoomId, SenderRef};
use proto::item::{Body, Item, Lane, Role};
use proto::time::Mono;

use crate::network::{Message, Network};

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
        let limits = Limits { shard: 1, rooms_max: 4, senders_max: 1000, asked_max: 10_000 };
        let mut shard = Shard::new(limits, SenderSecret::new([7; 32]), now.wall);
        shard.handle(Input::Fact(Fact::Room(fact.clone())), now);
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

    pub(crate) fn uplink(&mut self, entry: UplinkEntry, now: Now, network: &mut Network) {
        self.shard.handle(Input::Uplink { node: NodeId(1), entry }, now);
        self.drain(now, network);
    }

    /// A gift is written to the journal, then published if the bus has a place, then acknowledged.
    pub(crate) fn gift(&mut self, key: u32, now: Now, network: &mut Network) {
        let id = gift::id(self.app, &self.room, &key.to_string());
        if self.keys.insert(id) {
            let lane = [Lane::Notice, Lane::HighGift, Lane::LowGift][key as usize % 3];
            let body = Body::Gift { gift_no: key, count: 1, text: String::new() };
            let (sender, role, at) = (SenderRef(1), Role::Viewer, now.wall);
            let item = Item { id, lane, sender, role, at, body };
            let accepted = Accepted { app: self.app, room: self.room.clone(), item };
            self.open.insert(id, Open { accepted: accepted.clone(), written_at: now.wall });
            if !network.chance(50) {
                publish(accepted, network);
            }
        }
        network.send(Message::Receipt(key, id));
    }

    /// An event of `sealed`.
    pub(crate) fn event(&mut self, event: RoomEvent, now: Now, network: &mut Network) {
        let room = self.room.clone();
        self.journal.handle(journal::Input::Event { room, event: event.clone() }, now);
        self.shard.handle(Input::Event(event), now);
        self.drain(now, network);
    }

    pub(crate) fn tick(&mut self, now: Now, network: &mut Network) {
        if self.scan_at <= now.mono {
            self.scan_at = now.mono + SCAN;
            let open = self.open.values().cloned().collect();
            self.journal.handle(journal::Input::Scan(open), now);
        }
        if self.journal.deadline().is_some_and(|it| it <= now.mono) {
            self.journal.tick(now);
        }
        if self.shard.deadline().is_some_and(|it| it <= now.mono) {
            self.shard.tick(now);
        }
        self.drain(now, network);
    }

    /// Whether every gift was shown and is kept.
    pub(crate) fn is_idle(&self) -> bool {
        self.open.is_empty()
    }

    fn drain(&mut self, now: Now, network: &mut Network) {
        while let Some(output) = self.journal.poll() {
            match output {
                journal::Output::Republish(accepted) => publish(accepted, network),
                journal::Output::Forget { id, .. } => drop(self.open.remove(&id)),
            }
        }
        while let Some(output) = self.shard.poll() {
            match output {
                Output::Publish(accepted) => {
                    let id = accepted.item.id;
                    if network.chance(20) {
                        self.shard.handle(Input::Busy(id), now);
                        continue;
                    }
                    publish(accepted, network);
                    self.shard.handle(Input::Published(id), now);
                }
                Output::Reply { reply, .. } => network.send(Message::Reply(reply)),
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
