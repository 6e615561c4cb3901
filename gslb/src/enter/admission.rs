//! Who may ask, and how often: before anything costly is done for a question.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use auth_core::app::App;
use kit::clock::Clock;
use proto::id::AppId;
use sha2::{Digest, Sha256};

use super::Refusal;
use crate::config::Config;
use crate::rate::{Exceeded, Rate};
use crate::returns::Returns;

#[derive(Debug)]
pub(super) struct Admission {
    /// By their hash: comparing hashes tells nobody how much of a key was right.
    api_keys: BTreeMap<[u8; 32], AppId>,
    /// By their hash, too.
    operators: BTreeSet<[u8; 32]>,
    rate: Rate,
    pub(super) returns: Returns,
}

/// A business server, by its API key.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Business {
    app: AppId,
}

/// A question that may be answered.
#[derive(Clone, Copy, Debug)]
pub(super) struct Admitted {
    /// The viewer's address, as far as anybody knows.
    pub(super) address: IpAddr,
    pub(super) business: Option<Business>,
}

impl Admission {
    pub(super) fn new(config: &Config, apps: &[App], clock: &Clock) -> Self {
        let keys = apps.iter().flat_map(|app| app.api_keys.iter().map(|key| (key, app.id)));
        Self {
            api_keys: keys.map(|(key, app)| (hash(key.expose()), app)).collect(),
            operators: config.operator_keys.iter().map(|it| hash(it.expose())).collect(),
            rate: Rate::new(&config.rate, clock),
            returns: Returns::new(&config.full, clock.clone()),
        }
    }

    /// Whose API key this is.
    pub(super) fn business(&self, api_key: &str) -> Option<Business> {
        let app = *self.api_keys.get(&hash(api_key))?;
        Some(Business { app })
    }

    /// Lets a question pass that shows an operator's key. It counts for the address that it comes
    /// `from` before the key is looked at, so that guesses beyond the rate learn nothing. When
    /// only all together ask too much, an operator still sees why.
    pub(super) fn operator(&self, from: IpAddr, key: Option<&str>) -> Result<(), Refusal> {
        let counted = self.count(from);
        if let Err(limited @ Refusal::RateLimited { .. }) = counted {
            return Err(limited);
        }
        if key.is_some_and(|it| self.operators.contains(&hash(it))) {
            return Ok(());
        }
        counted.and(Err(Refusal::Operator))
    }

    /// Lets a question pass, if there are not too many. It counts for the address that a business
    /// server names, otherwise for the one that it comes `from`.
    // An address that is handed from one function to the next is waited for each time.
    #[inline(always)]
    pub(super) fn admit(
        &self,
        from: IpAddr,
        api_key: Option<&str>,
        named: Option<IpAddr>,
    ) -> Result<Admitted, Refusal> {
        let business = api_key.and_then(|it| self.business(it));
        let address = named.filter(|_| business.is_some()).unwrap_or(from);
        self.count(address)?;
        if api_key.is_some() && business.is_none() {
            return Err(Refusal::ApiKey);
        }
        if business.is_none() && named.is_some() {
            return Err(Refusal::ApiKeyMissing);
        }
        Ok(Admitted { address, business })
    }

    /// The same for one of many questions of a business server.
    #[inline(always)]
    pub(super) fn admit_one_of(
        &self,
        from: IpAddr,
        business: Business,
        named: Option<IpAddr>,
    ) -> Result<Admitted, Refusal> {
        let address = named.unwrap_or(from);
        self.count(address)?;
        Ok(Admitted { address, business: Some(business) })
    }

    /// What a question is told that is refused unread: it counts as any other does.
    pub(super) fn unread(&self, address: IpAddr, refusal: Refusal) -> Refusal {
        self.count(address).err().unwrap_or(refusal)
    }

    /// Counts a question of this address, if there are not too many.
    fn count(&self, address: IpAddr) -> Result<(), Refusal> {
        self.rate.check(address).map_err(|exceeded| match exceeded {
            Exceeded::Address { retry_after_ms } => Refusal::RateLimited { retry_after_ms },
            Exceeded::All => Refusal::Busy { retry_after_ms: self.returns.next_ms() },
        })
    }
}

impl Admitted {
    /// A business server speaks for its own app.
    pub(super) fn check_app(&self, app: AppId) -> Result<(), Refusal> {
        match self.business {
            Some(business) if business.app != app => Err(Refusal::OtherApp),
            Some(_) | None => Ok(()),
        }
    }
}

fn hash(key: &str) -> [u8; 32] {
    Sha256::digest(key).into()
}
