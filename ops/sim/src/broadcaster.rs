//! The broadcaster's shell in the world: `sealed` and `downlink` are one way, the store a map.

use std::collections::BTreeMap;

use broadcaster_core::Now;
use broadcaster_core::room::{Input, Output, Room};
use broadcaster_core::settings::{House, Settings};
use proto::control::RoomFact;
use proto::envelope::RoomEvent;
use proto::head::GenInfo;
use proto::heat::Heat;
use proto::id::{Gen, SlotNo};
use proto::item::Item;
use proto::segment::Segment;

use crate::network::{Message, Network};

pub(crate) struct Broadcaster {
    room: Room,
    /// The segment store.
    pub(crate) segments: BTreeMap<SlotNo, Segment>,
}

impl Broadcaster {
    pub(crate) fn new(fact: &RoomFact) -> Self {
        let room = Room::new(Settings::new(fact, House::default()), Gen(0), Heat::Cold);
        Self { room, segments: BTreeMap::new() }
    }

    pub(crate) fn item(&mut self, item: Item, now: Now, network: &mut Network) {
        self.room.handle(Input::Item(item), now);
        self.drain(now, network);
    }

    /// Links counted so many sessions.
    pub(crate) fn gauge(&mut self, sessions: u32, now: Now, network: &mut Network) {
        self.room.handle(Input::Gauge { people: sessions, sessions }, now);
        self.drain(now, network);
    }

    pub(crate) fn tick(&mut self, now: Now, network: &mut Network) {
        if self.room.deadline().is_some_and(|it| it <= now.mono) {
            self.room.tick(now);
        }
        self.drain(now, network);
    }

    /// Whether everything taken in has its fate and is sealed.
    pub(crate) fn is_idle(&self) -> bool {
        self.room.is_idle()
    }

    fn drain(&mut self, now: Now, network: &mut Network) {
        while let Some(output) = self.room.poll() {
            let event = match output {
                Output::WantGen { after, epoch_ms, interval_ms } => {
                    let gen_no = Gen(after.0 + 1);
                    let info = GenInfo { gen_no, epoch_ms, interval_ms, layout: 1 };
                    self.room.handle(Input::Gen(info), now);
                    continue;
                }
                Output::Opened(GenInfo { gen_no, epoch_ms, interval_ms, .. }) => {
                    RoomEvent::Opened { gen_no, epoch_ms, interval_ms }
                }
                Output::Flush(it) => RoomEvent::Flush {
                    gen_no: it.gen_no,
                    slot: it.slot,
                    part: it.part,
                    at: it.at,
                    items: it.items,
                },
                Output::Fates(told) => {
                    RoomEvent::Fates { fates: told.iter().map(|it| (it.id, it.fate)).collect() }
                }
                Output::Seal(sealed) => {
                    let header = &sealed.full.header;
                    let (gen_no, slot) = (header.gen_no, header.slot);
                    let items = u32::try_from(sealed.full.items.len()).unwrap_or(u32::MAX);
                    let crc = sealed.crc;
                    self.segments.insert(slot, sealed.full);
                    RoomEvent::Seal { gen_no, slot, items, crc }
                }
                Output::Heat { heat, gen_no, slot, online } => {
                    RoomEvent::Heat { heat, gen_no, slot, online }
                }
                // Comments only: no protected lane can be full, and the room is never closed.
                Output::Deferred(..) | Output::Ended => continue,
            };
            if network.chance(10) {
                network.send(Message::Room(Box::new(event.clone())));
            }
            network.send(Message::Room(Box::new(event)));
        }
    }
}
