//! Kicks, bans, excluded devices and addresses, and void epochs, as `control` tells them, bounded.

mod exclusion;
mod void;

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::time::Duration;

use foldhash::HashMap;
use proto::control::Fact;
use proto::id::{AppId, DeviceId, RoomId, ViewerId};
use proto::time::Wall;

use exclusion::Exclusions;

pub use void::{VOIDS_MAX, Voids};

/// How long a not-before counts: nothing that was issued earlier lives longer.
pub const NOT_BEFORE_LIFE: Duration = crate::ticket::LIFE_MAX;
/// Kept so much longer than it counts: a clock that is ahead for a while forgets nothing.
const SLACK: Duration = Duration::from_secs(24 * 60 * 60);

/// Who was kicked, who is banned, what is excluded, which epochs are void.
///
/// One entry per (app, room, account), about 200 bytes. When kicks exceed `entries_max`, the
/// oldest gives way and everything issued before it is refused instead, whoever it was issued
/// to: too strict for some, never too lax. When bans or exclusions do, the one that ends first
/// gives way.
#[derive(Clone, Debug)]
pub struct Revocations {
    kicks: Dated,
    bans: Dated,
    exclusions: Exclusions,
    /// Everything issued earlier is refused.
    floor: Wall,
    /// No kick is later.
    newest_kick: Wall,
    voids: Voids,
    entries_max: usize,
}

type Subject = (AppId, RoomId, ViewerId);

/// What a kick makes of a permission.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Standing {
    /// Nothing.
    Good,
    /// The viewer was kicked after it was issued.
    Kicked,
    /// It bears a time after the kick by less than servers' clocks may be apart, so it may have
    /// been issued before. One that bears this time or a later one is beyond doubt.
    Doubtful {
        /// The first such time.
        until: Wall,
    },
}

impl Revocations {
    /// No revocations yet; at most `entries_max` kicks, as many bans and as many exclusions will
    /// be kept.
    #[must_use]
    pub fn new(entries_max: usize) -> Self {
        Self {
            kicks: Dated::default(),
            bans: Dated::default(),
            exclusions: Exclusions::default(),
            floor: Wall(0),
            newest_kick: Wall(0),
            voids: Voids::default(),
            entries_max,
        }
    }

    /// Takes note of a fact; facts about other things are passed over.
    pub fn handle(&mut self, fact: &Fact, now: Wall) {
        match fact {
            Fact::Kick { app, room, viewer, not_before } => {
                let subject = (*app, room.clone(), viewer.clone());
                self.kick(subject, *not_before, now);
            }
            Fact::Ban { app, room, viewer, until } => {
                let subject = (*app, room.clone(), viewer.clone());
                self.ban(subject, *until, now);
            }
            Fact::Exclude { app, room, what, until } => {
                let place = (*app, room.clone(), what.clone());
                self.exclusions.set(place, *until, self.entries_max, now);
            }
            Fact::Revoked { kid, from_epoch, to_epoch } => {
                self.voids.add(*kid, *from_epoch, *to_epoch);
            }
            Fact::Epoch(_)
            | Fact::Room(_)
            | Fact::Mute { .. }
            | Fact::Close { .. }
            | Fact::Keep { .. }
            | Fact::Heat { .. }
            | Fact::Bases { .. }
            | Fact::Move { .. }
            | Fact::Lease(_)
            | Fact::Policy(_)
            | Fact::Sdk(_)
            | Fact::Words { .. }
            | Fact::Catalogue(_)
            | Fact::Person { .. }
            | Fact::Attribute { .. }
            | Fact::Sealed { .. } => {}
        }
    }

    /// Forgets what does not count any more.
    pub fn tick(&mut self, now: Wall) {
        self.kicks.forget_before(now - NOT_BEFORE_LIFE - SLACK);
        self.bans.forget_before(now - SLACK);
        self.exclusions.forget_before(now - SLACK);
    }

    /// Whether the viewer was kicked from one of `rooms` after something was issued at `issued`.
    #[must_use]
    pub fn is_kicked(&self, app: AppId, rooms: &[RoomId], viewer: &ViewerId, issued: Wall) -> bool {
        issued < self.not_before(app, rooms, viewer)
    }

