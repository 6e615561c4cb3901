//! A token in plain words: what it says, which check it fails, and what to do.

use std::time::Duration;

use auth_core::link_id;
use auth_core::mac::Alg;
use auth_core::token::{Explanation, NoKey, TTL_S_MAX, TokenRefusal, Unverified};
use proto::time::Wall;

use super::source::Source;
use crate::command::plain;

/// The checks of a link, in their order.
const CHECKS: [&str; 13] = [
    "its text is whole: length, dm1., base64url, version, fields",
    "there is a key for its epoch, master, link and app",
    "its algorithm is that of its epoch",
    "its MAC: nobody without the key made or changed it",
    "it is for this link",
    "it was minted within the epoch it names",
    "it was not minted in the future",
    "it has not expired",
    "its life is not too long",
    "its master is not void in its epoch",
    "the viewer was not kicked since it was minted",
    "it was not used before",
    "there is place to remember that it is used",
];
/// Checks that only a link can make: it alone knows.
const LINK_ONLY: usize = 10;

/// Everything there is to say. Without an explanation the masters are not at hand.
pub(super) fn words(text: &str, source: &Source, explanation: Option<&Explanation>) -> String {
    let mut lines = Vec::new();
    match Unverified::read(text) {
        Ok(token) => describe(&token, source, &mut lines),
        Err(refusal) => lines.push(format!("nothing of it can be read: {refusal}")),
    }
    lines.push(String::new());
    match explanation {
        None => {
            let why =
                source.keyring.as_ref().err().map_or_else(String::new, |it| format!("{it:#}"));
            lines.push(format!("not checked: the masters are not at hand ({why})"));
        }
        Some(explanation) => judge(explanation, &mut lines),
    }
    lines.join("\n")
}

fn describe(token: &Unverified, source: &Source, lines: &mut Vec<String>) {
    let (claims, selector) = (&token.claims, token.selector);
    let rooms: Vec<&str> = claims.rooms.iter().map(|it| it.as_str()).collect();
    let device = claims.device.as_ref().map_or("any device", |it| it.as_str());
    lines.push(format!("viewer   {} on {device}, app {}", claims.account, claims.app));
    lines.push(format!("rooms    {}", rooms.join(" ")));
    let link = source.links.iter().find(|it| link_id(it) == claims.link);
    let ours = source.links.join(", ");
    lines.push(match link {
        Some(link) => format!("link     {link}"),
        None if ours.is_empty() => "link     not known: name one with --address".to_owned(),
        None => format!("link     none of {ours}"),
    });
    let minted = Wall(u64::from(claims.iat_s) * 1000);
    let ends = minted + Duration::from_secs(claims.ttl_s.into());
    lines.push(format!(
        "minted   {}; it must be used within {}",
        plain::moment(minted, source.now),
        plain::length(Duration::from_secs(claims.ttl_s.into())),
    ));
    lines.push(format!(
        "ends     {}, and a little later where clocks may differ",
        plain::moment(ends, source.now)
    ));
    lines.push(format!(
        "epoch    {} with {} and master {}: {}",
        selector.epoch,
        Alg::from_code(selector.alg).map_or("an unknown algorithm", Alg::name),
        selector.kid,
        plain::epoch(selector.epoch, source.interval_s, source.now),
    ));
}

fn judge(explanation: &Explanation, lines: &mut Vec<String>) {
    let failed = explanation.verdict.as_ref().err().map(|it| (step(*it), *it));
    for (no, check) in CHECKS.iter().enumerate() {
        let outcome = match failed {
            Some((at, _)) if no == at => "FAILED ",
            Some((at, _)) if no > at => "-      ",
            Some(_) => "passed ",
            None if no >= LINK_ONLY => "unknown",
            None => "passed ",
        };
        lines.push(format!("{outcome}  {check}"));
    }
    lines.push(String::new());
    match failed {
        Some((_, refusal)) => {
            let code = refusal.close_code();
            lines.push(format!("refused: {refusal} (code {} {})", code.code(), code.name()));
            lines.push(format!("do: {}", advice(refusal)));
        }
        None => lines.push(
            "valid, as far as can be seen from here: kicks and used tokens are known to links only"
                .to_owned(),
        ),
    }
}

/// The place in [`CHECKS`] of what a refusal is about.
const fn step(refusal: TokenRefusal) -> usize {
    match refusal {
        TokenRefusal::TooLong { .. }
        | TokenRefusal::Prefix
        | TokenRefusal::Encoding
        | TokenRefusal::Malformed
        | TokenRefusal::Version { .. } => 0,
        TokenRefusal::NoKey(_) => 1,
        TokenRefusal::Alg { .. } => 2,
        TokenRefusal::Mac => 3,
        TokenRefusal::Elsewhere => 4,
        TokenRefusal::EpochMismatch { .. } => 5,
        TokenRefusal::Early { .. } => 6,
        TokenRefusal::Expired { .. } => 7,
        TokenRefusal::TtlTooLong { .. } => 8,
        TokenRefusal::Void { .. } => 9,
        TokenRefusal::Revoked => 10,
        TokenRefusal::Replayed => 11,
        TokenRefusal::ReplaysFull => 12,
    }
}

fn advice(refusal: TokenRefusal) -> String {
    let text = match refusal {
        TokenRefusal::TooLong { .. }
        | TokenRefusal::Prefix
        | TokenRefusal::Encoding
        | TokenRefusal::Malformed => {
            "something changed it on its way: hand on the text of `enter` as it is, whole, without \
             quotes or line breaks"
        }
        TokenRefusal::Version { .. } => "a newer gslb minted it: upgrade the links first",
        TokenRefusal::NoKey(NoKey::Epoch { .. }) => {
            "it is too old, or its epoch is not published: ask `enter` again, and see \
             `barrage keys show`"
        }
        TokenRefusal::NoKey(NoKey::Master { .. }) => {
            "see `barrage keys show`: a link that has not fetched a new master yet does so by \
             itself; a master that is missing there must be copied"
        }
        TokenRefusal::NoKey(NoKey::Link) | TokenRefusal::Elsewhere => {
            "connect to the address that came with it; addresses must be written as the link's \
             configuration has them"
        }
        TokenRefusal::NoKey(NoKey::App { .. }) => {
            "add the app to [[app]] in the configuration of auth and gslb"
        }
        TokenRefusal::Alg { .. } | TokenRefusal::Mac | TokenRefusal::EpochMismatch { .. } => {
            "nobody with the keys minted it like this: it is forged, was changed, or comes from \
             another system"
        }
        TokenRefusal::Early { .. } => {
            "the clock of who minted it is ahead of the verifier's: set both by NTP"
        }
        TokenRefusal::Expired { .. } => {
            "ask `enter` again and connect at once; if it always comes late, set the clocks of \
             gslb and links by NTP, or raise token_ttl_s in the policy"
        }
        TokenRefusal::TtlTooLong { .. } => {
            return format!("lower token_ttl_s in the policy to {TTL_S_MAX} s or less");
        }
        TokenRefusal::Void { .. } => {
            "an operator declared its master void: ask `enter` again; see `barrage keys show`"
        }
        TokenRefusal::Revoked => "the viewer was kicked: a new ticket is needed",
        TokenRefusal::Replayed => {
            "each token opens one session: ask `enter` again, or resume with the resume ticket"
        }
        TokenRefusal::ReplaysFull => "the link remembers too many tokens: try another one",
    };
    text.to_owned()
}
