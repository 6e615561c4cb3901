//! The loop that owns partitions of `accepted` and drives the rooms in them.
//!
//! One turn: take what happened, tick the rooms that are due, publish what they say to `sealed`,
//! fenced; only then pass it on to the units and the press, and commit what is done.

mod aim;
mod place;
mod publish;
mod tools;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use broadcaster_core::room::Told;
use broadcaster_core::{Found, Now};
use bus::{At, Bus, Group, GroupConfig, GroupEvent, PartitionNo, ReadError, Tail, Tailed, topic};
use futures_util::future::{BoxFuture, FutureExt};
use futures_util::stream::{FuturesUnordered, StreamExt};
use proto::control::{Fact, RoomFact};
use proto::envelope::LinkGauges;
use proto::head::GenInfo;
use proto::id::{Gen, RoomId, Term};
use proto::time::Mono;
use tokio_util::sync::CancellationToken;

use crate::counts::Counts;
use crate::crowd::Crowd;
use crate::opener::{Fenced, Start};
use crate::owned::{Owned, Want};
use crate::press::{Job, Ticket};

use self::publish::of;

pub(crate) use self::tools::Tools;

/// Records of `accepted` taken at once.
const RECORDS_MAX: usize = 64;
/// Rooms known by their facts; closed ones go first.
const ROOMS_MAX: usize = 100_000;
/// How often rooms are told their people.
const GAUGE: Duration = Duration::from_secs(1);
/// Pause after the bus did not take a record.
const PAUSE: Duration = Duration::from_millis(100);
/// Longest time for one call to the bus: short, since leases are renewed between the calls.
const BUS_MAX: Duration = Duration::from_millis(800);
/// A reader that met an error is watched for so long.
const UNREAD: Duration = Duration::from_secs(3);
/// The name under which `accepted` is committed.
const GROUP: &str = "broadcaster";

/// The driver's state.
struct Driver {
    tools: Tools,
    partitions: BTreeMap<PartitionNo, Owned>,
    facts: BTreeMap<RoomId, RoomFact>,
    /// Those of them that are closed.
    closed: BTreeSet<RoomId>,
    crowd: Crowd,
    /// Facts for `control`, in order.
    says: VecDeque<Fact>,
    /// Jobs that the press has no place for yet.
    jobs: VecDeque<Job>,
    asks: FuturesUnordered<BoxFuture<'static, Answer>>,
    /// The bus refuses: nothing is tried before.
    paused: Mono,
    /// Items could not be read: `/readyz` fails until then.
    unread: Mono,
}

/// What was read or created.
enum Answer {
    Takeover { partition: PartitionNo, term: Term, found: Result<BTreeMap<RoomId, Found>, Fenced> },
    Open { partition: PartitionNo, term: Term, room: RoomId, start: Box<Start> },
    Gen { partition: PartitionNo, term: Term, room: RoomId, info: GenInfo },
    Known { partition: PartitionNo, term: Term, room: RoomId, known: Vec<Told> },
}

/// Runs until `shutdown`, then until the open slots are sealed, at most for `drain_max`.
pub(crate) async fn run(tools: Tools, shutdown: CancellationToken) -> anyhow::Result<()> {
    let mut group = Group::join(GroupConfig {
        bus: Arc::clone(&tools.bus),
        control: Arc::clone(&tools.bus),
        topic: topic::accepted(),
        group: GROUP.into(),
        node: tools.node,
        clock: tools.clock.clone(),
    })
    .await?;
    let mut control = tail(&tools.bus, topic::control(), At::Oldest).await?;
    let mut gauges = tail(&tools.bus, topic::gauges(), At::End).await?;
    let mut driver = Driver::new(tools);
    let clock = driver.tools.clock.clone();
    let mut gauge_at = clock.mono() + GAUGE;
    let mut drain_until = None;

    loop {
        let due = driver.due();
        tokio::select! {
            // 1. Ownership and items.
            event = group.next(RECORDS_MAX) => driver.take(event, drain_until.is_some()),
            // 2. What was read, created or stored.
            Some(answer) = driver.asks.next() => driver.answer(answer),
            Some(ticket) = driver.tools.stored.recv() => driver.stored(&ticket),
            // 3. What others say.
            tailed = control.next(RECORDS_MAX) => driver.hear_control(tailed),
            tailed = gauges.next(RECORDS_MAX) => driver.hear_gauges(tailed),
            // 4. Time.
            () = clock.sleep_until(gauge_at) => {
                driver.gauge();
                gauge_at = clock.mono() + GAUGE;
            }
            () = clock.sleep_until(due) => {}
            // 5. The end.
            () = shutdown.cancelled(), if drain_until.is_none() => {
                drain_until = Some(clock.mono() + driver.tools.drain_max);
            }
        }
        driver.turn().await;
        if drain_until.is_some_and(|it| driver.is_idle() || clock.mono() >= it) {
            break;
        }
    }
    group.leave().await;
    Ok(())
}

