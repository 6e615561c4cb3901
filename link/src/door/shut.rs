//! Why a login is refused.

use std::time::Duration;

use proto::close::CloseCode;

/// Why a credential does not open a session.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shut {
    pub(crate) code: CloseCode,
    /// The word in metrics.
    pub(crate) name: &'static str,
    /// It is of no use to come back before.
    pub(crate) wait: Duration,
}

impl Shut {
    pub(crate) const fn of(code: CloseCode) -> Self {
        Self::named(code, code.name())
    }

    pub(crate) const fn named(code: CloseCode, name: &'static str) -> Self {
        Self { code, name, wait: Duration::ZERO }
    }
}
