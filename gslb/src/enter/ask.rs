//! A question as it is read: [`EnterRequest`](proto::enter::EnterRequest) without copies of its
//! texts.

use std::borrow::Cow;
use std::fmt;
use std::net::IpAddr;

use gslb_core::assign::{TRANSPORTS, Wants};
use proto::address::Transport;
use proto::enter::Class;
use proto::id::{AppId, RoomId};
use proto::json::Reader;
use serde::Deserialize;
use serde::de::{Deserializer, Error as _, SeqAccess, Visitor};

use super::Refusal;
use crate::config::BATCH_MAX;

mod usual;

/// Bytes of a short question: room is made for no more of a batch than these would be.
const QUESTION_BYTES: usize = 48;

/// A question, read.
#[derive(Debug, Default, Deserialize, PartialEq)]
#[serde(default, deny_unknown_fields)]
pub struct Ask<'a> {
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
#[derive(Debug, Default, Deserialize, PartialEq)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Client<'a> {
    #[serde(borrow)]
    pub(super) device: Option<Text<'a>>,
    pub(super) class: Class,
    pub(super) transports: Transports,
    pub(super) ip: Option<IpAddr>,
}

/// A text where it lies, unless it is written with escapes.
#[derive(Debug, Default, Deserialize, PartialEq)]
#[serde(transparent)]
pub(super) struct Text<'a>(#[serde(borrow)] pub(super) Cow<'a, str>);

/// A room's name, read where it lies.
#[derive(Debug, PartialEq)]
pub(super) struct Room(pub(super) RoomId);

/// What a client says that it can speak, best first, repeats left out.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct Transports {
    list: [Option<Transport>; TRANSPORTS],
}

impl<'a> Ask<'a> {
    /// Reads an [`EnterRequest`](proto::enter::EnterRequest) as JSON.
    ///
    /// # Errors
    /// [`Refusal::Malformed`].
    pub fn read(body: &'a [u8]) -> Result<Self, Refusal> {
        // Looked at once: otherwise each of its texts would be.
        let body = std::str::from_utf8(body).map_err(|_| Refusal::Malformed)?;
        let (mut reader, mut ask) = (Reader::new(body), Self::default());
        if usual::ask(&mut reader, &mut ask).is_none() || !reader.is_at_end() {
            ask = serde_json::from_str(body).map_err(|_| Refusal::Malformed)?;
        }
        Ok(ask)
    }
}

/// The questions of one batch, as many as any configuration allows; the others are counted.
#[derive(Debug, Default)]
pub(super) struct Asks<'a> {
    pub(super) list: Vec<Ask<'a>>,
    pub(super) count: usize,
    /// The last one of those that are only counted.
    counted: Option<Ask<'a>>,
}

/// Reads many.
pub(super) fn read_all(body: &[u8]) -> Result<Asks<'_>, Refusal> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Batch<'a> {
        #[serde(borrow)]
        requests: Asks<'a>,
    }

    let body = std::str::from_utf8(body).map_err(|_| Refusal::Malformed)?;
    if let Some(asks) = usual(body) {
        return Ok(asks);
    }
    let batch: Batch<'_> = serde_json::from_str(body).map_err(|_| Refusal::Malformed)?;
    Ok(batch.requests)
}

fn usual(body: &str) -> Option<Asks<'_>> {
    let mut reader = Reader::new(body);
    let count_max = (body.len() / QUESTION_BYTES).min(BATCH_MAX as usize);
    let mut asks = Asks { list: Vec::with_capacity(count_max), ..Asks::default() };
    reader.eat(b'{')?;
    reader.key(b"\"requests\"")?;
    reader.elements(|it| usual::ask(it, asks.push(Ask::default())))?;
    reader.eat(b'}')?;
    reader.is_at_end().then_some(asks)
}

impl<'a> Asks<'a> {
    /// Where it lies now; one that is only counted gives way to the next.
    fn push(&mut self, ask: Ask<'a>) -> &mut Ask<'a> {
        self.count += 1;
        if self.list.len() < BATCH_MAX as usize {
            self.list.push_mut(ask)
        } else {
            self.counted.insert(ask)
        }
    }
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

impl<'de: 'a, 'a> Deserialize<'de> for Asks<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct List;

        impl<'de> Visitor<'de> for List {
            type Value = Asks<'de>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a list of questions")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Asks<'de>, A::Error> {
                let mut asks = Asks::default();
                while let Some(ask) = seq.next_element()? {
                    asks.push(ask);
                }
                Ok(asks)
            }
        }

        deserializer.deserialize_seq(List)
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
