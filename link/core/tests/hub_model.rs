//! The hub against a model: joins, leaves, switches and reconnects in any order never make a count
//! wrong.
#![expect(clippy::unwrap_used, reason = "a test may stop at what it did not expect")]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use link_core::hub::{Hub, Joined, Member, Refusal};
use proptest::prelude::*;
use proto::control::{RoomFact, RoomSettings};
use proto::id::{AppId, RoomId, SessionId, ViewerId};
use proto::item::Role;

const ROOMS: u8 = 10;

#[derive(Clone, Debug)]
enum Step {
    Join { session: u8, room: u8 },
    Leave { session: u8, room: u8 },
    Switch { session: u8, from: u8, to: u8 },
    Reconnect { session: u8, room: u8 },
    Depart { session: u8 },
}

fn step() -> impl Strategy<Value = Step> {
    let session = 0..24_u8;
    let room = 0..ROOMS;
    prop_oneof![
        4 => (session.clone(), room.clone()).prop_map(|(session, room)| Step::Join { session, room }),
        2 => (session.clone(), room.clone()).prop_map(|(session, room)| Step::Leave { session, room }),
        2 => (session.clone(), room.clone(), room.clone())
            .prop_map(|(session, from, to)| Step::Switch { session, from, to }),
        1 => (session.clone(), room).prop_map(|(session, room)| Step::Reconnect { session, room }),
        1 => session.prop_map(|session| Step::Depart { session }),
    ]
}

/// What should be true: which session sits where.
#[derive(Default)]
struct Model {
    seats: BTreeSet<(u8, u8)>,
}

impl Model {
    fn rooms_of(&self, session: u8) -> usize {
        self.seats.iter().filter(|it| it.0 == session).count()
    }
}

proptest! {
    #[test]
    fn counts_are_right_after_any_steps(steps in prop::collection::vec(step(), 0..200)) {
        let mut hub = Hub::new(usize::from(ROOMS), 7);
        for room in 0..ROOMS {
            hub.learn(&fact(room));
        }
        let mut model = Model::default();

        for step in steps {
            apply(&mut hub, &mut model, &step)?;

            check(&mut hub, &model)?;
        }
    }
}

fn apply(hub: &mut Hub, model: &mut Model, step: &Step) -> Result<(), TestCaseError> {
    match *step {
        Step::Join { session, room } => join(hub, model, session, room),
        Step::Leave { session, room } => leave(hub, model, session, room),
        Step::Switch { session, from, to } => {
            leave(hub, model, session, from)?;
            join(hub, model, session, to)
        }
        Step::Reconnect { session, room } => {
            depart(hub, model, session)?;
            join(hub, model, session, room)
        }
        Step::Depart { session } => depart(hub, model, session),
    }
}

fn join(hub: &mut Hub, model: &mut Model, session: u8, room: u8) -> Result<(), TestCaseError> {
    let there = model.seats.contains(&(session, room));
    let full = model.rooms_of(session) >= proto::limits::ROOMS_PER_SESSION_MAX;
    let expected = match (there, full) {
        (true, _) => Ok(Joined::Again),
        (false, true) => Err(Refusal::TooManyRooms),
        (false, false) => Ok(Joined::Entered),
    };
    prop_assert_eq!(hub.join(&member(session), &room_id(room)), expected);
    if expected.is_ok() {
        model.seats.insert((session, room));
    }
    Ok(())
}

fn leave(hub: &mut Hub, model: &mut Model, session: u8, room: u8) -> Result<(), TestCaseError> {
    let left = hub.leave(&member(session), &room_id(room));
    prop_assert_eq!(left, model.seats.remove(&(session, room)));
    Ok(())
}

fn depart(hub: &mut Hub, model: &mut Model, session: u8) -> Result<(), TestCaseError> {
    let left = hub.depart(&member(session));
    prop_assert_eq!(left.len(), model.rooms_of(session));
    model.seats.retain(|it| it.0 != session);
    Ok(())
}

fn check(hub: &mut Hub, model: &Model) -> Result<(), TestCaseError> {
    let mut sessions: BTreeMap<u8, u32> = BTreeMap::new();
    let mut people: BTreeMap<u8, BTreeSet<ViewerId>> = BTreeMap::new();
    for &(session, room) in &model.seats {
        *sessions.entry(room).or_default() += 1;
        people.entry(room).or_default().insert(member(session).viewer.clone());
    }
    for room in 0..ROOMS {
        let id = room_id(room);
        prop_assert_eq!(hub.sessions(&id), sessions.get(&room).copied().unwrap_or(0));
        prop_assert_eq!(hub.people(&id) as usize, people.get(&room).map_or(0, BTreeSet::len));
    }
    let told = hub.gauges().iter().filter(|it| it.sessions > 0).count();
    prop_assert_eq!(told, sessions.len());
    Ok(())
}

/// Three sessions a viewer.
fn member(session: u8) -> Arc<Member> {
    Arc::new(Member {
        session: SessionId(u64::from(session)),
        app: AppId(1),
        viewer: ViewerId::parse(&format!("viewer-{}", session / 3)).unwrap(),
        role: Role::Viewer,
        may_send: true,
    })
}

fn room_id(room: u8) -> RoomId {
    RoomId::parse(&format!("room-{room}")).unwrap()
}

fn fact(room: u8) -> RoomFact {
    RoomFact {
        app: AppId(1),
        room: room_id(room),
        version: 1,
        open: true,
        settings: RoomSettings::default(),
    }
}
