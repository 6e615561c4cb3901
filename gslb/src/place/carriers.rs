//! Carriers: their numbers, their names, and whose an autonomous system is.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, ensure};
use proto::address::Carrier;

use super::config::Network;
use super::systems::DEFAULTS;

/// Bytes of a carrier's name, which labels metrics.
const NAME_BYTES_MAX: usize = 32;
/// The first number whose carrier is the configuration's to choose.
const FREE: usize = Carrier::C4 as usize;

/// The names of all carriers, and the systems of each.
#[derive(Clone, Debug)]
pub struct Carriers {
    names: [String; Carrier::ALL.len()],
    by_asn: BTreeMap<u32, Carrier>,
}

impl Carriers {
    /// The defaults, and over them what the configuration says.
    ///
    /// # Errors
    /// When a number is none or used twice, a name cannot be one, or a system is named twice.
    pub fn new(networks: &[Network]) -> anyhow::Result<Self> {
        let mut carriers = Self::default();
        let mut numbers = BTreeSet::new();
        let mut asns = BTreeMap::new();
        for network in networks {
            let number = network.number;
            let carrier = carriers.rename(network).with_context(|| format!("number {number}"))?;
            ensure!(numbers.insert(carrier), "number {number}: it is there twice");
            for &asn in &network.asns {
                ensure!(asns.insert(asn, carrier).is_none(), "AS{asn} is named twice");
            }
        }
        let is_replaced = |it: &Carrier| *it as usize >= FREE && numbers.contains(it);
        carriers.by_asn.retain(|_, it| !is_replaced(it));
        carriers.by_asn.extend(asns);
        let distinct: BTreeSet<&String> = carriers.names.iter().collect();
        ensure!(distinct.len() == carriers.names.len(), "two carriers have the same name");
        Ok(carriers)
    }

    fn rename(&mut self, network: &Network) -> anyhow::Result<Carrier> {
        let Network { number, name, .. } = network;
        let number = usize::from(*number);
        let &carrier = Carrier::ALL.get(number).context("it is not 0 to 15")?;
        let fixed = &self.names[number];
        ensure!(number >= FREE || name == fixed, "its name is {fixed:?} and not {name:?}");
        let is_plain =
            |it: u8| it.is_ascii_lowercase() || it.is_ascii_digit() || b"-_".contains(&it);
        ensure!(
            (1..=NAME_BYTES_MAX).contains(&name.len()) && name.bytes().all(is_plain),
            "{name:?} is not 1 to {NAME_BYTES_MAX} lower-case letters, digits, hyphens, underscores"
        );
        self.names[number].clone_from(name);
        Ok(carrier)
    }

    /// What a carrier is called in metrics and for operators.
    #[must_use]
    pub fn name(&self, carrier: Carrier) -> &str {
        &self.names[carrier as usize]
    }

    /// The carrier of this name.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<Carrier> {
        Carrier::ALL.into_iter().find(|&it| self.name(it) == name)
    }

    /// Whose an autonomous system is; BGP if nobody's.
    #[must_use]
    pub fn of(&self, asn: u32) -> Carrier {
        self.by_asn.get(&asn).copied().unwrap_or_default()
    }
}

impl Default for Carriers {
    fn default() -> Self {
        let all = || Carrier::ALL.into_iter().zip(DEFAULTS);
        let systems =
            all().flat_map(|(carrier, (_, asns))| asns.iter().map(move |&it| (it, carrier)));
        Self { names: DEFAULTS.map(|(name, _)| name.to_owned()), by_asn: systems.collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_large_carriers_of_eleven_countries_are_known() {
        let carriers = Carriers::default();
        let check = |asn, expected| assert_eq!(carriers.name(carriers.of(asn)), expected, "{asn}");

        check(4134, "telecom");
        check(4837, "unicom");
        check(9808, "mobile");
        check(7922, "us");
        check(17676, "jp");
        check(4766, "kr");
        check(3320, "de");
        check(2856, "gb");
        check(3215, "fr");
        check(55836, "in");
        check(28573, "br");
        check(45899, "vn");
        check(7713, "id");
        check(13335, "bgp");
    }

    #[test]
    fn by_default_no_system_is_of_two_carriers() {
        let systems: Vec<u32> = DEFAULTS.iter().flat_map(|it| it.1).copied().collect();

        let distinct: BTreeSet<u32> = systems.iter().copied().collect();

        assert_eq!(distinct.len(), systems.len());
    }

    #[test]
    fn a_carrier_of_ones_own_takes_its_number_and_its_systems() {
        let carriers = Carriers::new(&[network(5, "softbank", &[17676, 4725, 7922])]).unwrap();

        assert_eq!(carriers.find("softbank"), Some(Carrier::C5));
        assert_eq!(carriers.find("jp"), None);
        assert_eq!(carriers.of(17676), Carrier::C5);
        assert_eq!(carriers.of(7922), Carrier::C5);
        assert_eq!(carriers.of(2516), Carrier::Bgp);
    }

    #[test]
    fn the_fixed_carriers_gain_systems_and_can_lose_them() {
        let networks = [network(1, "telecom", &[64512]), network(0, "bgp", &[4809])];

        let carriers = Carriers::new(&networks).unwrap();

        assert_eq!(carriers.of(64512), Carrier::Telecom);
        assert_eq!(carriers.of(4134), Carrier::Telecom);
        assert_eq!(carriers.of(4809), Carrier::Bgp);
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let check = |networks: &[Network], expected: &str| {
            let refused = format!("{:#}", Carriers::new(networks).unwrap_err());
            assert_eq!(refused, expected);
        };

        check(&[network(16, "x", &[])], "number 16: it is not 0 to 15");
        check(&[network(1, "ct", &[])], "number 1: its name is \"telecom\" and not \"ct\"");
        check(
            &[network(4, "a b", &[])],
            "number 4: \"a b\" is not 1 to 32 lower-case letters, digits, hyphens, underscores",
        );
        check(&[network(4, "a", &[]), network(4, "b", &[])], "number 4: it is there twice");
        check(&[network(4, "a", &[1]), network(5, "b", &[1])], "AS1 is named twice");
        check(&[network(4, "jp", &[])], "two carriers have the same name");
    }

    fn network(number: u8, name: &str, asns: &[u32]) -> Network {
        Network { number, name: name.to_owned(), asns: asns.to_vec() }
    }
}
