//! Every metric of the system. The names are promises to dashboards and alarms.

use super::{Kind, Metric};

macro_rules! metrics {
    ($($const:ident = $kind:ident $name:literal [$($label:literal),*] $help:literal;)+) => {
        $(
            #[doc = $help]
            pub const $const: Metric =
                Metric { name: $name, kind: Kind::$kind, labels: &[$($label),*], help: $help };
        )+
        /// The whole list.
        pub const ALL: &[Metric] = &[$($const,)+];
    };
}

metrics! {
    PROCESS_RESIDENT_BYTES = Gauge "process_resident_bytes" [] "Memory in use by the process.";
    PROCESS_TASKS = Gauge "process_tasks" [] "Asynchronous tasks alive.";
    HTTP_CONNECTIONS = Gauge "http_connections" ["service"] "HTTP connections open.";
    HTTP_CONNECTIONS_ENDED_TOTAL = Counter "http_connections_ended_total" ["service", "why"] "HTTP connections that the server ended: full, handshake, silent, protocol.";

    LINK_SESSIONS = Gauge "link_sessions" [] "Sessions logged in.";

    GSLB_ANSWERS_TOTAL = Counter "gslb_answers_total" ["outcome"] "Answers: assigned, renewed; or read-only because the fleet is full, none_live, no_transport.";
    GSLB_REFUSALS_TOTAL = Counter "gslb_refusals_total" ["reason"] "Questions refused, by the problem's code.";
    GSLB_DATAGRAMS_TOTAL = Counter "gslb_datagrams_total" ["outcome"] "Load reports: joined, renewed, or why refused.";
    GSLB_NODES = Gauge "gslb_nodes" ["state"] "Link nodes: live under lease, and taking viewers.";
    GSLB_SNAPSHOT_AGE_SECONDS = Histogram "gslb_snapshot_age_seconds" [] "Age of a snapshot when the next one replaced it.";
    GSLB_TABLE_FAILURES_TOTAL = Counter "gslb_table_failures_total" ["operation"] "Load table calls that failed or came too late: get, put, decode.";
    GSLB_MASTERS_FETCHES_TOTAL = Counter "gslb_masters_fetches_total" ["outcome"] "Fetches of the master keys: ok, failed.";
    GSLB_KEYS_HORIZON_SECONDS = Gauge "gslb_keys_horizon_seconds" [] "How long tokens can be minted without another epoch.";
    GSLB_FACTS_REFUSED_TOTAL = Counter "gslb_facts_refused_total" ["kind"] "Facts on control that were not taken: malformed, epoch, skipped.";
}
