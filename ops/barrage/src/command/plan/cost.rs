//! The arithmetic of an event, over measured coefficients.

use bench::Sizes;
use serde::{Deserialize, Serialize};

/// A measured figure, and how it is measured again.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Named {
    pub(super) value: f64,
    pub(super) what: &'static str,
}

/// Head of an answer with a segment over HTTP/1.1, as our origin writes it.
const ANSWER_HEAD: Named = Named {
    value: 341.0,
    what: "bytes of an answer's head (curl -sD - of a segment at the origin, HTTP/1.1)",
};
/// Writes to sessions over TLS that a core makes in a second, by the items in each.
const WRITES: [(f64, Named); 3] = [
    (
        1.0,
        Named { value: 132e3, what: "writes/s/core of 1 item over TLS (bench link.fanout_tls.1)" },
    ),
    (
        10.0,
        Named {
            value: 120e3,
            what: "writes/s/core of 10 items over TLS (bench link.fanout_tls.10)",
        },
    ),
    (
        50.0,
        Named {
            value: 84.6e3,
            what: "writes/s/core of 50 items over TLS (bench link.fanout_tls.50)",
        },
    ),
];
/// All of them, as they are printed.
pub(super) const NAMED: [Named; 4] = [ANSWER_HEAD, WRITES[0].1, WRITES[1].1, WRITES[2].1];

/// Of a node's cores and network, what is planned for: the rest is for joins, storms, and a node that
/// fails.
const CORES_USED: f64 = 0.6;
const NETWORK_USED: f64 = 0.7;

const GIGA: f64 = 1e9;

/// What somebody pays.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Prices {
    /// Printed behind sums.
    pub(super) currency: String,
    /// For 10^9 bytes that a CDN delivers.
    cdn_per_gb: f64,
    /// For a million requests that a CDN answers.
    cdn_per_million_requests: f64,
    /// For 10^9 bytes that leave a machine room.
    egress_per_gb: f64,
    /// For a core of a link node.
    core_per_hour: f64,
}

/// What is planned.
#[derive(Clone, Copy, Debug)]
pub(super) struct Event {
    pub(super) viewers: u64,
    pub(super) hours: f64,
    pub(super) interval_ms: u32,
    pub(super) flush_ms: u32,
    pub(super) items_per_flush: f64,
    pub(super) node_cores: u32,
    pub(super) node_gbps: f64,
    pub(super) sizes: Sizes,
}

/// What one way would take if all viewers went it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Way {
    pub(super) name: &'static str,
    pub(super) requests_per_s: f64,
    pub(super) gbit_per_s: f64,
    pub(super) terabytes: f64,
    /// Of link nodes; a CDN has its own.
    pub(super) cores: Option<f64>,
    pub(super) nodes: Option<f64>,
    hours: f64,
}

impl Event {
    /// Files, FLV, pushes.
    pub(super) fn ways(&self) -> [Way; 3] {
        let viewers = count(self.viewers);
        let slots_per_s = 1000.0 / f64::from(self.interval_ms);
        let flushes_per_s = 1000.0 / f64::from(self.flush_ms);
        let Sizes { segment, flush_frame, seal_frame, flush_tag, .. } = self.sizes;
        let file = (bytes(segment) + ANSWER_HEAD.value) * slots_per_s;
        let stream = bytes(flush_tag) * flushes_per_s;
        let push = bytes(flush_frame) * flushes_per_s + bytes(seal_frame) * slots_per_s;

        let files = self.way("files", file);
        let pushes = self.way("push", push);
        let writes_per_s = viewers * (flushes_per_s + slots_per_s);
        let cores = writes_per_s / writes_per_core(self.items_per_flush);
        let by_cores = cores / (f64::from(self.node_cores) * CORES_USED);
        let by_network = pushes.gbit_per_s / (self.node_gbps * NETWORK_USED);
        [
            Way { requests_per_s: viewers * slots_per_s, ..files },
            self.way("flv", stream),
            Way { cores: Some(cores), nodes: Some(by_cores.max(by_network).ceil()), ..pushes },
        ]
    }

