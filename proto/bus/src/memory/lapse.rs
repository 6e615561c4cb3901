//! Which facts nobody needs any more: a full compacted partition forgets them.
//!
//! The real bus has tombstones and retention for this; here a full one is the only time it matters.

use std::time::Duration;

use proto::control::Fact;
use proto::time::Wall;

/// Longer than any reader needs to act on an order to a live session or node.
const ORDER_KEPT: Duration = Duration::from_mins(10);
/// Longer than any token or ticket that a kick makes void.
const KICK_KEPT: Duration = Duration::from_hours(24);
/// Longer than anybody comes back to a room that was closed.
const CLOSED_KEPT: Duration = Duration::from_hours(24);
/// Longer than an epoch and the six that are announced before it.
const EPOCH_KEPT: Duration = Duration::from_hours(24);

/// Whether the fact in `value`, taken `age` ago, says nothing any more. An empty value is a
/// tombstone.
pub(super) fn has_lapsed(value: &[u8], age: Duration, now: Wall) -> bool {
    if value.is_empty() {
        return true;
    }
    match Fact::decode(value) {
        Ok(Fact::Lease(lease)) => lease.expires < now && age > ORDER_KEPT,
        Ok(Fact::Mute { until, .. } | Fact::Ban { until, .. } | Fact::Exclude { until, .. }) => {
            until < now && age > ORDER_KEPT
        }
        Ok(Fact::Person { standing, .. }) => standing.is_none() && age > ORDER_KEPT,
        Ok(Fact::Attribute { attribute, .. }) => attribute.value.is_none() && age > ORDER_KEPT,
        Ok(Fact::Close { .. } | Fact::Move { .. } | Fact::Keep { .. }) => age > ORDER_KEPT,
        Ok(Fact::Kick { .. }) => age > KICK_KEPT,
        Ok(Fact::Epoch(_)) => age > EPOCH_KEPT,
        Ok(Fact::Sealed { ended, .. }) => ended && age > CLOSED_KEPT,
        Ok(Fact::Room(room)) => !room.open && age > CLOSED_KEPT,
        Ok(
            Fact::Heat { .. }
            | Fact::Bases { .. }
            | Fact::Revoked { .. }
            | Fact::Policy(_)
            | Fact::Sdk(_)
            | Fact::Words { .. }
            | Fact::Catalogue(_),
        )
        | Err(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use proto::id::{AppId, NodeId, RoomId, SessionId, ViewerId};

    use super::*;

    #[test]
    fn an_ended_mute_lapses_and_a_running_one_does_not() {
        let now = Wall(1_000_000_000);
        let old = Duration::from_hours(1);

        assert!(has_lapsed(&mute(now - Duration::from_secs(1)), old, now));
        assert!(!has_lapsed(&mute(now + Duration::from_secs(1)), old, now));
    }

    #[test]
    fn an_order_lapses_when_its_session_must_have_heard_it() {
        let close = Fact::Close { node: NodeId(1), session: SessionId(2), code: 1 }.encode();

        assert!(!has_lapsed(&close, ORDER_KEPT, Wall(0)));
        assert!(has_lapsed(&close, ORDER_KEPT + Duration::from_millis(1), Wall(0)));
    }

    #[test]
    fn what_is_no_fact_is_kept_and_a_tombstone_is_not() {
        assert!(!has_lapsed(b"bytes", Duration::MAX, Wall(0)));
        assert!(has_lapsed(b"", Duration::ZERO, Wall(0)));
    }

    #[test]
    fn what_says_nothing_any_more_lapses() {
        let person = |text: &str| {
            let text =
                format!(r#"{{"fact":"person","app":1,"room":"r","viewer":"v","standing":{text}}}"#);
            Fact::decode(text.as_bytes()).unwrap().encode()
        };
        let old = Duration::from_hours(1);

        assert!(has_lapsed(&person("{}"), old, Wall(0)));
        assert!(!has_lapsed(&person("{}"), ORDER_KEPT, Wall(0)));
        assert!(!has_lapsed(&person(r#"{"listed":true}"#), old, Wall(0)));
    }

    fn mute(until: Wall) -> Vec<u8> {
        let room = RoomId::parse("room").unwrap();
        let viewer = ViewerId::parse("viewer").unwrap();
        Fact::Mute { app: AppId(1), room, viewer, until }.encode()
    }
}
