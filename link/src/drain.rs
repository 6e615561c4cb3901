//! Ending many sessions without sending them all to the next node at once.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use proto::address::{Address, Transport};
use proto::close::CloseCode;
use proto::frame::Close;

use crate::config::ms;
use crate::line::Mail;
use crate::node::Node;

/// Shortest pause between two groups of sessions.
const STEP: Duration = Duration::from_millis(10);

/// Addresses that one session is told.
const ADDRESSES_PER_CLOSE: usize = 3;

/// How sessions are told to end.
#[derive(Clone, Debug)]
pub(crate) enum Farewell {
    /// To come back wherever `enter` sends them.
    Code(CloseCode),
    /// To go on at one of these.
    To(Arc<[Address]>),
}

/// What one of many sessions is told that move.
#[derive(Clone, Debug)]
pub(crate) struct Moved {
    addresses: Arc<[Address]>,
    /// Each session begins with another one.
    turn: usize,
}

impl Moved {
    /// For a session over this transport.
    pub(crate) fn close(&self, transport: Transport) -> Close {
        let spoken = self.addresses.iter().filter(|it| it.transport == transport);
        let mut addresses: Vec<String> = spoken.map(Address::authority).collect();
        let turn = self.turn.checked_rem(addresses.len()).unwrap_or(0);
        addresses.rotate_left(turn);
        addresses.truncate(ADDRESSES_PER_CLOSE);
        let code = CloseCode::Moved;
        // When it goes is spread already.
        Close { code, reason: code.name().to_owned(), retry_after_ms: 0, addresses }
    }
}

impl Farewell {
    const fn code(&self) -> &'static str {
        match self {
            Self::Code(code) => code.name(),
            Self::To(_) => CloseCode::Moved.name(),
        }
    }

    fn mail(&self, node: &Node, turn: usize, window_ms: u32) -> Mail {
        match self {
            Self::Code(code) => Mail::End(Close {
                code: *code,
                reason: code.name().to_owned(),
                retry_after_ms: node.draw_ms(0, window_ms),
                addresses: Vec::new(),
            }),
            Self::To(addresses) => Mail::Moved(Moved { addresses: Arc::clone(addresses), turn }),
        }
    }
}

/// Lets the load reports say first that the node drains, so that nobody is sent back to it.
pub(crate) async fn announce(node: &Node) {
    node.traffic.draining.store(true, Ordering::Relaxed);
    node.traffic.urgent.notify_one();
    node.clock.sleep(ms(node.config.report_ms_min) * 2).await;
}

/// Tells so many of the logged-in sessions to end, or all connections, evenly spread over
/// `window_ms`. Who is not told where to go comes back at a time of its own within as much again.
pub(crate) async fn close(
    node: &Arc<Node>,
    farewell: Farewell,
    sessions: Option<u32>,
    window_ms: u32,
) {
    // Oldest first, on which moves rest: a node that is told twice to move a part tells the same.
    let mut lines = node.lines.all();
    if let Some(sessions) = sessions {
        // Whoever counted them saw only these.
        lines.retain(|it| it.has_logged_in());
        lines.truncate(sessions as usize);
    }
    tracing::info!(sessions = lines.len(), code = farewell.code(), "sessions are told to end");
    let steps = u128::from(window_ms) / STEP.as_millis() + 1;
    let group = lines.len().div_ceil(usize::try_from(steps).unwrap_or(usize::MAX)).max(1);
    for (turn, line) in lines.iter().enumerate() {
        if turn > 0 && turn.is_multiple_of(group) {
            node.clock.sleep(STEP).await;
        }
        line.put(farewell.mail(node, turn, window_ms));
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

#[cfg(test)]
mod tests {
    use proto::address::Carrier;

    use super::*;

    #[test]
    fn sessions_are_spread_over_the_addresses_that_speak_as_they_do() {
        let address = |port, transport| Address {
            host: "127.0.0.1".to_owned(),
            port,
            transport,
            carrier: Carrier::Bgp,
            machine_room: String::new(),
        };
        let tls = (1..=4).map(|it| address(it, Transport::Tls));
        let addresses: Arc<[_]> = tls.chain([address(9, Transport::Wss)]).collect();
        let told = |turn, transport| {
            Moved { addresses: Arc::clone(&addresses), turn }.close(transport).addresses
        };

        assert_eq!(told(0, Transport::Tls), ["127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:3"]);
        assert_eq!(told(7, Transport::Tls), ["127.0.0.1:4", "127.0.0.1:1", "127.0.0.1:2"]);
        assert_eq!(told(7, Transport::Wss), ["127.0.0.1:9"]);
        assert!(told(7, Transport::Tcp).is_empty());
    }
}