    /// What kicks make of a permission for `rooms` that bears the time `issued`.
    ///
    /// Who issued it and who kicked read two clocks, which may be apart by `skew`: a permission is
    /// good from the kick's time on and that much later.
    #[must_use]
    pub fn standing(
        &self,
        app: AppId,
        rooms: &[RoomId],
        viewer: &ViewerId,
        issued: Wall,
        skew: Duration,
    ) -> Standing {
        let not_before = self.not_before(app, rooms, viewer);
        let until = not_before + skew;
        if issued < not_before {
            Standing::Kicked
        } else if issued < until && not_before > Wall(0) {
            Standing::Doubtful { until }
        } else {
            Standing::Good
        }
    }

    /// The latest kick that counts for the viewer in one of `rooms`; 0 if none does.
    fn not_before(&self, app: AppId, rooms: &[RoomId], viewer: &ViewerId) -> Wall {
        let kicks = rooms.iter().filter_map(|room| self.kicks.of(app, room, viewer));
        kicks.fold(self.floor, Wall::max)
    }

    /// Whether anybody was kicked after `issued`: most tokens are younger than every kick, and
    /// need no look at who was kicked.
    #[must_use]
    pub fn is_any_kicked(&self, issued: Wall) -> bool {
        issued < self.newest_kick
    }

    /// Whether the viewer is banned from one of `rooms`.
    #[must_use]
    pub fn is_banned(&self, app: AppId, rooms: &[RoomId], viewer: &ViewerId, now: Wall) -> bool {
        rooms.iter().any(|room| self.bans.of(app, room, viewer).is_some_and(|until| now < until))
    }

    /// Whether a session that names this device, or comes from this address, may not be in one of
    /// `rooms`.
    #[must_use]
    pub fn is_excluded(
        &self,
        app: AppId,
        rooms: &[RoomId],
        device: Option<&DeviceId>,
        address: Option<IpAddr>,
        now: Wall,
    ) -> bool {
        !self.exclusions.is_empty()
            && rooms.iter().any(|room| self.exclusions.holds(app, room, device, address, now))
    }

    /// Whether an epoch of a master was declared void.
    #[must_use]
    pub fn is_void(&self, kid: u8, epoch: u32) -> bool {
        self.voids.is_void(kid, epoch)
    }

    /// Kicks, bans and exclusions kept.
    #[must_use]
    pub fn len(&self) -> usize {
        self.kicks.at.len() + self.bans.at.len() + self.exclusions.len()
    }

    /// Whether nothing of this is kept.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn kick(&mut self, subject: Subject, not_before: Wall, now: Wall) {
        if not_before + NOT_BEFORE_LIFE + SLACK < now {
            return;
        }
        // Two chatservers' clocks differ a little: what is refused stays refused.
        let known = self.kicks.at.get(&subject).copied().unwrap_or_default();
        self.newest_kick = self.newest_kick.max(not_before);
        self.kicks.put(subject, not_before.max(known));
        if self.kicks.at.len() > self.entries_max {
            let oldest = self.kicks.pop_first().unwrap_or_default();
            self.floor = self.floor.max(oldest);
        }
    }

    fn ban(&mut self, subject: Subject, until: Wall, now: Wall) {
        if until + SLACK <= now {
            self.bans.remove(&subject);
            return;
        }
        self.bans.put(subject, until);
        if self.bans.at.len() > self.entries_max {
            self.bans.pop_first();
        }
    }
}

/// A time per subject, and the subjects by time.
#[derive(Clone, Debug, Default)]
struct Dated {
    at: HashMap<Subject, Wall>,
    order: BTreeSet<(Wall, Subject)>,
}

impl Dated {
    /// Putting a subject together allocates nothing.
    fn of(&self, app: AppId, room: &RoomId, viewer: &ViewerId) -> Option<Wall> {
        self.at.get(&(app, room.clone(), viewer.clone())).copied()
    }

    fn put(&mut self, subject: Subject, at: Wall) {
        self.remove(&subject);
        self.order.insert((at, subject.clone()));
        self.at.insert(subject, at);
    }

    fn remove(&mut self, subject: &Subject) {
        if let Some(at) = self.at.remove(subject) {
            self.order.remove(&(at, subject.clone()));
        }
    }

    fn pop_first(&mut self) -> Option<Wall> {
        let (at, subject) = self.order.pop_first()?;
        self.at.remove(&subject);
        Some(at)
    }

