//! What a connection takes up on the node. However it ends, dropping this gives it back.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use link_core::hub::Member;
use link_core::places::{NoPlace, Places, Site};
use link_core::signs::is_sign;
use parking_lot::Mutex;
use proto::close::CloseCode;
use proto::envelope;
use proto::id::{RoomId, SessionId};
use proto::policy::Access;
use proto::time::Mono;

use crate::accept::Origin;
use crate::door::{Permit, Shut};
use crate::line::Line;
use crate::node::Node;

/// What a connection takes up.
pub(crate) struct Presence {
    pub(super) node: Arc<Node>,
    pub(crate) line: Arc<Line>,
    permit: Option<Box<Permit>>,
    /// None once it is logged in.
    handshake: Option<Box<Handshake>>,
}

/// A place among the connections that are not logged in.
pub(crate) struct Place {
    places: Arc<Mutex<Places>>,
    site: Site,
}

impl Place {
    /// Takes a place for a connection from `site`.
    pub(crate) fn take(places: &Arc<Mutex<Places>>, site: Site) -> Result<Self, NoPlace> {
        places.lock().take(site)?;
        Ok(Self { places: Arc::clone(places), site })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.places.lock().give_back(self.site);
    }
}

/// A connection that is not logged in.
struct Handshake {
    node: Arc<Node>,
    /// When the connection was accepted.
    since: Mono,
    origin: Origin,
    place: Place,
    /// Whether the node turns it away for want of room: however it ends, nobody is to blame.
    is_excused: bool,
    /// Why the node ended it, if it did.
    ended: Option<CloseCode>,
    /// The secret of the TLS connection.
    exporter: Option<[u8; 32]>,
}

impl Drop for Handshake {
    fn drop(&mut self) {
        self.node.traffic.handshakes.fetch_sub(1, Ordering::Relaxed);
        self.node.counts.handshakes.dec();
    }
}

impl Presence {
    /// A connection was accepted.
    pub(crate) fn new(node: &Arc<Node>, place: Place, origin: Origin) -> Self {
        node.traffic.handshakes.fetch_add(1, Ordering::Relaxed);
        node.traffic.changed.notify_one();
        node.counts.handshakes.inc();
        let since = node.clock.mono();
        let handshake = Handshake {
            node: Arc::clone(node),
            since,
            origin,
            place,
            is_excused: false,
            ended: None,
            exporter: None,
        };
        Self {
            line: node.lines.open(node.new_session(), &node.pump),
            permit: None,
            handshake: Some(Box::new(handshake)),
            node: Arc::clone(node),
        }
    }

    pub(super) fn session(&self) -> SessionId {
        self.line.session
    }

    /// When the connection was accepted, until its login is done.
    pub(super) fn since(&self) -> Option<Mono> {
        self.handshake.as_ref().map(|it| it.since)
    }

    /// Where it comes from, as far as one subscriber reaches, until the login is done.
    pub(super) fn address(&self) -> Option<IpAddr> {
        self.handshake.as_ref().map(|it| it.origin.address())
    }

    /// Whether a trusted proxy named its client, until the login is done.
    pub(super) fn is_named(&self) -> bool {
        self.handshake.as_ref().is_some_and(|it| matches!(it.origin, Origin::Named(_)))
    }

    /// The node turns it away for want of room: that is no sign of an attack.
    pub(super) fn excuse(&mut self) {
        if let Some(handshake) = &mut self.handshake {
            handshake.is_excused = true;
        }
    }

    /// A credential was good: a kick can find the session now.
    pub(super) fn arrive(&mut self, mut permit: Permit) {
        permit.address = self.handshake.as_ref().map(|it| it.origin.socket());
        self.node.hub.lock().arrive(&permit.member);
        self.permit = Some(Box::new(permit));
    }

    /// A refresh brought a good credential, which takes the place of the session's if it is the
    /// same viewer's and kicks let it be here. A kick meanwhile finds the session, and what it has.
    pub(super) fn renew(&mut self, mut permit: Permit) -> Result<(), Shut> {
        permit.address = self.permit.as_ref().and_then(|it| it.address);
        let (app, viewer) = (permit.member.app, &permit.member.viewer);
        if !self.member().is_some_and(|it| it.is_of(app, viewer)) {
            return Err(Shut::named(CloseCode::TokenInvalid, "other_account"));
        }
        self.node.door.check_kicks(&permit, self.node.clock.wall())?;
        // A refresh names no device; the session is still the one that the login named.
        let before = self.permit.take();
        permit.device = permit.device.or_else(|| before.and_then(|it| it.device));
        self.permit = Some(Box::new(permit));
        Ok(())
    }

