//! Telling everyone, on `control`, what the room store says.

use bus::PublishError;
use proto::control::Fact;

use crate::mail;
use crate::site::Site;
use crate::store::StoreError;

/// Facts of one publish.
const FACTS_MAX: usize = 200;
/// How often facts are told anew because they changed while they were told.
const TRIES_MAX: usize = 5;

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

impl Site {
    /// Tells what the store says about the things that `facts` are about, and `facts` themselves
    /// where it says nothing.
    ///
    /// Looks again afterwards: of two who change one thing at a time, the one who tells last may
    /// not be the one who wrote last.
    pub(crate) async fn tell(&self, facts: Vec<Fact>) -> Result<(), AnnounceError> {
        let mut facts = self.current(facts).await?;
        for _ in 0..TRIES_MAX {
            for sent in self.global.send_once(facts.iter().map(mail::fact).collect()).await {
                sent?;
            }
            let now = self.current(facts.clone()).await?;
            facts = now
                .into_iter()
                .zip(facts)
                .filter(|(now, told)| now != told)
                .map(|it| it.0)
                .collect();
            if facts.is_empty() {
                break;
            }
        }
        Ok(())
    }

    /// Tells every room of the store, what was done to people, and what rooms have written up.
    pub(crate) async fn tell_all(&self) -> Result<(), AnnounceError> {
        let mut after = None;
        loop {
            let (rooms, next) = self.rows.rooms(after).await?;
            self.tell_some(rooms.into_iter().map(Fact::Room).collect()).await?;
            let Some(next) = next else { break };
            after = Some(next);
        }
        let mut after = None;
        loop {
            let (acts, next) = self.rows.acts("", after).await?;
            self.tell_some(acts).await?;
            let Some(next) = next else { return Ok(()) };
            after = Some(next);
        }
    }

    async fn tell_some(&self, facts: Vec<Fact>) -> Result<(), AnnounceError> {
        for facts in facts.chunks(FACTS_MAX) {
            self.tell(facts.to_vec()).await?;
        }
        Ok(())
    }

    async fn current(&self, facts: Vec<Fact>) -> Result<Vec<Fact>, StoreError> {
        let current = self.rows.current(&facts).await?;
        Ok(current.into_iter().zip(facts).map(|(now, given)| now.unwrap_or(given)).collect())
    }
}
