//! Ending many sessions without sending them all to the next node at once.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use proto::close::CloseCode;
use proto::frame::Close;

use crate::config::ms;
use crate::mailbox::Mail;
use crate::node::Node;

/// Shortest pause between two groups of sessions.
const STEP: Duration = Duration::from_millis(10);

/// Lets the load reports say first that the node drains, so that nobody is sent back to it.
pub(crate) async fn announce(node: &Node) {
    node.traffic.draining.store(true, Ordering::Relaxed);
    node.traffic.changed.notify_one();
    node.clock.sleep(ms(node.config.report_ms_min) * 2).await;
}

/// Tells every session to end, evenly spread over `window_ms`, each to come back at a time of its
/// own within as much again.
pub(crate) async fn close_all(node: &Arc<Node>, code: CloseCode, window_ms: u32) {
    let mailboxes = node.mailboxes.all();
    tracing::info!(sessions = mailboxes.len(), code = code.name(), "sessions are told to end");
    let steps = u128::from(window_ms) / STEP.as_millis() + 1;
    let group = mailboxes.len().div_ceil(usize::try_from(steps).unwrap_or(usize::MAX)).max(1);
    let mut first = true;
    for mailboxes in mailboxes.chunks(group) {
        if !std::mem::take(&mut first) {
            node.clock.sleep(STEP).await;
        }
        for mailbox in mailboxes {
            mailbox.put(Mail::End(Close {
                code,
                reason: code.name().to_owned(),
                retry_after_ms: node.draw_ms(0, window_ms),
                addresses: Vec::new(),
            }));
        }
    }
}

/// Tells what is left of the leaves, at their pace, for at most the drain's window.
pub(crate) async fn tell_leaves(node: &Arc<Node>) {
    let until = node.clock.mono() + ms(node.config.drain_ms);
    while !node.departures.lock().is_empty() && node.clock.mono() < until {
        node.tell_leaves();
        node.clock.sleep(STEP).await;
    }
}
