//! The process of those who stand and of those who come and go, and how it is spoken with: it says
//! when those who stand are in, and waits; then when a page is turned, and when nobody comes in any
//! more, and waits again; and in the end what the books came to.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::{Context, bail};
use auth_core::app::App;
use auth_core::ticket::Signer;
use channel::ClientTls;
use drill::{Stage, panics, stage};
use kit::clock::Clock;
use kit::seed::derive;
use proto::id::{RoomId, ViewerId};
use sdk::Options;
use serde::{Deserialize, Serialize};
use stack::crowd::{Crowd, Plan, Summary, signer, ticket_source};
use stack::replay::{Comment, Script};
use stack::{Bus, Identity, beside};

use super::doors::{self, Hall, Visits};
use crate::aside::{self, Aside, say};

/// The first argument of this executable when it is to be guests.
pub(crate) const NAME: &str = "churn-guests";
/// Comments of those who stand a second, over all of them.
const COMMENTS_PER_S: u64 = 10;
/// What a step takes beside the talk: logins, first slots, what is on its way.
const SLACK: Duration = Duration::from_mins(2);

/// What the process is told.
#[derive(Deserialize, Serialize)]
pub(super) struct Orders {
    enter_url: String,
    ca_pem: String,
    room: RoomId,
    identity: Identity,
    /// Where the bus is lent whose ledger is compared with what viewers got.
    bus: PathBuf,
    seed: u64,
    standing: usize,
    doors: usize,
    page: Duration,
    pages: usize,
}

/// What the process says.
#[derive(Debug, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
enum Said {
    /// Those who stand are in.
    Standing,
    /// There was talk for so long that the books were looked at.
    Page,
    /// Nobody comes in any more.
    Closed(Visits),
    /// Nobody is there any more.
    Gone(Box<Summary>, u64),
}

/// The process, as the run has it. It ends when this is dropped.
pub(super) struct Guests {
    aside: Aside,
    page: Duration,
}

/// What happened among them.
pub(super) enum Event {
    /// A page was turned.
    Page,
    /// All pages were: nobody comes in any more.
    Closed(Visits),
}

impl Guests {
    /// Brings in those who stand.
    pub(super) async fn start(
        stage: &Stage,
        plan: super::Plan,
        bus: PathBuf,
        seed: u64,
    ) -> anyhow::Result<Self> {
        let orders = Orders {
            enter_url: stage.addrs.enter.clone(),
            ca_pem: stage.trust.ca_pem.clone(),
            room: stage.room.clone(),
            identity: stage.identity().clone(),
            bus,
            seed,
            standing: super::STANDING,
            doors: plan.doors,
            page: plan.page,
            pages: plan.warm_pages + plan.pages,
        };
        let aside = Aside::start(aside::itself(NAME)?, &orders).await?;
        let mut guests = Self { aside, page: plan.page };
        match guests.hear().await? {
            Said::Standing => Ok(guests),
            said @ (Said::Page | Said::Closed(_) | Said::Gone(..)) => bail!("not in: {said:?}"),
        }
    }

    /// Opens the doors.
    pub(super) async fn begin(&mut self) -> anyhow::Result<()> {
        self.aside.tell("begin").await
    }

    /// Waits for what happens next, once it has begun.
    pub(super) async fn next(&mut self) -> anyhow::Result<Event> {
        match self.hear().await? {
            Said::Page => Ok(Event::Page),
            Said::Closed(visits) => Ok(Event::Closed(visits)),
            said @ (Said::Standing | Said::Gone(..)) => bail!("not talking: {said:?}"),
        }
    }

    /// Lets those go who stand; gives what their books came to, and the panics among all guests.
    pub(super) async fn end(mut self) -> anyhow::Result<(Summary, u64)> {
        self.aside.tell("end").await?;
        match self.hear().await? {
            Said::Gone(summary, panics) => Ok((*summary, panics)),
            said @ (Said::Standing | Said::Page | Said::Closed(_)) => bail!("not gone: {said:?}"),
        }
    }

    async fn hear(&mut self) -> anyhow::Result<Said> {
        self.aside.hear(self.page + SLACK).await
    }
}

