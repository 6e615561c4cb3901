//! One viewer's addresses, from a snapshot: two atomic additions and a few array reads.

use proto::address::{Carrier, Transport};

use crate::listener::Listener;
use crate::policy::Pool;
use crate::region::Region;
use crate::snapshot::Snapshot;
use crate::topology::{Entry, Plane};
use crate::turns::Turns;
use search::{First, Search};
use usual::{Usual, best};

mod search;
mod usual;

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
    /// All but the national one.
    const USUAL: Self = {
        use Transport::{Quic, Tcp, Tls, Ws, Wss};
        Self::only(&[Tls, Wss, Quic, Tcp, Ws])
    };

    /// These transports, best first, repeats left out; all but the national one if there is none.
    #[must_use]
    #[inline]
    pub const fn new(transports: &[Transport]) -> Self {
        if transports.is_empty() { Self::USUAL } else { Self::only(transports) }
    }

    const fn only(transports: &[Transport]) -> Self {
        let mut wants = Self { order: [Transport::Tls; TRANSPORTS], len: 0, mask: 0 };
        let mut at = 0;
        while at < transports.len() {
            let bit = 1 << transports[at] as u8;
            if wants.mask & bit == 0 {
                wants.order[wants.len] = transports[at];
                wants.len += 1;
                wants.mask |= bit;
            }
            at += 1;
        }
        wants
    }

    #[inline]
    fn order(&self) -> impl Iterator<Item = Transport> {
        self.order[..self.len].iter().copied()
    }
}

impl Default for Wants {
    fn default() -> Self {
        Self::USUAL
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

    #[inline]
    fn choose(
        &self,
        plane: u8,
        request: &Request,
        none: Refusal,
    ) -> Result<Assignment<'_>, Refusal> {
        let plane = usize::from(plane);
        let (Some(plane), Some(turns)) = (self.topology.planes.get(plane), self.turns.get(plane))
        else {
            return Err(if self.taking == 0 { Refusal::NoneLive } else { none });
        };
        if plane.entries.len() == 1 && self.topology.order.contains(&Pool::Any) {
            return self.only(plane, turns, request);
        }
        match self.usual(plane, turns, request) {
            Usual::All(entries, turn_no) => Ok(self.best_of(entries, plane, request, turn_no)),
            Usual::Only(first) => self.search(Ok(first), plane, turns, request),
            Usual::Nothing { full } => self.search(Err(full), plane, turns, request),
        }
    }

    /// A plane of one entry, as a small installation has: whoever comes is sent there, as long as
    /// there is a place.
    #[inline]
    fn only<'a>(
        &'a self,
        plane: &'a Plane,
        turns: &'a Turns,
        request: &Request,
    ) -> Result<Assignment<'a>, Refusal> {
        if turns.stretch(&(0..1)).is_empty() || !self.seat(plane, 0) {
            return Err(self.full());
        }
        let entry = &plane.entries[0];
        let spoken = &plane.spoken[entry.spoken as usize];
        let turn_no = plane.rings[0].take();
        let listeners: u32 =
            request.wants.order().map(|it| u32::from(spoken[it as usize].len)).sum();
        if listeners > 1 {
            let search = Search::new(self, plane, turns, request);
            return Ok(search.fill([Some(0), None, None], turn_no));
        }
        let best = entry.listener + best(spoken, &request.wants, turn_no);
        let listener = &self.topology.listeners[best as usize];
        Ok(Assignment { listeners: [Some(listener), None, None] })
    }

    /// Why there is no place.
    const fn full(&self) -> Refusal {
        if self.taking == 0 { Refusal::NoneLive } else { Refusal::Full }
    }

    /// The best listener of each.
    #[inline]
    fn best_of(
        &self,
        entries: [u32; ADDRESSES_PER_ANSWER],
        plane: &Plane,
        request: &Request,
        turn_no: u32,
    ) -> Assignment<'_> {
        let [first, middle, last] = entries.map(|it| &plane.entries[it as usize]);
        let best = |it: &Entry| best(&plane.spoken[it.spoken as usize], &request.wants, turn_no);
        let mut offsets = [best(first); ADDRESSES_PER_ANSWER];
        // Most entries speak the same, so what is best of one is best of the others.
        if middle.spoken != first.spoken || last.spoken != first.spoken {
            offsets = [offsets[0], best(middle), best(last)];
        }
        let listener = |it: &Entry, at: usize| {
            Some(&self.topology.listeners[(it.listener + offsets[at]) as usize])
        };
        Assignment { listeners: [listener(first, 0), listener(middle, 1), listener(last, 2)] }
    }

    /// Every case: all pools, and all that must be left out of them. The first one is chosen, or so
    /// many of the first pools are full.
    #[cold]
    fn search<'a>(
        &'a self,
        first: Result<First, usize>,
        plane: &'a Plane,
        turns: &'a Turns,
        request: &Request,
    ) -> Result<Assignment<'a>, Refusal> {
        let search = Search::new(self, plane, turns, request);
        let Some(first) = first.map_or_else(|full| search.first(full), Some) else {
            return Err(self.full());
        };
        let [middle, last] = search.further(first);
        if let (Some(middle), Some(last)) = (middle, last) {
            return Ok(self.best_of([first.entry, middle, last], plane, request, first.turn_no));
        }
        Ok(search.fill([Some(first.entry), middle, last], first.turn_no))
    }
}