    /// This node ends it so, which counts until the login is done.
    pub(super) fn end(&mut self, code: CloseCode) {
        if let Some(handshake) = &mut self.handshake {
            handshake.ended = Some(code);
        }
    }

    /// Keeps the secret of the TLS connection until the login is done.
    pub(super) fn keep_exporter(&mut self, exporter: Option<[u8; 32]>) {
        if let Some(handshake) = &mut self.handshake {
            handshake.exporter = exporter;
        }
    }

    /// The secret of the TLS connection, until the login is done.
    pub(super) fn exporter(&self) -> Option<&[u8; 32]> {
        self.handshake.as_ref()?.exporter.as_ref()
    }

    /// The login is done. Says whether it was not before.
    pub(super) fn open(&mut self) -> bool {
        let first = self.handshake.take().is_some();
        if first {
            self.node.traffic.sessions.fetch_add(1, Ordering::Relaxed);
            self.node.traffic.logins.fetch_add(1, Ordering::Relaxed);
            self.node.traffic.changed.notify_one();
            self.node.counts.sessions.inc();
        }
        first
    }

    pub(crate) fn is_promoted(&self) -> bool {
        self.permit.as_ref().is_some_and(|it| it.is_promoted())
    }

    /// Whether the session's permission names the room.
    pub(super) fn is_allowed_in(&self, room: &RoomId) -> bool {
        self.permit.as_ref().is_some_and(|it| it.rooms.contains(room))
    }

    /// Whether kicks let the session be here; if not, why.
    pub(super) fn check_kicks(&self) -> Result<(), Shut> {
        let now = self.node.clock.wall();
        self.permit.as_ref().map_or(Ok(()), |it| self.node.door.check_kicks(it, now))
    }

    /// Whether the session's device or its address is excluded from a room, and its viewer is not on
    /// the room's allow-list.
    pub(crate) fn is_excluded(&self, room: &RoomId) -> bool {
        let now = self.node.clock.wall();
        self.permit.as_ref().is_some_and(|it| {
            self.node.door.is_excluded(it, room, now) && !self.is_listed(&it.member, room)
        })
    }

    fn is_listed(&self, member: &Member, room: &RoomId) -> bool {
        self.node.boards.lock().standing(member.app, room, &member.viewer).listed
    }

    /// Where the session comes from, and with what.
    pub(super) fn origin(&self) -> Option<Box<envelope::Origin>> {
        let permit = self.permit.as_ref()?;
        let (address, device) = (permit.address?, permit.device.clone());
        Some(Box::new(envelope::Origin { address, device }))
    }

    /// What the session may do in a room now.
    pub(crate) fn access(&self, room: &RoomId) -> Access {
        self.permit.as_ref().map_or(Access::Refuse, |it| self.node.door.access(it, room))
    }

    /// Whether the session is a guest's, and the room takes none now.
    pub(crate) fn is_unwelcome(&self, room: &RoomId) -> bool {
        self.member().is_some_and(|it| self.node.hub.lock().is_unwelcome(it, room))
    }

    /// Whether policies, exclusions and rooms of the moment let the session stay; if not, why.
    pub(super) fn review<'a>(
        &self,
        mut rooms: impl Iterator<Item = &'a RoomId>,
    ) -> Result<(), CloseCode> {
        if self.permit.as_ref().is_some_and(|it| self.node.door.wants_ticket(it)) {
            return Err(CloseCode::TicketRequired);
        }
        if self.permit.as_ref().is_some_and(|it| it.rooms.iter().any(|it| self.is_excluded(it))) {
            return Err(CloseCode::Banned);
        }
        let may_stay = rooms.all(|it| self.access(it) < Access::Refuse && !self.is_unwelcome(it));
        may_stay.then_some(()).ok_or(CloseCode::NoRoom)
    }

    pub(super) fn leave(&self, room: &RoomId) {
        if let Some(member) = self.member() {
            self.node.leave(member, room);
        }
    }

    /// Takes the session out of all rooms.
    pub(super) fn depart(&self) {
        if let Some(member) = self.member() {
            self.node.depart(member);
        }
    }

    fn member(&self) -> Option<&Arc<Member>> {
        self.permit.as_ref().map(|it| &it.member)
    }
}

impl Drop for Presence {
    fn drop(&mut self) {
        self.depart();
        self.node.lines.close(self.session());
        match &self.handshake {
            None => {
                self.node.traffic.sessions.fetch_sub(1, Ordering::Relaxed);
                self.node.counts.sessions.dec();
            }
            Some(handshake) => {
                let is_own = handshake.is_excused || self.node.is_draining();
                if !is_own && handshake.ended.is_none_or(is_sign) {
                    self.node.signs.lock().note(handshake.place.site, self.node.clock.mono());
                }
            }
        }
        self.node.traffic.changed.notify_one();
    }
}
