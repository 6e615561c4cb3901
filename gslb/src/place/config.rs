//! What an operator can set about places, `[gslb.place]`.

use std::path::PathBuf;

use anyhow::{Context, ensure};
use serde::{Deserialize, Serialize};

use super::carriers::Carriers;
use super::file::Format;
use super::regions::Regions;

/// Files of one configuration; each may say something of an address, so each costs a look at
/// loading time.
const FILES_MAX: usize = 16;

/// How an address becomes a carrier and a region. `[gslb.place]`.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields, rename_all = "snake_case")]
pub struct Config {
    /// Files that know whose an address is or where it is, at most 16, the most trusted first:
    /// `.mmdb` (GeoLite2 and DB-IP: ASN, ISP, Country, City) and `.csv` (ip-location-db: asn,
    /// country, city; IPv4 or IPv6, addresses or numbers). The first file that knows an address's
    /// autonomous system decides the carrier, the first that knows its country the region. Files
    /// are looked at every five seconds; replace one by renaming. Without files every viewer is on
    /// BGP in `[gslb] region`.
    pub files: Vec<PathBuf>,
    /// Carriers of your own, and further systems of China's three.
    pub carriers: Vec<Network>,
    /// Which places belong to which region; all others belong to `[gslb] region`.
    pub regions: Vec<Region>,
}

/// One carrier. `[[gslb.place.carriers]]`.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields, rename_all = "snake_case")]
pub struct Network {
    /// Its number. 4 to 15 stand for carriers of your own: the systems that the number has by
    /// default are then not its own any more. 0 to 3 are `bgp`, `telecom`, `unicom` and `mobile`,
    /// and keep what they have by default. Link nodes and gslbs must agree on numbers.
    pub number: u8,
    /// Its name in metrics, for operators, and elsewhere in this file, where `carrier = "c4"` goes
    /// on to work too: lower-case letters, digits, hyphens, underscores.
    pub name: String,
    /// Its autonomous systems. A system is one carrier's; it leaves the one that has it by default.
    pub asns: Vec<u32>,
}

/// One region. `[[gslb.place.regions]]`.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields, rename_all = "snake_case")]
pub struct Region {
    /// As link nodes name it in `[link] region`.
    pub name: String,
    /// Countries (`CN`, ISO 3166-1) and parts of them (`CN-SH`, ISO 3166-2; China's also `CN-31`),
    /// or a name where files have no codes (`JP/Tokyo`, as in DB-IP). A part goes before its
    /// country.
    pub places: Vec<String>,
}

impl Config {
    /// Refuses values that cannot work. The files are not looked at.
    ///
    /// # Errors
    /// Names the value.
    pub fn check(&self) -> anyhow::Result<()> {
        let files = self.files.len();
        ensure!(files <= FILES_MAX, "files: {files} are more than {FILES_MAX}");
        for file in &self.files {
            let shown = file.display();
            ensure!(Format::of(file).is_some(), "files: {shown} ends neither in .mmdb nor in .csv");
        }
        Carriers::new(&self.carriers).context("carriers")?;
        Regions::new(&self.regions).context("regions")?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_a_configuration() {
        Config::default().check().unwrap();
    }

    #[test]
    fn what_cannot_work_is_named() {
        let check = |expected: &str, change: fn(&mut Config)| {
            let mut config = Config::default();
            change(&mut config);
            let refused = format!("{:#}", config.check().unwrap_err());
            assert!(refused.contains(expected), "{expected}: {refused}");
        };
        check("17 are more than 16", |it| it.files = vec![PathBuf::from("a.csv"); 17]);
        check("a.txt ends neither", |it| it.files = vec![PathBuf::from("a.txt")]);
        check("carriers: number 16", |it| {
            it.carriers = vec![Network { number: 16, name: "x".to_owned(), asns: vec![] }];
        });
        check("regions: \"China\" is no place", |it| {
            it.regions = vec![Region { name: "a".to_owned(), places: vec!["China".to_owned()] }];
        });
    }
}