/// Is the guests' process.
///
/// # Errors
/// When orders make no sense, the bus is lost, or something does not come about in time.
pub(crate) async fn run() -> anyhow::Result<()> {
    panics::watch();
    let (orders, mut input) = aside::orders::<Orders>().await?;
    let (bus, carried) = beside::borrow(&orders.bus).await?;
    let act = async {
        let outfit = Outfit::new(&orders)?;
        let crowd = outfit.crowd(&orders, bus).await?;
        say(&Said::Standing)?;
        input.next_line().await?.context("nobody says that it begins")?;
        say(&Said::Closed(visit(&orders, &outfit, &crowd).await?))?;
        input.next_line().await?.context("nobody says that it ends")?;
        let summary = crowd.end(0).await?;
        say(&Said::Gone(Box::new(summary), panics::seen()))
    };
    tokio::select! {
        ended = Box::pin(act) => ended,
        lost = carried => lost.and_then(|()| bail!("the bus is gone")),
    }
}

/// Lets visitors through the doors, while those who stand talk page after page.
async fn visit(orders: &Orders, outfit: &Outfit, crowd: &Crowd) -> anyhow::Result<Visits> {
    let hall = Arc::new(Hall::default());
    let doors = doors::open(outfit, orders.doors, &hall, orders.seed)?;
    let turned = turn_pages(orders, crowd, &hall).await;
    hall.closes.cancel();
    doors.join().await?;
    turned?;
    let visits = *hall.visits.lock();
    Ok(visits)
}

async fn turn_pages(orders: &Orders, crowd: &Crowd, hall: &Hall) -> anyhow::Result<()> {
    let length = orders.page * u32::try_from(orders.pages)?;
    let script = stage::steady(COMMENTS_PER_S, length, 8);
    for page in script.comments.chunks(script.comments.len() / orders.pages) {
        hall.may_speak.store(true, Ordering::Relaxed);
        crowd.play(&beginning_now(page), 1.0, None).await;
        hall.may_speak.store(false, Ordering::Relaxed);
        crowd.turn_page().await?;
        say(&Said::Page)?;
    }
    Ok(())
}

/// The same comments, the first of them at once.
fn beginning_now(comments: &[Comment]) -> Script {
    let start_ms = comments.first().map_or(0, |it| it.media_ms);
    let shift = |it: &Comment| Comment { media_ms: it.media_ms - start_ms, ..it.clone() };
    Script { comments: comments.iter().map(shift).collect(), damaged: 0 }
}

/// What all guests have in common.
pub(super) struct Outfit {
    pub(super) tls: ClientTls,
    pub(super) room: RoomId,
    enter_url: String,
    app: App,
    signer: Arc<Signer>,
    clock: Clock,
    seed: u64,
}

impl Outfit {
    fn new(orders: &Orders) -> anyhow::Result<Self> {
        let app = orders.identity.app();
        Ok(Self {
            tls: ClientTls::trusting(&orders.ca_pem)?,
            room: orders.room.clone(),
            enter_url: orders.enter_url.clone(),
            signer: Arc::new(signer(&app)?),
            app,
            clock: Clock::system(),
            seed: orders.seed,
        })
    }

    async fn crowd(&self, orders: &Orders, bus: Arc<dyn Bus>) -> anyhow::Result<Crowd> {
        let plan = Plan {
            viewers: orders.standing,
            room: self.room.clone(),
            enter_url: self.enter_url.clone(),
            app: self.app.clone(),
            tls: self.tls.clone(),
            bus,
            clock: self.clock.clone(),
            seed: derive(self.seed, "crowd"),
            faults: Vec::new(),
            log: None,
        };
        Box::pin(Crowd::start(plan)).await
    }

    /// A visitor's options, without a room.
    pub(super) fn options(&self, account: &ViewerId, http: &reqwest::Client) -> Options {
        let ticket = ticket_source(&self.signer, &self.app, account, &self.room, &self.clock);
        let mut options = Options::new(
            self.enter_url.clone(),
            Arc::new(ticket),
            http.clone(),
            self.clock.clone(),
            derive(self.seed, account.as_str()),
        );
        options.tls = Some(self.tls.clone());
        options
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_page_of_a_script_begins_at_once() {
        let script = stage::steady(10, Duration::from_secs(2), 8);

        let second = beginning_now(&script.comments[10..]);

        let at = |script: &Script| script.comments.iter().map(|it| it.media_ms).collect::<Vec<_>>();
        assert_eq!(at(&second), at(&script)[..10]);
        assert_eq!(second.comments[0].text, script.comments[10].text);
    }
}
