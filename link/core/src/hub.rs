//! Who is in which room on this node, and what a room allows.
//!
//! People and sessions are counted apart: one viewer with five tabs is one of the people and five
//! sessions. A leave names its session and removes only that.

use std::collections::{BTreeMap, BTreeSet};

use proto::close::CloseCode;
use proto::control::RoomFact;
use proto::envelope::RoomGauge;
use proto::id::{AppId, RoomId, SessionId, ViewerId};
use proto::item::Role;
use proto::limits::ROOMS_PER_SESSION_MAX;

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
    /// No such room in this app, or it is closed.
    #[error("the room does not exist or is closed")]
    NoRoom,
    /// The room takes no guests.
    #[error("the room takes no guests")]
    NoGuests,
    /// The session is in as many rooms as it may be.
    #[error("the session is in too many rooms")]
    TooManyRooms,
}

impl Refusal {
    /// What the viewer is told.
    #[must_use]
    pub const fn code(self) -> CloseCode {
        match self {
            Self::NoRoom | Self::NoGuests | Self::TooManyRooms => CloseCode::NoRoom,
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
    sessions: BTreeMap<SessionId, Seated>,
    viewers: BTreeMap<(AppId, ViewerId), BTreeSet<SessionId>>,
    rooms_max: usize,
}

#[derive(Debug)]
struct Room {
    app: AppId,
    version: u64,
    open: bool,
    guests: bool,
    keep_permille: u16,
    offered: u32,
    /// Whether the last gauges told of it.
    told: bool,
    sessions: BTreeSet<SessionId>,
    /// Sessions of each viewer in this room; their number is the number of people.
    people: BTreeMap<ViewerId, u32>,
}

/// A session and the rooms it is in.
#[derive(Debug)]
struct Seated {
    member: Member,
    rooms: Vec<RoomId>,
}

/// Thousandths.
const ALL: u16 = 1000;

impl Hub {
    /// No rooms, no sessions; at most `rooms_max` rooms will be known.
    #[must_use]
    pub const fn new(rooms_max: usize) -> Self {
        Self {
            rooms: BTreeMap::new(),
            sessions: BTreeMap::new(),
            viewers: BTreeMap::new(),
            rooms_max,
        }
    }

    /// Takes in a room's settings. Says whether the room is open and known here now; an older
    /// version than the known one changes nothing.
    pub fn learn(&mut self, fact: &RoomFact) -> bool {
        if !self.rooms.contains_key(&fact.room) && self.rooms.len() >= self.rooms_max {
            self.rooms.retain(|_, room| room.open || !room.sessions.is_empty());
            if self.rooms.len() >= self.rooms_max {
                return false;
            }
        }
        let room = self.rooms.entry(fact.room.clone()).or_insert_with(|| Room {
            app: fact.app,
            version: 0,
            open: false,
            guests: false,
            keep_permille: ALL,
            offered: 0,
            told: false,
            sessions: BTreeSet::new(),
            people: BTreeMap::new(),
        });
        if fact.app == room.app && fact.version >= room.version {
            room.version = fact.version;
            room.open = fact.open;
            room.guests = fact.settings.guests;
        }
        room.open
    }

    /// Sets the share of a room's comments that is let through, in thousandths.
    pub fn keep(&mut self, room: &RoomId, keep_permille: u16) {
        if let Some(room) = self.rooms.get_mut(room) {
            room.keep_permille = keep_permille.min(ALL);
        }
    }

    /// Lets a session into a room. Joining a room twice counts once.
    pub fn join(&mut self, member: &Member, room_id: &RoomId) -> Result<Joined, Refusal> {
        let room = self.rooms.get_mut(room_id).filter(|it| it.open && it.app == member.app);
        let room = room.ok_or(Refusal::NoRoom)?;
        if member.role == Role::Guest && !room.guests {
            return Err(Refusal::NoGuests);
        }
        let seated = self.sessions.get(&member.session);
        if seated.is_some_and(|it| it.rooms.contains(room_id)) {
            return Ok(Joined::Again);
        }
        if seated.is_some_and(|it| it.rooms.len() >= ROOMS_PER_SESSION_MAX) {
            return Err(Refusal::TooManyRooms);
        }
        room.sessions.insert(member.session);
        *room.people.entry(member.viewer.clone()).or_default() += 1;
        self.arrive(member);
        if let Some(seated) = self.sessions.get_mut(&member.session) {
            seated.rooms.push(room_id.clone());
        }
        Ok(Joined::Entered)
    }

    /// Registers a session that is in no room yet, so that a kick finds it.
    pub fn arrive(&mut self, member: &Member) {
        if self.sessions.contains_key(&member.session) {
            return;
        }
        let seated = Seated { member: member.clone(), rooms: Vec::new() };
        self.sessions.insert(member.session, seated);
        let key = (member.app, member.viewer.clone());
        self.viewers.entry(key).or_default().insert(member.session);
    }

    /// Takes a session out of one room. Says whether it was there.
    pub fn leave(&mut self, session: SessionId, room_id: &RoomId) -> bool {
        let Some(seated) = self.sessions.get_mut(&session) else {
            return false;
        };
        let Some(position) = seated.rooms.iter().position(|it| it == room_id) else {
            return false;
        };
        seated.rooms.remove(position);
        if let Some(room) = self.rooms.get_mut(room_id) {
            room.forget(session, &seated.member.viewer);
        }
        true
    }

    /// Takes a session out of everything; returns the rooms it was in.
    pub fn depart(&mut self, session: SessionId) -> Vec<RoomId> {
        let Some(seated) = self.sessions.remove(&session) else {
            return Vec::new();
        };
        for room_id in &seated.rooms {
            if let Some(room) = self.rooms.get_mut(room_id) {
                room.forget(session, &seated.member.viewer);
            }
        }
        let key = (seated.member.app, seated.member.viewer);
        if let Some(sessions) = self.viewers.get_mut(&key) {
            sessions.remove(&session);
            if sessions.is_empty() {
                self.viewers.remove(&key);
            }
        }
        seated.rooms
    }

    /// Counts a comment that is offered to a room, and says whether it is among those let through.
    ///
    /// Which ones is fixed by the session and its number, so a repeated comment has one fate.
    pub fn offer(&mut self, room: &RoomId, session: SessionId, cid: u64) -> bool {
        let Some(room) = self.rooms.get_mut(room) else {
            return true;
        };
        room.offered = room.offered.saturating_add(1);
        room.keep_permille == ALL
            || scatter(session.0 ^ scatter(cid)) % 1000 < u64::from(room.keep_permille)
    }

    /// Sessions of one viewer on this node.
    pub fn sessions_of(&self, app: AppId, viewer: &ViewerId) -> impl Iterator<Item = SessionId> {
        self.viewers.get(&(app, viewer.clone())).into_iter().flatten().copied()
    }

    /// Distinct viewers in a room on this node.
    #[must_use]
    pub fn people(&self, room: &RoomId) -> u32 {
        self.rooms.get(room).map_or(0, |it| count(it.people.len()))
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

    /// Every room with a session here or a comment since the last call, and once more those that
    /// have none any longer. Starts a new count of comments.
    pub fn gauges(&mut self) -> Vec<RoomGauge> {
        let mut gauges = Vec::new();
        for (id, room) in &mut self.rooms {
            let live = !room.sessions.is_empty() || room.offered > 0;
            if live || room.told {
                gauges.push(RoomGauge {
                    app: room.app,
                    room: id.clone(),
                    people: count(room.people.len()),
                    sessions: count(room.sessions.len()),
                    offered: std::mem::take(&mut room.offered),
                });
            }
            room.told = live;
        }
        gauges
    }
}

impl Room {
    fn forget(&mut self, session: SessionId, viewer: &ViewerId) {
        self.sessions.remove(&session);
        if let Some(sessions) = self.people.get_mut(viewer) {
            *sessions -= 1;
            if *sessions == 0 {
                self.people.remove(viewer);
            }
        }
    }
}

fn count(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}

/// SplitMix64's finisher: neighbouring numbers land far apart.
const fn scatter(number: u64) -> u64 {
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

#[cfg(test)]
mod tests {
    use proto::control::RoomSettings;

    use super::*;

    #[test]
    fn one_viewer_with_two_sessions_is_one_of_the_people() {
        let mut hub = hub();
        hub.join(&member(1, "a"), &room("r")).unwrap();
        hub.join(&member(2, "a"), &room("r")).unwrap();
        hub.join(&member(3, "b"), &room("r")).unwrap();

        assert_eq!((hub.people(&room("r")), hub.sessions(&room("r"))), (2, 3));

        assert!(hub.leave(SessionId(1), &room("r")));
        assert!(!hub.leave(SessionId(1), &room("r")));
        assert_eq!((hub.people(&room("r")), hub.sessions(&room("r"))), (2, 2));
    }

    #[test]
    fn an_unknown_closed_or_foreign_room_is_refused() {
        let mut hub = hub();
        let closed = RoomFact { version: 2, open: false, ..fact("r") };

        assert_eq!(hub.join(&member(1, "a"), &room("x")), Err(Refusal::NoRoom));
        let foreigner = Member { app: AppId(2), ..member(1, "a") };
        assert_eq!(hub.join(&foreigner, &room("r")), Err(Refusal::NoRoom));

        hub.learn(&closed);
        assert_eq!(hub.join(&member(1, "a"), &room("r")), Err(Refusal::NoRoom));

        hub.learn(&fact("r"));
        assert_eq!(hub.join(&member(1, "a"), &room("r")), Err(Refusal::NoRoom), "older fact");
    }

    #[test]
    fn guests_stay_out_where_they_are_not_wanted() {
        let mut hub = hub();
        let guest = Member { role: Role::Guest, ..member(1, "g") };
        let mut private = fact("r");
        private.version = 2;
        private.settings.guests = false;

        assert_eq!(hub.join(&guest, &room("r")), Ok(Joined::Entered));
        hub.depart(SessionId(1));
        hub.learn(&private);

        assert_eq!(hub.join(&guest, &room("r")), Err(Refusal::NoGuests));
        assert_eq!(hub.join(&member(2, "a"), &room("r")), Ok(Joined::Entered));
    }

    #[test]
    fn a_share_of_the_comments_is_kept_and_all_are_counted() {
        let mut hub = hub();
        hub.join(&member(1, "a"), &room("r")).unwrap();
        hub.keep(&room("r"), 250);

        let kept = (0..4000).filter(|&cid| hub.offer(&room("r"), SessionId(1), cid)).count();

        assert!((800..1200).contains(&kept), "{kept} of 4000");
        assert_eq!(hub.gauges()[0].offered, 4000);
        assert_eq!(hub.gauges()[0].offered, 0);
    }

    #[test]
    fn known_rooms_are_bounded_and_closed_ones_give_way() {
        let mut hub = Hub::new(1);
        assert!(hub.learn(&fact("a")));
        assert!(!hub.learn(&fact("b")));

        hub.learn(&RoomFact { version: 2, open: false, ..fact("a") });

        assert!(hub.learn(&fact("b")));
    }

    fn hub() -> Hub {
        let mut hub = Hub::new(10);
        hub.learn(&fact("r"));
        hub
    }

    fn fact(name: &str) -> RoomFact {
        RoomFact {
            app: AppId(1),
            room: room(name),
            version: 1,
            open: true,
            settings: RoomSettings::default(),
        }
    }

    fn member(session: u64, viewer: &str) -> Member {
        Member {
            session: SessionId(session),
            app: AppId(1),
            viewer: ViewerId::parse(viewer).unwrap(),
            role: Role::Viewer,
            may_send: true,
        }
    }

    fn room(name: &str) -> RoomId {
        RoomId::parse(name).unwrap()
    }
}
