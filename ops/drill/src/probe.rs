//! One viewer who says something and looks whether it appears.

use std::time::Duration;

use anyhow::{Context, bail};
use kit::clock::Clock;
use proto::frame::{Ack, Outcome, Path};
use proto::id::{Cid, ItemId, RoomId, ViewerId};
use proto::item::Style;
use proto::verdict::Verdict;
use sdk::{Client, Event, Events};
use tokio::time::timeout;

use crate::stage::Stage;

/// A viewer is in within this time.
const ENTER_MAX: Duration = Duration::from_secs(15);
/// Pause after a comment that was refused.
const PAUSE: Duration = Duration::from_millis(100);

/// One viewer.
#[derive(Debug)]
pub struct Probe {
    client: Client,
    events: Events,
    room: RoomId,
    clock: Clock,
    said: u64,
    /// Every item this viewer was shown, in order.
    pub shown: Vec<ItemId>,
}

impl Probe {
    /// Brings a viewer into the room.
    ///
    /// # Errors
    /// When it is not in within some seconds.
    pub async fn enter(stage: &Stage, account: &str, path: Path) -> anyhow::Result<Self> {
        let mut options = stage.options(&ViewerId::parse(account)?)?;
        options.rooms = vec![(stage.room.clone(), path)];
        let (client, events) = Client::start(options);
        let (room, clock) = (stage.room.clone(), stage.clock.clone());
        let mut probe = Self { client, events, room, clock, said: 0, shown: Vec::new() };
        let is_in = |event| matches!(event, Event::Connected { .. }).then_some(());
        probe
            .until(ENTER_MAX, is_in)
            .await
            .with_context(|| format!("{account} did not come in"))?;
        Ok(probe)
    }

    /// Sends a comment without waiting for its verdict.
    ///
    /// # Errors
    /// When too many wait already.
    pub fn send(&mut self) -> anyhow::Result<Cid> {
        self.said += 1;
        let text = format!("probe {}", self.said);
        Ok(self.client.send(&self.room, &text, Style::default(), None)?)
    }

    /// The first event that `pick` takes; items on the way are remembered.
    ///
    /// # Errors
    /// When none comes within `at_most`, or the viewer ended.
    pub async fn until<T>(
        &mut self,
        at_most: Duration,
        mut pick: impl FnMut(Event) -> Option<T>,
    ) -> anyhow::Result<T> {
        let picking = async {
            loop {
                let event = self.events.next().await.context("the viewer ended")?;
                if let Event::Show { item, .. } = &event {
                    self.shown.push(item.id);
                }
                if let Some(picked) = pick(event) {
                    return Ok(picked);
                }
            }
        };
        timeout(at_most, picking)
            .await
            .with_context(|| format!("nothing came in {} s", at_most.as_secs()))?
    }

    /// Waits until this item has been shown.
    ///
    /// # Errors
    /// When it is not within `at_most`.
    pub async fn sees(&mut self, id: ItemId, at_most: Duration) -> anyhow::Result<()> {
        if self.shown.contains(&id) {
            return Ok(());
        }
        let is_it = |event| {
            let Event::Show { item, .. } = event else { return None };
            (item.id == id).then_some(())
        };
        self.until(at_most, is_it).await.with_context(|| format!("item {id} was not shown"))
    }

    /// Says something until it is admitted, and waits until it is shown; gives the milliseconds
    /// that took.
    ///
    /// # Errors
    /// When that takes longer than `at_most`.
    pub async fn is_served(&mut self, at_most: Duration) -> anyhow::Result<u64> {
        let start = self.clock.mono();
        loop {
            let left = at_most.saturating_sub(self.clock.mono().since(start));
            let cid = self.send()?;
            match self.verdict(cid, left).await? {
                Verdict::Admit(id) => {
                    self.sees(id, left).await?;
                    return Ok(proto::time::millis(self.clock.mono().since(start)));
                }
                Verdict::Shadow(_) => bail!("the comment is shown to its sender alone"),
                Verdict::Drop { .. } => self.clock.sleep(PAUSE).await,
            }
        }
    }

    /// The verdict on a comment.
    ///
    /// # Errors
    /// When there is none within `at_most`.
    pub async fn verdict(&mut self, cid: Cid, at_most: Duration) -> anyhow::Result<Verdict> {
        let verdict = |event| {
            let Event::Ack(Ack { cid: of, outcome: Outcome::Verdict(verdict) }) = event else {
                return None;
            };
            (of == cid).then_some(verdict)
        };
        self.until(at_most, verdict).await.context("a comment got no verdict")
    }

    /// Lets the viewer go, and reads what was still under way.
    ///
    /// # Errors
    /// When it does not end.
    pub async fn leave(mut self) -> anyhow::Result<Vec<ItemId>> {
        self.client.close();
        self.until(ENTER_MAX, |event| matches!(event, Event::Ended(_)).then_some(())).await?;
        Ok(self.shown)
    }
}
