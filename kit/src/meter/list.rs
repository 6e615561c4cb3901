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
}