    fn forget_before(&mut self, before: Wall) {
        while self.order.first().is_some_and(|(at, _)| *at < before) {
            self.pop_first();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const APP: AppId = AppId(1);

    fn room(name: &str) -> RoomId {
        RoomId::parse(name).unwrap()
    }

    fn viewer(name: &str) -> ViewerId {
        ViewerId::parse(name).unwrap()
    }

    fn kick(name: &str, not_before: Wall) -> Fact {
        Fact::Kick { app: APP, room: room("r"), viewer: viewer(name), not_before }
    }

    fn ban(name: &str, until: Wall) -> Fact {
        Fact::Ban { app: APP, room: room("r"), viewer: viewer(name), until }
    }

    #[test]
    fn a_kick_refuses_what_was_issued_before_it_in_its_room() {
        let mut revocations = Revocations::new(10);
        revocations.handle(&kick("u", Wall(5_000)), Wall(5_000));
        let is_kicked = |rooms: &[RoomId], name: &str, issued| {
            revocations.is_kicked(APP, rooms, &viewer(name), Wall(issued))
        };

        assert!(is_kicked(&[room("q"), room("r")], "u", 4_999));
        assert!(!is_kicked(&[room("r")], "u", 5_000));
        assert!(!is_kicked(&[room("q")], "u", 4_999));
        assert!(!is_kicked(&[room("r")], "v", 4_999));
    }

    #[test]
    fn what_was_issued_about_the_time_of_a_kick_is_doubtful_while_clocks_may_be_apart() {
        let mut revocations = Revocations::new(10);
        revocations.handle(&kick("u", Wall(5_000)), Wall(5_000));
        let standing = |name: &str, issued| {
            let skew = Duration::from_secs(30);
            revocations.standing(APP, &[room("r")], &viewer(name), Wall(issued), skew)
        };

        let doubtful = Standing::Doubtful { until: Wall(35_000) };
        assert_eq!(standing("u", 4_999), Standing::Kicked);
        assert_eq!([standing("u", 5_000), standing("u", 34_999)], [doubtful, doubtful]);
        assert_eq!(standing("u", 35_000), Standing::Good);
        assert_eq!(standing("v", 0), Standing::Good);
    }

    #[test]
    fn a_second_kick_does_not_take_back_the_first() {
        let mut revocations = Revocations::new(10);

        revocations.handle(&kick("u", Wall(5_000)), Wall(5_000));
        revocations.handle(&kick("u", Wall(4_000)), Wall(5_000));

        assert!(revocations.is_kicked(APP, &[room("r")], &viewer("u"), Wall(4_500)));
    }

    #[test]
    fn a_kick_is_kept_a_day_longer_than_a_ticket_lives() {
        let mut revocations = Revocations::new(10);
        revocations.handle(&kick("u", Wall(5_000)), Wall(5_000));

        revocations.tick(Wall(5_000) + NOT_BEFORE_LIFE + SLACK);
        assert_eq!(revocations.len(), 1);

        revocations.tick(Wall(5_001) + NOT_BEFORE_LIFE + SLACK);
        assert!(revocations.is_empty());
    }

    #[test]
    fn a_kick_that_gave_way_still_refuses() {
        let mut revocations = Revocations::new(2);
        for (name, at) in [("a", 1_000), ("b", 2_000), ("c", 3_000)] {
            revocations.handle(&kick(name, Wall(at)), Wall(3_000));
        }

        assert_eq!(revocations.len(), 2);
        assert!(revocations.is_kicked(APP, &[room("r")], &viewer("a"), Wall(999)));
        assert!(!revocations.is_kicked(APP, &[room("r")], &viewer("a"), Wall(1_000)));
        assert!(revocations.is_kicked(APP, &[room("r")], &viewer("b"), Wall(1_999)));
    }

    #[test]
    fn a_ban_holds_until_its_time_or_its_end() {
        let mut revocations = Revocations::new(10);
        revocations.handle(&ban("u", Wall(9_000)), Wall(0));
        revocations.handle(&ban("v", Wall(9_000)), Wall(0));
        revocations.handle(&ban("v", Wall(0)), Wall(0));
        let is_banned =
            |name, now| revocations.is_banned(APP, &[room("r")], &viewer(name), Wall(now));

        assert!(is_banned("u", 8_999));
        assert!(!is_banned("u", 9_000));
        assert!(!is_banned("v", 1));
    }

    #[test]
    fn void_epochs_are_a_range_of_one_master() {
        let mut revocations = Revocations::new(10);
        revocations.handle(&Fact::Revoked { kid: 1, from_epoch: 5, to_epoch: 7 }, Wall(0));

        assert!(revocations.is_void(1, 5) && revocations.is_void(1, 7));
        assert!(!revocations.is_void(1, 4) && !revocations.is_void(1, 8));
        assert!(!revocations.is_void(2, 6));
    }
}
