//! Who is in which room on this node, and what a room allows.
//!
//! People and sessions are counted apart: one viewer with five tabs is one of the people and five
//! sessions. A leave names its session and removes only that.

mod by_viewer;
mod offers;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound::{Excluded, Unbounded};
use std::sync::Arc;

use proto::close::CloseCode;
use proto::control::RoomFact;
use proto::envelope::RoomGauge;
use proto::id::{AppId, Cid, RoomId, SessionId, ViewerId};
use proto::item::Role;
use proto::limits::ROOMS_PER_SESSION_MAX;
use proto::time::Mono;

use by_viewer::ByViewer;
use offers::Offers;

pub use offers::Offered;

/// A logged-in session, as rooms know it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Member {
    /// Which session.
    pub session: SessionId,
    /// App of the viewer.
    pub app: AppId,
    /// Who.
    pub viewer: ViewerId,
    /// What the viewer is by token.
    pub role: Role,
    /// Whether the token allows sending.
    pub may_send: bool,
}

/// Why a room was not entered.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum Refusal {
    /// No such room in this app.
    #[error("the room does not exist")]
    NoRoom,
    /// The room is closed.
    #[error("the room is closed")]
    Closed,
    /// The room takes no guests.
    #[error("the room takes no guests")]
    NoGuests,
    /// The session is in as many rooms as it may be.
    #[error("the session is in too many rooms")]
    TooManyRooms,
    /// The room holds as many people as it may.
    #[error("the room is full of people")]
    Crowded,
}

impl Refusal {
    /// What the viewer is told.
    #[must_use]
    pub const fn code(self) -> CloseCode {
        match self {
            Self::NoRoom | Self::NoGuests | Self::TooManyRooms => CloseCode::NoRoom,
            Self::Closed => CloseCode::RoomClosed,
            Self::Crowded => CloseCode::Full,
        }
    }

    /// The word in metrics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::NoRoom => "no_room",
            Self::Closed => "room_closed",
            Self::NoGuests => "no_guests",
            Self::TooManyRooms => "too_many_rooms",
            Self::Crowded => "crowded",
        }
    }
}

/// Whether a join changed anything.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Joined {
    /// The session is in the room now.
    Entered,
    /// It was there already.
    Again,
}

/// Rooms, and who is in them.
#[derive(Debug)]
pub struct Hub {
    rooms: BTreeMap<RoomId, Room>,
    /// Every session, with the rooms that it is in.
    sessions: BTreeMap<ByViewer, Box<[RoomId]>>,
    rooms_max: usize,
    /// What nobody outside knows of which comments are passed on.
    secret: u128,
    /// Facts about rooms that found no place.
    refused: u64,
}

#[derive(Debug)]
struct Room {
    app: AppId,
    version: u64,
    open: bool,
    guests: bool,
    offers: Offers,
    /// Whether the last gauges told of it.
    told: bool,
    sessions: BTreeSet<ByViewer>,
    /// How many viewers have these sessions.
    people: usize,
}

impl Hub {
    /// No rooms, no sessions; at most `rooms_max` rooms will be known. Which comments are passed on
    /// when not all are depends on `secret`.
    #[must_use]
    pub const fn new(rooms_max: usize, secret: u128) -> Self {
        Self { rooms: BTreeMap::new(), sessions: BTreeMap::new(), rooms_max, secret, refused: 0 }
    }

    /// How many facts about open rooms were not taken in since the start, because too many rooms
    /// are known.
    #[must_use]
    pub const fn refused(&self) -> u64 {
        self.refused
    }

