//! The queue of leaves.

use std::hint::black_box;
use std::sync::Arc;

use link_core::bucket::Rate;
use link_core::departures::{Departure, Departures};
use link_core::hub::Member;
use proto::id::{AppId, RoomId, SessionId, ViewerId};
use proto::item::Role;
use proto::time::Mono;

use super::DEPARTURES;
use crate::line::Line;
use crate::timing::per_second;

/// Leaves that wait meanwhile.
const WAITING: usize = 100_000;
/// Nothing waits for the pace.
const PACE: Rate = Rate { burst: u32::MAX, per_s: u32::MAX };

pub(super) fn run() -> anyhow::Result<Line> {
    let leaves: Vec<_> = (0..=WAITING as u64).map(leave).collect::<Result<_, _>>()?;
    let mut departures = Departures::new(WAITING + 1, PACE);
    let mut next = leaves.iter().cycle();
    let mut push = |departures: &mut Departures| {
        let leave = next.next().unwrap_or_else(|| unreachable!("a cycle does not end"));
        departures.push(leave.clone())
    };
    for _ in 0..WAITING {
        push(&mut departures)?;
    }
    let mut full = false;
    let rate = per_second(|| {
        full |= push(&mut departures).is_err();
        black_box(departures.poll(Mono(0)));
    });
    anyhow::ensure!(!full && departures.len() == WAITING, "the queue has lost leaves");
    Ok(Line::alone(DEPARTURES, rate, "1/s/core"))
}

fn leave(session: u64) -> anyhow::Result<Departure> {
    Ok(Departure {
        member: Arc::new(Member {
            session: SessionId(session),
            app: AppId(1),
            viewer: ViewerId::parse(&format!("viewer-{session}"))?,
            role: Role::Viewer,
            may_send: true,
        }),
        room: RoomId::parse("storm")?,
    })
}
