//! Metrics: one list of names for the whole system, one registry per process.
//!
//! A handle is fetched once, at start, and kept; counting is one atomic add.

pub mod list;

use std::collections::BTreeMap;
use std::sync::Arc;

use prometheus::{
    Encoder, Histogram, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, IntGauge,
    IntGaugeVec, Opts, Registry, TextEncoder,
};

/// One line of the list.
#[derive(Clone, Copy, Debug)]
pub struct Metric {
    /// `service_noun_unit_total`.
    pub name: &'static str,
    /// Counter, gauge or histogram.
    pub kind: Kind,
    /// Label names.
    pub labels: &'static [&'static str],
    /// What it counts, for the operator.
    pub help: &'static str,
}

/// Kind of a metric.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Kind {
    /// Only rises.
    Counter,
    /// Rises and falls.
    Gauge,
    /// Times in seconds, in the buckets of [`BUCKETS_S`].
    Histogram,
}

/// Upper edges of a histogram's buckets: a millisecond to ten seconds, in steps of 2 to 2.5.
pub const BUCKETS_S: &[f64] =
    &[0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];

/// The registry of a process; clones share it.
#[derive(Clone)]
pub struct Meter {
    registry: Registry,
    families: Arc<BTreeMap<&'static str, Family>>,
}

enum Family {
    Counter(IntCounterVec),
    Gauge(IntGaugeVec),
    Histogram(HistogramVec),
}

impl std::fmt::Debug for Meter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Meter")
    }
}

impl Default for Meter {
    fn default() -> Self {
        Self::new()
    }
}

impl Meter {
    /// A registry with every metric of [`list::ALL`].
    #[must_use]
    pub fn new() -> Self {
        let registry = Registry::new();
        let families = list::ALL.iter().map(|it| (it.name, register(&registry, it))).collect();
        Self { registry, families: Arc::new(families) }
    }

    /// The counter `metric` with these label values, in the list's order.
    ///
    /// # Panics
    /// When `metric` is no counter or has other labels: a mistake in the code, found at start.
    #[must_use]
    pub fn counter(&self, metric: Metric, labels: &[&str]) -> IntCounter {
        match &self.families[metric.name] {
            Family::Counter(family) => family.with_label_values(labels),
            Family::Gauge(_) | Family::Histogram(_) => panic!("{} is no counter", metric.name),
        }
    }

    /// The gauge `metric` with these label values.
    ///
    /// # Panics
    /// As [`Meter::counter`].
    #[must_use]
    pub fn gauge(&self, metric: Metric, labels: &[&str]) -> IntGauge {
        match &self.families[metric.name] {
            Family::Gauge(family) => family.with_label_values(labels),
            Family::Counter(_) | Family::Histogram(_) => panic!("{} is no gauge", metric.name),
        }
    }

    /// The histogram `metric` with these label values; it observes seconds.
    ///
    /// # Panics
    /// As [`Meter::counter`].
    #[must_use]
    pub fn histogram(&self, metric: Metric, labels: &[&str]) -> Histogram {
        match &self.families[metric.name] {
            Family::Histogram(family) => family.with_label_values(labels),
            Family::Counter(_) | Family::Gauge(_) => panic!("{} is no histogram", metric.name),
        }
    }

    /// All metrics in Prometheus' text format.
    #[must_use]
    pub fn render(&self) -> String {
        let mut buffer = Vec::new();
        let written = TextEncoder::new().encode(&self.registry.gather(), &mut buffer);
        match written {
            Ok(()) => String::from_utf8_lossy(&buffer).into_owned(),
            Err(error) => format!("# {error}\n"),
        }
    }
}

fn register(registry: &Registry, metric: &Metric) -> Family {
    const VALID: &str = "names and labels of the list are valid and unique, as its test shows";
    let opts = Opts::new(metric.name, metric.help);
    match metric.kind {
        Kind::Counter => {
            let family = IntCounterVec::new(opts, metric.labels).expect(VALID);
            registry.register(Box::new(family.clone())).expect(VALID);
            Family::Counter(family)
        }
        Kind::Gauge => {
            let family = IntGaugeVec::new(opts, metric.labels).expect(VALID);
            registry.register(Box::new(family.clone())).expect(VALID);
            Family::Gauge(family)
        }
        Kind::Histogram => {
            let family = HistogramVec::new(
                HistogramOpts::from(opts).buckets(BUCKETS_S.to_vec()),
                metric.labels,
            )
            .expect(VALID);
            registry.register(Box::new(family.clone())).expect(VALID);
            Family::Histogram(family)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_whole_list_registers() {
        let meter = Meter::new();

        meter.gauge(list::LINK_SESSIONS, &[]).set(3);

        assert!(meter.render().contains("link_sessions 3"));
    }

    #[test]
    fn names_carry_their_unit_and_kind() {
        for Metric { name, kind, .. } in list::ALL {
            assert_eq!(*kind == Kind::Counter, name.ends_with("_total"), "{name}");
            assert!(*kind != Kind::Histogram || name.ends_with("_seconds"), "{name}");
        }
    }
}
