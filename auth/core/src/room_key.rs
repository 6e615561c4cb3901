//! Keys of sealed rooms, and the sealing and opening of their files.
//!
//! A key belongs to one gen of one room under one master:
//! `HKDF-SHA-256(ikm = master, no salt, info = "dm-room/v1" || app u32 || room || gen u32, 16)`,
//! numbers big-endian. What a file looks like, and what is proven beside it, is
//! [`proto::sealed`]. A gen seals at most some million files, far fewer than the 2³² after which
//! NIST SP 800-38D forbids random nonces under one key.

use std::fmt;

use aes_gcm::aead::{Aead, KeyInit, Payload};
use aes_gcm::{Aes128Gcm, Nonce};
use hkdf::Hkdf;
use proto::id::{AppId, Gen, RoomId};
use proto::keys;
use proto::sealed::{NONCE_BYTES, SealedFile, associated};
use sha2::Sha256;
use zeroize::Zeroizing;

/// Bytes of a key.
const KEY_BYTES: usize = 16;

/// Why a file does not open.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum Unopened {
    /// It does not begin as sealed files do, or is cut off.
    #[error("it is no sealed file")]
    NotSealed,
    /// No key of its gen and master is held.
    #[error("the key under master {kid} is not held")]
    NoKey {
        /// The master that the file names.
        kid: u8,
    },
    /// Sealed with another key or as another file, or changed.
    #[error("it does not open: another key sealed it, as another file, or it was changed")]
    Closed,
}

/// The key of one gen of one room under one master. Wiped when dropped; `Debug` prints nothing of
/// it.
#[derive(Clone, Eq, PartialEq)]
pub struct RoomKey {
    gen_no: Gen,
    kid: u8,
    key: Zeroizing<[u8; KEY_BYTES]>,
}

impl RoomKey {
    /// Derives it.
    #[must_use]
    pub fn derive(master: &[u8; 32], kid: u8, app: AppId, room: &RoomId, gen_no: Gen) -> Self {
        let (app, gen_bytes) = (app.0.to_be_bytes(), gen_no.0.to_be_bytes());
        let mut key = Zeroizing::new([0; KEY_BYTES]);
        Hkdf::<Sha256>::new(None, master)
            .expand_multi_info(
                &[b"dm-room/v1", &app, room.as_str().as_bytes(), &gen_bytes],
                key.as_mut_slice(),
            )
            .expect("16 bytes are fewer than the 255 hashes that HKDF can give");
        Self { gen_no, kid, key }
    }

    /// Reads it as it is told; `None` for what is not 16 bytes in hexadecimal.
    #[must_use]
    pub fn read(told: &keys::RoomKey) -> Option<Self> {
        let mut key = Zeroizing::new([0; KEY_BYTES]);
        hex::decode_to_slice(&told.key, key.as_mut_slice()).ok()?;
        Some(Self { gen_no: told.gen_no, kid: told.kid, key })
    }

    /// As it is told.
    #[must_use]
    pub fn tell(&self) -> keys::RoomKey {
        keys::RoomKey { gen_no: self.gen_no, kid: self.kid, key: hex::encode(self.key.as_slice()) }
    }

    /// The gen whose files it seals.
    #[must_use]
    pub const fn gen_no(&self) -> Gen {
        self.gen_no
    }

    /// The master it comes from.
    #[must_use]
    pub const fn kid(&self) -> u8 {
        self.kid
    }

    /// Seals a file that lies at `path` below a base. `nonce` must be random: it may never come
    /// twice with one key.
    #[must_use]
    pub fn seal(&self, path: &str, plain: &[u8], nonce: [u8; NONCE_BYTES]) -> Vec<u8> {
        let aad = associated(self.kid, path);
        let closed = self
            .cipher()
            .encrypt(&Nonce::from(nonce), Payload { msg: plain, aad: &aad })
            .expect("a file in memory is shorter than the 64 GiB that GCM seals");
        SealedFile { kid: self.kid, nonce, closed: &closed }.write()
    }

    fn open(&self, path: &str, file: &SealedFile<'_>) -> Result<Vec<u8>, Unopened> {
        let aad = associated(self.kid, path);
        let payload = Payload { msg: file.closed, aad: &aad };
        let plain = self.cipher().decrypt(&Nonce::from(file.nonce), payload);
        plain.map_err(|_| Unopened::Closed)
    }

    fn cipher(&self) -> Aes128Gcm {
        Aes128Gcm::new((&*self.key).into())
    }
}

impl fmt::Debug for RoomKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RoomKey(gen {}, master {}, …)", self.gen_no, self.kid)
    }
}

