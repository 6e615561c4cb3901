//! Places for connections before login, of which one address holds no more than a share.

use std::collections::BTreeMap;
use std::net::IpAddr;

/// Where a connection comes from, as far as one subscriber reaches.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Site {
    /// Nobody's in particular: behind a terminator that does not name its clients, everybody comes
    /// from loopback.
    Everybodys,
    /// One subscriber's.
    Own(IpAddr),
}

/// Who holds how many places. What is remembered is bounded by the places.
#[derive(Debug)]
pub struct Places {
    places_max: u32,
    site_places_max: u32,
    taken: u32,
    /// How many each address holds; none that holds none.
    sites: BTreeMap<Site, u32>,
}

/// Why there is no place.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum NoPlace {
    /// All are taken.
    Full,
    /// The address holds its share.
    Share,
}

impl Places {
    /// So many places, of which one address holds at most `site_places_max`.
    #[must_use]
    pub const fn new(places_max: u32, site_places_max: u32) -> Self {
        Self { places_max, site_places_max, taken: 0, sites: BTreeMap::new() }
    }

    /// Takes a place for a connection from `site`.
    ///
    /// [`Site::Everybodys`] may hold all.
    ///
    /// # Errors
    /// When there is none for it.
    pub fn take(&mut self, site: Site) -> Result<(), NoPlace> {
        if self.taken >= self.places_max {
            return Err(NoPlace::Full);
        }
        let held = self.sites.get(&site).copied().unwrap_or(0);
        if held >= self.site_places_max && site != Site::Everybodys {
            return Err(NoPlace::Share);
        }
        self.sites.insert(site, held + 1);
        self.taken += 1;
        Ok(())
    }

    /// Gives back a place that `site` took.
    pub fn give_back(&mut self, site: Site) {
        let Some(held) = self.sites.get_mut(&site) else {
            return;
        };
        *held -= 1;
        if *held == 0 {
            self.sites.remove(&site);
        }
        self.taken -= 1;
    }

    /// How many are taken.
    #[must_use]
    pub const fn taken(&self) -> u32 {
        self.taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn site(last: u8) -> Site {
        Site::Own(IpAddr::from([192, 0, 2, last]))
    }

    #[test]
    fn one_address_holds_its_share_and_the_rest_is_for_others() {
        let mut places = Places::new(2_000, 250);

        let taken = (0..2_000).filter(|_| places.take(site(1)).is_ok()).count();

        assert_eq!(taken, 250);
        assert_eq!(places.take(site(1)), Err(NoPlace::Share));
        assert_eq!(places.take(site(2)), Ok(()));
        assert_eq!(places.taken(), 251);
    }

    #[test]
    fn a_nat_of_thousands_comes_in_as_its_logins_end() {
        let mut places = Places::new(2_000, 250);

        let mut came_in = 0;
        for _ in 0..20 {
            while places.take(site(1)).is_ok() {
                came_in += 1;
            }
            (0..250).for_each(|_| places.give_back(site(1)));
        }

        assert_eq!(came_in, 5_000);
        assert_eq!((places.taken(), places.sites.len()), (0, 0));
    }

    #[test]
    fn all_together_hold_no_more_than_there_are() {
        let mut places = Places::new(3, 1);
        let everybodys = Site::Everybodys;

        assert_eq!([places.take(everybodys), places.take(everybodys)], [Ok(()), Ok(())]);
        assert_eq!(places.take(site(1)), Ok(()));

        assert_eq!(places.take(site(2)), Err(NoPlace::Full));
        places.give_back(everybodys);
        assert_eq!(places.take(site(2)), Ok(()));
    }

    #[test]
    fn one_who_is_named_as_loopback_has_a_share_as_others_have() {
        let mut places = Places::new(10, 1);
        let named = Site::Own(IpAddr::from([127, 0, 0, 1]));

        assert_eq!(places.take(named), Ok(()));
        assert_eq!(places.take(named), Err(NoPlace::Share));
    }
}
