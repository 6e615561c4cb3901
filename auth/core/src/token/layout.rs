//! The bytes of a token: `"dm1." base64url(body || mac)`, integers big-endian.
//!
//! ```text
//! ver u8=1 | alg u8 | flags u8 | kid u8 | app u32 | epoch u32 | iat u32 | ttl u16 | caps u16
//! | link_id[16] | jti[16] | len u8 account | len u8 device | n u8 × (len u8 room)
//! ```

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use proto::id::AppId;
use proto::limits::TOKEN_BYTES_MAX;

use super::{Claims, TokenRefusal};
use crate::mac::{self, MAC_BYTES};
use crate::wire::{self, NAMES_BYTES_MAX, Reader};

/// What every token begins with.
pub(super) const PREFIX: &str = "dm1.";
/// Keeps token MACs apart from every other use of a key.
const DOMAIN: &[u8] = b"dm-token-v1\0";
const VERSION: u8 = 1;
/// Bytes before the names.
const FIXED_BYTES: usize = 52;
const RAW_BYTES_MAX: usize = FIXED_BYTES + NAMES_BYTES_MAX + MAC_BYTES;
const _: () = assert!(PREFIX.len() + RAW_BYTES_MAX.div_ceil(3) * 4 <= TOKEN_BYTES_MAX);

/// Which key a token asks for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Selector {
    /// Number of the algorithm it claims.
    pub alg: u8,
    /// Master.
    pub kid: u8,
    /// Epoch.
    pub epoch: u32,
}

/// A token that was read but not verified: good for explaining, never for deciding.
#[derive(Clone, Debug)]
pub struct Unverified {
    /// Which key it asks for.
    pub selector: Selector,
    /// What it claims.
    pub claims: Claims,
    raw: [u8; RAW_BYTES_MAX],
    body_bytes: usize,
}

impl Unverified {
    /// Reads the text: length, strict base64url, exact layout with nothing behind it.
    pub fn read(text: &str) -> Result<Self, TokenRefusal> {
        if text.len() > TOKEN_BYTES_MAX {
            return Err(TokenRefusal::TooLong { bytes: text.len() });
        }
        let encoded = text.strip_prefix(PREFIX).ok_or(TokenRefusal::Prefix)?;
        let mut raw = [0; RAW_BYTES_MAX];
        let length =
            URL_SAFE_NO_PAD.decode_slice(encoded, &mut raw).map_err(|_| TokenRefusal::Encoding)?;
        let body_bytes = length.checked_sub(MAC_BYTES).ok_or(TokenRefusal::Malformed)?;
        let (selector, claims) = parse(&raw[..body_bytes])?;
        Ok(Self { selector, claims, raw, body_bytes })
    }

    /// Bytes of the body.
    #[must_use]
    pub const fn body_bytes(&self) -> usize {
        self.body_bytes
    }

    /// The MAC it carries.
    #[must_use]
    pub fn mac(&self) -> [u8; MAC_BYTES] {
        let mut mac = [0; MAC_BYTES];
        mac.copy_from_slice(&self.raw[self.body_bytes..self.body_bytes + MAC_BYTES]);
        mac
    }

    /// Whether the MAC is `key`'s.
    #[must_use]
    pub fn is_signed_by(&self, key: &mac::Key) -> bool {
        key.is_signed(DOMAIN, &self.raw[..self.body_bytes], &self.mac())
    }
}

/// Writes the text of a token.
pub(super) fn write(claims: &Claims, selector: Selector, key: &mac::Key) -> String {
    let mut raw = body(claims, selector);
    let mac = key.sign(DOMAIN, &raw);
    raw.extend_from_slice(&mac);
    let mut text = String::with_capacity(PREFIX.len() + raw.len().div_ceil(3) * 4);
    text.push_str(PREFIX);
    URL_SAFE_NO_PAD.encode_string(&raw, &mut text);
    text
}

fn body(claims: &Claims, selector: Selector) -> Vec<u8> {
    let mut body = Vec::with_capacity(RAW_BYTES_MAX);
    body.extend_from_slice(&[VERSION, selector.alg, claims.flags, selector.kid]);
    body.extend_from_slice(&claims.app.0.to_be_bytes());
    body.extend_from_slice(&selector.epoch.to_be_bytes());
    body.extend_from_slice(&claims.iat_s.to_be_bytes());
    body.extend_from_slice(&claims.ttl_s.to_be_bytes());
    body.extend_from_slice(&claims.caps.to_be_bytes());
    body.extend_from_slice(&claims.link);
    body.extend_from_slice(&claims.jti);
    wire::push_names(&mut body, &claims.account, claims.device.as_ref(), &claims.rooms);
    body
}

fn parse(body: &[u8]) -> Result<(Selector, Claims), TokenRefusal> {
    let mut reader = Reader::new(body);
    let [version, alg, flags, kid] = reader.array()?;
    if version != VERSION {
        return Err(TokenRefusal::Version { version });
    }
    let app = AppId(u32::from_be_bytes(reader.array()?));
    let epoch = u32::from_be_bytes(reader.array()?);
    let iat_s = u32::from_be_bytes(reader.array()?);
    let ttl_s = u16::from_be_bytes(reader.array()?);
    let caps = u16::from_be_bytes(reader.array()?);
    let link = reader.array()?;
    let jti = reader.array()?;
    let (account, device, rooms) = reader.names()?;
    let claims = Claims { app, link, iat_s, ttl_s, flags, caps, jti, account, device, rooms };
    Ok((Selector { alg, kid, epoch }, claims))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::derive::from_hex;
    use crate::mac::Alg;
    use crate::token::tests::vector_claims;

    /// The body and MAC of the protocol page's vector.
    #[test]
    fn a_token_has_the_printed_bytes() {
        let key =
            from_hex("020bb57b93052c3d040613e9dac6af8dcc12cab8a2743a38c30bf94f7ed3db16").unwrap();
        let selector = Selector { alg: 1, kid: 0, epoch: 2_975_000 };

        let text = write(&vector_claims(), selector, &mac::Key::new(Alg::HmacSha256, &key));
        let token = Unverified::read(&text).unwrap();

        assert_eq!(token.body_bytes(), 74);
        assert_eq!(
            hex::encode(token.mac()),
            "5e7713d70fb59b21981c5732a8b7e057098c15cfb38d043441f73b828bb5a5a0"
        );
        assert_eq!(token.selector, selector);
        assert_eq!(token.claims, vector_claims());
    }
}
