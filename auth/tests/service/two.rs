//! Two services on one bus: one draws, both answer, and none is missed.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::mpsc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use auth::Service;
use bus::{Bus, Fault, FaultyBus, PublishError};
use kit::clock::Clock;
use kit::task::Tasks;
use proto::keys::LinkKeys;
use tempfile::TempDir;
use tokio::runtime::Builder;
use tokio::sync::{mpsc as orders, oneshot};
use tokio_util::sync::CancellationToken;

use crate::recording::{HoldingBus, RecordingBus};
use crate::world::{LINK, T, World, early_in_an_epoch, memory_bus};

/// Longest time for another to take over, from the moment of the fault: the lease's two seconds,
/// and what a busy machine adds.
const TAKEOVER_MAX: Duration = Duration::from_secs(6);
/// Longest time for one that was cut off to read what it missed, on a busy machine.
const CAUGHT_UP_MAX: Duration = Duration::from_secs(10);

pub(crate) struct Two {
    pub(crate) clock: Clock,
    log: Arc<RecordingBus>,
    pub(crate) first: World,
    pub(crate) second: World,
}

impl Two {
    /// The first leads; it sees the bus as `wrap` has it.
    pub(crate) async fn start(wrap: impl FnOnce(Arc<dyn Bus>) -> Arc<dyn Bus>) -> Self {
        let clock = early_in_an_epoch();
        let log = RecordingBus::new(memory_bus(&clock));
        let bus: Arc<dyn Bus> = Arc::<RecordingBus>::clone(&log);
        let first = World::start_on(clock.clone(), wrap(Arc::clone(&bus))).await;
        first.leading(true).await;
        let second = first.beside(bus).await;
        first.ready().await;
        second.ready().await;
        Self { clock, log, first, second }
    }

    /// Time passes, so that epochs are due.
    fn pass(&self) {
        self.clock.step(2 * i64::from(T) * 1000);
    }

    async fn check_every_epoch_has_one_random(&self) {
        self.second.epochs_until(self.second.epoch() + 6).await;
        let randoms = self.log.randoms();
        assert!(randoms.values().all(|it| it.len() == 1), "{randoms:?}");
    }
}

async fn keys(world: &World) -> BTreeSet<String> {
    let keys: LinkKeys = world.link_keys(LINK, LINK).await.json().await.unwrap();
    keys.tokens.into_iter().map(|it| it.key).collect()
}

#[tokio::test]
async fn one_draws_and_both_answer_the_same() {
    let two = Two::start(|bus| bus).await;

    assert_eq!(keys(&two.first).await, keys(&two.second).await);
    assert!(two.first.meter.render().contains("auth_epochs_published_total 8"));
    assert!(!two.second.meter.render().contains("auth_epochs_published_total"));
    assert!(two.second.meter.render().contains("auth_leads 0"));
}

#[tokio::test]
async fn when_the_leader_ends_in_order_the_other_takes_over_at_once() {
    let mut two = Two::start(|bus| bus).await;
    let start = two.clock.mono();

    two.first.shutdown.cancel();
    two.second.leading(true).await;

    assert!(two.clock.mono().since(start) < Duration::from_millis(1500));
    two.first.tasks.next().await.unwrap().unwrap();
    two.pass();
    two.check_every_epoch_has_one_random().await;
}

#[tokio::test]
async fn when_the_leader_is_killed_the_other_takes_over_in_seconds() {
    let mut two = Two::start(|bus| bus).await;
    let start = two.clock.mono();

    two.first.tasks.abort();
    two.pass();
    two.check_every_epoch_has_one_random().await;

    assert!(two.clock.mono().since(start) < TAKEOVER_MAX);
    two.second.ready().await;
}

#[tokio::test]
async fn a_leader_that_is_cut_off_stops_drawing_and_follows_when_it_is_back() {
    let switch = Arc::new(parking_lot::Mutex::new(None));
    let kept = Arc::clone(&switch);
    let two = Two::start(move |bus| {
        let faulty = FaultyBus::new(bus);
        *kept.lock() = Some(Arc::clone(&faulty));
        faulty
    })
    .await;
    let faulty = switch.lock().take().unwrap();

    for fault in [Fault::Silent, Fault::Away] {
        faulty.set(fault);
        two.pass();
        two.second.leading(true).await;
        two.first.leading(false).await;
        two.check_every_epoch_has_one_random().await;

        let start = two.clock.mono();
        faulty.set(Fault::None);
        two.first.ready().await;
        // The bus answers again before everything that was missed is read.
        while keys(&two.first).await != keys(&two.second).await {
            assert!(two.clock.mono().since(start) < CAUGHT_UP_MAX, "the first lacks keys");
        }
    }
}

