//! Which region a place belongs to.

use std::collections::BTreeMap;

use anyhow::{Context, ensure};
use gslb_core::region::REGIONS_MAX;
use proto::limits::WORD_BYTES_MAX;

use super::code;
use super::config::Region;

/// Region number 0: of no place, which is for the caller to fill in.
pub(super) const NONE: u16 = 0;

/// Regions by number, and the number of each place.
#[derive(Clone, Debug, Default)]
pub(super) struct Regions {
    /// Number 1 is the first.
    names: Vec<String>,
    by_place: BTreeMap<String, u16>,
}

impl Regions {
    pub(super) fn new(regions: &[Region]) -> anyhow::Result<Self> {
        let count = regions.len();
        ensure!(count <= REGIONS_MAX, "{count} are more than {REGIONS_MAX}");
        let mut by_place = BTreeMap::new();
        for (number, Region { name, places }) in (1..).zip(regions) {
            let bytes = name.len();
            ensure!(
                (1..=WORD_BYTES_MAX).contains(&bytes),
                "a name has 1 to {WORD_BYTES_MAX} bytes, {name:?} has {bytes}"
            );
            for place in places {
                let code = code::parse(place);
                let code =
                    code.with_context(|| format!("{place:?} is no place such as CN or CN-SH"))?;
                ensure!(by_place.insert(code, number).is_none(), "{place} is named twice");
            }
        }
        Ok(Self { names: regions.iter().map(|it| it.name.clone()).collect(), by_place })
    }

    /// The number of the region that a place belongs to, by itself or with its country.
    pub(super) fn of(&self, place: &str) -> u16 {
        let number = self.by_place.get(place).or_else(|| self.by_place.get(code::country(place)));
        number.copied().unwrap_or(NONE)
    }

    /// The names, number 1 first.
    pub(super) fn into_names(self) -> Vec<String> {
        self.names
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_goes_before_its_country() {
        let regions = [region("east", &["CN-31", "CN/Zhejiang"]), region("rest", &["CN", "JP"])];

        let regions = Regions::new(&regions).unwrap();

        assert_eq!(regions.of("CN-SH"), 1);
        assert_eq!(regions.of("CN-ZJ"), 1);
        assert_eq!(regions.of("CN-GD"), 2);
        assert_eq!(regions.of("CN"), 2);
        assert_eq!(regions.of("JP/tokyo"), 2);
        assert_eq!(regions.of("US"), NONE);
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let check = |regions: &[Region], expected: &str| {
            assert_eq!(Regions::new(regions).unwrap_err().to_string(), expected);
        };

        check(&[region("", &[])], "a name has 1 to 64 bytes, \"\" has 0");
        check(&[region("a", &["China"])], "\"China\" is no place such as CN or CN-SH");
        check(&[region("a", &["CN-SH"]), region("b", &["CN-31"])], "CN-31 is named twice");
        check(&vec![region("a", &[]); 257], "257 are more than 256");
    }

    fn region(name: &str, places: &[&str]) -> Region {
        Region { name: name.to_owned(), places: places.iter().map(|&it| it.to_owned()).collect() }
    }
}
