//! Fixed bytes and short names, as tokens and resume tickets carry them, and their text form.

use std::str::FromStr;

use base64_simd::{AsOut, URL_SAFE_NO_PAD};
use proto::id::{DeviceId, RoomId, ViewerId};
use proto::limits::{ACCOUNT_BYTES_MAX, DEVICE_BYTES_MAX, ROOM_BYTES_MAX, ROOMS_PER_SESSION_MAX};

use crate::token::Rooms;

/// Bytes of `len u8 account | len u8 device | n u8 × (len u8 room)` at their longest.
pub(crate) const NAMES_BYTES_MAX: usize = (1 + ACCOUNT_BYTES_MAX)
    + (1 + DEVICE_BYTES_MAX)
    + 1
    + ROOMS_PER_SESSION_MAX * (1 + ROOM_BYTES_MAX);

/// Cut off, too long, or a name outside its grammar.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Damaged;

/// Puts down account, device and rooms.
#[inline(always)]
pub(crate) fn put_names(
    account: &[u8],
    device: Option<&DeviceId>,
    rooms: &[RoomId],
    mut put: impl FnMut(&[u8]),
) {
    put_name(account, &mut put);
    put_name(device.map_or("", DeviceId::as_str).as_bytes(), &mut put);
    put(&[u8::try_from(rooms.len()).expect("there are at most 8 rooms")]);
    for room in rooms {
        put_name(room.as_str().as_bytes(), &mut put);
    }
}

#[inline(always)]
fn put_name(name: &[u8], mut put: impl FnMut(&[u8])) {
    put(&[u8::try_from(name.len()).expect("the ids' grammars end at 64 bytes")]);
    put(name);
}

/// The bytes not read yet.
pub(crate) struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    pub(crate) const fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Result<&'a [u8; N], Damaged> {
        let (head, rest) = self.0.split_first_chunk().ok_or(Damaged)?;
        self.0 = rest;
        Ok(head)
    }

    /// Account, device and rooms, and nothing behind them.
    #[inline(always)]
    pub(crate) fn names(self) -> Result<Names<'a>, Damaged> {
        let mut rest = self;
        let account = rest.name()?;
        let device = rest.name()?;
        let rooms = rest.0;
        let [count] = *rest.array()?;
        let mut is_valid = ViewerId::is_valid(account)
            && (device.is_empty() || DeviceId::is_valid(device))
            && usize::from(count) <= ROOMS_PER_SESSION_MAX;
        for _ in 0..count {
            is_valid = is_valid && RoomId::is_valid(rest.name()?);
        }
        if is_valid && rest.0.is_empty() {
            Ok(Names { account, device, rooms })
        } else {
            Err(Damaged)
        }
    }

    #[inline(always)]
    fn name(&mut self) -> Result<&'a [u8], Damaged> {
        let [length] = *self.array()?;
        let (name, rest) = self.0.split_at_checked(usize::from(length)).ok_or(Damaged)?;
        self.0 = rest;
        Ok(name)
    }
}

/// Account, device and rooms where they lie, each within its grammar. Making names of them costs
/// as much as a block of the MAC, so it is left until they are believed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Names<'a> {
    account: &'a [u8],
    /// Empty: none.
    device: &'a [u8],
    /// Their number, and behind it each with its length.
    rooms: &'a [u8],
}

impl Names<'_> {
    pub(crate) fn account(&self) -> ViewerId {
        named(self.account).expect("the account was in its grammar when it was read")
    }

    pub(crate) fn device(&self) -> Option<DeviceId> {
        named(self.device)
    }

    pub(crate) fn rooms(&self) -> Rooms {
        let mut rest = Reader::new(self.rooms);
        let count = rest.array().map_or(0, |[count]| *count);
        let mut room = || named(rest.name().ok()?);
        match (count, room()) {
            (1, Some(only)) => RoomId::into(only),
            (_, first) => {
                let rooms: Vec<_> =
                    first.into_iter().chain((1..count).filter_map(|_| room())).collect();
                Rooms::try_from(rooms).expect("there were at most 8 rooms when they were read")
            }
        }
    }
}

fn named<N: FromStr>(bytes: &[u8]) -> Option<N> {
    std::str::from_utf8(bytes).ok()?.parse().ok()
}

/// Puts the bytes of strict base64url without padding (RFC 4648 5, unused bits zero) into
/// `bytes`; as many as there are.
#[inline(always)]
pub(crate) fn decode<'a>(text: &str, bytes: &'a mut [u8]) -> Result<&'a [u8], Damaged> {
    let text = text.as_bytes();
    if URL_SAFE_NO_PAD.decoded_length(text).map_err(|_| Damaged)? > bytes.len() {
        return Err(Damaged);
    }
    let decoded = URL_SAFE_NO_PAD.decode(text, bytes.as_out()).map_err(|_| Damaged)?;
    Ok(decoded)
}

/// `prefix` and behind it the bytes as base64url.
pub(crate) fn encode(prefix: &str, bytes: &[u8]) -> String {
    let mut text =
        String::with_capacity(prefix.len() + URL_SAFE_NO_PAD.encoded_length(bytes.len()));
    text.push_str(prefix);
    URL_SAFE_NO_PAD.encode_append(bytes, &mut text);
    text
}

#[cfg(test)]
mod tests {
    use base64::Engine;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn base64url_is_that_of_another_implementation(
            bytes in proptest::collection::vec(any::<u8>(), 0..768),
            garbled in "[A-Za-z0-9_-]{0,200}[ -~]{0,2}[A-Za-z0-9_-]{0,70}",
        ) {
            let reference = base64::engine::general_purpose::URL_SAFE_NO_PAD;

            let text = encode("", &bytes);

            let mut decoded = [0; 768];
            prop_assert_eq!(&text, &reference.encode(&bytes));
            prop_assert_eq!(decode(&text, &mut decoded), Ok(&bytes[..]));
            let garbled_bytes = reference.decode(&garbled).ok();
            prop_assert_eq!(decode(&garbled, &mut decoded).ok(), garbled_bytes.as_deref());
        }
    }

    #[test]
    fn text_that_would_not_fit_is_damaged() {
        let mut bytes = [0; 7];

        assert_eq!(decode("AAAAAAAAAA", &mut bytes), Ok(&[0; 7][..]));
        assert_eq!(decode("AAAAAAAAAAA", &mut bytes), Err(Damaged));
    }
}
