//! Ending many sessions without sending them all to the next node at once.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use parking_lot::Mutex;
use proto::address::{Address, Carrier, Transport};
use proto::close::CloseCode;
use proto::frame::Close;

use crate::config::{Config, ms};
use crate::converse::FAREWELL_MAX;
use crate::line::{Mail, end};
use crate::node::Node;

/// Shortest pause between two groups of sessions.
const STEP: Duration = Duration::from_millis(10);

/// Addresses that one session is told.
const ADDRESSES_PER_CLOSE: usize = 3;

/// Time for the goodbyes of all sessions, once the last is told to leave.
pub(crate) const GOODBYES_MAX: Duration = FAREWELL_MAX.saturating_mul(3);
/// Time for the last acts and the last report when the node ends.
pub(crate) const LAST_WORDS_MAX: Duration = Duration::from_secs(6);

impl Config {
    /// Longest time from the moment a node drains until all its sessions are told to leave.
    #[must_use]
    pub fn drain_max(&self) -> Duration {
        announcing(self) + ms(self.drain_addresses_ms_max) + ms(self.drain_ms_max)
    }

    /// Longest time from there until all has ended: their goodbyes, and what is told of them.
    #[must_use]
    pub fn end_max(&self) -> Duration {
        self.drain_max() + GOODBYES_MAX + ms(self.drain_ms) + LAST_WORDS_MAX
    }
}

/// Time in which a load report says that the node drains.
fn announcing(config: &Config) -> Duration {
    ms(config.report_ms_min) * 2
}

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
    node.clock.sleep(announcing(&node.config)).await;
}

/// Sends sessions away, evenly spread, while the node goes on, until it drains.
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
        if node.is_draining() {
            // Those that are left are told where to, for the end of the node.
            return;
        }
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
    let waves = waves(lines.len(), order.as_ref(), node.config.drain_ms);
    tracing::info!(sessions = lines.len(), sent = waves[0].sessions, "the node drains");
    let until = node.clock.mono() + ms(node.config.drain_ms_max);
    let refuges = order.map(|it| Refuges::new(CloseCode::Draining, it.addresses));
    let (sent, rest) = lines.split_at(waves[0].sessions);
    for (lines, wave, refuges) in [(sent, waves[0], refuges.as_ref()), (rest, waves[1], None)] {
        let mut pace = Pace::new(lines.len(), wave.window_ms);
        for line in lines {
            let is_late = node.clock.mono() >= until;
            if !is_late {
                pace.wait(node).await;
            }
            let refuges = refuges.filter(|_| !is_late);
            node.counts.drained(refuges.map_or("enter", |_| "addresses"));
            line.put(match refuges {
                Some(refuges) => Mail::Away(Arc::clone(refuges)),
                None => to_enter(node, CloseCode::Draining, wave.window_ms),
            });
        }
    }
    for line in others {
        line.put(to_enter(node, CloseCode::Draining, node.config.drain_ms));
    }
}

/// So many sessions that are told to leave, evenly over a window.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Wave {
    sessions: usize,
    window_ms: u32,
}

/// Those that are sent to addresses, over the window for which the nodes there have promised their
/// logins, and then the rest.
fn waves(sessions: usize, order: Option<&Order>, drain_ms: u32) -> [Wave; 2] {
    let sent = order.map_or(Wave { sessions: 0, window_ms: 0 }, |it| {
        let part = it.sessions.map_or(sessions, |it| it as usize);
        Wave { sessions: part.min(sessions), window_ms: it.window_ms }
    });
    [sent, Wave { sessions: sessions - sent.sessions, window_ms: drain_ms }]
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

    #[test]
    fn those_who_are_told_addresses_have_the_promised_window_to_themselves() {
        let order = |sessions| Order { addresses: Arc::default(), sessions, window_ms: 4_000 };
        let waves = |order: Option<Order>| {
            waves(1_000, order.as_ref(), 5_000).map(|it| (it.sessions, it.window_ms))
        };

        assert_eq!(waves(Some(order(Some(100)))), [(100, 4_000), (900, 5_000)]);
        assert_eq!(waves(Some(order(Some(2_000)))), [(1_000, 4_000), (0, 5_000)]);
        assert_eq!(waves(Some(order(None)))[0], (1_000, 4_000));
        assert_eq!(waves(None)[1], (1_000, 5_000));
    }

    #[test]
    fn a_raised_drain_raises_the_time_that_an_end_may_take() {
        let ends = |drain_ms_max| Config { drain_ms_max, ..Config::default() }.end_max();

        assert_eq!(ends(65_000), ends(5_000) + Duration::from_secs(60));
        assert!(ends(0) > Config { drain_addresses_ms_max: 0, ..Config::default() }.drain_max());
    }

    fn address(port: u16, transport: Transport, carrier: Carrier) -> Address {
        let host = "127.0.0.1".to_owned();
        Address { host, port, transport, carrier, machine_room: String::new() }
    }
}
