//! Reading the bus: what flushes, answers and facts do to this node.

mod control;
mod downlink;
mod fact;
mod reply;

use std::sync::Arc;
use std::time::Duration;

use bus::tail::{Tail, Tailed};
use bus::{At, Bus, PartitionNo, Topic};
use kit::health::Part;

use crate::node::Node;

pub(crate) use control::control;
pub(crate) use downlink::downlink;
pub(crate) use reply::reply;

/// Records of one read.
const RECORDS_MAX: usize = 256;
/// With no error for so long, a silent bus is taken to be well.
const QUIET: Duration = Duration::from_secs(3);
/// Between two attempts to begin.
const RETRY: Duration = Duration::from_millis(500);

/// A tail that tells how it is doing, and never gives up.
struct Follower {
    tail: Tail,
    part: Part,
    node: Arc<Node>,
    topic: Arc<str>,
}

impl Follower {
    /// Begins at `at`, as soon as the bus lets it.
    async fn open(
        node: &Arc<Node>,
        bus: &Arc<dyn Bus>,
        topic: Topic,
        partitions: Vec<PartitionNo>,
        at: At,
        part: Part,
    ) -> Self {
        loop {
            let opened = Tail::open(Arc::clone(bus), topic.clone(), partitions.clone(), at.clone());
            match opened.await {
                Ok(tail) => {
                    part.ok();
                    let node = Arc::clone(node);
                    return Self { tail, part, node, topic: Arc::clone(&topic.name) };
                }
                Err(error) => {
                    part.fail(error.to_string());
                    node.clock.sleep(RETRY).await;
                }
            }
        }
    }

    /// The next records. Cancelling it loses nothing.
    async fn next(&mut self) -> Tailed {
        loop {
            match tokio::time::timeout(QUIET, self.tail.next(RECORDS_MAX)).await {
                Ok(Ok(tailed)) => {
                    self.part.ok();
                    if let Tailed::Skipped { records, .. } = &tailed {
                        self.node.counts.lost_records(&self.topic, *records);
                        tracing::warn!(topic = &*self.topic, records, "records were lost");
                    }
                    return tailed;
                }
                Ok(Err(error)) => self.part.fail(error.to_string()),
                Err(_) => self.part.ok(),
            }
        }
    }
}
