//! The bytes of a token: `"dm1." base64url(body || mac)`, integers big-endian.
//!
//! ```text
//! ver u8=1 | alg u8 | flags u8 | kid u8 | app u32 | epoch u32 | iat u32 | ttl u16 | caps u16
//! | link_id[16] | jti[16] | len u8 account | len u8 device | n u8 × (len u8 room)
//! ```

use proto::id::AppId;
use proto::limits::TOKEN_BYTES_MAX;

use super::{Claims, TokenRefusal};
use crate::derive::LinkId;
use crate::mac::{self, MAC_BYTES};
use crate::wire::{self, NAMES_BYTES_MAX, Names, Reader};

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

/// Longest text of a token that [`Short`] has room for: all but those with many or long names.
pub(super) const SHORT_TEXT_BYTES_MAX: usize = PREFIX.len() + 256;

/// Where a token's text is decoded: behind the domain, so that what the MAC covers lies together.
pub(super) struct Space<const BYTES: usize>([u8; BYTES]);

/// For short texts: clearing the room for the longest would cost as much as decoding them.
pub(super) type Short = Space<{ DOMAIN.len() + 192 }>;
/// For every text.
pub(super) type Long = Space<{ DOMAIN.len() + RAW_BYTES_MAX }>;

impl<const BYTES: usize> Default for Space<BYTES> {
    #[inline(always)]
    fn default() -> Self {
        let mut space = [0; BYTES];
        space[..DOMAIN.len()].copy_from_slice(DOMAIN);
        Self(space)
    }
}

/// A token taken apart. Nothing of it can be believed before its MAC is checked.
#[derive(Debug)]
pub(super) struct Parts<'a> {
    pub(super) selector: Selector,
    pub(super) app: AppId,
    pub(super) link: &'a LinkId,
    pub(super) iat_s: u32,
    pub(super) ttl_s: u16,
    pub(super) flags: u8,
    caps: u16,
    pub(super) jti: &'a [u8; 16],
    pub(super) names: Names<'a>,
    /// Domain and body.
    pub(super) message: &'a [u8],
    pub(super) mac: &'a [u8; MAC_BYTES],
}

impl<'a> Parts<'a> {
    /// Reads the text: length, strict base64url, exact layout with nothing behind it.
    #[inline(always)]
    pub(super) fn read<const BYTES: usize>(
        text: &str,
        space: &'a mut Space<BYTES>,
    ) -> Result<Self, TokenRefusal> {
        if text.len() > TOKEN_BYTES_MAX {
            return Err(TokenRefusal::TooLong { bytes: text.len() });
        }
        let encoded = text.strip_prefix(PREFIX).ok_or(TokenRefusal::Prefix)?;
        let raw = wire::decode(encoded, &mut space.0[DOMAIN.len()..]);
        let raw_bytes = raw.map_err(|_| TokenRefusal::Encoding)?.len();
        let signed = &space.0[..DOMAIN.len() + raw_bytes];
        let (message, mac) = signed.split_last_chunk().ok_or(TokenRefusal::Malformed)?;
        let body = message.get(DOMAIN.len()..).ok_or(TokenRefusal::Malformed)?;
        Self::parse(body, message, mac)
    }

    #[inline(always)]
    fn parse(
        body: &'a [u8],
        message: &'a [u8],
        mac: &'a [u8; MAC_BYTES],
    ) -> Result<Self, TokenRefusal> {
        let mut reader = Reader::new(body);
        let [version, alg, flags, kid] = *reader.array()?;
        if version != VERSION {
            return Err(TokenRefusal::Version { version });
        }
        let app = AppId(u32::from_be_bytes(*reader.array()?));
        let epoch = u32::from_be_bytes(*reader.array()?);
        let iat_s = u32::from_be_bytes(*reader.array()?);
        let ttl_s = u16::from_be_bytes(*reader.array()?);
        let caps = u16::from_be_bytes(*reader.array()?);
        let link = reader.array()?;
        let jti = reader.array()?;
        let names = reader.names()?;
        let selector = Selector { alg, kid, epoch };
        Ok(Self { selector, app, link, iat_s, ttl_s, flags, caps, jti, names, message, mac })
    }

    /// What the token says.
    pub(super) fn claims(&self) -> Claims {
        Claims {
            app: self.app,
            link: *self.link,
            iat_s: self.iat_s,
            ttl_s: self.ttl_s,
            flags: self.flags,
            caps: self.caps,
            jti: *self.jti,
            account: self.names.account(),
            device: self.names.device(),
            rooms: self.names.rooms(),
        }
    }
}

/// A token that was read but not verified: good for explaining, never for deciding.
#[derive(Clone, Debug)]
pub struct Unverified {
    /// Which key it asks for.
    pub selector: Selector,
    /// What it claims.
    pub claims: Claims,
    /// Bytes of its body.
    pub body_bytes: usize,
    /// The MAC it carries.
    pub mac: [u8; MAC_BYTES],
}

impl Unverified {
    /// Reads the text: length, strict base64url, exact layout with nothing behind it.
    pub fn read(text: &str) -> Result<Self, TokenRefusal> {
        let mut space = Long::default();
        let parts = Parts::read(text, &mut space)?;
        let body_bytes = parts.message.len() - DOMAIN.len();
        Ok(Self { selector: parts.selector, claims: parts.claims(), body_bytes, mac: *parts.mac })
    }
}

/// Writes the text of a token.
pub(super) fn write(claims: &Claims, selector: Selector, key: &mac::Key) -> String {
    let mut message = message(claims, selector);
    let mac = key.sign(&message);
    message.extend_from_slice(&mac);
    wire::encode(PREFIX, &message[DOMAIN.len()..])
}

/// Domain and body, with room for the MAC.
fn message(claims: &Claims, selector: Selector) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(DOMAIN.len() + RAW_BYTES_MAX);
    bytes.extend_from_slice(DOMAIN);
    bytes.extend_from_slice(&[VERSION, selector.alg, claims.flags, selector.kid]);
    bytes.extend_from_slice(&claims.app.0.to_be_bytes());
    bytes.extend_from_slice(&selector.epoch.to_be_bytes());
    bytes.extend_from_slice(&claims.iat_s.to_be_bytes());
    bytes.extend_from_slice(&claims.ttl_s.to_be_bytes());
    bytes.extend_from_slice(&claims.caps.to_be_bytes());
    bytes.extend_from_slice(&claims.link);
    bytes.extend_from_slice(&claims.jti);
    wire::push_names(&mut bytes, &claims.account, claims.device.as_ref(), &claims.rooms);
    bytes
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

        assert_eq!(token.body_bytes, 74);
        assert_eq!(
            hex::encode(token.mac),
            "5e7713d70fb59b21981c5732a8b7e057098c15cfb38d043441f73b828bb5a5a0"
        );
        assert_eq!(token.selector, selector);
        assert_eq!(token.claims, vector_claims());
    }
}
