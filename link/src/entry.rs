//! Coming into rooms: whether, when, and with whom the limit is shared.
//!
//! Three steps, the cheapest first, all before the login is answered. A rate for each room over all
//! nodes, of which this node takes its part by what nodes tell each other; one bucket for the room,
//! from which what passed is taken, and to which the node owes what it let in too many; and the
//! rooms of a session and the people of a room.

use std::sync::Arc;
use std::time::Duration;

use auth_core::token::Unverified;
use kit::quota::{Ask, Quota, Use};
use link_core::entry::{self, Entry};
use link_core::hub::{self, Member};
use link_core::ring::Reading;
use link_core::session::Claim;
use link_core::turnstile::{Refusal, Seen, TURN, Tally};
use proto::close::CloseCode;
use proto::frame::{Credential, Join, JoinOutcome, Joined, Path};
use proto::id::RoomId;
use proto::item::Role;
use proto::policy::Access;
use proto::time::millis;

use crate::converse::Presence;
use crate::door::Shut;
use crate::node::{Node, Seat};

/// Time for the others to answer; what is not answered by then counts as not heard.
const ANSWER_MAX: Duration = Duration::from_millis(500);
/// A room's bucket holds this part of a second's joins: turns of nodes are not evenly spaced.
const BUCKET_PART: u32 = 4;
/// When to look again whether a room that is full of people has room.
const CROWDED_WAIT: Duration = Duration::from_secs(5);

impl Node {
    /// Refuses a login that could go into none of its rooms now, before it costs a signature.
    ///
    /// What it says of itself is believed for that: whoever lies is found out later.
    pub(crate) fn look(&self, claim: &Claim) -> Result<(), Shut> {
        if may_go_first(&claim.login.credential) {
            return Ok(());
        }
        let looked = self.turnstile.lock().look(&claim.rooms, self.clock.mono());
        looked.map_err(|wait| not_passed(Refusal::Room { wait }))
    }

    /// Lets a session into a room, or says why not.
    pub(crate) fn join(
        &self,
        member: &Arc<Member>,
        presence: &Presence,
        join: &Join,
    ) -> (Joined, Option<Seat>) {
        let room = join.room.clone();
        match self.try_join(member, presence, join) {
            Ok((outcome, seat)) => {
                self.counts.join("in");
                (Joined { room, outcome }, Some(seat))
            }
            Err(Shut { code, name, wait }) => {
                self.counts.join(name);
                let retry_after_ms = self.spread_ms(wait);
                (Joined { room, outcome: JoinOutcome::Refused { code, retry_after_ms } }, None)
            }
        }
    }

    fn try_join(
        &self,
        member: &Arc<Member>,
        presence: &Presence,
        join: &Join,
    ) -> Result<(JoinOutcome, Seat), Shut> {
        let is_banned = self.door.is_banned(member, &join.room, self.clock.wall());
        if is_banned || presence.is_excluded(&join.room) {
            return Err(Shut::of(CloseCode::Banned));
        }
        if presence.access(&join.room) == Access::Refuse {
            self.counts.policy_refusals.inc();
            return Err(Shut::named(CloseCode::NoRoom, "policy"));
        }
        self.hub.lock().check(member, &join.room).map_err(not_seated)?;
        let room = self.rooms.know(&join.room).ok_or_else(|| Shut::of(CloseCode::NoRoom))?;
        let now = self.clock.mono();
        let online = room.read(|ring| ring.people_lately(now));
        let people = self.admit(member, &join.room, online)?;
        self.departures.lock().cancel(member.session, &join.room);
        let reading = match join.path {
            Path::Push if presence.is_promoted() => Reading::Promoted,
            Path::Push | Path::Auto => Reading::Auto,
            Path::Segments => Reading::Segments,
        };
        let (entry, latest, online) = room.listen(reading, &presence.line, |ring| {
            (entry::enter(ring, join.resume, reading), ring.latest(), ring.people())
        });
        // Whoever must go since the first look was not yet among those who are told.
        if presence.is_excluded(&join.room) || presence.is_unwelcome(&join.room) {
            presence.line.review();
        }
        let Entry { heat, path, resumed, news, cursor } = entry;
        // The people in all are known from the room's heat only; until then, those here.
        let online = online.max(people);
        let outcome = JoinOutcome::In { heat, path, resumed, latest, online };
        Ok((outcome, Seat { room, cursor, news }))
    }

