//! The bytes of a token: `"dm1." base64url(body || mac)`, integers big-endian.
//!
//! ```text
//! ver u8=1 | alg u8 | flags u8 | kid u8 | app u32 | epoch u32 | iat u32 | ttl u16 | caps u16
//! | link_id[16] | jti[16] | len u8 account | len u8 device | n u8 × (len u8 room)
//! ```

use base64_simd::URL_SAFE_NO_PAD;
use proto::id::{AppId, DeviceId, RoomId};
use proto::limits::TOKEN_BYTES_MAX;

use super::{Claims, Key, TokenRefusal};
use crate::derive::LinkId;
use crate::mac::{self, BLOCK_BYTES, MAC_BYTES, PADDING_BYTES_MIN, Padded};
use crate::wire::{self, NAMES_BYTES_MAX, Names, Reader};

/// What every token begins with.
pub(super) const PREFIX: &str = "dm1.";
/// Keeps token MACs apart from every other use of a key.
const DOMAIN: &[u8; 12] = b"dm-token-v1\0";
const VERSION: u8 = 1;
/// Where the body begins behind it.
const BODY_AT: usize = DOMAIN.len();
/// Bytes before the names.
const FIXED_BYTES: usize = 52;
/// Domain and fixed fields are the first block, names begin the second.
const _: () = assert!(BODY_AT + FIXED_BYTES == BLOCK_BYTES);
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

/// Longest text of a token that [`SHORT_BLOCKS`] have room for: all but those with many or long
/// names.
pub(super) const SHORT_TEXT_BYTES_MAX: usize = PREFIX.len() + SHORT_RAW_BYTES_MAX / 3 * 4;
const SHORT_RAW_BYTES_MAX: usize = 180;
/// Room for short texts: clearing the room for the longest would cost as much as decoding them.
pub(super) const SHORT_BLOCKS: usize = (DOMAIN.len() + SHORT_RAW_BYTES_MAX).div_ceil(BLOCK_BYTES);
/// Room for every text.
pub(super) const LONG_BLOCKS: usize = (DOMAIN.len() + RAW_BYTES_MAX).div_ceil(BLOCK_BYTES);
/// Padding takes the place of the MAC.
const _: () = assert!(PADDING_BYTES_MIN <= MAC_BYTES);

/// A token taken apart. Nothing of it can be believed before its MAC is checked.
#[derive(Debug)]
pub(super) struct Parts<'a> {
    fixed: &'a [u8; FIXED_BYTES],
    pub(super) names: Names<'a>,
    /// Domain and body.
    pub(super) message: Padded<'a>,
    pub(super) mac: &'a [u8; MAC_BYTES],
}

impl<'a> Parts<'a> {
    /// Reads the text: length, strict base64url, exact layout with nothing behind it.
    ///
    /// `room` gets domain and body, so that what the MAC covers lies together, in blocks that its
    /// hash takes as they are, and `mac` the MAC.
    #[inline(always)]
    pub(super) fn read(
        text: &str,
        room: &'a mut [[u8; BLOCK_BYTES]],
        mac: &'a mut [u8; MAC_BYTES],
    ) -> Result<Self, TokenRefusal> {
        if text.len() > TOKEN_BYTES_MAX {
            return Err(TokenRefusal::TooLong { bytes: text.len() });
        }
        let encoded = text.strip_prefix(PREFIX).ok_or(TokenRefusal::Prefix)?;
        let bytes = room.as_flattened_mut();
        bytes[..DOMAIN.len()].copy_from_slice(DOMAIN);
        let raw = wire::decode(encoded, &mut bytes[DOMAIN.len()..]);
        let (body, found) = raw
            .map_err(|_| TokenRefusal::Encoding)?
            .split_last_chunk()
            .ok_or(TokenRefusal::Malformed)?;
        *mac = *found;
        let message_bytes = DOMAIN.len() + body.len();
        let message = Padded::new(room, message_bytes);
        let body = &message.bytes()[DOMAIN.len()..];
        let (fixed, names) = body.split_first_chunk().ok_or(TokenRefusal::Malformed)?;
        if fixed[0] != VERSION {
            return Err(TokenRefusal::Version { version: fixed[0] });
        }
        Ok(Self { fixed, names: Reader::new(names).names()?, message, mac })
    }

