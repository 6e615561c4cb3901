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
    LINK_SESSIONS = Gauge "link_sessions" [] "Sessions logged in.";
}
