//! What is in a token and why it is refused, for people at a terminal.

use std::fmt;

use proto::time::Wall;

use super::{Claims, KeySource, Scope, TokenRefusal, Unverified, flag, verify};
use crate::mac::Alg;
use crate::replay::Replays;

/// A token laid open: its fields as far as they can be read, and the verdict.
#[derive(Clone, Debug)]
pub struct Explanation {
    /// The fields, whether or not they can be believed.
    pub token: Option<Unverified>,
    /// The claims, or why they are not believed.
    pub verdict: Result<Claims, TokenRefusal>,
}

/// Verifies a token as a link would that had seen no other, and keeps what there is to show.
#[must_use]
pub fn explain<K: KeySource>(text: &str, scope: &Scope<'_, K>, now: Wall) -> Explanation {
    let mut replays = Replays::new(1);
    Explanation {
        token: Unverified::read(text).ok(),
        verdict: verify(text, scope, &mut replays, now),
    }
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(token) = &self.token {
            write_fields(token, f)?;
        }
        match self.verdict {
            Ok(_) => write!(f, "valid"),
            Err(refusal) => {
                let code = refusal.close_code();
                write!(f, "refused: {refusal} (code {} {})", code.code(), code.name())
            }
        }
    }
}

fn write_fields(token: &Unverified, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let claims = &token.claims;
    let alg = Alg::from_code(token.selector.alg).map_or("unknown", Alg::name);
    let rooms: Vec<&str> = claims.rooms.iter().map(|it| it.as_str()).collect();
    writeln!(f, "alg      {} ({alg})", token.selector.alg)?;
    writeln!(f, "kid      {}", token.selector.kid)?;
    writeln!(f, "epoch    {}", token.selector.epoch)?;
    writeln!(f, "app      {}", claims.app)?;
    writeln!(f, "link     {}", hex::encode(claims.link))?;
    writeln!(f, "minted   {} s", claims.iat_s)?;
    writeln!(f, "lives    {} s", claims.ttl_s)?;
    writeln!(f, "once     {}", claims.has_flag(flag::SINGLE_USE))?;
    writeln!(f, "sends    {}", claims.has_flag(flag::MAY_SEND))?;
    writeln!(f, "ticket   {}", !claims.has_flag(flag::NO_TICKET))?;
    writeln!(f, "role     {:?}", claims.role())?;
    writeln!(f, "caps     {:#06x}", claims.caps)?;
    writeln!(f, "jti      {}", hex::encode(claims.jti))?;
    writeln!(f, "account  {}", claims.account)?;
    writeln!(f, "device   {}", claims.device.as_ref().map_or("-", |it| it.as_str()))?;
    writeln!(f, "rooms    {}", rooms.join(" "))
}
