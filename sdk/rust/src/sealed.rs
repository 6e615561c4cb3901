//! Sealed rooms: the keys that `enter` and links tell, and what they open (see [`proto::sealed`]).

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use aes_gcm::aead::{Aead, KeyInit, Payload};
use aes_gcm::{Aes128Gcm, Nonce};
use proto::decode::DecodeError;
use proto::id::{Gen, RoomId};
use proto::keys::{ROOM_KEYS_MAX, RoomKey, RoomKeys};
use proto::sealed::{SealedFile, associated};

/// Keys of one room that are kept: those that were told last, and as many older ones.
const KEPT_MAX: usize = 2 * ROOM_KEYS_MAX;

/// Why a sealed file does not open.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum Locked {
    /// No key of its gen and master was told: the viewer may not read it, or not yet.
    #[error("there is no key for it")]
    NoKey,
    /// Another key sealed it, it belongs elsewhere, or it was changed.
    #[error("it does not open")]
    Closed,
    /// It is cut off.
    #[error("it is cut off")]
    Damaged(#[from] DecodeError),
}

/// Keys of one room, by gen and master. `Debug` prints none.
#[derive(Clone, Default)]
pub struct Keys(Arc<BTreeMap<(Gen, u8), [u8; 16]>>);

impl Keys {
    /// Takes what was told; what cannot be a key is passed over.
    fn learn(&mut self, told: &[RoomKey]) {
        let keys = Arc::make_mut(&mut self.0);
        keys.extend(told.iter().filter_map(|it| Some(((it.gen_no, it.kid), bytes(&it.key)?))));
        while keys.len() > KEPT_MAX {
            keys.pop_first();
        }
    }

    /// Opens the file at `path` of a gen.
    ///
    /// # Errors
    /// [`Locked`].
    pub fn open(&self, gen_no: Gen, path: &str, file: &[u8]) -> Result<Vec<u8>, Locked> {
        let SealedFile { kid, nonce, closed } = SealedFile::parse(file)?;
        let key = self.0.get(&(gen_no, kid)).ok_or(Locked::NoKey)?;
        let aad = associated(kid, path);
        let payload = Payload { msg: closed, aad: &aad };
        let opened = Aes128Gcm::new(key.into()).decrypt(&Nonce::from(nonce), payload);
        opened.map_err(|_| Locked::Closed)
    }
}

impl From<&RoomKeys> for Keys {
    fn from(told: &RoomKeys) -> Self {
        let mut keys = Self::default();
        keys.learn(&told.keys);
        keys
    }
}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

/// The keys of the client's rooms.
#[derive(Debug, Default)]
pub(crate) struct Rings {
    rooms: BTreeMap<RoomId, Keys>,
    /// By room, the newest gen of which a file was found locked.
    locked: BTreeMap<RoomId, Gen>,
}

impl Rings {
    /// Takes the keys of a room that the client is in.
    pub(crate) fn learn(&mut self, told: &RoomKeys) {
        self.rooms.entry(told.room.clone()).or_default().learn(&told.keys);
    }

    pub(crate) fn of(&self, room: &RoomId) -> Keys {
        self.rooms.get(room).cloned().unwrap_or_default()
    }

    /// A file of this gen has no key. Says whether that is news.
    pub(crate) fn lacks(&mut self, room: &RoomId, gen_no: Gen) -> bool {
        let before = self.locked.insert(room.clone(), gen_no);
        before.is_none_or(|it| it < gen_no)
    }
}

/// 16 bytes from 32 hexadecimal digits.
fn bytes(digits: &str) -> Option<[u8; 16]> {
    if digits.len() != 32 || !digits.bytes().all(|it| it.is_ascii_hexdigit()) {
        return None;
    }
    u128::from_str_radix(digits, 16).ok().map(u128::to_be_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATH: &str = "dm/1/room-1/3/full/17.bin";

    fn keys(gen_no: u32, kid: u8, key: &str) -> Keys {
        let key = RoomKey { gen_no: Gen(gen_no), kid, key: key.to_owned() };
        let room = RoomId::parse("room-1").unwrap();
        Keys::from(&RoomKeys { room, keys: vec![key] })
    }

    /// What `python3`'s `cryptography` sealed with this key: see the vector of `auth-core`.
    fn file() -> Vec<u8> {
        let digits = "444d523105070707070707070707070707f6b98559b263dd0222164dee4adb52dc3a78c7bec0";
        let byte = |at: usize| u8::from_str_radix(&digits[at..at + 2], 16).unwrap();
        (0..digits.len()).step_by(2).map(byte).collect()
    }

    const KEY: &str = "96ec80fa8d7a9f961f9b92c0f4a525a0";

    #[test]
    fn what_another_implementation_sealed_opens() {
        assert_eq!(keys(3, 5, KEY).open(Gen(3), PATH, &file()).as_deref(), Ok(&b"plain"[..]));
    }

    #[test]
    fn without_its_very_key_and_place_it_stays_closed() {
        let mut changed = file();
        changed[20] ^= 1;
        let other_key = keys(3, 5, "00ec80fa8d7a9f961f9b92c0f4a525a0");

        assert_eq!(Keys::default().open(Gen(3), PATH, &file()), Err(Locked::NoKey));
        assert_eq!(keys(4, 5, KEY).open(Gen(3), PATH, &file()), Err(Locked::NoKey));
        assert_eq!(keys(3, 6, KEY).open(Gen(3), PATH, &file()), Err(Locked::NoKey));
        assert_eq!(other_key.open(Gen(3), PATH, &file()), Err(Locked::Closed));
        let other = "dm/1/room-1/3/full/18.bin";
        assert_eq!(keys(3, 5, KEY).open(Gen(3), other, &file()), Err(Locked::Closed));
        assert_eq!(keys(3, 5, KEY).open(Gen(3), PATH, &changed), Err(Locked::Closed));
        for length in 0..file().len() {
            assert!(keys(3, 5, KEY).open(Gen(3), PATH, &file()[..length]).is_err());
        }
    }

    #[test]
    fn keys_are_bounded_and_never_printed() {
        let mut all = keys(1, 0, KEY);
        let told = |gen_no| RoomKey { gen_no: Gen(gen_no), kid: 0, key: KEY.to_owned() };

        all.learn(&(2..1_000).map(told).collect::<Vec<_>>());
        all.learn(&[RoomKey { key: "+6ec80fa8d7a9f961f9b92c0f4a525a".to_owned(), ..told(2_000) }]);

        assert_eq!(all.0.len(), KEPT_MAX);
        assert!(all.0.contains_key(&(Gen(999), 0)) && !all.0.contains_key(&(Gen(1), 0)));
        assert!(!format!("{:?}", keys(1, 0, KEY)).contains(&KEY[..2]));
    }

    #[test]
    fn a_gen_without_a_key_is_news_once() {
        let (mut rings, room) = (Rings::default(), RoomId::parse("r").unwrap());

        assert!(rings.lacks(&room, Gen(1)));
        assert!(!rings.lacks(&room, Gen(1)));
        assert!(rings.lacks(&room, Gen(2)));
    }
}