    fn way(&self, name: &'static str, bytes_per_s: f64) -> Way {
        let bytes_per_s = bytes_per_s * count(self.viewers);
        Way {
            name,
            requests_per_s: 0.0,
            gbit_per_s: bytes_per_s * 8.0 / GIGA,
            terabytes: bytes_per_s * self.hours * 3600.0 / (1000.0 * GIGA),
            cores: None,
            nodes: None,
            hours: self.hours,
        }
    }
}

impl Way {
    /// What it costs for the whole event.
    pub(super) fn money(&self, prices: &Prices) -> f64 {
        let gigabytes = self.terabytes * 1000.0;
        let requests = self.requests_per_s * self.hours * 3600.0;
        match self.cores {
            None => {
                gigabytes * prices.cdn_per_gb + requests / 1e6 * prices.cdn_per_million_requests
            }
            Some(cores) => {
                let hours = cores / CORES_USED * self.hours;
                gigabytes * prices.egress_per_gb + hours * prices.core_per_hour
            }
        }
    }
}

/// Between two measured points in a straight line; outside as at the nearest.
fn writes_per_core(items: f64) -> f64 {
    let first = WRITES[0];
    let found = WRITES.windows(2).find(|it| items <= it[1].0);
    match found {
        _ if items <= first.0 => first.1.value,
        Some(&[(low, slow), (high, fast)]) => {
            let share = (items - low) / (high - low);
            slow.value + share * (fast.value - slow.value)
        }
        Some(_) | None => WRITES[2].1.value,
    }
}

#[expect(clippy::cast_precision_loss, reason = "viewers stay below 2^53")]
const fn count(viewers: u64) -> f64 {
    viewers as f64
}

#[expect(clippy::cast_precision_loss, reason = "files stay below 2^53 bytes")]
const fn bytes(bytes: usize) -> f64 {
    bytes as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(viewers: u64) -> Event {
        let sizes = Sizes {
            segment: 1080,
            fragment: 0,
            flush_frame: 480,
            seal_frame: 100,
            flush_tag: 2000,
        };
        Event {
            viewers,
            hours: 2.0,
            interval_ms: 1000,
            flush_ms: 200,
            items_per_flush: 10.0,
            node_cores: 10,
            node_gbps: 10.0,
            sizes,
        }
    }

    fn is_near(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-6 * b.abs().max(1.0)
    }

    #[test]
    fn a_million_viewers_add_up() {
        let [files, flv, push] = event(1_000_000).ways();

        assert!(is_near(files.requests_per_s, 1e6), "{files:?}");
        assert!(is_near(files.gbit_per_s, 11.368), "{files:?}");
        assert!(is_near(files.terabytes, 10.2312), "{files:?}");
        assert!(is_near(flv.gbit_per_s, 80.0), "{flv:?}");
        assert!(is_near(push.gbit_per_s, 20.0), "{push:?}");
        assert_eq!(push.cores.map(f64::round), Some(50.0), "6 M writes/s at 120 k a core");
        assert_eq!(push.nodes, Some(9.0), "50 cores, 6 of 10 used");
    }

    #[test]
    fn money_is_traffic_requests_and_cores() {
        let prices: Prices = toml::from_str(
            "currency = \"X\"\ncdn_per_gb = 0.01\ncdn_per_million_requests = 0.5\n\
             egress_per_gb = 0.02\ncore_per_hour = 0.06",
        )
        .unwrap();
        let [files, _, push] = event(1_000_000).ways();

        assert!(is_near(files.money(&prices), 10_231.2 * 0.01 + 7_200.0 * 0.5));
        assert!(is_near(push.money(&prices), 18_000.0 * 0.02 + 50.0 / 0.6 * 2.0 * 0.06));
    }

    #[test]
    fn what_was_not_measured_lies_between_what_was() {
        assert!(is_near(writes_per_core(0.5), 132e3));
        assert!(is_near(writes_per_core(30.0), (120e3 + 84.6e3) / 2.0));
        assert!(is_near(writes_per_core(500.0), 84.6e3));
    }
}
