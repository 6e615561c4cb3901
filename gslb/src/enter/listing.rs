//! The addresses of a batch, each once: answers name them by their place.

use gslb_core::listener::Listener;

/// Bytes of `{"address":…,"token":"` and more.
const START_BYTES: usize = 32;

/// Addresses in the order in which they were first chosen.
#[derive(Debug)]
pub(super) struct Listing {
    /// All of them as JSON, with commas in between.
    json: Vec<u8>,
    listed: Vec<Listed>,
    /// By a hash of the address, its place and one: the first slot that is its own, from there on.
    /// 0 where nothing is. More than twice as many as addresses come.
    slots: Vec<u32>,
}

#[derive(Debug)]
struct Listed {
    /// Where it lies: the snapshot that a batch is answered from holds each once.
    addr: usize,
    /// How an offer of it begins, and how many bytes that are.
    start: [u8; START_BYTES],
    start_bytes: usize,
}

impl Listing {
    /// Room for so many at most.
    pub(super) fn new(addresses_max: usize) -> Self {
        let slots = vec![0; (2 * addresses_max + 1).next_power_of_two()];
        Self { json: Vec::new(), listed: Vec::new(), slots }
    }

    /// Writes an offer of this one, up to where its token begins.
    #[inline]
    pub(super) fn put_start(&mut self, listener: &Listener, out: &mut Vec<u8>) {
        let place = self.place(listener);
        let Listed { start, start_bytes, .. } = &self.listed[place];
        // As many bytes each time take no call.
        out.extend_from_slice(start);
        out.truncate(out.len() - START_BYTES + start_bytes);
    }

    /// The place of this one, which is added if it is new.
    #[inline]
    fn place(&mut self, listener: &Listener) -> usize {
        let mask = self.slots.len() - 1;
        // A link id is a hash already; which addresses there are is up to the operators.
        let [a, b, c, d, ..] = *listener.link_id();
        let mut slot = u32::from_le_bytes([a, b, c, d]) as usize & mask;
        loop {
            let Some(place) = self.slots[slot].checked_sub(1) else {
                self.slots[slot] = self.add(listener);
                return self.listed.len() - 1;
            };
            let place = place as usize;
            if self.listed[place].addr == std::ptr::from_ref(listener).addr() {
                return place;
            }
            slot = (slot + 1) & mask;
        }
    }

    /// Adds one; how many there are then.
    fn add(&mut self, listener: &Listener) -> u32 {
        let place = self.listed.len();
        if place > 0 {
            self.json.push(b',');
        }
        self.json.extend_from_slice(listener.place_json().as_bytes());
        self.json.push(b'}');
        let text = format!("{{\"address\":{place},\"token\":\"");
        let mut start = [0; START_BYTES];
        start[..text.len()].copy_from_slice(text.as_bytes());
        let addr = std::ptr::from_ref(listener).addr();
        self.listed.push(Listed { addr, start, start_bytes: text.len() });
        u32::try_from(self.listed.len()).expect("a batch has few viewers")
    }

    /// All of them as JSON, with commas in between.
    pub(super) fn json(&self) -> &[u8] {
        &self.json
    }
}

#[cfg(test)]
mod tests {
    use proto::address::{Address, Carrier, Transport};
    use proto::enter::BatchOffer;

    use super::*;

    #[test]
    fn each_address_has_one_place() {
        let address = |port: u16, transport| Address {
            host: "link.example".to_owned(),
            port,
            transport,
            carrier: Carrier::Bgp,
            machine_room: String::new(),
        };
        // Two on one port have the same link id.
        let all: Vec<_> = (0..100)
            .flat_map(|it| [Transport::Tls, Transport::Quic].map(|of| address(it, of)))
            .collect();
        let listeners: Vec<_> = all.iter().cloned().map(Listener::new).collect();
        let mut listing = Listing::new(all.len());

        for _ in 0..2 {
            for (at, listener) in listeners.iter().enumerate() {
                let mut offer = Vec::new();
                listing.put_start(listener, &mut offer);
                offer.extend_from_slice(b"a\"}");

                let offer: BatchOffer = serde_json::from_slice(&offer).unwrap();
                assert_eq!((offer.address as usize, offer.token.as_str()), (at, "a"));
            }
        }

        let json = format!("[{}]", str::from_utf8(listing.json()).unwrap());
        assert_eq!(serde_json::from_str::<Vec<Address>>(&json).unwrap(), all);
    }
}
