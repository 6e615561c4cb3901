//! One address of a node with what answers need of it, computed once when the node reports it.

use std::sync::Arc;

use proto::address::Address;

/// An address that viewers may be sent to.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Listener {
    address: Address,
    authority: String,
    link_id: [u8; 16],
    /// `{"host":…,` and so on up to the token's first quote.
    json: Box<str>,
    /// Bytes of it that say where it is.
    place_bytes: usize,
}

impl Listener {
    /// Prepares an address.
    #[must_use]
    pub fn new(address: Address) -> Self {
        let authority = address.authority();
        let link_id = auth_core::link_id(&authority);
        let mut json = serde_json::to_string(&address).expect("names and numbers are JSON");
        json.pop();
        let place_bytes = json.len();
        json.push_str(",\"token\":\"");
        Self { address, authority, link_id, json: json.into(), place_bytes }
    }

    /// Prepares a node's published addresses and, behind them, its reserve, each in the order that
    /// pools rely on: by carrier, then transport.
    #[must_use]
    pub(crate) fn prepare(addresses: &[Address], reserve: &[Address]) -> Arc<[Self]> {
        let sorted = |addresses: &[Address]| {
            let mut listeners: Vec<Self> = addresses.iter().cloned().map(Self::new).collect();
            listeners.sort_by(|a, b| a.order().cmp(&b.order()));
            listeners
        };
        [sorted(addresses), sorted(reserve)].concat().into()
    }

    /// Where it is and how to speak there.
    #[must_use]
    pub const fn address(&self) -> &Address {
        &self.address
    }

    /// `host:port`, as tokens name it.
    #[must_use]
    pub fn authority(&self) -> &str {
        &self.authority
    }

    /// What a token for this address is bound to.
    #[must_use]
    pub const fn link_id(&self) -> &[u8; 16] {
        &self.link_id
    }

    /// An offer of it as JSON, up to where the token begins.
    #[must_use]
    pub const fn json(&self) -> &str {
        &self.json
    }

    /// The address as JSON, up to its last brace.
    #[must_use]
    pub fn place_json(&self) -> &str {
        &self.json[..self.place_bytes]
    }

    fn order(&self) -> (u8, u8, &str) {
        (self.address.carrier as u8, self.address.transport as u8, &self.authority)
    }
}

#[cfg(test)]
mod tests {
    use proto::address::{Carrier, Transport};
    use proto::enter::Offer;

    use super::*;

    #[test]
    fn the_json_of_an_offer_lacks_the_token_alone() {
        let address = Address {
            host: "2001:db8::1".to_owned(),
            port: 443,
            transport: Transport::Wss,
            carrier: Carrier::Unicom,
            machine_room: "\"north\" 1".to_owned(),
        };

        let listener = Listener::new(address.clone());

        let offer: Offer = serde_json::from_str(&format!("{}a\"}}", listener.json())).unwrap();
        let place = serde_json::from_str(&format!("{}}}", listener.place_json()));
        assert_eq!(place.ok().as_ref(), Some(&address));
        assert_eq!((offer.address, offer.token.as_str()), (address, "a"));
    }
}
