//! Telling everyone, on `control`, what the room store says.
//!
//! What the bus does not take waits, within bounds, and upkeep tells it again.

use std::collections::{BTreeMap, BTreeSet};

use bus::PublishError;
use proto::control::Fact;
use proto::id::RoomId;

use crate::mail;
use crate::site::Site;
use crate::store::StoreError;

/// Facts of one publish.
const FACTS_MAX: usize = 200;
/// How often facts are told anew because they changed while they were told.
const TRIES_MAX: usize = 5;
/// Facts that wait to be told, about 300 bytes each. If there are more, all are told again.
const UNTOLD_MAX: usize = 10_000;

/// Why not everyone could be told.
#[derive(Clone, Debug, thiserror::Error)]
pub(crate) enum AnnounceError {
    /// The store did not say.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The bus did not take it.
    #[error("control does not take facts")]
    Bus(#[from] PublishError),
}

/// What waits to be told, by key.
#[derive(Debug, Default)]
pub(crate) struct Untold {
    facts: BTreeMap<String, Fact>,
    /// More waited than there is place for.
    is_more: bool,
}

impl Untold {
    fn put(&mut self, fact: Fact) {
        let key = fact.key();
        if self.facts.len() < UNTOLD_MAX || self.facts.contains_key(&key) {
            self.facts.insert(key, fact);
        } else {
            self.is_more = true;
        }
    }
}

impl Site {
    /// Tells what the store says about the things that `facts` are about, and `facts` themselves
    /// where it says nothing. What cannot be told waits for [`Site::tell_waiting`].
    ///
    /// Looks again afterwards: of two who change one thing at a time, the one who tells last may
    /// not be the one who wrote last.
    pub(crate) async fn tell(&self, facts: Vec<Fact>) -> Result<(), AnnounceError> {
        let told = self.try_tell(facts.clone()).await;
        if let Err(AnnounceError::Store(_)) = told {
            self.tell_later(facts);
        }
        told
    }

    /// Lets facts be told within a second or so.
    pub(crate) fn tell_later(&self, facts: impl IntoIterator<Item = Fact>) {
        let mut untold = self.untold.lock();
        for fact in facts {
            untold.put(fact);
        }
    }

    /// Tells what waits. Goes on after what the bus refuses, which waits on; not while store or bus
    /// are away.
    pub(crate) async fn tell_waiting(&self) -> Result<(), AnnounceError> {
        let Untold { facts, is_more } = std::mem::take(&mut *self.untold.lock());
        let mut facts = facts.into_values();
        let mut refused = Ok(());
        loop {
            let some: Vec<_> = facts.by_ref().take(FACTS_MAX).collect();
            if some.is_empty() {
                break;
            }
            if let Err(error) = self.tell(some).await {
                let goes_on = error.is_refusal();
                refused = Err(error);
                if !goes_on {
                    break;
                }
            }
        }
        self.tell_later(facts);
        // All of them once the bus takes those again for which there was place.
        if is_more && refused.is_ok() {
            refused = self.tell_all().await;
        }
        if is_more && refused.is_err() {
            self.untold.lock().is_more = true;
        }
        refused
    }

    /// Tells every open room of the store, what was done to people in them, what they have written
    /// up, and which rooms are closed. What the bus refuses waits, and the rest is told.
    ///
    /// # Errors
    /// While the store or the bus is away.
    pub(crate) async fn tell_all(&self) -> Result<(), AnnounceError> {
        let mut closed = BTreeSet::new();
        let mut after = None;
        loop {
            let (rooms, next) = self.rows.rooms(after).await?;
            closed.extend(rooms.iter().filter(|it| !it.open).map(|it| it.room.clone()));
            self.tell_some(rooms.into_iter().map(Fact::Room).collect()).await?;
            let Some(next) = next else { break };
            after = Some(next);
        }
        let mut after = None;
        loop {
            let (mut acts, next) = self.rows.acts("", after).await?;
            acts.retain(|it| room_of(it).is_none_or(|it| !closed.contains(it)));
            self.tell_some(acts).await?;
            let Some(next) = next else { return Ok(()) };
            after = Some(next);
        }
    }

    /// Tells facts as they are given, whatever the store says; once.
    pub(crate) async fn tell_ends(&self, facts: &[Fact]) -> Result<(), AnnounceError> {
        for facts in facts.chunks(FACTS_MAX) {
            for sent in self.global.send_once(facts.iter().map(mail::fact).collect()).await {
                // Of what has no place on the bus nobody knows.
                sent.or_else(|it| if it == PublishError::Busy { Ok(()) } else { Err(it) })?;
            }
        }
        Ok(())
    }

    async fn tell_some(&self, facts: Vec<Fact>) -> Result<(), AnnounceError> {
        for facts in facts.chunks(FACTS_MAX) {
            match self.tell(facts.to_vec()).await {
                Err(error) if !error.is_refusal() => return Err(error),
                Ok(()) | Err(_) => {}
            }
        }
        Ok(())
    }

    async fn try_tell(&self, facts: Vec<Fact>) -> Result<(), AnnounceError> {
        let mut facts = self.current(facts).await?;
        let mut refused = Ok(());
        for _ in 0..TRIES_MAX {
            let sent = self.global.send_once(facts.iter().map(mail::fact).collect()).await;
            let mut told = Vec::with_capacity(facts.len());
            for (fact, sent) in facts.into_iter().zip(sent) {
                match sent {
                    Ok(()) => told.push(fact),
                    Err(error) => {
                        self.counts.untold.inc();
                        self.untold.lock().put(fact);
                        // That the bus is away counts more than that it has no place.
                        if refused.is_ok() || error == PublishError::Away {
                            refused = Err(error);
                        }
                    }
                }
            }
            let now = self.current(told.clone()).await?;
            facts = now
                .into_iter()
                .zip(told)
                .filter(|(now, told)| now != told)
                .map(|it| it.0)
                .collect();
            if facts.is_empty() {
                break;
            }
        }
        Ok(refused?)
    }

    async fn current(&self, facts: Vec<Fact>) -> Result<Vec<Fact>, StoreError> {
        let current = self.rows.current(&facts).await?;
        Ok(current.into_iter().zip(facts).map(|(now, given)| now.unwrap_or(given)).collect())
    }
}

impl AnnounceError {
    /// Whether others may be told while this one cannot.
    pub(crate) fn is_refusal(&self) -> bool {
        matches!(self, Self::Bus(error) if *error != PublishError::Away)
    }
}

/// The room that an act is done in.
fn room_of(act: &Fact) -> Option<&RoomId> {
    match act {
        Fact::Mute { room, .. }
        | Fact::Ban { room, .. }
        | Fact::Kick { room, .. }
        | Fact::Exclude { room, .. }
        | Fact::Person { room, .. }
        | Fact::Attribute { room, .. }
        | Fact::Sealed { room, .. } => Some(room),
        Fact::Epoch(_)
        | Fact::Room(_)
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
        | Fact::Revoked { .. } => None,
    }
}
