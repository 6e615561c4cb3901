//! A question as it is read: [`EnterRequest`](proto::enter::EnterRequest) without copies of its
//! texts.

use std::borrow::Cow;
use std::fmt;
use std::net::IpAddr;

use gslb_core::assign::{TRANSPORTS, Wants};
use proto::address::Transport;
use proto::enter::Class;
use proto::id::{AppId, RoomId};
use serde::Deserialize;
use serde::de::{Deserializer, Error as _, SeqAccess, Visitor};

use super::Refusal;

/// The question.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Ask<'a> {
    /// Empty: none.
    #[serde(borrow)]
    pub(super) ticket: Text<'a>,
    pub(super) app: Option<AppId>,
    pub(super) room: Option<Room>,
    #[serde(borrow)]
    pub(super) client: Client<'a>,
    #[serde(borrow)]
    pub(super) renew: Option<Text<'a>>,
}

/// What the client is.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Client<'a> {
    #[serde(borrow)]
    pub(super) device: Option<Text<'a>>,
    pub(super) class: Class,
    pub(super) transports: Transports,
    pub(super) ip: Option<IpAddr>,
}

/// A text where it lies, unless it is written with escapes.
#[derive(Debug, Default, Deserialize)]
#[serde(transparent)]
pub(super) struct Text<'a>(#[serde(borrow)] pub(super) Cow<'a, str>);

/// A room's name, read where it lies.
#[derive(Debug)]
pub(super) struct Room(pub(super) RoomId);

/// What a client says that it can speak, best first, repeats left out.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct Transports {
    list: [Option<Transport>; TRANSPORTS],
}

/// Reads a question.
pub(super) fn read<'a, A: Deserialize<'a>>(body: &'a [u8]) -> Result<A, Refusal> {
    // Looked at once: otherwise each of its texts would be.
    let body = std::str::from_utf8(body).map_err(|_| Refusal::Malformed)?;
    serde_json::from_str(body).map_err(|_| Refusal::Malformed)
}

impl Client<'_> {
    /// What to look for. On a national network that comes first, and is there without being said.
    pub(super) fn wants(&self) -> Wants {
        let mut order = [Transport::National; TRANSPORTS + 1];
        let mut len = 0;
        let mut push = |transport| {
            order[len] = transport;
            len += 1;
        };
        let is_silent = self.transports == Transports::default();
        if self.class == Class::National && (is_silent || self.transports.has(Transport::National))
        {
            push(Transport::National);
            if is_silent {
                use Transport::{Quic, Tcp, Tls, Ws, Wss};
                [Tls, Wss, Quic, Tcp, Ws].into_iter().for_each(&mut push);
            }
        }
        self.transports.list.into_iter().flatten().for_each(push);
        Wants::new(&order[..len])
    }
}

impl Transports {
    fn has(&self, transport: Transport) -> bool {
        self.list.contains(&Some(transport))
    }

    /// Takes one more; there are no more kinds than places.
    pub(super) fn push(&mut self, transport: Transport) {
        if !self.has(transport)
            && let Some(place) = self.list.iter_mut().find(|it| it.is_none())
        {
            *place = Some(transport);
        }
    }
}

impl<'de> Deserialize<'de> for Room {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = Text::deserialize(deserializer)?;
        RoomId::parse(&name.0).map(Self).map_err(D::Error::custom)
    }
}

impl<'de> Deserialize<'de> for Transports {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct List;

        impl<'de> Visitor<'de> for List {
            type Value = Transports;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a list of transports")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Transports, A::Error> {
                let mut transports = Transports::default();
                while let Some(transport) = seq.next_element()? {
                    transports.push(transport);
                }
                Ok(transports)
            }
        }

        deserializer.deserialize_seq(List)
    }
}

#[cfg(test)]
mod tests {
    use proto::enter::{self, EnterRequest};

    use super::*;

    #[test]
    fn what_a_client_writes_is_read() {
        let request = EnterRequest {
            ticket: "a.b.c".to_owned(),
            app: Some(AppId(7)),
            room: Some(RoomId::parse("lobby").unwrap()),
            client: enter::Client {
                device: Some("ios-1".to_owned()),
                class: Class::Weak,
                transports: vec![Transport::Ws, Transport::Tls, Transport::Ws],
                ip: Some([192, 0, 2, 1].into()),
            },
            renew: Some("link.example:443".to_owned()),
        };
        let json = serde_json::to_vec(&request).unwrap();

        let ask: Ask<'_> = serde_json::from_slice(&json).unwrap();

        assert!(matches!(ask.ticket, Text(Cow::Borrowed("a.b.c"))));
        assert_eq!((ask.app, ask.room.map(|it| it.0)), (request.app, request.room));
        let Client { device, class, transports, ip } = &ask.client;
        assert!(matches!(device, Some(Text(Cow::Borrowed("ios-1")))));
        assert_eq!((*class, *ip), (Class::Weak, request.client.ip));
        let order: Vec<_> = transports.list.into_iter().flatten().collect();
        assert_eq!(order, [Transport::Ws, Transport::Tls]);
        assert!(matches!(ask.renew, Some(Text(Cow::Borrowed("link.example:443")))));
    }

    #[test]
    fn all_of_it_is_optional_and_nothing_else_is_taken() {
        let read = |json| serde_json::from_str::<Ask<'_>>(json).is_ok();

        assert!(read("{}"));
        assert!(read(r#"{"client":{},"renew":null}"#));
        assert!(read(r#"{"ticket":"a\u002eb"}"#));
        assert!(!read(r#"{"client":{"colour":1}}"#));
        assert!(!read(r#"{"client":{"transports":["smoke"]}}"#));
        assert!(!read(r#"{"client":{"class":"printer"}}"#));
        assert!(!read("7"));
    }

    #[test]
    fn on_a_national_network_its_own_suites_come_first() {
        use Transport::{National, Quic, Tcp, Tls, Ws, Wss};
        let check = |class, said: &[Transport], expected: &[Transport]| {
            let mut transports = Transports::default();
            said.iter().for_each(|&it| transports.push(it));
            let client = Client { class, transports, ..Client::default() };
            assert_eq!(client.wants(), Wants::new(expected), "{class:?} {said:?}");
        };

        check(Class::Native, &[], &[Tls, Wss, Quic, Tcp, Ws]);
        check(Class::Native, &[Tls, National], &[Tls, National]);
        check(Class::National, &[], &[National, Tls, Wss, Quic, Tcp, Ws]);
        check(Class::National, &[Tls, National], &[National, Tls]);
        check(Class::National, &[Tls, Ws], &[Tls, Ws]);
    }
}
