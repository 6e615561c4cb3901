//! A link's check of tokens, as it is or made leaky, and wrong tokens for it.

use std::hint::black_box;

use anyhow::Context;
use auth_core::keyring::{Keyring, LinkKeyring};
use auth_core::link_id;
use auth_core::mac::Alg;
use auth_core::policy::Policies;
use auth_core::replay::Replays;
use auth_core::revocation::Revocations;
use auth_core::token::{self, Claims, Scope, flag};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use proto::control::EpochFact;
use proto::id::{AppId, DeviceId, RoomId, UnitId, ViewerId};
use proto::keys::{Master, Masters};
use proto::time::Wall;

pub(super) use auth_core::mac::MAC_BYTES;

const INTERVAL_S: u32 = 600;
const EPOCH: u32 = 2_975_000;
const IAT_S: u32 = EPOCH * INTERVAL_S + 30;
const NOW: Wall = Wall(IAT_S as u64 * 1000);
const ADDRESS: &str = "link-07.example:443";
const PREFIX: &str = "dm1.";

/// How MACs are compared.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Compare {
    /// As links do.
    Real,
    /// As links do, and once more up to the first character that differs: what this run must find.
    Leaky,
}

/// A link's keys, and a token that it would take.
#[derive(Debug)]
pub(super) struct Subject {
    compare: Compare,
    keys: LinkKeyring,
    links: [auth_core::derive::LinkId; 1],
    policies: Policies,
    revocations: Revocations,
    right: String,
    body: Vec<u8>,
    mac: [u8; MAC_BYTES],
}

impl Subject {
    /// # Errors
    /// When no token can be minted, or the link would not take it.
    pub(super) fn new(alg: Alg, compare: Compare) -> anyhow::Result<Self> {
        let master = Master { kid: 0, key: "0b".repeat(32) };
        let mut keyring = Keyring::new(&Masters { interval_s: INTERVAL_S, masters: vec![master] })?;
        let fact = EpochFact {
            epoch: EPOCH,
            interval_s: INTERVAL_S,
            alg: alg.code(),
            random: "5e".repeat(32),
            kids: vec![0],
        };
        keyring.handle(&fact, NOW)?;
        let claims = Claims {
            app: AppId(1),
            link: link_id(ADDRESS),
            iat_s: IAT_S,
            ttl_s: 60,
            flags: flag::MAY_SEND,
            caps: 0,
            jti: [7; 16],
            account: ViewerId::parse("user-42")?,
            device: Some(DeviceId::parse("ios-1")?),
            rooms: RoomId::parse("room-1")?.into(),
        };
        let right = keyring.mint(&claims)?;
        let raw = URL_SAFE_NO_PAD.decode(right.trim_start_matches(PREFIX))?;
        let (body, mac) = raw.split_last_chunk().context("the token is cut off")?;
        let link = keyring.link_keys(UnitId(1), &[ADDRESS.to_owned()], &[AppId(1)]);
        let subject = Self {
            compare,
            keys: LinkKeyring::new(&link)?,
            links: [claims.link],
            policies: Policies::default(),
            revocations: Revocations::new(1),
            body: body.to_vec(),
            mac: *mac,
            right,
        };
        token::verify(&subject.right, &subject.scope(), &mut Replays::new(1), NOW)?;
        Ok(subject)
    }

    /// The token's MAC.
    pub(super) const fn mac(&self) -> &[u8; MAC_BYTES] {
        &self.mac
    }

    /// Bytes of every token's text.
    pub(super) const fn text_bytes(&self) -> usize {
        self.right.len()
    }

    /// The token with another MAC.
    pub(super) fn with_mac(&self, mac: &[u8; MAC_BYTES]) -> String {
        format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode([&self.body[..], mac].concat()))
    }

    /// Somebody who checks one token after the other.
    pub(super) fn judge(&self) -> Judge<'_> {
        Judge { subject: self, replays: Replays::new(1) }
    }

    const fn scope(&self) -> Scope<'_, LinkKeyring> {
        Scope {
            keys: &self.keys,
            links: &self.links,
            policies: &self.policies,
            revocations: &self.revocations,
        }
    }
}

/// Checks tokens.
#[derive(Debug)]
pub(super) struct Judge<'a> {
    subject: &'a Subject,
    replays: Replays,
}

impl Judge<'_> {
    /// Refuses a token that is wrong.
    pub(super) fn refuse(&mut self, text: &str) {
        let scope = self.subject.scope();
        black_box(token::verify(black_box(text), &scope, &mut self.replays, NOW).is_err());
        if self.subject.compare == Compare::Leaky {
            black_box(starts_alike(text.as_bytes(), self.subject.right.as_bytes()));
        }
    }
}

/// How many bytes are the same up to the first that differs.
fn starts_alike(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| black_box(*a) == *b).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_with_its_own_mac_is_the_token_and_another_is_refused() {
        for &alg in Alg::ALL {
            let subject = Subject::new(alg, Compare::Real).unwrap();
            let mut wrong = *subject.mac();
            wrong[31] ^= 1;

            assert_eq!(subject.with_mac(subject.mac()), subject.right);
            let text = subject.with_mac(&wrong);
            let refused =
                token::verify(&text, &subject.scope(), &mut Replays::new(1), NOW).unwrap_err();
            assert_eq!(refused, token::TokenRefusal::Mac);
            assert_eq!(text.len(), subject.text_bytes());
        }
    }
}
