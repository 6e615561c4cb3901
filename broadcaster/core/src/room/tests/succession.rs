//! A stage's room dies, and another broadcaster goes on with what `sealed` says.

use std::collections::BTreeMap;

use proto::envelope::RoomEvent;

use super::*;
use crate::takeover::Found;

impl Stage {
    /// Another broadcaster takes the room over: it knows what was published, and what the newest
    /// segment announces. What waited is lost with the one before.
    pub(super) fn take_over(&mut self, settings: &RoomSettings) {
        let mut found = Found::default();
        for event in self.events() {
            found.observe(event);
        }
        let announced = self.seals.last().and_then(|it| it.full.header.next);
        let newest = found.gen_no().max(announced.map(|it| it.gen_no)).unwrap_or_default();
        self.room = Room::new(limits(settings), newest, found.heat());
        let Some(info) = found.info() else { return };
        self.tell(Input::Resume(Box::new(found.resume(info))));
        if let Some(next) = announced.filter(|it| it.gen_no > info.gen_no) {
            self.tell(Input::Gen(next));
        }
    }

    /// What the room said on `sealed`: of each gen its opening, its flushes, its seals.
    fn events(&self) -> Vec<RoomEvent> {
        let mut events = Vec::new();
        for &GenInfo { gen_no, epoch_ms, interval_ms, layout } in &self.opened {
            events.push(RoomEvent::Opened { gen_no, epoch_ms, interval_ms, layout });
            let flushes = self.flushes.iter().filter(|it| it.gen_no == gen_no).cloned();
            events.extend(flushes.map(|Flush { gen_no, slot, part, at, items }| {
                RoomEvent::Flush { gen_no, slot, part, at, items }
            }));
            let seals = self.seals.iter().filter(|it| it.full.header.gen_no == gen_no);
            events.extend(seals.map(|it| {
                let slot = it.full.header.slot;
                RoomEvent::Seal { gen_no, slot, items: 0, crc: it.crc }
            }));
        }
        let shed = self.fates.iter().filter(|it| matches!(it.fate, Fate::Shed { .. }));
        let shed: BTreeMap<_, _> = shed.map(|it| (it.id, it.fate)).collect();
        events.push(RoomEvent::Fates { fates: shed.into_iter().collect() });
        let heats = self.heats.iter().map(|&(heat, gen_no, slot)| RoomEvent::Heat {
            heat,
            gen_no,
            slot,
            online: 0,
        });
        events.extend(heats);
        events
    }
}
