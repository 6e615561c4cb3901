//! What a run ends with: one JSON object.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

/// What a run of the crowd came to.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Summary {
    /// Comments played.
    pub sent: u64,
    /// Of those, admitted.
    pub admitted: u64,
    /// Of those, refused, by reason.
    pub refused: BTreeMap<String, u64>,
    /// Admitted and shown.
    pub sealed: u64,
    /// Admitted and shown as part of another.
    pub merged: u64,
    /// Admitted and given up, by lane.
    pub shed: BTreeMap<String, u64>,
    /// Items that viewers got, by path.
    pub received: Received,
    /// Items that a viewer got again.
    pub repeats: u64,
    /// Items that a viewer got too late in the order.
    pub out_of_order: u64,
    /// Sealed items that a viewer never got.
    pub missing: u64,
    /// Items that a viewer got and nobody sealed.
    pub unexpected: u64,
    /// From `send` to the application of a viewer.
    pub latency_ms: Latency,
    /// Records of the file that held no comment.
    pub damaged: u64,
    /// Resident memory of the whole process at the end.
    pub rss_bytes: u64,
}

/// Items that viewers got, by path.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub struct Received {
    /// Over the long connection.
    pub push: u64,
    /// From segments.
    pub segments: u64,
}

/// Latencies by path.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub struct Latency {
    /// Over the long connection.
    pub push: Quantiles,
    /// From segments.
    pub segments: Quantiles,
}

/// Milliseconds; `null` when there was nothing to measure.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub struct Quantiles {
    /// Half were faster.
    pub p50: Option<u64>,
    /// One in a hundred was slower.
    pub p99: Option<u64>,
}

impl Quantiles {
    pub(super) fn of(histogram: &Histogram<u64>) -> Self {
        let value = |q| (!histogram.is_empty()).then(|| histogram.value_at_quantile(q));
        Self { p50: value(0.5), p99: value(0.99) }
    }
}

impl Summary {
    /// What is wrong with the run, in words; empty when nothing is.
    #[must_use]
    pub fn faults(&self) -> Vec<String> {
        let refused: u64 = self.refused.values().sum();
        let shed: u64 = self.shed.values().sum();
        let mut faults = Vec::new();
        let mut check = |good: bool, fault: String| {
            if !good {
                faults.push(fault);
            }
        };
        let Self { sent, admitted, sealed, merged, .. } = *self;
        check(
            sent == admitted + refused,
            format!("{sent} sent, but {admitted} admitted + {refused} refused"),
        );
        check(
            admitted == sealed + merged + shed,
            format!("{admitted} admitted, but {sealed} sealed + {merged} merged + {shed} shed"),
        );
        let unanswered = self.refused.get("unanswered").copied().unwrap_or(0);
        check(unanswered == 0, format!("{unanswered} comments were never answered"));
        check(self.missing == 0, format!("{} sealed items never came", self.missing));
        check(self.repeats == 0, format!("{} items came again", self.repeats));
        check(self.out_of_order == 0, format!("{} items came out of order", self.out_of_order));
        check(self.unexpected == 0, format!("{} items came that nobody sealed", self.unexpected));
        faults
    }
}
