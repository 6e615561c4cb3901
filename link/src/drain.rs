//! Ending many sessions without sending them all to the next node at once.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use parking_lot::Mutex;
use proto::address::{Address, Carrier, Transport};
use proto::close::CloseCode;
use proto::frame::Close;

use crate::config::ms;
use crate::line::{Mail, end};
use crate::node::Node;

/// Shortest pause between two groups of sessions.
const STEP: Duration = Duration::from_millis(10);

/// Addresses that one session is told.
const ADDRESSES_PER_CLOSE: usize = 3;

/// That sessions are to leave, and where they may go on.
#[derive(Clone, Debug)]
pub(crate) struct Order {
    /// Empty: wherever `enter` sends them.
    pub(crate) addresses: Arc<[Address]>,
    /// How many; all, if it is not said.
    pub(crate) sessions: Option<u32>,
    /// Over how long.
    pub(crate) window_ms: u32,
}

/// Where many sessions may go on.
#[derive(Debug)]
pub(crate) struct Refuges {
    code: CloseCode,
    addresses: Arc<[Address]>,
    /// How many went, by what they came by: each of a kind begins with another address.
    turns: Mutex<BTreeMap<(Transport, Carrier), usize>>,
}

impl Refuges {
    pub(crate) fn new(code: CloseCode, addresses: Arc<[Address]>) -> Arc<Self> {
        Arc::new(Self { code, addresses, turns: Mutex::default() })
    }

    /// Why they go.
    pub(crate) const fn code(&self) -> CloseCode {
        self.code
    }

    /// For the next session that came by this address: first those on its carrier's network.
    pub(crate) fn close(&self, by: &Address) -> Close {
        let turn = {
            let mut turns = self.turns.lock();
            let turn = turns.entry((by.transport, by.carrier)).or_default();
            *turn = turn.wrapping_add(1);
            *turn
        };
        let spoken = self.addresses.iter().filter_map(|it| Some((it.detour(by)?, it)));
        let mut spoken: Vec<_> = spoken.collect();
        spoken.sort_by_key(|(detour, _)| *detour);
        for alike in spoken.chunk_by_mut(|a, b| a.0 == b.0) {
            alike.rotate_left(turn % alike.len());
        }
        spoken.truncate(ADDRESSES_PER_CLOSE);
        let addresses = spoken.into_iter().map(|(_, it)| it.authority()).collect();
        // When it goes is spread already.
        Close { code: self.code, reason: self.code.name().to_owned(), retry_after_ms: 0, addresses }
    }
}

/// Lets the load reports say first that the node drains, so that nobody is sent back to it.
pub(crate) async fn announce(node: &Node) {
    node.traffic.draining.store(true, Ordering::Relaxed);
    node.traffic.urgent.notify_one();
    node.clock.sleep(ms(node.config.report_ms_min) * 2).await;
}

/// Sends sessions away, evenly spread, while the node goes on.
pub(crate) async fn send_away(node: &Node, order: Order) {
    let Order { addresses, sessions, window_ms } = order;
    // Oldest first, on which moves rest: a node that is told twice to move a part tells the same.
    let mut lines = node.lines.all();
    if let Some(sessions) = sessions {
        // Whoever counted them saw only these.
        lines.retain(|it| it.has_logged_in());
        lines.truncate(sessions as usize);
    }
    tracing::info!(sessions = lines.len(), "sessions are told to move");
    let refuges = Refuges::new(CloseCode::Moved, addresses);
    let mut pace = Pace::new(lines.len(), window_ms);
    for line in &lines {
        pace.wait(node).await;
        line.put(match refuges.addresses.is_empty() {
            true => to_enter(node, CloseCode::Moved, window_ms),
            false => Mail::Away(Arc::clone(&refuges)),
        });
    }
}