    /// The field that begins at this byte, as the layout above has it.
    #[inline(always)]
    fn field<const BYTES: usize>(&self, at: usize) -> &'a [u8; BYTES] {
        self.fixed[at..].first_chunk().expect("every field lies before the names")
    }

    #[inline]
    pub(super) fn selector(&self) -> Selector {
        let epoch = u32::from_be_bytes(*self.field(8));
        Selector { alg: self.fixed[1], kid: self.fixed[3], epoch }
    }

    pub(super) const fn flags(&self) -> u8 {
        self.fixed[2]
    }

    #[inline]
    pub(super) fn app(&self) -> AppId {
        AppId(u32::from_be_bytes(*self.field(4)))
    }

    #[inline]
    pub(super) fn iat_s(&self) -> u32 {
        u32::from_be_bytes(*self.field(12))
    }

    #[inline]
    pub(super) fn ttl_s(&self) -> u16 {
        u16::from_be_bytes(*self.field(16))
    }

    #[inline]
    fn caps(&self) -> u16 {
        u16::from_be_bytes(*self.field(18))
    }

    #[inline]
    pub(super) fn link(&self) -> &'a LinkId {
        self.field(20)
    }

    #[inline]
    pub(super) fn jti(&self) -> &'a [u8; 16] {
        self.field(36)
    }

    /// What the token says.
    pub(super) fn claims(&self) -> Claims {
        Claims {
            app: self.app(),
            link: *self.link(),
            iat_s: self.iat_s(),
            ttl_s: self.ttl_s(),
            flags: self.flags(),
            caps: self.caps(),
            jti: *self.jti(),
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
        let (mut room, mut mac) = ([[0; BLOCK_BYTES]; LONG_BLOCKS], [0; MAC_BYTES]);
        let parts = Parts::read(text, &mut room, &mut mac)?;
        let body_bytes = parts.message.bytes().len() - DOMAIN.len();
        Ok(Self { selector: parts.selector(), claims: parts.claims(), body_bytes, mac: *parts.mac })
    }
}

/// What the tokens of one viewer share.
#[derive(Clone, Copy, Debug)]
pub struct Shared<'a> {
    /// See [`Claims::app`].
    pub app: AppId,
    /// See [`Claims::iat_s`].
    pub iat_s: u32,
    /// See [`Claims::ttl_s`].
    pub ttl_s: u16,
    /// See [`Claims::flags`].
    pub flags: u8,
    /// See [`Claims::caps`].
    pub caps: u16,
    /// See [`Claims::account`]: a text within the grammar of a [`ViewerId`], or links refuse the
    /// tokens.
    ///
    /// [`ViewerId`]: proto::id::ViewerId
    pub account: &'a [u8],
    /// See [`Claims::device`].
    pub device: Option<&'a DeviceId>,
    /// See [`Claims::rooms`]: at most [`ROOMS_PER_SESSION_MAX`].
    ///
    /// [`ROOMS_PER_SESSION_MAX`]: proto::limits::ROOMS_PER_SESSION_MAX
    pub rooms: &'a [RoomId],
}

/// What one token of several has for itself.
#[derive(Clone, Copy, Debug)]
pub struct Own<'a> {
    /// For which address.
    pub link: &'a LinkId,
    /// Random: no two tokens share it.
    pub jti: &'a [u8; 16],
    /// See [`mint`](super::mint).
    pub key: &'a Key,
}

/// A token, signed, not written yet.
#[derive(Clone, Copy, Debug)]
pub struct Signed<'a>(&'a [u8]);

impl Signed<'_> {
    /// Its text.
    pub(super) fn text(self) -> String {
        wire::encode(PREFIX, self.0)
    }

    /// Writes it behind what `text` holds.
    #[inline]
    pub fn put(self, text: &mut Vec<u8>) {
        text.extend_from_slice(PREFIX.as_bytes());
        URL_SAFE_NO_PAD.encode_append(self.0, text);
    }
}

