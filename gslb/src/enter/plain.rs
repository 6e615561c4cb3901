//! `GET /v1/enter.txt`: the same answer as lines of text, for clients that read no JSON.
//!
//! The question is the query, every part of it optional; the ticket is a bearer token, since
//! addresses of pages end up in logs.
//!
//! ```text
//! GET /v1/enter.txt?transports=tls,wss&class=native&device=ios-1
//! GET /v1/enter.txt?app=1&room=lobby                    where the policy asks for no ticket
//! GET /v1/enter.txt?renew=link-7.example:443            a token for a running session's address
//! Authorization: Bearer <ticket>
//! ```
//!
//! ```text
//! answer    = server addresses delivery [again] segments retry       status 200
//! server    = "server_ms " number LF
//! addresses = *( host ":" port " " transport " " token LF )          in the order to try them
//! delivery  = "delivery" *( " " path ) LF                            in the order of preference
//! again     = "retry_after_ms " number LF                            without addresses
//! segments  = *( "segments " base " " weight LF )
//! retry     = "retry " base_ms " " max_ms " " factor " " jitter LF
//! problem   = "problem " code LF "title " text LF [again] server     any other status
//! ```
//!
//! What a word means is what the field of that name means in JSON. The first word of an address has
//! a colon and no other line's has; lines that begin with an unknown word are to be passed over.

use std::borrow::Cow;

use proto::address::Transport;
use proto::enter::Class;
use proto::id::{AppId, RoomId};
use serde::Deserialize;
use serde::de::IntoDeserializer;
use serde::de::value::Error;

use super::Refusal;
use super::ask::{Ask, Client, Room, Text, Transports};

/// The query.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Query {
    app: Option<AppId>,
    room: Option<RoomId>,
    device: Option<String>,
    class: Class,
    /// With commas in between.
    transports: String,
    renew: Option<String>,
}

impl Query {
    /// The question that a query and a ticket are.
    pub(super) fn ask<'a>(&'a self, ticket: Option<&'a str>) -> Result<Ask<'a>, Refusal> {
        let mut transports = Transports::default();
        for word in self.transports.split(',').filter(|it| !it.is_empty()) {
            let word = IntoDeserializer::<Error>::into_deserializer(word);
            transports.push(Transport::deserialize(word).map_err(|_| Refusal::Malformed)?);
        }
        let text = |it: &'a String| Text(Cow::Borrowed(it.as_str()));
        Ok(Ask {
            ticket: Text(Cow::Borrowed(ticket.unwrap_or(""))),
            app: self.app,
            room: self.room.clone().map(Room),
            client: Client {
                device: self.device.as_ref().map(text),
                class: self.class,
                transports,
                ip: None,
            },
            renew: self.renew.as_ref().map(text),
        })
    }
}

/// A refusal in lines.
pub(super) fn problem(refusal: &Refusal, now: proto::time::Wall) -> String {
    let mut text = format!("problem {}\ntitle {refusal}\n", refusal.code());
    let retry_after_ms = refusal.retry_after_ms();
    if retry_after_ms > 0 {
        text.push_str(&format!("retry_after_ms {retry_after_ms}\n"));
    }
    text.push_str(&format!("server_ms {}\n", now.0));
    text
}
