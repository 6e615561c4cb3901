//! Where the sessions of a besieged node go, and when they are told to.
//!
//! They go to reserve addresses of other nodes of their unit: nobody who was not told knows these,
//! and resume tickets hold there.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::time::Duration;

use proto::address::Address;
use proto::id::NodeId;
use proto::limits::MOVE_ADDRESSES_MAX;
use proto::time::Mono;

use crate::fleet::Fleet;

/// Shortest time over which a node's sessions leave, in milliseconds.
const WINDOW_MS_MIN: u64 = 1_000;
/// Longest: an attack lasts, and so long viewers are held up by it.
const WINDOW_MS_MAX: u64 = 30_000;
/// What part of their logins a second the nodes that take the sessions in use for that: one in so
/// many, since viewers go on arriving.
const LOGINS_PART: u64 = 2;
/// Who has not left this long after the window is told again.
const GRACE: Duration = Duration::from_secs(5);

/// A node's sessions are to leave.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Move {
    /// Which node.
    pub node: NodeId,
    /// Over how many milliseconds.
    pub window_ms: u32,
    /// Where to, nodes of its region first, and the emptiest of these; at most
    /// [`MOVE_ADDRESSES_MAX`]. Empty: there is nowhere, and the sessions stay.
    pub addresses: Vec<Address>,
}

/// Remembers who was told, so that each siege moves the sessions once, and stragglers again.
#[derive(Debug, Default)]
pub struct Moves {
    /// By besieged node, when it may be told next.
    told: BTreeMap<NodeId, Mono>,
}

impl Moves {
    /// The moves that are due now.
    pub fn plan(&mut self, fleet: &Fleet, now: Mono) -> Vec<Move> {
        self.told.retain(|node, _| fleet.besieged().contains(node));
        let mut moves = Vec::new();
        for &node in fleet.besieged() {
            if self.told.get(&node).is_some_and(|next| now < *next) {
                continue;
            }
            if let Some(it) = plan(fleet, node) {
                let window = Duration::from_millis(it.window_ms.into());
                self.told.insert(node, now + window + GRACE);
                moves.push(it);
            }
        }
        moves
    }
}

/// Nothing for a node without sessions.
fn plan(fleet: &Fleet, node: NodeId) -> Option<Move> {
    let besieged = fleet.report(node).filter(|it| it.load.sessions > 0)?;
    let mut others: Vec<_> = fleet
        .live()
        .map(|(_, member)| &member.report)
        .filter(|it| it.unit == besieged.unit && it.node != node)
        .filter(|it| !it.reserve.is_empty() && !it.load.besieged && !it.load.draining)
        .collect();
    others.sort_by_key(|it| {
        let free = it.load.sessions_max.saturating_sub(it.load.sessions);
        (it.region != besieged.region, Reverse(free), it.node)
    });
    let mut addresses = Vec::new();
    let mut logins_per_s = 0;
    for other in others {
        if addresses.len() + other.reserve.len() > MOVE_ADDRESSES_MAX {
            break;
        }
        addresses.extend_from_slice(&other.reserve);
        logins_per_s += u64::from(match other.load.handshakes_per_s_max {
            0 => other.load.sessions_max,
            stated => stated,
        });
    }
    let per_s = (logins_per_s / LOGINS_PART).max(1);
    let window_ms = u64::from(besieged.load.sessions) * 1000 / per_s;
    let window_ms = window_ms.clamp(WINDOW_MS_MIN, WINDOW_MS_MAX);
    let window_ms = u32::try_from(window_ms).expect("it is at most WINDOW_MS_MAX");
    Some(Move { node, window_ms, addresses })
}
