//! What is counted of answers and refusals.

use std::sync::OnceLock;

use kit::meter::{Meter, list};
use prometheus::IntCounter;
use proto::address::Carrier;

use super::Refusal;
use super::entrant::By;
use crate::place::Carriers;

/// Carriers, and none.
const NETWORKS: usize = Carrier::ALL.len() + 1;

#[derive(Debug)]
pub(super) struct Counts {
    meter: Meter,
    carriers: Carriers,
    /// By outcome, by what let the viewer in, and by the viewer's network: one addition an answer.
    /// Most of them are never needed.
    answers: [[[OnceLock<IntCounter>; NETWORKS]; By::ALL.len()]; Outcome::ALL.len()],
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
        Self {
            meter: meter.clone(),
            carriers: carriers.clone(),
            answers: std::array::from_fn(|_| {
                std::array::from_fn(|_| std::array::from_fn(|_| OnceLock::new()))
            }),
        }
    }

    /// An answer; with the carrier on whose network the viewer is, if addresses were looked for.
    #[inline]
    pub(super) fn answered(&self, outcome: Outcome, by: By, carrier: Option<Carrier>) {
        let network = carrier.map_or(0, |it| 1 + it as usize);
        let count = &self.answers[outcome as usize][by as usize][network];
        count.get_or_init(|| self.count(outcome, by, carrier)).inc();
    }

    #[cold]
    fn count(&self, outcome: Outcome, by: By, carrier: Option<Carrier>) -> IntCounter {
        let carrier = carrier.map_or("", |it| self.carriers.name(it));
        let labels = [outcome.name(), by.name(), carrier];
        self.meter.counter(list::GSLB_ANSWERS_TOTAL, &labels)
    }

    pub(super) fn refused(&self, refusal: &Refusal) {
        self.meter.counter(list::GSLB_REFUSALS_TOTAL, &[refusal.code()]).inc();
    }
}
