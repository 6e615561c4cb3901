//! Who says where an address is: for operators, who ask why.

use std::net::IpAddr;
use std::path::PathBuf;

use super::carriers::Carriers;
use super::config::Config;
use super::file::{self, Layer, Wrong};
use super::regions::Regions;
use super::rows::{Row, address as address_at, key};
use super::table::{Place, plain, reserved};

/// The files of a configuration, kept as they are.
#[derive(Debug)]
pub struct Survey {
    layers: Vec<Layer>,
    carriers: Carriers,
    place: Place,
}

/// What is found of an address.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Finding {
    /// The address that was looked up: the IPv4 address where IPv6 carries one.
    pub address: IpAddr,
    /// The carrier's name.
    pub carrier: String,
    /// The region, if the configuration has one for it.
    pub region: Option<String>,
    /// Whether it is no address of the public internet, so that no file counts.
    pub is_reserved: bool,
    /// Who says which autonomous system it is of.
    pub system: Option<Evidence>,
    /// Who says which country it is in.
    pub place: Option<Evidence>,
}

/// What one file says of one range. Neighbours in the file that say the same are one range.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Evidence {
    /// `AS4134`, or `CN-SH`.
    pub says: String,
    /// First address of the range.
    pub first: IpAddr,
    /// Last address of the range.
    pub last: IpAddr,
    /// Who says so.
    pub file: PathBuf,
}

impl Survey {
    /// Reads all files of `config`. Files that cannot be used are left out, and come with the
    /// reason, as in a running gslb.
    ///
    /// # Errors
    /// As [`Config::check`].
    pub fn load(config: &Config) -> anyhow::Result<(Self, Vec<Wrong>)> {
        config.check()?;
        let (layers, wrong) = file::read_all(&config.files);
        let carriers = Carriers::new(&config.carriers)?;
        let place = Place::new(&layers, &carriers, Regions::new(&config.regions)?);
        Ok((Self { layers, carriers, place }, wrong))
    }

    /// What is found of an address, as a running gslb finds it.
    #[must_use]
    pub fn of(&self, address: IpAddr) -> Finding {
        let address = plain(address);
        let key = key(address);
        let whereabouts = self.place.of(address);
        let is_reserved = reserved().find(key).is_some();
        let layers = || self.layers.iter().filter(|_| !is_reserved);
        let evidence = |layer: &Layer, row: &Row, says| Evidence {
            says,
            first: address_at(row.start),
            last: address_at(row.end),
            file: layer.file.clone(),
        };
        Finding {
            address,
            carrier: self.carriers.name(whereabouts.carrier).to_owned(),
            region: whereabouts.region.map(str::to_owned),
            is_reserved,
            system: layers().find_map(|layer| {
                let row = layer.asns.find(key)?;
                Some(evidence(layer, row, format!("AS{}", row.fact)))
            }),
            place: layers().find_map(|layer| {
                let row = layer.places.find(key)?;
                Some(evidence(layer, row, layer.codes.get(row.fact as usize)?.clone()))
            }),
        }
    }
}