async fn tail(bus: &Arc<dyn Bus>, topic: bus::Topic, at: At) -> Result<Tail, ReadError> {
    let partitions = Tail::all(&topic);
    Tail::open(Arc::clone(bus), topic, partitions, at).await
}

impl Driver {
    fn new(tools: Tools) -> Self {
        Self {
            crowd: Crowd::new(tools.gauge_max),
            tools,
            partitions: BTreeMap::new(),
            facts: BTreeMap::new(),
            closed: BTreeSet::new(),
            says: VecDeque::new(),
            jobs: VecDeque::new(),
            asks: FuturesUnordered::new(),
            paused: Mono(0),
            unread: Mono(0),
        }
    }

    fn now(&self) -> Now {
        Now { mono: self.tools.clock.mono(), wall: self.tools.clock.wall() }
    }

    /// When the next turn has something to do.
    fn due(&self) -> Mono {
        let now = self.now().mono;
        let is_waiting = !self.says.is_empty() || !self.jobs.is_empty() || self.is_unsent();
        let waiting = if is_waiting { now + PAUSE } else { now + GAUGE };
        // Rooms do not tick while jobs wait.
        let ticks = self.partitions.values().map(Owned::next_tick);
        let tick = ticks.min().filter(|_| self.jobs.is_empty()).unwrap_or(waiting);
        tick.min(waiting).max(self.paused)
    }

    fn is_unsent(&self) -> bool {
        self.partitions.values().any(|it| !it.parcel.is_empty())
    }

    fn is_idle(&self) -> bool {
        let is_told = self.says.is_empty() && self.jobs.is_empty();
        is_told && self.partitions.values().all(Owned::is_idle)
    }

    /// Takes a change of ownership, or items unless the process ends.
    fn take(&mut self, event: Result<GroupEvent, ReadError>, is_draining: bool) {
        match event {
            Ok(GroupEvent::Gained { partition, term, committed }) => {
                tracing::info!(partition = partition.0, %term, "partition gained");
                self.partitions.insert(partition, Owned::new(term, committed));
                let opener = self.tools.opener.clone();
                self.asks.push(
                    async move {
                        let found = opener.takeover(partition, term).await;
                        Answer::Takeover { partition, term, found }
                    }
                    .boxed(),
                );
            }
            Ok(GroupEvent::Lost { partition }) => self.lose(partition),
            Ok(GroupEvent::Records { partition, term, records }) => {
                let now = self.now();
                let owned = self.owned(partition, term).filter(|_| !is_draining);
                let new = owned.map(|(owned, counts)| owned.accept(records, now, counts));
                // One that was closed long ago opens for what is taken back in it.
                for room in new.into_iter().flatten() {
                    self.apply(&room);
                }
            }
            Err(ReadError::Gone { oldest }) => {
                self.tools.counts.skipped("accepted");
                tracing::error!(oldest = oldest.0, "items were gone before they were read");
            }
            Err(error @ (ReadError::Away | ReadError::NoPartition)) => {
                tracing::debug!(%error, "accepted could not be read");
                self.tools.health.fail("accepted cannot be read");
                self.unread = self.now().mono + UNREAD;
            }
        }
    }

    fn owned(&mut self, partition: PartitionNo, term: Term) -> Option<(&mut Owned, &Counts)> {
        let owned = self.partitions.get_mut(&partition).filter(|it| it.term == term)?;
        Some((owned, &self.tools.counts))
    }

    /// Forgets a partition: its next owner goes on from `sealed`.
    fn lose(&mut self, partition: PartitionNo) {
        let Some(owned) = self.partitions.remove(&partition) else {
            return;
        };
        tracing::info!(partition = partition.0, term = %owned.term, "partition lost");
        // Its next owner tells them again, and by then other things are true.
        self.says.retain(|it| of(it).is_none_or(|room| !owned.drives(room)));
        for room in owned.rooms() {
            self.tools.pushes.aim(room, false);
            self.tools.keys.release(room);
            self.jobs.push_back(Job::Release { room: room.clone() });
        }
    }

    fn answer(&mut self, answer: Answer) {
        let now = self.now();
        match answer {
            Answer::Takeover { partition, found: Err(Fenced), .. } => self.lose(partition),
            Answer::Takeover { partition, term, found: Ok(found) } => {
                let Some((owned, _)) = self.owned(partition, term) else {
                    return;
                };
                owned.know(found);
                let rooms: Vec<RoomId> = self.facts.keys().cloned().collect();
                for room in rooms {
                    if topic::accepted().partition_of_room(&room) == partition {
                        self.apply(&room);
                    }
                }
            }
            Answer::Open { partition, term, room, start } => {
                self.ask_known(partition, term, &room, &start);
                if let Some(resume) = &start.resume {
                    self.tools.keys.begin(&room, &resume.info);
                }
                let (house, fact) = (self.tools.house, self.facts.get(&room).cloned());
                if let (Some((owned, _)), Some(fact)) = (self.owned(partition, term), fact) {
                    owned.start(&room, *start, &fact, house, now);
                }
                self.aim(&room);
            }
            Answer::Known { partition, term, room, known } => {
                if let Some((owned, _)) = self.owned(partition, term) {
                    owned.recall(&room, known, now);
                }
            }
            Answer::Gen { partition, term, room, info } => {
                if let Some((owned, _)) = self.owned(partition, term) {
                    tracing::info!(%room, gen_no = %info.gen_no, "gen created");
                    owned.begin(&room, info, now);
                }
                self.aim(&room);
            }
        }
    }

