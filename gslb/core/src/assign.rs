//! One viewer's addresses, from a snapshot: an atomic addition and a few array reads.

use proto::address::{Carrier, Transport};

use crate::listener::Listener;
use crate::snapshot::Snapshot;
use crate::topology::{Entry, NO_VIEW};

/// Kinds of transport.
pub const TRANSPORTS: usize = 6;
/// Addresses of one answer.
pub const ADDRESSES_PER_ANSWER: usize = 3;
/// Turns tried in one pool before the next one.
///
/// A turn fails only when its node was filled since the snapshot was made, so eight failures in a
/// row mean that the pool is all but full; the next snapshot, 5 ms later, knows exactly.
const TURNS_MAX: usize = 8;

/// Transports that a client can speak, best first.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Wants {
    order: [Transport; TRANSPORTS],
    len: usize,
    mask: u8,
}

/// What is asked for one viewer.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// Where the viewer is.
    pub region: &'a str,
    /// Whose network the viewer is on.
    pub carrier: Carrier,
    /// What the viewer's client can speak.
    pub wants: Wants,
}

/// Where one viewer is sent: one to three addresses, in the order to try them.
#[derive(Clone, Copy, Debug, Default)]
pub struct Assignment<'a> {
    listeners: [Option<&'a Listener>; ADDRESSES_PER_ANSWER],
}

/// Why no address was given.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum Refusal {
    /// Every node that the viewer could use is full.
    #[error("every live node is full")]
    Full,
    /// No node is under lease, or those that are take no viewers.
    #[error("no node that takes viewers holds a lease")]
    NoneLive,
    /// No node speaks what the client speaks.
    #[error("no node speaks a transport of this client")]
    NoTransport,
}

/// A node chosen in a view.
#[derive(Clone, Copy, Debug)]
struct Pick {
    view: u32,
    entry: u32,
}

/// How far a further address must be from the ones chosen.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Apart {
    MachineRoom,
    Node,
}

/// The views that serve a request, best first; [`NO_VIEW`] where there is none.
struct Chain {
    own: u32,
    bgp: u32,
    everywhere: u32,
}

impl Wants {
    /// These transports, best first, repeats left out; all but the national one if there is none.
    #[must_use]
    pub fn new(transports: &[Transport]) -> Self {
        let mut wants = Self { order: [Transport::Tls; TRANSPORTS], len: 0, mask: 0 };
        for &transport in transports {
            let bit = 1 << transport as u8;
            if wants.mask & bit == 0 {
                wants.order[wants.len] = transport;
                wants.len += 1;
                wants.mask |= bit;
            }
        }
        if wants.len == 0 { Self::default() } else { wants }
    }

    fn order(&self) -> impl Iterator<Item = Transport> {
        self.order.into_iter().take(self.len)
    }
}

impl Default for Wants {
    fn default() -> Self {
        use Transport::{Quic, Tcp, Tls, Ws, Wss};
        Self::new(&[Tls, Wss, Quic, Tcp, Ws])
    }
}

impl<'a> Assignment<'a> {
    /// The addresses, in the order to try them.
    pub fn listeners(&self) -> impl Iterator<Item = &'a Listener> {
        self.listeners.into_iter().flatten()
    }

    /// Adds an address that is not there yet, as long as there is room.
    fn push(&mut self, listener: &'a Listener) {
        for place in &mut self.listeners {
            match place {
                Some(taken) if std::ptr::eq(*taken, listener) => return,
                Some(_) => {}
                None => {
                    *place = Some(listener);
                    return;
                }
            }
        }
    }

    const fn is_complete(&self) -> bool {
        self.listeners[ADDRESSES_PER_ANSWER - 1].is_some()
    }
}