    /// Takes in a room's settings. Says whether the room is open and known here now; an older
    /// version than the known one changes nothing. A later room of the name, in another app, takes
    /// the place of one that is closed and deserted.
    pub fn learn(&mut self, fact: &RoomFact) -> bool {
        let is_followed = |it: &Room| {
            let is_over = !it.open && it.sessions.is_empty();
            is_over && it.app != fact.app && it.version < fact.version
        };
        if self.rooms.get(&fact.room).is_some_and(is_followed) {
            self.rooms.remove(&fact.room);
        }
        if !self.rooms.contains_key(&fact.room) && self.rooms.len() >= self.rooms_max {
            self.rooms.retain(|_, room| room.open || !room.sessions.is_empty());
            if self.rooms.len() >= self.rooms_max {
                self.refused += u64::from(fact.open);
                return false;
            }
        }
        let room = self.rooms.entry(fact.room.clone()).or_insert_with(|| Room {
            app: fact.app,
            version: 0,
            open: false,
            guests: false,
            offers: Offers::NONE,
            told: false,
            sessions: BTreeSet::new(),
            people: 0,
        });
        if fact.app == room.app && fact.version >= room.version {
            room.version = fact.version;
            room.open = fact.open;
            room.guests = fact.settings.guests;
            room.offers.show(fact.settings.items_per_s);
        }
        room.open
    }

    /// Sets the share of a room's comments that is let through, in thousandths.
    pub fn keep(&mut self, room: &RoomId, keep_permille: u16) {
        if let Some(room) = self.rooms.get_mut(room) {
            room.offers.keep(keep_permille);
        }
    }

    /// What a join would come to, people aside.
    ///
    /// # Errors
    /// Why the session may not be in the room.
    pub fn check(&self, member: &Arc<Member>, room_id: &RoomId) -> Result<Joined, Refusal> {
        let room = self.rooms.get(room_id).filter(|it| it.app == member.app);
        let room = room.ok_or(Refusal::NoRoom)?;
        if !room.open {
            return Err(Refusal::Closed);
        }
        if !room.takes(member) {
            return Err(Refusal::NoGuests);
        }
        match self.sessions.get(&ByViewer::of(member)) {
            Some(rooms) if rooms.contains(room_id) => Ok(Joined::Again),
            Some(rooms) if rooms.len() >= ROOMS_PER_SESSION_MAX => Err(Refusal::TooManyRooms),
            Some(_) | None => Ok(Joined::Entered),
        }
    }

    /// Whether guests may be in the room.
    #[must_use]
    pub fn takes_guests(&self, room: &RoomId) -> bool {
        self.rooms.get(room).is_some_and(|it| it.guests)
    }

    /// Whether the room has become one without guests, and the session is a guest's.
    #[must_use]
    pub fn is_unwelcome(&self, member: &Member, room: &RoomId) -> bool {
        let room = self.rooms.get(room).filter(|it| it.app == member.app);
        room.is_some_and(|it| !it.takes(member))
    }

    /// Lets a session into a room. Joining a room twice counts once.
    ///
    /// # Errors
    /// As [`Hub::check`].
    pub fn join(&mut self, member: &Arc<Member>, room_id: &RoomId) -> Result<Joined, Refusal> {
        let joined = self.check(member, room_id)?;
        if joined == Joined::Entered
            && let Some(room) = self.rooms.get_mut(room_id)
        {
            let rooms = self.sessions.entry(ByViewer::of(member)).or_default();
            *rooms = rooms.iter().chain([room_id]).cloned().collect();
            room.remember(ByViewer::of(member));
        }
        Ok(joined)
    }

    /// Registers a session that is in no room yet, so that a kick finds it.
    pub fn arrive(&mut self, member: &Arc<Member>) {
        self.sessions.entry(ByViewer::of(member)).or_default();
    }

    /// Takes a session out of one room. Says whether it was there.
    pub fn leave(&mut self, member: &Arc<Member>, room_id: &RoomId) -> bool {
        let member = ByViewer::of(member);
        let rooms = self.sessions.get_mut(&member);
        let Some(rooms) = rooms.filter(|it| it.contains(room_id)) else {
            return false;
        };
        *rooms = rooms.iter().filter(|it| *it != room_id).cloned().collect();
        if let Some(room) = self.rooms.get_mut(room_id) {
            room.forget(&member);
        }
        true
    }

    /// Takes a session out of everything; returns the rooms it was in.
    pub fn depart(&mut self, member: &Arc<Member>) -> Box<[RoomId]> {
        let member = ByViewer::of(member);
        let rooms = self.sessions.remove(&member).unwrap_or_default();
        for room_id in &rooms {
            if let Some(room) = self.rooms.get_mut(room_id) {
                room.forget(&member);
            }
        }
        rooms
    }