    fn stored(&mut self, ticket: &Ticket) {
        let partition = topic::accepted().partition_of_room(&ticket.room);
        if let Some(owned) = self.partitions.get_mut(&partition) {
            owned.stored(ticket);
        }
    }

    fn hear_control(&mut self, tailed: Result<Tailed, ReadError>) {
        for record in self.records(tailed, "control") {
            let fact = match Fact::decode(&record.value) {
                Ok(Fact::Room(fact)) => fact,
                Ok(Fact::Bases { bases }) => {
                    self.jobs.push_back(Job::Bases(bases));
                    continue;
                }
                Ok(Fact::Catalogue(part)) => {
                    self.jobs.push_back(Job::Catalogue(part));
                    continue;
                }
                Ok(_) | Err(_) => continue,
            };
            if !self.facts.contains_key(&fact.room) && !self.make_place() {
                self.tools.counts.skipped("control");
                continue;
            }
            let room = fact.room.clone();
            if fact.open {
                self.closed.remove(&room);
            } else {
                self.closed.insert(room.clone());
            }
            self.facts.insert(room.clone(), fact);
            self.apply(&room);
        }
    }

    /// Brings a room's newest fact to its machine, if it is owned here.
    fn apply(&mut self, room: &RoomId) {
        let (house, now) = (self.tools.house, self.now());
        let partition = topic::accepted().partition_of_room(room);
        let Some(owned) = self.partitions.get_mut(&partition) else {
            return;
        };
        let want = self.facts.get(room).and_then(|fact| owned.set(fact, house, now));
        let term = owned.term;
        self.ask(partition, term, want);
        self.aim(room);
    }

    fn hear_gauges(&mut self, tailed: Result<Tailed, ReadError>) {
        let now = self.now().mono;
        for record in self.records(tailed, "gauges") {
            match LinkGauges::decode(&record.value) {
                Ok(gauges) => self.crowd.observe(gauges, now),
                Err(_) => self.tools.counts.skipped("gauges"),
            }
        }
    }

    fn records(&self, tailed: Result<Tailed, ReadError>, topic: &str) -> Vec<bus::Record> {
        match tailed {
            Ok(Tailed::Records(records)) => return records,
            Ok(Tailed::Skipped { .. }) => self.tools.counts.skipped(topic),
            Err(error) => tracing::debug!(%error, topic, "a topic could not be read"),
        }
        Vec::new()
    }

    fn gauge(&mut self) {
        let now = self.now();
        self.crowd.expire(now.mono);
        for owned in self.partitions.values_mut() {
            owned.gauge(&self.crowd, now);
        }
        let running: usize = self.partitions.values().map(Owned::running).sum();
        self.aim_all();
        self.tools.counts.rooms.set(i64::try_from(running).unwrap_or(i64::MAX));
    }

    /// `sealed` goes back some minutes only: the ids before come from the segments, while the room
    /// goes on.
    fn ask_known(&self, partition: PartitionNo, term: Term, room: &RoomId, start: &Start) {
        let (Some(_), Some(head)) = (&start.resume, start.head.clone()) else {
            return;
        };
        let (opener, room) = (self.tools.opener.clone(), room.clone());
        self.asks.push(
            async move {
                let (known, _) = opener.known(&room, &head).await;
                Answer::Known { partition, term, room, known }
            }
            .boxed(),
        );
    }

    /// Has something read or created.
    fn ask(&self, partition: PartitionNo, term: Term, wants: impl IntoIterator<Item = Want>) {
        for want in wants {
            let opener = self.tools.opener.clone();
            if let Want::Open { room, .. } = &want
                && let Some(fact) = self.facts.get(room)
            {
                self.tools.keys.own(room, fact.app);
            }
            let answer = match want {
                Want::Open { room, found } => async move {
                    let start = Box::new(opener.open(&room, found.map(|it| *it)).await);
                    Answer::Open { partition, term, room, start }
                }
                .boxed(),
                Want::Gen { room, after, epoch_ms, interval_ms, layout } => async move {
                    let first = GenInfo { gen_no: Gen(after.0 + 1), epoch_ms, interval_ms, layout };
                    let info = opener.create_gen(&room, first).await;
                    Answer::Gen { partition, term, room, info }
                }
                .boxed(),
            };
            self.asks.push(answer);
        }
    }
}