/// Signs the tokens of one viewer for several addresses, and lends them in their order.
#[inline]
pub fn mint_each<const N: usize>(
    shared: &Shared<'_>,
    own: [Own<'_>; N],
    take: impl FnMut(usize, Signed<'_>),
) {
    let names = shared.rooms.iter().map(|it| 1 + it.as_str().len());
    let names = names.sum::<usize>() + shared.account.len();
    let names = names + shared.device.map_or(0, |it| it.as_str().len()) + 3;
    if FIXED_BYTES + names + MAC_BYTES <= SHORT_RAW_BYTES_MAX {
        mint_in::<N, SHORT_BLOCKS>(shared, own, take);
    } else {
        mint_in::<N, LONG_BLOCKS>(shared, own, take);
    }
}

/// The same where so many blocks have room for domain, body and MAC.
#[inline]
fn mint_in<const N: usize, const BLOCKS: usize>(
    shared: &Shared<'_>,
    own: [Own<'_>; N],
    mut take: impl FnMut(usize, Signed<'_>),
) {
    let mut rooms = [[[0; BLOCK_BYTES]; BLOCKS]; N];
    // Before the names: a hash takes sixteen bytes at a time, and would have to wait for those that
    // were put down by eights just before it.
    for (room, own) in rooms.iter_mut().zip(&own) {
        room[0] = shared.head(own);
    }
    let mut names_bytes = 0;
    if let Some((first, others)) = rooms.split_first_mut() {
        names_bytes = shared.put_names(first[1..].as_flattened_mut());
        for other in others {
            other[1..].copy_from_slice(&first[1..]);
        }
    }
    let message_bytes = BLOCK_BYTES + names_bytes;
    let messages = rooms.each_mut().map(|it| Padded::in_zeros(it, message_bytes));
    let macs = mac::Key::sign_each(own.map(|it| &it.key.mac), messages);
    for (at, (room, mac)) in rooms.iter_mut().zip(macs).enumerate() {
        let raw = &mut room.as_flattened_mut()[DOMAIN.len()..message_bytes + MAC_BYTES];
        if let Some(place) = raw.last_chunk_mut() {
            *place = mac;
        }
        take(at, Signed(raw));
    }
}

impl Shared<'_> {
    /// Domain and fixed fields, eight bytes at a time.
    #[inline]
    fn head(&self, own: &Own<'_>) -> [u8; BLOCK_BYTES] {
        let [domain @ .., a, b, c, d] = DOMAIN;
        let alg = own.key.mac.alg().code();
        let epoch = own.key.epoch;
        let life = u64::from(self.ttl_s) << 16 | u64::from(self.caps);
        let fields = [
            u64::from_be_bytes(*domain),
            u64::from_be_bytes([*a, *b, *c, *d, VERSION, alg, self.flags, own.key.kid]),
            u64::from(self.app.0) << 32 | u64::from(epoch),
            u64::from(self.iat_s) << 32 | life,
        ];
        let mut head = [0; BLOCK_BYTES];
        let (words, _) = head.as_chunks_mut();
        for (word, field) in words.iter_mut().zip(fields) {
            *word = field.to_be_bytes();
        }
        head[BODY_AT + 20..][..16].copy_from_slice(own.link);
        head[BODY_AT + 36..].copy_from_slice(own.jti);
        head
    }

    /// Writes the names, as long as they are.
    #[inline]
    fn put_names(&self, room: &mut [u8]) -> usize {
        let mut written = 0;
        wire::put_names(self.account, self.device, self.rooms, |bytes| {
            room[written..][..bytes.len()].copy_from_slice(bytes);
            written += bytes.len();
        });
        written
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::derive::from_hex;
    use crate::mac::Alg;
    use crate::token::mint;
    use crate::token::tests::vector_claims;

    /// The body and MAC of the protocol page's vector.
    #[test]
    fn a_token_has_the_printed_bytes() {
        let key =
            from_hex("020bb57b93052c3d040613e9dac6af8dcc12cab8a2743a38c30bf94f7ed3db16").unwrap();
        let selector = Selector { alg: 1, kid: 0, epoch: 2_975_000 };

        let mac = mac::Key::new(Alg::HmacSha256, &key);
        let text = mint(&vector_claims(), &Key { epoch: selector.epoch, kid: selector.kid, mac });
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
