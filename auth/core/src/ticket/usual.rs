//! Headers and claims as business servers usually write them, read straight through and where they
//! lie.
//!
//! Whatever is written differently is left to `serde_json`, which alone says what is malformed.

use std::borrow::Cow;

use proto::id::AppId;
use proto::item::Role;
use proto::json::{Reader, once};

use super::{Audience, Claims, Header};

/// Claims where they lie.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Said<'a> {
    pub(super) app: AppId,
    pub(super) sub: &'a str,
    pub(super) room: Option<&'a str>,
    pub(super) rooms: &'a [String],
    pub(super) role: Role,
    pub(super) iat: u64,
    pub(super) exp: u64,
    pub(super) nbf: Option<u64>,
    pub(super) aud: Option<&'a Audience>,
    pub(super) verified: bool,
    pub(super) minor: bool,
    pub(super) send: Option<bool>,
    pub(super) push: bool,
}

impl<'a> Said<'a> {
    /// The same, where it was read already.
    pub(super) fn of(claims: &'a Claims) -> Self {
        Self {
            app: claims.app,
            sub: &claims.sub,
            room: claims.room.as_deref(),
            rooms: &claims.rooms,
            role: claims.role,
            iat: claims.iat,
            exp: claims.exp,
            nbf: claims.nbf,
            aud: claims.aud.as_ref(),
            verified: claims.verified,
            minor: claims.minor,
            send: claims.send,
            push: claims.push,
        }
    }
}

/// The claims of one room, for no audience.
pub(super) fn claims(json: &[u8]) -> Option<Said<'_>> {
    let mut reader = Reader::new(std::str::from_utf8(json).ok()?);
    let (mut app, mut sub, mut iat, mut exp) = (None, None, None, None);
    let mut said = Said {
        app: AppId(0),
        sub: "",
        room: None,
        rooms: &[],
        role: Role::default(),
        iat: 0,
        exp: 0,
        nbf: None,
        aud: None,
        verified: false,
        minor: false,
        send: None,
        push: false,
    };
    let mut seen = 0;
    reader.members(|it| {
        if it.key(b"\"app\"").is_some() {
            app = Some(AppId(it.number()?));
            once(&mut seen, 0)
        } else if it.key(b"\"sub\"").is_some() {
            sub = Some(it.string()?);
            once(&mut seen, 1)
        } else if it.key(b"\"room\"").is_some() {
            said.room = Some(it.string()?);
            once(&mut seen, 2)
        } else if it.key(b"\"role\"").is_some() {
            said.role = it.word()?;
            once(&mut seen, 3)
        } else if it.key(b"\"iat\"").is_some() {
            iat = Some(it.number()?);
            once(&mut seen, 4)
        } else if it.key(b"\"exp\"").is_some() {
            exp = Some(it.number()?);
            once(&mut seen, 5)
        } else if it.key(b"\"nbf\"").is_some() {
            said.nbf = Some(it.number()?);
            once(&mut seen, 6)
        } else if it.key(b"\"verified\"").is_some() {
            said.verified = it.truth()?;
            once(&mut seen, 7)
        } else if it.key(b"\"minor\"").is_some() {
            said.minor = it.truth()?;
            once(&mut seen, 8)
        } else if it.key(b"\"send\"").is_some() {
            said.send = Some(it.truth()?);
            once(&mut seen, 9)
        } else {
            it.key(b"\"push\"")?;
            said.push = it.truth()?;
            once(&mut seen, 10)
        }
    })?;
    if !reader.is_at_end() {
        return None;
    }
    Some(Said { app: app?, sub: sub?, iat: iat?, exp: exp?, ..said })
}

/// A header that says nothing that would be critical.
pub(super) fn header(json: &[u8]) -> Option<Header<'_>> {
    let mut reader = Reader::new(std::str::from_utf8(json).ok()?);
    let (mut alg, mut kid) = (None, None);
    let mut seen = 0;
    reader.members(|it| {
        if it.key(b"\"alg\"").is_some() {
            alg = Some(it.word()?);
            once(&mut seen, 0)
        } else if it.key(b"\"kid\"").is_some() {
            kid = Some(Cow::Borrowed(it.string()?));
            once(&mut seen, 1)
        } else {
            it.key(b"\"typ\"")?;
            it.string()?;
            once(&mut seen, 2)
        }
    })?;
    reader.is_at_end().then_some(Header { alg: alg?, kid, crit: None, b64: true })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const USUAL: &str = r#"{"app":1,"sub":"u","room":"r","iat":5,"exp":9"#;

    #[test]
    fn what_business_servers_write_is_read_straight_through() {
        for rest in [
            "}",
            r#","role":"viewer","verified":false,"minor":true,"push":false}"#,
            r#", "role": "host", "nbf": 7, "send": true }"#,
        ] {
            let json = format!("{USUAL}{rest}");
            let expected: Claims = serde_json::from_str(&json).unwrap();

            assert_eq!(claims(json.as_bytes()), Some(Said::of(&expected)), "{json}");
        }
        for json in [r#"{"typ":"JWT","alg":"HS256"}"#, r#"{"alg":"EdDSA","kid":"a","typ":"JWT"}"#] {
            assert_eq!(header(json.as_bytes()), serde_json::from_str(json).ok(), "{json}");
        }
        for other in [r#"{"alg":"HS256","crit":["b64"]}"#, r#"{"alg":"HS256","b64":false}"#, "{}"] {
            assert_eq!(header(other.as_bytes()), None, "{other}");
        }
    }

    proptest! {
        /// Pieces of claims and headers in any order, most of which make none.
        #[test]
        fn whatever_is_read_straight_through_is_what_serde_reads(
            pieces in proptest::collection::vec(prop::sample::select(vec![
                "{", "}", "[", "]", ",", ",", ":", " ", "\n", "null", "0", "-1", "1.5", "1e2", "true",
                "\"", "\"a\\u002eb\"", "\"\u{1}\"", "\"é\"", "\"other\":1", "\"app\":4294967296",
                "\"app\":7", "\"sub\":\"s\"", "\"room\":\"q\"", "\"rooms\":[\"q\"]", "\"role\":\"vip\"",
                "\"role\":\"king\"", "\"iat\":18446744073709551616", "\"exp\":6", "\"nbf\":01",
                "\"nbf\":2", "\"aud\":\"a\"", "\"verified\":true", "\"minor\":false", "\"send\":truer",
                "\"send\":false", "\"push\":1", "\"alg\":\"HS256\"", "\"alg\":\"none\"",
                "\"kid\":\"k\"", "\"typ\":\"JWT\"", "\"crit\":[]", "\"b64\":true",
            ]), 0..8),
        ) {
            let pieces = pieces.concat();
            let texts = [
                format!("{{{pieces}}}"), format!("{USUAL},{pieces}}}"), format!("{USUAL}{pieces}}}"),
                format!("{{\"alg\":\"ES256\",{pieces}}}"), pieces,
            ];
            for text in texts {
                if let Some(said) = claims(text.as_bytes()) {
                    let expected: Claims = serde_json::from_str(&text).unwrap();
                    prop_assert_eq!(said, Said::of(&expected), "{}", text);
                }
                if let Some(header) = header(text.as_bytes()) {
                    prop_assert_eq!(Some(header), serde_json::from_str(&text).ok(), "{}", text);
                }
            }
        }
    }
}