/// The first has drawn and published, and its records are on their way while it loses the lease.
#[tokio::test]
async fn what_a_former_leader_has_on_its_way_is_refused() {
    let switch = Arc::new(parking_lot::Mutex::new(None));
    let kept = Arc::clone(&switch);
    let two = Two::start(move |bus| {
        let holding = HoldingBus::new(bus);
        *kept.lock() = Some(Arc::clone(&holding));
        holding
    })
    .await;
    let holding = switch.lock().take().unwrap();

    holding.hold();
    two.pass();
    while !holding.holds_epochs() {
        tokio::task::yield_now().await;
    }
    two.second.leading(true).await;
    two.second.epochs_until(two.second.epoch() + 6).await;
    let answers = holding.release().await;

    assert!(answers.iter().any(|it| matches!(it, Err(PublishError::Fenced { .. }))), "{answers:?}");
    two.check_every_epoch_has_one_random().await;
    two.first.ready().await;
    assert_eq!(keys(&two.first).await, keys(&two.second).await);
}

/// As SIGSTOP does it: nothing of the process runs, and then it goes on in the middle of a word,
/// in the belief that it leads.
#[tokio::test]
async fn a_leader_that_was_stopped_draws_nothing_when_it_goes_on() {
    let clock = early_in_an_epoch();
    let log = RecordingBus::new(memory_bus(&clock));
    let bus: Arc<dyn Bus> = Arc::<RecordingBus>::clone(&log);
    let (first, process) = Process::start(clock.clone(), Arc::clone(&bus)).await;
    first.leading(true).await;
    let second = first.beside(bus).await;
    second.ready().await;

    let go_on = process.stop().await;
    clock.step(2 * i64::from(T) * 1000);
    second.leading(true).await;
    second.epochs_until(second.epoch() + 6).await;
    // Due when the first goes on, before it can have read that another leads.
    clock.step(2 * i64::from(T) * 1000);
    go_on.send(()).unwrap();

    first.leading(false).await;
    first.ready().await;
    second.epochs_until(second.epoch() + 6).await;
    let randoms = log.randoms();
    assert!(randoms.values().all(|it| it.len() == 1), "{randoms:?}");
    assert_eq!(keys(&first).await, keys(&second).await);
    process.end().await;
}

/// A service on a thread with a runtime of its own, which can be stopped.
struct Process {
    orders: orders::Sender<Order>,
    thread: JoinHandle<()>,
}

/// To stop: that it has stopped is told, then it waits to go on.
struct Order {
    stopped: oneshot::Sender<()>,
    go_on: mpsc::Receiver<()>,
}

impl Process {
    async fn start(clock: Clock, bus: Arc<dyn Bus>) -> (World, Self) {
        let mut world = World::new(Arc::new(TempDir::new().unwrap()), clock, bus);
        let (config, parts) = (world.config(), world.parts());
        let (orders, given) = orders::channel(1);
        let (bound, port) = oneshot::channel();
        let thread = thread::spawn(move || {
            let runtime = Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let service = Service::bind(config, parts).await.unwrap();
                bound.send(service.addr().port()).unwrap();
                obey(service, given).await;
            });
        });
        world.base = format!("https://localhost:{}", port.await.unwrap());
        (world, Self { orders, thread })
    }

    async fn stop(&self) -> mpsc::Sender<()> {
        let (stopped, has_stopped) = oneshot::channel();
        let (sender, go_on) = mpsc::channel();
        assert!(self.orders.send(Order { stopped, go_on }).await.is_ok());
        has_stopped.await.unwrap();
        sender
    }

    async fn end(self) {
        drop(self.orders);
        tokio::task::spawn_blocking(move || self.thread.join().unwrap()).await.unwrap();
    }
}

/// Runs until no more orders can come.
async fn obey(service: Service, mut given: orders::Receiver<Order>) {
    let shutdown = CancellationToken::new();
    let mut tasks = Tasks::default();
    tasks.spawn("auth", service.run(shutdown.clone()));
    while let Some(Order { stopped, go_on }) = given.recv().await {
        stopped.send(()).unwrap();
        // Blocks the only thread of this runtime.
        go_on.recv().unwrap();
    }
    shutdown.cancel();
    tasks.join().await.unwrap();
}
