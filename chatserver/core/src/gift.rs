//! What makes two requests for a gift, a notice or another item of a business server the same: the
//! id of their key, and a digest of their content.

use std::borrow::Cow;

use proto::id::{AppId, ItemId, RoomId, ViewerId};
use proto::item::{Body, Lane};
use sha2::{Digest as _, Sha256};

/// Bytes of an idempotency key.
pub const KEY_BYTES_MAX: usize = 128;

/// Ids of journaled items have this bit, those of comments do not before the year 2089, so
/// neither can take the other's.
const JOURNALED: u64 = 1 << 63;

/// The id of the item that this key stands for: a hash of app, room and key.
#[must_use]
pub fn id(app: AppId, room: &RoomId, key: &str) -> ItemId {
    let hash = Sha256::new()
        .chain_update(b"dm-gift/v1\0")
        .chain_update(app.0.to_be_bytes())
        .chain_update(room.as_str().as_bytes())
        // Not in a room's grammar, so no room and key can read as another room and key.
        .chain_update(b"\0")
        .chain_update(key.as_bytes())
        .finalize();
    let (head, _) = hash.split_first_chunk::<8>().expect("a SHA-256 has 32 bytes");
    ItemId(u64::from_be_bytes(*head) | JOURNALED)
}

/// Whether `id` is one that [`id`] made.
#[must_use]
pub const fn is_journaled(id: ItemId) -> bool {
    id.0 & JOURNALED != 0
}

/// A digest of what a request wants shown. Equal requests have equal digests.
#[must_use]
pub fn digest(lane: Lane, viewer: Option<&ViewerId>, body: &Body) -> [u8; 32] {
    let viewer = viewer.map_or("", ViewerId::as_str);
    let (number, count) = match body {
        Body::Gift { gift_no, count, .. } => (*gift_no, *count),
        Body::Effect { effect_no, .. } => (*effect_no, 0),
        Body::Comment { .. }
        | Body::Like { .. }
        | Body::Entry
        | Body::Notice { .. }
        | Body::Tombstone { .. }
        | Body::System { .. }
        | Body::Custom { .. }
        | Body::Erasure { .. } => (0, 0),
    };
    // No lane begins so. Gifts and notices begin with their lane.
    let kind = match body {
        Body::System { .. } => Cow::Borrowed("system\0"),
        Body::Effect { .. } => Cow::Borrowed("effect\0"),
        Body::Custom { name, .. } => Cow::Owned(format!("custom\0{name}\0")),
        Body::Comment { .. }
        | Body::Gift { .. }
        | Body::Like { .. }
        | Body::Entry
        | Body::Notice { .. }
        | Body::Tombstone { .. }
        | Body::Erasure { .. } => Cow::Borrowed(""),
    };
    Sha256::new()
        .chain_update(kind.as_bytes())
        .chain_update(lane.name())
        .chain_update(b"\0")
        .chain_update(viewer)
        .chain_update(b"\0")
        .chain_update(number.to_be_bytes())
        .chain_update(count.to_be_bytes())
        .chain_update(body.text().unwrap_or_default())
        .finalize()
        .into()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proto::id::KindName;

    use super::*;

    #[test]
    fn the_id_depends_on_app_room_and_key_alone() {
        let room = |name| RoomId::parse(name).unwrap();
        let first = id(AppId(1), &room("a"), "k");

        assert_eq!(id(AppId(1), &room("a"), "k"), first);
        assert_ne!(id(AppId(2), &room("a"), "k"), first);
        assert_ne!(id(AppId(1), &room("b"), "k"), first);
        assert_ne!(id(AppId(1), &room("a"), "l"), first);
        assert_ne!(id(AppId(1), &room("ab"), "c"), id(AppId(1), &room("a"), "bc"));
        assert!(is_journaled(first));
        assert!(!is_journaled(ItemId::compose(1_800_000_000_000, 1023, 4095)));
    }

    #[test]
    fn the_kind_is_part_of_the_content() {
        let text = String::from("t");
        let name = |name| KindName::parse(name).unwrap();
        let bodies = [
            Body::Notice { text: text.clone() },
            Body::System { text: text.clone() },
            Body::Effect { effect_no: 0, text: text.clone() },
            Body::Effect { effect_no: 1, text: text.clone() },
            Body::Custom { name: name("a"), text: text.clone() },
            Body::Custom { name: name("b"), text },
        ];
        let digests: BTreeSet<_> = bodies.iter().map(|it| digest(Lane::Notice, None, it)).collect();

        assert_eq!(digests.len(), bodies.len());
    }

    #[test]
    fn any_other_content_has_another_digest() {
        let gift = |gift_no, count, text: &str| Body::Gift { gift_no, count, text: text.into() };
        let viewer = ViewerId::parse("v").unwrap();
        let first = digest(Lane::LowGift, Some(&viewer), &gift(1, 2, "t"));

        assert_eq!(digest(Lane::LowGift, Some(&viewer), &gift(1, 2, "t")), first);
        for other in [
            digest(Lane::HighGift, Some(&viewer), &gift(1, 2, "t")),
            digest(Lane::LowGift, None, &gift(1, 2, "t")),
            digest(Lane::LowGift, Some(&viewer), &gift(2, 2, "t")),
            digest(Lane::LowGift, Some(&viewer), &gift(1, 3, "t")),
            digest(Lane::LowGift, Some(&viewer), &gift(1, 2, "u")),
        ] {
            assert_ne!(other, first);
        }
    }
}
