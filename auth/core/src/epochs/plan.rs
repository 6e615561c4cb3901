//! What the epochs should be like.

use std::time::Duration;

use crate::keyring::AHEAD_MAX;
use crate::mac::Alg;
use crate::token::TTL_S_MAX;

/// What the epochs should be like.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Plan {
    pub(super) interval_s: u32,
    pub(super) ahead: u32,
    pub(super) algs: Vec<Alg>,
}

/// Why a plan cannot be kept.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum PlanError {
    /// A token could outlive the epoch after its own, whose keys are gone then.
    #[error("an epoch of {interval_s} s is shorter than twice a token's life of {ttl_s} s")]
    Interval {
        /// Seconds given.
        interval_s: u32,
        /// Seconds of the longest life configured.
        ttl_s: u16,
    },
    /// Links refuse such tokens.
    #[error("a token's life of {ttl_s} s is not 1 to {TTL_S_MAX} s")]
    Ttl {
        /// Seconds given.
        ttl_s: u16,
    },
    /// Nobody keeps so many.
    #[error("{ahead} epochs ahead are not 1 to {AHEAD_MAX}")]
    Ahead {
        /// Epochs given.
        ahead: u32,
    },
    /// Nothing to choose from.
    #[error("no token algorithm is configured")]
    NoAlg,
    /// An algorithm this code does not know.
    #[error("token algorithm {alg} is unknown")]
    Alg {
        /// Number given.
        alg: u8,
    },
}

impl Plan {
    /// Epochs of `interval_s`, known `ahead` of time, each with one of `algs`, for tokens that
    /// live up to `ttl_s`.
    pub fn new(interval_s: u32, algs: &[u8], ahead: u32, ttl_s: u16) -> Result<Self, PlanError> {
        if !(1..=TTL_S_MAX).contains(&ttl_s) {
            return Err(PlanError::Ttl { ttl_s });
        }
        if interval_s < 2 * u32::from(ttl_s) {
            return Err(PlanError::Interval { interval_s, ttl_s });
        }
        if !(1..=AHEAD_MAX).contains(&ahead) {
            return Err(PlanError::Ahead { ahead });
        }
        if algs.is_empty() {
            return Err(PlanError::NoAlg);
        }
        let algs = algs
            .iter()
            .map(|&alg| Alg::from_code(alg).ok_or(PlanError::Alg { alg }))
            .collect::<Result<_, _>>()?;
        Ok(Self { interval_s, ahead, algs })
    }

    /// Time that all epochs ahead cover at least.
    #[must_use]
    pub const fn horizon(&self) -> Duration {
        Duration::from_secs(self.ahead as u64 * self.interval_s as u64)
    }
}
