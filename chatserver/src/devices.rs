//! Rooms that take one device of a viewer: a newer session closes the older one, wherever it is.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use auth_core::policy::Policies;
use chatserver_core::device::{Session, Stay};
use chatserver_core::shard::Input;
use parking_lot::RwLock;
use proto::close::CloseCode;
use proto::control::Fact;
use proto::envelope::Act;
use proto::time::Wall;

use crate::mail;
use crate::site::Site;
use crate::store::StoreError;
use crate::store::rows::{Held, Row, Subject};

/// Viewers whose places are looked up and written at a time.
const SUBJECTS_MAX: usize = 500;
/// How often that is tried when another chatserver is quicker.
const TRIES_MAX: usize = 5;

/// Which rooms take one device, and who is there.
#[derive(Debug)]
pub(crate) struct Devices {
    site: Arc<Site>,
    policies: RwLock<Policies>,
}

/// What viewers of such rooms did, each in its order.
pub(crate) type Moves = Vec<(Subject, Vec<Move>)>;

/// A session that comes or goes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Move {
    /// Its stay since it came in, and when it was told.
    Join(Stay, Wall),
    Leave(Stay),
}

impl Devices {
    /// Goes by the apps' own `policies` until it learns others.
    pub(crate) fn new(site: Arc<Site>, policies: Policies) -> Self {
        Self { site, policies: RwLock::new(policies) }
    }

    /// Takes note of a policy.
    pub(crate) fn learn(&self, fact: &Fact) {
        if let Fact::Policy(_) = fact {
            self.policies.write().handle(fact);
        }
    }

    /// Tells sessions that have to go.
    ///
    /// The same moves again do no harm. When the room store is away the moves are given up and
    /// counted: two devices may stay then.
    pub(crate) async fn act(&self, moves: Moves) {
        for moves in moves.chunks(SUBJECTS_MAX) {
            if let Err(error) = self.apply(moves).await {
                tracing::warn!(%error, "single devices are not looked after");
                let count = u64::try_from(moves.len()).unwrap_or(u64::MAX);
                self.site.counts.devices_failed.inc_by(count);
            }
        }
    }

    /// Who comes to and goes from such rooms, and when, by the time of the bus: of all clocks that
    /// is the one that the sessions of a unit have in common, whatever their links' clocks say.
    pub(crate) fn moves(&self, inputs: &[(Wall, Input)]) -> Moves {
        let policies = self.policies.read();
        let mut moves: BTreeMap<Subject, Vec<Move>> = BTreeMap::new();
        for (at, input) in inputs {
            let Input::Uplink { node, entry } = input else { continue };
            let stay = |at| Stay { at, session: Session { node: *node, session: entry.session } };
            let made = match entry.act {
                Act::Join { age_ms } => {
                    Move::Join(stay(*at - Duration::from_millis(age_ms.into())), *at)
                }
                Act::Leave => Move::Leave(stay(*at)),
                Act::Comment { .. } | Act::Like { .. } => continue,
            };
            if policies.of_room(entry.app, &entry.room).single_device {
                let (room, viewer) = (entry.room.clone(), entry.viewer.clone());
                moves.entry(Subject { app: entry.app, room, viewer }).or_default().push(made);
            }
        }
        moves.into_iter().collect()
    }

    async fn apply(&self, moves: &[(Subject, Vec<Move>)]) -> Result<(), StoreError> {
        let subjects: Vec<_> = moves.iter().map(|it| it.0.clone()).collect();
        for _ in 0..TRIES_MAX {
            let held = self.site.rows.devices(&subjects).await?;
            let (mut rows, mut closes) = (Vec::new(), Vec::new());
            for ((subject, moves), Held { row: before, expect }) in moves.iter().zip(held) {
                let mut row = before.clone();
                closes.extend(moves.iter().filter_map(|it| it.apply(&mut row)));
                if row != before {
                    rows.push((subject, expect, row));
                }
            }
            // Told before it is remembered: what is remembered is not told again.
            self.close(&closes).await;
            if rows.is_empty() || self.site.rows.write_devices(&rows).await? {
                return Ok(());
            }
        }
        Err(StoreError::Away { why: "others write to the same places".to_owned() })
    }

    async fn close(&self, sessions: &[Session]) {
        let code = CloseCode::OtherDevice.code();
        let close =
            |&Session { node, session }: &Session| mail::fact(&Fact::Close { node, session, code });
        if sessions.is_empty() {
            return;
        }
        let sent = self.site.global.send(sessions.iter().map(close).collect()).await;
        for refused in sent.iter().filter_map(|it| it.as_ref().err()) {
            tracing::warn!(error = %refused, "a session was not told that another device came in");
        }
        let told = sent.iter().filter(|it| it.is_ok()).count();
        self.site.counts.devices_closed.inc_by(u64::try_from(told).unwrap_or(u64::MAX));
    }
}

impl Move {
    /// Gives the session that has to go.
    fn apply(self, row: &mut Row) -> Option<Session> {
        match self {
            Self::Join(stay, told_at) => {
                row.seen_at = row.seen_at.max(told_at);
                row.place.join(stay)
            }
            Self::Leave(stay) => {
                row.place.leave(stay);
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proto::id::{NodeId, SessionId};

    use super::*;

    #[test]
    fn a_renewal_extends_the_row_and_leaves_the_stay_as_it_was() {
        let session = Session { node: NodeId(1), session: SessionId(1) };
        let stay = Stay { at: Wall(10), session };
        let mut row = Row::default();
        Move::Join(stay, Wall(10)).apply(&mut row);
        let first = row.clone();

        let goes = Move::Join(stay, Wall(50)).apply(&mut row);

        assert_eq!(goes, None);
        assert_eq!(row, Row { seen_at: Wall(50), ..first });
    }
}