    /// Counts a comment that is offered to a room, and says whether it is among those passed on.
    pub fn offer(&mut self, room: &RoomId, viewer: &ViewerId, cid: Cid, now: Mono) -> Offered {
        let room = self.rooms.get_mut(room);
        let fate = offers::fate(self.secret, viewer, cid);
        room.map_or(Offered::Kept, |it| it.offers.offer(fate, now))
    }

    /// Sessions of one viewer on this node.
    pub fn sessions_of(&self, app: AppId, viewer: &ViewerId) -> impl Iterator<Item = SessionId> {
        let first = ByViewer::before_all_of(app, viewer);
        let sessions = self.sessions.range(first..).map(|(it, _)| &it.0);
        sessions.take_while(move |it| it.is_of(app, viewer)).map(|it| it.session)
    }

    /// Distinct viewers in a room on this node.
    #[must_use]
    pub fn people(&self, room: &RoomId) -> u32 {
        self.rooms.get(room).map_or(0, |it| count(it.people))
    }

    /// Whether a viewer is in a room on this node.
    #[must_use]
    pub fn is_here(&self, room: &RoomId, viewer: &ViewerId) -> bool {
        self.rooms.get(room).is_some_and(|it| it.holds(viewer))
    }

    /// Sessions in a room on this node.
    #[must_use]
    pub fn sessions(&self, room: &RoomId) -> u32 {
        self.rooms.get(room).map_or(0, |it| count(it.sessions.len()))
    }

    /// Whether the room is known and open.
    #[must_use]
    pub fn is_open(&self, room: &RoomId) -> bool {
        self.rooms.get(room).is_some_and(|it| it.open)
    }

    /// Whether the room is known to be closed.
    #[must_use]
    pub fn is_closed(&self, app: AppId, room: &RoomId) -> bool {
        self.rooms.get(room).is_some_and(|it| it.app == app && !it.open)
    }

    /// Every room with a session here or a comment since the last call, and once more those that
    /// have none any longer. Starts a new count of comments.
    pub fn gauges(&mut self) -> Vec<RoomGauge> {
        let mut gauges = Vec::new();
        for (id, room) in &mut self.rooms {
            let live = !room.sessions.is_empty() || room.offers.comments() > 0;
            if live || room.told {
                gauges.push(RoomGauge {
                    app: room.app,
                    room: id.clone(),
                    people: count(room.people),
                    sessions: count(room.sessions.len()),
                    offered: room.offers.count(),
                });
            }
            room.told = live;
        }
        gauges
    }
}

impl Member {
    /// Whether it is a session of the viewer.
    #[must_use]
    pub fn is_of(&self, app: AppId, viewer: &ViewerId) -> bool {
        (self.app, &self.viewer) == (app, viewer)
    }
}

impl Room {
    fn takes(&self, member: &Member) -> bool {
        self.guests || member.role != Role::Guest
    }

    fn remember(&mut self, member: ByViewer) {
        self.people += usize::from(!self.holds_another(&member));
        self.sessions.insert(member);
    }

    fn forget(&mut self, member: &ByViewer) {
        if self.sessions.remove(member) {
            self.people -= usize::from(!self.holds_another(member));
        }
    }

    /// Whether another session of the same viewer is here: it would be next to this one.
    fn holds_another(&self, member: &ByViewer) -> bool {
        let before = self.sessions.range(..member).next_back();
        let after = self.sessions.range((Excluded(member), Unbounded)).next();
        [before, after].into_iter().flatten().any(|it| it.0.is_of(member.0.app, &member.0.viewer))
    }

    /// Whether a session of the viewer is here.
    fn holds(&self, viewer: &ViewerId) -> bool {
        let first = ByViewer::before_all_of(self.app, viewer);
        self.sessions.range(first..).next().is_some_and(|it| it.0.viewer == *viewer)
    }
}

fn count(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests;
