//! Where segments are served, and how bases return that were bad.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::ensure;
use gslb_core::bases::Pace;
use proto::head::Base;
use proto::limits::{BASE_BYTES_MAX, BASES_MAX, WORD_BYTES_MAX};
use serde::{Deserialize, Serialize};

/// The largest weight: a hundred times it is published.
const WEIGHT_MAX: u32 = 1_000_000;

/// One place where segments are served, a CDN as a rule. `[[gslb.segments]]`.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields, rename_all = "snake_case")]
pub struct Segments {
    /// Everything before `/dm/1/…`, without a slash at the end.
    pub base: String,
    /// Its capacity compared with the others': of weights 3 and 1 it gets three of four viewers.
    /// 0: only for viewers whose other bases fail. At most 1,000,000.
    pub weight: u32,
    /// Viewers of this region get it first, and others only if theirs fail; empty: everybody's.
    /// The names are those of `[gslb.place]`.
    pub region: String,
}

/// How a base returns that was bad for its viewers. `[gslb.bases]`.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields, rename_all = "snake_case")]
pub struct Bases {
    /// Milliseconds between two steps of 10 % of its weight. A CDN whose caches are cold needs
    /// longer ones; while it is drained it keeps 1 %. The first wait doubles each time it falls
    /// again within a minute.
    pub step_ms: u32,
    /// Milliseconds after which a drained base gets a step though nobody reports of it.
    pub quiet_ms: u32,
}

impl Segments {
    /// As it is handed out.
    pub(crate) fn base(&self) -> Base {
        Base { base: self.base.clone(), weight: self.weight }
    }

    fn check(&self) -> anyhow::Result<()> {
        let Self { base, weight, region } = self;
        let is_url = base.starts_with("https://") || base.starts_with("http://");
        ensure!(is_url && base.len() <= BASE_BYTES_MAX, "{base:?} is no base of a URL");
        ensure!(!base.ends_with('/'), "{base:?} ends with a slash");
        ensure!(*weight <= WEIGHT_MAX, "{base:?}: weight {weight} is more than {WEIGHT_MAX}");
        ensure!(region.len() <= WORD_BYTES_MAX, "{base:?}: the region's name is too long");
        Ok(())
    }
}

/// Refuses bases that cannot work.
pub(super) fn check(bases: &[Segments]) -> anyhow::Result<()> {
    ensure!(bases.len() <= BASES_MAX, "{} bases are more than {BASES_MAX}", bases.len());
    let mut names = BTreeSet::new();
    for it in bases {
        it.check()?;
        ensure!(names.insert(&it.base), "{:?} is there twice", it.base);
    }
    let has_weight = bases.is_empty() || bases.iter().any(|it| it.weight > 0);
    ensure!(has_weight, "no base has a weight");
    Ok(())
}

impl Bases {
    pub(super) fn check(&self) -> anyhow::Result<()> {
        ensure!(self.step_ms >= 500, "step_ms: {} is less than 500", self.step_ms);
        ensure!(self.quiet_ms >= self.step_ms, "quiet_ms: less than step_ms");
        Ok(())
    }

    pub(crate) fn pace(&self) -> Pace {
        Pace {
            step: Duration::from_millis(self.step_ms.into()),
            quiet: Duration::from_millis(self.quiet_ms.into()),
        }
    }
}

impl Default for Bases {
    fn default() -> Self {
        Self { step_ms: 3_000, quiet_ms: 30_000 }
    }
}
