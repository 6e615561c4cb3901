//! Regions by number, so that names are compared once at the border and never on the way.

use std::collections::BTreeMap;

/// Regions of one fleet; reports of further ones are refused.
pub const REGIONS_MAX: usize = 256;

/// A region of a fleet. A number, once given, stays that region's in all snapshots of the fleet.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Region(u16);

/// Names and numbers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Regions(BTreeMap<String, Region>);

impl Region {
    /// No region that the fleet knows: its viewers have pools by carrier only.
    pub const UNKNOWN: Self = Self(u16::MAX);

    pub(crate) fn index(self) -> usize {
        self.0.into()
    }
}

impl Regions {
    /// The number of a name.
    pub(crate) fn find(&self, name: &str) -> Option<Region> {
        self.0.get(name).copied()
    }

    /// The number of a name, a new one if need be and possible.
    pub(crate) fn number(&mut self, name: &str) -> Option<Region> {
        let known = self.find(name);
        if known.is_some() || self.len() >= REGIONS_MAX {
            return known;
        }
        let region = Region(u16::try_from(self.len()).ok()?);
        self.0.insert(name.to_owned(), region);
        Some(region)
    }

    /// By name.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, Region)> {
        self.0.iter().map(|(name, region)| (name.as_str(), *region))
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }
}