/// Opens the file that lies at `path` with the one of the gen's keys that it names.
///
/// # Errors
/// [`Unopened`].
pub fn open(keys: &[RoomKey], path: &str, file: &[u8]) -> Result<Vec<u8>, Unopened> {
    let file = SealedFile::parse(file).map_err(|_| Unopened::NotSealed)?;
    let key = keys.iter().find(|it| it.kid == file.kid);
    key.ok_or(Unopened::NoKey { kid: file.kid })?.open(path, &file)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PATH: &str = "dm/1/room-1/3/full/17.bin";
    const NONCE: [u8; NONCE_BYTES] = [7; NONCE_BYTES];
    /// `python3`'s `cryptography`: `AESGCM(key).encrypt(nonce, b"plain", b"DMR1\x05" + path)` with
    /// the key below, behind magic, kid and nonce.
    const VECTOR: &str =
        "444d523105070707070707070707070707f6b98559b263dd0222164dee4adb52dc3a78c7bec0";

    fn room(name: &str) -> RoomId {
        RoomId::parse(name).unwrap()
    }

    fn key() -> RoomKey {
        let master: [u8; 32] = std::array::from_fn(|it| u8::try_from(it).unwrap());
        RoomKey::derive(&master, 5, AppId(1), &room("room-1"), Gen(3))
    }

    /// The value is that of `openssl kdf -keylen 16 -kdfopt digest:SHA256 -kdfopt hexkey:0001…1f
    /// -kdfopt hexinfo:646d2d726f6f6d2f763100000001726f6f6d2d3100000003 HKDF`, and of Python's
    /// `cryptography`.
    #[test]
    fn derivation_gives_what_others_derive() {
        assert_eq!(key().tell().key, "96ec80fa8d7a9f961f9b92c0f4a525a0");
    }

    #[test]
    fn a_file_is_sealed_as_others_seal_it() {
        let sealed = key().seal(PATH, b"plain", NONCE);

        assert_eq!(hex::encode(&sealed), VECTOR);
        assert_eq!(open(&[key()], PATH, &sealed).unwrap(), b"plain");
    }

    #[test]
    fn every_input_changes_the_key() {
        let of = |master: u8, app, name, gen_no| {
            RoomKey::derive(&[master; 32], 0, AppId(app), &room(name), Gen(gen_no)).tell().key
        };
        let keys = [
            of(1, 1, "r", 1),
            of(2, 1, "r", 1),
            of(1, 2, "r", 1),
            of(1, 1, "q", 1),
            of(1, 1, "r", 2),
        ];

        for (at, key) in keys.iter().enumerate() {
            assert!(!keys[at + 1..].contains(key));
        }
    }

    #[test]
    fn a_file_of_another_slot_or_under_another_master_does_not_open() {
        let sealed = key().seal(PATH, b"plain", NONCE);
        let other_gen = RoomKey::derive(&[9; 32], 5, AppId(1), &room("room-1"), Gen(3));
        let other_kid = RoomKey { kid: 6, ..key() };

        for other in ["dm/1/room-1/3/full/18.bin", "dm/1/room-1/3/lite/17.bin", ""] {
            assert_eq!(open(&[key()], other, &sealed), Err(Unopened::Closed));
        }
        assert_eq!(open(&[other_gen], PATH, &sealed), Err(Unopened::Closed));
        assert_eq!(open(&[other_kid], PATH, &sealed), Err(Unopened::NoKey { kid: 5 }));
        assert_eq!(open(&[], PATH, &sealed), Err(Unopened::NoKey { kid: 5 }));
        assert_eq!(open(&[key()], PATH, b"plain"), Err(Unopened::NotSealed));
    }

    #[test]
    fn a_key_is_told_and_read_again_and_never_printed() {
        let told = key().tell();

        assert_eq!(RoomKey::read(&told), Some(key()));
        assert!(!format!("{:?} {told:?}", key()).contains(&told.key[..8]));
        for bad in ["", "96ec80fa8d7a9f961f9b92c0f4a525", "zzec80fa8d7a9f961f9b92c0f4a525a0"] {
            assert_eq!(RoomKey::read(&keys::RoomKey { key: bad.to_owned(), ..told.clone() }), None);
        }
    }

    proptest! {
        #[test]
        fn any_changed_or_missing_byte_closes_it(
            plain in proptest::collection::vec(any::<u8>(), 0..64),
            at: prop::sample::Index,
            flip in 1_u8..,
        ) {
            let sealed = key().seal(PATH, &plain, NONCE);
            let mut changed = sealed.clone();
            changed[at.index(sealed.len())] ^= flip;

            prop_assert_eq!(open(&[key()], PATH, &sealed), Ok(plain));
            prop_assert!(open(&[key()], PATH, &changed).is_err());
            prop_assert!(open(&[key()], PATH, &sealed[..at.index(sealed.len())]).is_err());
        }
    }
}
