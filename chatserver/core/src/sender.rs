//! Sender refs: who sent an item, as other viewers see it.

use std::fmt;

use hmac::{Hmac, KeyInit, Mac};
use proto::id::{AppId, RoomId, SenderRef, ViewerId};
use sha2::Sha256;

/// The one secret behind all sender refs; it lies in the room store, and only chatservers know it.
#[derive(Clone)]
pub struct SenderSecret([u8; 32]);

/// What the refs of one room are made with: the same viewer has another ref in every room.
#[derive(Clone)]
pub struct RoomSecret([u8; 32]);

impl SenderSecret {
    /// Wraps 32 random bytes.
    #[must_use]
    pub const fn new(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The secret of one room.
    #[must_use]
    pub fn room(&self, app: AppId, room: &RoomId) -> RoomSecret {
        RoomSecret(mac(
            &self.0,
            &[b"dm-sender/v1\0", &app.0.to_be_bytes(), room.as_str().as_bytes()],
        ))
    }
}

impl RoomSecret {
    /// The viewer's ref: the first 8 bytes of HMAC-SHA-256(room secret, account), big-endian.
    #[must_use]
    pub fn sender(&self, viewer: &ViewerId) -> SenderRef {
        let [a, b, c, d, e, f, g, h, ..] = mac(&self.0, &[viewer.as_str().as_bytes()]);
        SenderRef(u64::from_be_bytes([a, b, c, d, e, f, g, h]))
    }
}

fn mac(key: &[u8; 32], parts: &[&[u8]]) -> [u8; 32] {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes keys of any length");
    for part in parts {
        mac.update(part);
    }
    mac.finalize().into_bytes().into()
}

impl fmt::Debug for SenderSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SenderSecret(…)")
    }
}

impl fmt::Debug for RoomSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RoomSecret(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_viewer_has_one_ref_a_room_and_another_in_the_next() {
        let secret = SenderSecret::new([7; 32]);
        let viewer = ViewerId::parse("user-42").unwrap();
        let room = |app, name| secret.room(AppId(app), &RoomId::parse(name).unwrap());

        let sender = room(1, "a").sender(&viewer);

        assert_eq!(room(1, "a").sender(&viewer), sender);
        assert_ne!(room(1, "b").sender(&viewer), sender);
        assert_ne!(room(2, "a").sender(&viewer), sender);
        assert_ne!(room(1, "a").sender(&ViewerId::parse("user-43").unwrap()), sender);
    }
    /// Computed with Python's hmac: items that are kept would get other refs if this changed.
    #[test]
    fn a_ref_is_the_same_in_every_version() {
        let secret = SenderSecret::new([7; 32]);
        let room = secret.room(AppId(1), &RoomId::parse("a").unwrap());

        let sender = room.sender(&ViewerId::parse("user-42").unwrap());

        assert_eq!(sender, SenderRef(0xDD69_27BD_210B_9656));
    }

    #[test]
    fn who_does_not_know_the_secret_finds_no_ref_of_an_account() {
        let room = RoomId::parse("a").unwrap();
        let viewer = ViewerId::parse("user-42").unwrap();
        let by = |secret: u8| SenderSecret::new([secret; 32]).room(AppId(1), &room).sender(&viewer);

        assert_ne!(by(7), by(8));
        let secrets = format!("{:?} {:?}", SenderSecret::new([7; 32]), secret_of(&room));
        assert_eq!(secrets, "SenderSecret(…) RoomSecret(…)");
    }

    fn secret_of(room: &RoomId) -> RoomSecret {
        SenderSecret::new([7; 32]).room(AppId(1), room)
    }
}