impl Snapshot {
    /// Chooses up to three addresses for one viewer, and counts the first one as load.
    ///
    /// Three machines where there are three, two machine rooms where there are two, the last one
    /// BGP where there is one; other listeners of the same machines only where machines are
    /// lacking. Allocates nothing.
    pub fn assign(&self, request: &Request<'_>) -> Result<Assignment<'_>, Refusal> {
        let wants = &request.wants;
        let chain = self.chain(request);
        let Some((first, turn_no)) = chain.views().find_map(|it| self.take(it)) else {
            return Err(self.refusal(&chain));
        };
        let [last, middle] = self.further(&chain, first, turn_no);

        let mut assignment = Assignment::default();
        let picks = [Some(first), middle, last];
        for pick in picks.into_iter().flatten() {
            assignment.push(self.listener(pick, wants, turn_no));
        }
        if !assignment.is_complete() {
            self.fill(&mut assignment, &picks, wants);
        }
        Ok(assignment)
    }

    fn chain(&self, request: &Request<'_>) -> Chain {
        let Request { region, carrier, wants } = *request;
        let own = self.topology.view(region, carrier, wants.mask);
        let bgp = if carrier == Carrier::Bgp {
            own
        } else {
            self.topology.view(region, Carrier::Bgp, wants.mask)
        };
        Chain { own, bgp, everywhere: self.topology.everywhere(wants.mask) }
    }

    /// The next turn of a view whose node has a place left, and its number.
    fn take(&self, view: u32) -> Option<(Pick, u32)> {
        let turns = &self.turns[view as usize];
        for _ in 0..TURNS_MAX {
            let turn = turns.take()?;
            let pick = Pick { view, entry: turn.entry };
            if self.seats[self.entry(pick).node as usize].take() {
                return Some((pick, turn.turn_no));
            }
        }
        None
    }

    /// The last address' node, then the middle one's.
    ///
    /// The last is chosen first, since it has the stronger wish: to be BGP.
    fn further(&self, chain: &Chain, first: Pick, turn_no: u32) -> [Option<Pick>; 2] {
        let last_no = turn_no.wrapping_add(1);
        let last = chain.bgp_first().find_map(|view| {
            let apart = |it| self.beside(view, [first, first], it, last_no);
            apart(Apart::MachineRoom).or_else(|| apart(Apart::Node))
        });
        let Some(last) = last else {
            return [None, None];
        };
        let middle_no = turn_no.wrapping_add(2);
        let middle =
            |apart| chain.views().find_map(|it| self.beside(it, [first, last], apart, middle_no));
        let same_room = self.entry(first).machine_room == self.entry(last).machine_room;
        let away = if same_room { middle(Apart::MachineRoom) } else { None };
        [Some(last), away.or_else(|| middle(Apart::Node))]
    }

    /// A node of a view that is apart from both picks.
    fn beside(&self, view: u32, picks: [Pick; 2], apart: Apart, turn_no: u32) -> Option<Pick> {
        let turns = &self.turns[view as usize];
        let [a, b] = picks.map(|pick| {
            let node = self.entry(pick).node;
            turns.run(match apart {
                Apart::MachineRoom if pick.view == view => self.entry(pick).roommates.clone(),
                Apart::MachineRoom => self.topology.roommates(view, node),
                Apart::Node if pick.view == view => pick.entry..pick.entry + 1,
                Apart::Node => self.topology.entry(view, node),
            })
        });
        let b = if a == b { 0..0 } else { b };
        turns.beside(turn_no, [a, b]).map(|entry| Pick { view, entry })
    }

    /// The listener that the client likes best; where there are several alike, by turns.
    fn listener(&self, pick: Pick, wants: &Wants, turn_no: u32) -> &Listener {
        let entry = self.entry(pick);
        let spans = wants.order().map(|it| entry.spoken[it as usize]);
        let span = spans.into_iter().find(|it| it.len > 0);
        let span = span.expect("a view holds the nodes that speak one of its transports");
        // The low bits of a turn's number repeat with the node's own turns.
        let mixed = turn_no.wrapping_mul(0x9e37_79b9) >> 16;
        let offset = (mixed * u32::from(span.len)) >> 16;
        &self.topology.nodes[entry.node as usize].listeners
            [usize::from(span.start) + offset as usize]
    }

    /// Adds further listeners of the chosen machines: other transports first.
    fn fill<'a>(&'a self, assignment: &mut Assignment<'a>, picks: &[Option<Pick>], wants: &Wants) {
        let best = |entry: &Entry| wants.order().find(|&it| entry.spoken[it as usize].len > 0);
        for round in 0..=ADDRESSES_PER_ANSWER {
            for transport in wants.order() {
                for entry in picks.iter().flatten().map(|&it| self.entry(it)) {
                    if round == 0 && best(entry) == Some(transport) {
                        continue;
                    }
                    let span = entry.spoken[transport as usize];
                    let listeners = &self.topology.nodes[entry.node as usize].listeners;
                    let alike = &listeners[usize::from(span.start)..][..usize::from(span.len)];
                    if let Some(listener) = alike.get(round.saturating_sub(1)) {
                        assignment.push(listener);
                    }
                }
            }
        }
    }

    fn refusal(&self, chain: &Chain) -> Refusal {
        if self.taking == 0 {
            Refusal::NoneLive
        } else if chain.views().next().is_none() {
            Refusal::NoTransport
        } else {
            Refusal::Full
        }
    }

    fn entry(&self, pick: Pick) -> &Entry {
        &self.topology.views[pick.view as usize].entries[pick.entry as usize]
    }
}

impl Chain {
    fn views(&self) -> impl Iterator<Item = u32> {
        distinct([self.own, self.bgp, self.everywhere])
    }

    fn bgp_first(&self) -> impl Iterator<Item = u32> {
        distinct([self.bgp, self.own, self.everywhere])
    }
}

fn distinct([a, b, c]: [u32; 3]) -> impl Iterator<Item = u32> {
    let b = if b == a { NO_VIEW } else { b };
    let c = if c == a || c == b { NO_VIEW } else { c };
    [a, b, c].into_iter().filter(|&it| it != NO_VIEW)
}
