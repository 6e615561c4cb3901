//! What is counted of answers and refusals.

use kit::meter::{Meter, list};
use prometheus::IntCounter;
use proto::address::Carrier;

use super::Refusal;
use super::entrant::By;
use crate::place::Carriers;

#[derive(Debug)]
pub(super) struct Counts {
    meter: Meter,
    outcomes: [IntCounter; Outcome::ALL.len()],
    by_ticket: IntCounter,
    by_open: IntCounter,
    by_guest: IntCounter,
    viewers: [IntCounter; Carrier::ALL.len()],
}

/// What an answer says.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Outcome {
    /// Addresses.
    Assigned,
    /// A token for the address of a running session.
    Renewed,
    /// No address: there are no places.
    Full,
    /// No address: no node takes viewers.
    NoneLive,
    /// No address: no node speaks what the client speaks.
    NoTransport,
}

impl Outcome {
    const ALL: [Self; 5] =
        [Self::Assigned, Self::Renewed, Self::Full, Self::NoneLive, Self::NoTransport];

    const fn name(self) -> &'static str {
        match self {
            Self::Assigned => "assigned",
            Self::Renewed => "renewed",
            Self::Full => "full",
            Self::NoneLive => "none_live",
            Self::NoTransport => "no_transport",
        }
    }
}

impl Counts {
    pub(super) fn new(carriers: &Carriers, meter: &Meter) -> Self {
        let entrants = |by| meter.counter(list::GSLB_ENTRANTS_TOTAL, &[by]);
        Self {
            outcomes: Outcome::ALL.map(|it| meter.counter(list::GSLB_ANSWERS_TOTAL, &[it.name()])),
            by_ticket: entrants("ticket"),
            by_open: entrants("open"),
            by_guest: entrants("guest"),
            viewers: Carrier::ALL
                .map(|it| meter.counter(list::GSLB_VIEWERS_TOTAL, &[carriers.name(it)])),
            meter: meter.clone(),
        }
    }

    pub(super) fn answered(&self, outcome: Outcome, by: By) {
        self.outcomes[outcome as usize].inc();
        let entrants = match by {
            By::Ticket => &self.by_ticket,
            By::Open => &self.by_open,
            By::Guest => &self.by_guest,
        };
        entrants.inc();
    }

    /// Addresses are looked for, for a viewer on this carrier's network.
    pub(super) fn viewer(&self, carrier: Carrier) {
        self.viewers[carrier as usize].inc();
    }

    pub(super) fn refused(&self, refusal: &Refusal) {
        self.meter.counter(list::GSLB_REFUSALS_TOTAL, &[refusal.code()]).inc();
    }
}