/// Sends everybody away, for the end of the node: to addresses, if a gslb names some soon. Who finds
/// no room there, or is left when the time is over, is sent to `enter`.
pub(crate) async fn send_all_away(node: &Node) {
    let (lines, others): (Vec<_>, Vec<_>) =
        node.lines.all().into_iter().partition(|it| it.has_logged_in());
    let order = if lines.is_empty() { None } else { wait_for_order(node).await };
    let order = order.filter(|it| !it.addresses.is_empty());
    let needed_ms = order.as_ref().map_or(0, |it| it.window_ms);
    let window_ms = needed_ms.max(node.config.drain_ms);
    let sent = order.as_ref().map_or(0, |it| it.sessions.unwrap_or(u32::MAX));
    tracing::info!(sessions = lines.len(), sent, window_ms, "the node drains");
    let refuges = order.map(|it| Refuges::new(CloseCode::Draining, it.addresses));
    let until = node.clock.mono() + ms(node.config.drain_ms_max);
    let mut pace = Pace::new(lines.len(), window_ms);
    for (line, turn) in lines.iter().zip(0_u32..) {
        let is_late = node.clock.mono() >= until;
        if !is_late {
            pace.wait(node).await;
        }
        let refuges = refuges.as_ref().filter(|_| turn < sent && !is_late);
        node.counts.drained(refuges.map_or("enter", |_| "addresses"));
        line.put(match refuges {
            Some(refuges) => Mail::Away(Arc::clone(refuges)),
            None => to_enter(node, CloseCode::Draining, window_ms),
        });
    }
    for line in others {
        line.put(to_enter(node, CloseCode::Draining, window_ms));
    }
}

/// What a gslb says, if it does soon.
async fn wait_for_order(node: &Node) -> Option<Order> {
    let mut told = node.drain_order.subscribe();
    let wait = ms(node.config.drain_addresses_ms_max);
    let order = tokio::time::timeout(wait, told.wait_for(Option::is_some)).await;
    order.ok()?.ok()?.clone()
}

/// The end of a session that comes back, at a time of its own within as much again, wherever `enter`
/// sends it.
fn to_enter(node: &Node, code: CloseCode, window_ms: u32) -> Mail {
    end(code, node.draw_ms(0, window_ms))
}

/// So many sessions in small groups, evenly spread.
struct Pace {
    group: usize,
    turn: usize,
}

impl Pace {
    fn new(sessions: usize, window_ms: u32) -> Self {
        let steps = u128::from(window_ms) / STEP.as_millis() + 1;
        let steps = usize::try_from(steps).unwrap_or(usize::MAX);
        Self { group: sessions.div_ceil(steps).max(1), turn: 0 }
    }

    /// Until it is the next one's turn.
    async fn wait(&mut self, node: &Node) {
        if self.turn > 0 && self.turn.is_multiple_of(self.group) {
            node.clock.sleep(STEP).await;
        }
        self.turn += 1;
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
    use super::*;

    #[test]
    fn sessions_are_spread_over_the_addresses_that_speak_as_they_do() {
        let tls = (1..=4).map(|it| address(it, Transport::Tls, Carrier::Bgp));
        let addresses = tls.chain([address(9, Transport::Wss, Carrier::Bgp)]).collect();
        let refuges = Refuges::new(CloseCode::Moved, addresses);
        let told = |transport| refuges.close(&address(0, transport, Carrier::Bgp)).addresses;

        let first: Vec<_> = (0..8).map(|_| (told(Transport::Tls), told(Transport::Wss))).collect();

        for port in 1..=4 {
            let authority = format!("127.0.0.1:{port}");
            assert_eq!(first.iter().filter(|(tls, _)| tls[0] == authority).count(), 2);
        }
        assert!(first.iter().all(|(tls, wss)| tls.len() == 3 && wss[..] == ["127.0.0.1:9"]));
        assert!(told(Transport::Tcp).is_empty());
    }

    #[test]
    fn addresses_of_the_own_carrier_come_first_and_those_of_others_last() {
        let carriers = [Carrier::Mobile, Carrier::Bgp, Carrier::Telecom, Carrier::Telecom];
        let addresses = (1..).zip(carriers).map(|(port, it)| address(port, Transport::Tls, it));
        let refuges = Refuges::new(CloseCode::Draining, addresses.collect());
        let told = |carrier| {
            let told = refuges.close(&address(0, Transport::Tls, carrier)).addresses;
            told.iter().map(|it| it.rsplit_once(':').unwrap().1.to_owned()).collect::<Vec<_>>()
        };

        let telecom = [told(Carrier::Telecom), told(Carrier::Telecom)];

        assert!(telecom.contains(&vec!["3".into(), "4".into(), "2".into()]), "{telecom:?}");
        assert!(telecom.contains(&vec!["4".into(), "3".into(), "2".into()]), "{telecom:?}");
        assert_eq!(told(Carrier::Mobile)[..2], ["1", "2"]);
        assert_eq!(told(Carrier::Unicom)[0], "2");
    }

    fn address(port: u16, transport: Transport, carrier: Carrier) -> Address {
        let host = "127.0.0.1".to_owned();
        Address { host, port, transport, carrier, machine_room: String::new() }
    }
}
