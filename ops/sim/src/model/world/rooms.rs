//! Steps that happen to rooms.

use link_core::ring::{Reading, Switch, Wake};
use proto::control::{RoomFact, RoomSettings};
use proto::heat::Heat;

use super::super::due::What;
use super::super::subject::{APP, RING, room_id};
use super::super::timeline::Given;
use super::{World, same};

impl World {
    pub(super) fn learn(&mut self, room: u8, open: bool) {
        let one = &mut self.rooms[usize::from(room)];
        one.version += 1;
        one.is_open = open;
        let settings = RoomSettings::default();
        let fact = RoomFact { app: APP, room: room_id(room), version: one.version, open, settings };
        self.node.hub.learn(&fact);
        let older = RoomFact { version: fact.version - 1, open: !open, ..fact };
        self.node.hub.learn(&older);
    }

    pub(super) fn flush(&mut self, room: u8, comments: u8, gifts: u8) -> Result<(), String> {
        let now = self.now;
        let Some(batch) = self.timeline(room).flush(comments, gifts) else {
            return Ok(());
        };
        let given = self.timeline(room).add(&batch, true, now);
        let wake = self.node.rings[usize::from(room)].flush(batch, now);
        same("who is woken", &wake, &given.wake())?;
        self.give(room, given);
        Ok(())
    }

    pub(super) fn repeat(&mut self, room: u8) -> Result<(), String> {
        let Some(batch) = self.timeline(room).last().cloned() else {
            return Ok(());
        };
        let wake = self.node.rings[usize::from(room)].flush(batch, self.now);
        same("who is woken by what came again", &wake, &Wake::Nobody)
    }

    pub(super) fn lose(&mut self, room: u8, comments: u8) {
        let now = self.now;
        let timeline = self.timeline(room);
        if let Some(batch) = timeline.flush(comments, 0) {
            timeline.add(&batch, false, now);
        }
        timeline.cut();
        self.node.rings[usize::from(room)].cut();
        self.seats.iter_mut().filter(|it| it.0.1 == room).for_each(|it| it.1.cut());
    }

    pub(super) fn seal(&mut self, room: u8) -> Result<(), String> {
        let now = self.now;
        let timeline = self.timeline(room);
        let seal = timeline.seal();
        let given = timeline.end(&seal, now);
        let wake = self.node.rings[usize::from(room)].seal(seal, now);
        same("who is woken", &wake, &given.wake())?;
        self.give(room, given);
        Ok(())
    }

    pub(super) fn turn(&mut self, room: u8, ahead: u8, is_late: bool) -> Result<(), String> {
        let now = self.now;
        let Some(switch) = self.timeline(room).turn(ahead, is_late, now) else {
            return Ok(());
        };
        let ring = &mut self.node.rings[usize::from(room)];
        same("who is woken", &ring.switch(switch, now), &Wake::Everyone)?;
        let older = Switch { heat: other(switch.heat), gen_no: proto::id::Gen(0), ..switch };
        same("who is woken by an older switch", &ring.switch(older, now), &Wake::Nobody)?;
        let (back, news) = self.timeline(room).switch(switch);
        let bytes = proto::frame::Downlink::Control(news.clone()).encode().len();
        for (_, due) in self.seats.iter_mut().filter(|it| it.0.1 == room) {
            if due.reading == Reading::Auto {
                back.whats.iter().for_each(|it| due.push(it.clone()));
            }
            due.push(What::News(news.clone()));
            due.grow(back.bytes + bytes, back.kept_bytes + bytes, now);
        }
        self.covered.turns += 1;
        Ok(())
    }

    /// Every session of the room must get this, if it reads the room so.
    fn give(&mut self, room: u8, given: Given) {
        for (_, due) in self.seats.iter_mut().filter(|it| it.0.1 == room) {
            let is_for_it = match due.reading {
                Reading::Auto => !given.is_hot,
                Reading::Promoted => true,
                Reading::Segments => false,
            };
            if is_for_it {
                given.whats.iter().for_each(|it| due.push(it.clone()));
            }
            due.grow(given.bytes, given.kept_bytes, self.now);
        }
    }

    /// No ring keeps more than it may.
    pub(super) fn check_rings(&self) -> Result<(), String> {
        let most = RING.bytes_max + RING.kept_bytes_max;
        let fullest = self.node.rings.iter().map(link_core::ring::Ring::bytes).max();
        let fits = fullest.is_some_and(|it| it <= most);
        fits.then_some(()).ok_or_else(|| format!("a ring keeps {fullest:?} of {most} bytes"))
    }
}

impl Given {
    const fn wake(&self) -> Wake {
        if self.is_hot { Wake::Promoted } else { Wake::Push }
    }
}

const fn other(heat: Heat) -> Heat {
    match heat {
        Heat::Cold => Heat::Hot,
        Heat::Hot => Heat::Cold,
    }
}
