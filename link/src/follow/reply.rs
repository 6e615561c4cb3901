//! `reply.{unit}`: verdicts and orders to single sessions.

use std::sync::Arc;

use bus::tail::Tailed;
use bus::{At, Bus};
use kit::health::Part;
use proto::envelope::{Reply, ReplyBatch};
use proto::frame::{Ack, Downlink};

use super::Follower;
use crate::line::{Mail, end};
use crate::node::Node;

/// Follows this node's partition for ever, from now on: sessions of an earlier life are gone.
pub(crate) async fn reply(node: Arc<Node>, bus: Arc<dyn Bus>, part: Part) -> anyhow::Result<()> {
    let topic = bus::topic::reply(node.config.unit);
    let partitions = vec![topic.partition_of_node(node.config.bus_node())];
    let mut follower = Follower::open(&node, &bus, topic, partitions, At::End, part).await;
    loop {
        let Tailed::Records(records) = follower.next().await else {
            continue;
        };
        for record in records {
            match ReplyBatch::decode(&record.value) {
                Ok(batch) if batch.node == node.config.bus_node() => deliver(&node, batch.entries),
                Ok(_) => {}
                Err(_) => node.counts.damaged.inc(),
            }
        }
    }
}

fn deliver(node: &Node, replies: Vec<Reply>) {
    for reply in replies {
        match reply {
            Reply::Ack { session, cid, outcome } => {
                let frame = Downlink::Ack(Ack { cid, outcome }).encode();
                node.lines.put(session, Mail::Frame(frame));
            }
            Reply::Close { session, code } => node.lines.put(session, end(code, 0)),
        }
    }
}
