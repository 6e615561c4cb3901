//! The chatserver's shell in the world: the bus may be busy, and may deliver twice.

use chatserver_core::judge::Now;
use chatserver_core::sender::SenderSecret;
use chatserver_core::shard::{Input, Limits, Output, Shard};
use proto::control::Fact;
use proto::envelope::{RoomEvent, UplinkEntry};
use proto::id::NodeId;

use crate::network::{Message, Network};

pub(crate) struct Chatserver {
    shard: Shard,
}

impl Chatserver {
    pub(crate) fn new(fact: Fact, now: Now) -> Self {
        let limits = Limits { shard: 1, rooms_max: 4, senders_max: 1000, asked_max: 10_000 };
        let mut shard = Shard::new(limits, SenderSecret::new([7; 32]), now.wall);
        shard.handle(Input::Fact(fact), now);
        Self { shard }
    }

    pub(crate) fn uplink(&mut self, entry: UplinkEntry, now: Now, network: &mut Network) {
        self.shard.handle(Input::Uplink { node: NodeId(1), entry }, now);
        self.drain(now, network);
    }

    pub(crate) fn event(&mut self, event: RoomEvent, now: Now, network: &mut Network) {
        self.shard.handle(Input::Event(event), now);
        self.drain(now, network);
    }

    pub(crate) fn tick(&mut self, now: Now, network: &mut Network) {
        if self.shard.deadline().is_some_and(|it| it <= now.mono) {
            self.shard.tick(now);
            self.drain(now, network);
        }
    }

    fn drain(&mut self, now: Now, network: &mut Network) {
        while let Some(output) = self.shard.poll() {
            match output {
                Output::Publish(accepted) => {
                    let id = accepted.item.id;
                    if network.chance(20) {
                        self.shard.handle(Input::Busy(id), now);
                        continue;
                    }
                    if network.chance(20) {
                        network.send(Message::Accepted(Box::new(accepted.clone())));
                    }
                    network.send(Message::Accepted(Box::new(accepted)));
                    self.shard.handle(Input::Published(id), now);
                }
                Output::Reply { reply, .. } => network.send(Message::Reply(reply)),
            }
        }
    }
}
