//! One viewer's addresses, from a snapshot: two atomic additions and a few array reads.

use proto::address::{Carrier, Transport};

use crate::listener::Listener;
use crate::region::Region;
use crate::snapshot::Snapshot;
use crate::topology::NO_PLANE;
use search::Search;

mod search;

/// Kinds of transport.
pub const TRANSPORTS: usize = 6;
/// Addresses of one answer.
pub const ADDRESSES_PER_ANSWER: usize = 3;

/// Transports that a client can speak, best first.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Wants {
    order: [Transport; TRANSPORTS],
    len: usize,
    mask: u8,
}

/// What is asked for one viewer.
#[derive(Clone, Copy, Debug)]
pub struct Request {
    /// Where the viewer is, see [`Snapshot::region`].
    pub region: Region,
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
    /// Every node that the viewer could use is full, or takes no more logins for the moment.
    #[error("every live node is full")]
    Full,
    /// No node is under lease, or those that are take no viewers.
    #[error("no node that takes viewers holds a lease")]
    NoneLive,
    /// No node speaks what the client speaks.
    #[error("no node speaks a transport of this client")]
    NoTransport,
    /// No node has a reserve address that the client could use.
    #[error("no node has a reserve address for this client")]
    NoReserve,
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
}

impl Snapshot {
    /// Chooses up to three addresses for one viewer, and counts the first one as load.
    ///
    /// Three machines where there are three, two machine rooms where there are two, the last one
    /// BGP where there is one; other listeners of the same machines only where machines are
    /// lacking. Allocates nothing.
    pub fn assign(&self, request: &Request) -> Result<Assignment<'_>, Refusal> {
        let plane = self.topology.published[usize::from(request.wants.mask)];
        self.choose(plane, request, Refusal::NoTransport)
    }

    /// The same among the addresses that were never published, for a viewer of a besieged node.
    ///
    /// Only nodes that are not besieged themselves are chosen, and they count the viewer as load
    /// like any other.
    pub fn reserve(&self, request: &Request) -> Result<Assignment<'_>, Refusal> {
        let plane = self.topology.reserve[usize::from(request.wants.mask)];
        self.choose(plane, request, Refusal::NoReserve)
    }

    fn choose(
        &self,
        plane: u8,
        request: &Request,
        none: Refusal,
    ) -> Result<Assignment<'_>, Refusal> {
        if plane == NO_PLANE {
            return Err(if self.taking == 0 { Refusal::NoneLive } else { none });
        }
        let search = Search::new(self, plane.into(), request);
        let Some(first) = search.first() else {
            return Err(if self.taking == 0 { Refusal::NoneLive } else { Refusal::Full });
        };
        let listener = |entry| Some(search.listener(entry, first.turn_no));
        let further = search.further(first);
        if let [Some(middle), Some(last)] = further {
            let listeners = [listener(first.entry), listener(middle), listener(last)];
            return Ok(Assignment { listeners });
        }
        let chosen = [Some(first.entry), further[0], further[1]];
        let mut assignment = Assignment::default();
        chosen.iter().flatten().filter_map(|&it| listener(it)).for_each(|it| assignment.push(it));
        search.fill(&mut assignment, &chosen);
        Ok(assignment)
    }
}