    /// Seats a session, if the limits allow it; `online` people are there in all, as far as is
    /// known. Gives the people who are in the room on this node.
    fn admit(&self, member: &Arc<Member>, room: &RoomId, online: u32) -> Result<u32, Shut> {
        let mut hub = self.hub.lock();
        let joined = hub.check(member, room).map_err(not_seated)?;
        if joined == hub::Joined::Entered && !goes_first(member.role) {
            let people_max = self.config.entry.room_people_max;
            let is_crowded = people_max > 0
                && online.max(hub.people(room)) >= people_max
                && !hub.is_here(room, &member.viewer);
            if is_crowded {
                return Err(not_seated(hub::Refusal::Crowded));
            }
            self.turnstile.lock().pass(room, self.clock.mono()).map_err(not_passed)?;
        }
        hub.join(member, room).map_err(not_seated)?;
        Ok(hub.people(room))
    }

    /// A time to come back, drawn, so that many do not come at once; 0 for never.
    fn spread_ms(&self, wait: Duration) -> u32 {
        let wait = u32::try_from(millis(wait)).unwrap_or(u32::MAX);
        wait.saturating_add(self.draw_ms(0, wait / 4))
    }
}

fn not_seated(refusal: hub::Refusal) -> Shut {
    let wait = match refusal {
        hub::Refusal::Crowded => CROWDED_WAIT,
        hub::Refusal::NoRoom
        | hub::Refusal::Closed
        | hub::Refusal::NoGuests
        | hub::Refusal::TooManyRooms => Duration::ZERO,
    };
    Shut { wait, ..Shut::named(refusal.code(), refusal.name()) }
}

fn not_passed(refusal: Refusal) -> Shut {
    match refusal {
        Refusal::Room { wait } => {
            Shut { wait, ..Shut::named(CloseCode::RateLimited, "room_limited") }
        }
        Refusal::Node { wait } => {
            Shut { wait, ..Shut::named(CloseCode::RateLimited, "node_limited") }
        }
    }
}

/// Whoever makes a room what it is comes in, however many others want to.
const fn goes_first(role: Role) -> bool {
    matches!(role, Role::Host | Role::Moderator)
}

/// Whether a token says that its bearer goes first. A resume ticket does not say before it is
/// opened, which is cheap.
fn may_go_first(credential: &Credential) -> bool {
    match credential {
        Credential::Token(text) => {
            Unverified::read(text).is_ok_and(|it| goes_first(it.claims.role()))
        }
        Credential::ResumeTicket(_) => true,
    }
}

/// Tells the other nodes what is wanted here, and hears what they say, for ever.
pub(crate) async fn run(node: Arc<Node>, quota: Arc<dyn Quota>) -> anyhow::Result<()> {
    let mut next = node.clock.mono();
    loop {
        let outcome = if turn(&node, quota.as_ref()).await.is_some() { "ok" } else { "away" };
        node.counts.entry_turn(outcome);
        next = (next + TURN).max(node.clock.mono());
        node.clock.sleep_until(next).await;
    }
}

/// None if nobody answers.
async fn turn(node: &Node, quota: &dyn Quota) -> Option<()> {
    let tallies = node.turnstile.lock().tell(node.clock.mono());
    let uses = tallies.iter().map(|it| Use {
        key: key(&it.room),
        wanted_per_s: it.wanted_per_s,
        passed: it.passed,
    });
    let shared = quota.share(node.config.bus_node(), uses.collect(), node.clock.wall());
    let shared = tokio::time::timeout(ANSWER_MAX, shared).await.ok()?.ok()?;
    let seen = tallies.iter().map(|it| it.room.clone()).zip(shared.seen.iter().map(|it| Seen {
        wanted_per_s: it.wanted_per_s,
        own_per_s: it.own_per_s,
        passed: it.passed,
    }));
    let seen: Vec<_> = seen.collect();
    {
        let mut turnstile = node.turnstile.lock();
        turnstile.hear(shared.nodes, &seen, node.clock.mono());
        node.counts.entry_nodes.set(turnstile.nodes().into());
    }
    pay(node, quota, tallies).await
}

/// Takes what passed from the rooms' buckets.
async fn pay(node: &Node, quota: &dyn Quota, mut tallies: Vec<Tally>) -> Option<()> {
    tallies.retain(|it| it.passed > 0);
    let rate_per_s = node.config.entry.room_joins_per_s;
    let burst = (rate_per_s / BUCKET_PART).max(1);
    let asks =
        tallies.iter().map(|it| Ask { key: key(&it.room), wanted: it.passed, rate_per_s, burst });
    let taken = quota.take(asks.collect(), node.clock.wall());
    let taken = tokio::time::timeout(ANSWER_MAX, taken).await.ok()?;
    let now = node.clock.mono();
    for (tally, taken) in tallies.iter().zip(taken) {
        let missing = tally.passed.saturating_sub(taken.granted);
        node.counts.owed_joins.inc_by(missing.into());
        node.turnstile.lock().owe(&tally.room, missing, now);
    }
    Some(())
}

fn key(room: &RoomId) -> Arc<str> {
    format!("entry:{room}").into()
}
