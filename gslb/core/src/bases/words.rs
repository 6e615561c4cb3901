//! What the machine is told, and what it says.

use proto::head::Base;
use proto::quality::BaseGauges;

/// What the machine is told.
#[derive(Clone, Debug)]
pub enum Input {
    /// A record of `gauges`.
    Gauges(BaseGauges),
    /// What `control` says, whoever published it.
    Told(Vec<Base>),
    /// Whether this process judges.
    Role(Role),
}

/// Whether this process judges.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Role {
    /// It does, and publishes.
    Leads,
    /// It takes over what is published.
    Follows,
}

/// What became of the votes of one record.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Heard {
    /// Votes of viewers for whom the base is well.
    pub good: u64,
    /// Votes of those for whom it is bad.
    pub bad: u64,
    /// Votes on bases that are not known here, and announcements of more than fit.
    pub unknown: u64,
}

/// What the machine wants.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Output {
    /// Say on `control` where segments are served.
    Publish(Vec<Base>),
    /// A base got another share; for the log and the metrics.
    Moved(Moved),
}

/// Why a base got another share of its weight.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Moved {
    /// Which.
    pub base: String,
    /// Percent before; 0: it was not there.
    pub from: u8,
    /// Percent now; 0: it is gone.
    pub to: u8,
    /// Why.
    pub why: Why,
    /// Votes of the last seconds.
    pub reports: u32,
    /// Of them, how many were bad.
    pub bad: u32,
    /// Mean milliseconds of a fetch, as reported.
    pub fetch_ms: u32,
}

/// Why.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Why {
    /// Viewers report that it is bad.
    Reports,
    /// Its broadcasters' stores take no slots.
    Store,
    /// All are bad, and this one least.
    LeastBad,
    /// It is well again: one step.
    Well,
    /// Nobody says anything of it: one step, to find out.
    Quiet,
    /// It is said to be bad for long: one step, to hear more viewers than those who say so.
    Trial,
    /// A broadcaster began to announce it.
    Announced,
    /// No broadcaster announces it any more.
    Silent,
}

impl Why {
    /// The word in logs and metrics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Reports => "reports",
            Self::Store => "store",
            Self::LeastBad => "least_bad",
            Self::Well => "well",
            Self::Quiet => "quiet",
            Self::Trial => "trial",
            Self::Announced => "announced",
            Self::Silent => "silent",
        }
    }
}
