//! `control`, read so that the node knows how old its knowledge is.
//!
//! While it is older than `control_ms_max`, because the bus is away, slow, or silent, nobody is let
//! in: a kick may have been told meanwhile. What is read later acts on the sessions that are here.

use std::sync::Arc;
use std::time::Duration;

use bus::{At, Bus, Offset, PartitionNo, ReadError, topic};
use kit::health::Part;
use kit::task::Tasks;
use proto::control::Fact;
use proto::time::Mono;

use super::fact::learn;
use crate::config::ms;
use crate::node::Node;

/// `control` has one partition.
const PARTITION: PartitionNo = PartitionNo(0);
/// Records of one read.
const RECORDS_MAX: usize = 256;
/// The end is asked for so often within the time that knowledge may be old, and at least so often.
const LOOKS: u32 = 4;
const LOOK_MAX: Duration = Duration::from_millis(250);
/// Longest wait for the bus, on top of what a read may wait for records.
const ANSWER_MAX: Duration = Duration::from_secs(5);
/// First and last pause after a failure.
const PAUSE: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(1));

/// Follows all facts for ever, the oldest first.
pub(crate) async fn control(node: Arc<Node>, bus: Arc<dyn Bus>, part: Part) -> anyhow::Result<()> {
    let age_max = ms(node.config.control_ms_max);
    let look = (age_max / LOOKS).min(LOOK_MAX);
    // Before the oldest record there is none: the bus says where to go on.
    let next = Offset(0);
    let mut reader = Reader { node: Arc::clone(&node), bus, look, next, asked: None };
    let mut moves = Tasks::default();
    let mut pause = PAUSE.0;
    loop {
        let turn = {
            let mut turn = std::pin::pin!(reader.turn(&mut moves));
            loop {
                tokio::select! {
                    turn = &mut turn => break turn,
                    () = node.clock.sleep(age_max) => report(&node, &part, Err(Trouble::Late)),
                }
            }
        };
        report(&node, &part, turn);
        moves.reap()?;
        if turn.is_ok() {
            pause = PAUSE.0;
        } else {
            node.clock.sleep(pause).await;
            pause = (pause * 2).min(PAUSE.1);
        }
    }
}

struct Reader {
    node: Arc<Node>,
    bus: Arc<dyn Bus>,
    /// How often the end is asked for, and how long a read waits for records.
    look: Duration,
    next: Offset,
    /// When the end was last asked for.
    asked: Option<Mono>,
}

/// Why `control` is not read.
#[derive(Clone, Copy, Debug, thiserror::Error)]
enum Trouble {
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error("the bus does not answer")]
    Late,
    #[error("the bus has lost control: it is read again from its beginning")]
    Lost,
}

impl Reader {
    /// Reads once, and asks for the end when it is time.
    async fn turn(&mut self, moves: &mut Tasks) -> Result<(), Trouble> {
        // What was read after an end was told, and is nothing, is all there is before that end.
        let ahead = self.node.door.knowledge().ahead();
        let (read, located) = tokio::join!(self.read(), self.locate());
        if let Some((end, asked)) = located? {
            // What this turn read is not learned yet: it may lie behind the end that was told.
            let mut knowledge = self.node.door.knowledge();
            if knowledge.is_lost(end.0) {
                knowledge.start_over();
                self.next = Offset(0);
                self.node.counts.control_losses.inc();
                tracing::warn!(end = end.0, "the bus has lost control");
                return Err(Trouble::Lost);
            }
            self.asked = Some(asked);
            knowledge.located(end.0, asked);
        }
        let records = match read? {
            Ok(records) => records,
            // Compacted topics lose nothing: what was gone is told again, newer, from here on.
            Err(oldest) => {
                tracing::warn!(oldest = oldest.0, "control is read from its oldest record on");
                self.next = oldest;
                return Ok(());
            }
        };
        for record in &records {
            match Fact::decode(&record.value) {
                Ok(fact) => learn(&self.node, &fact, moves),
                Err(_) => self.node.counts.damaged.inc(),
            }
            self.next = Offset(record.offset.0 + 1);
        }
        let learned = if records.is_empty() { ahead } else { None };
        self.node.door.knowledge().learned(learned.unwrap_or(self.next.0));
        Ok(())
    }

    /// The next records, none if there are none for a while; or the oldest that is left.
    async fn read(&self) -> Result<Result<Vec<bus::Record>, Offset>, Trouble> {
        let read = self.bus.read(topic::control(), PARTITION, self.next, RECORDS_MAX, self.look);
        match tokio::time::timeout(self.look + ANSWER_MAX, read).await {
            Ok(Ok(records)) => Ok(Ok(records)),
            Ok(Err(ReadError::Gone { oldest })) => Ok(Err(oldest)),
            Ok(Err(error)) => Err(error.into()),
            Err(_) => Err(Trouble::Late),
        }
    }

    /// The end, if it is time to ask, and when it was asked for.
    async fn locate(&self) -> Result<Option<(Offset, Mono)>, Trouble> {
        let now = self.node.clock.mono();
        if self.asked.is_some_and(|it| now.since(it) < self.look) {
            return Ok(None);
        }
        let end = self.bus.locate(topic::control(), PARTITION, At::End);
        let end = tokio::time::timeout(ANSWER_MAX, end).await.map_err(|_| Trouble::Late)??;
        Ok(Some((end, now)))
    }
}

fn report(node: &Node, part: &Part, turn: Result<(), Trouble>) {
    let now = node.clock.mono();
    if let Some(age) = node.door.knowledge().age(now) {
        node.counts.control_age(age);
    }
    match turn {
        Err(trouble) => part.fail(trouble.to_string()),
        Ok(()) if node.door.is_current(now) => part.ok(),
        Ok(()) => part.fail("control is not read to its end: nobody is let in"),
    }
}
