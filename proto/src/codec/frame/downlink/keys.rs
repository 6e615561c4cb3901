//! What opens the segments of a sealed room.

use crate::codec::{Builder, refused, word};
use crate::decode::DecodeError;
use crate::frame::Control;
use crate::generated as fb;
use crate::id::Gen;
use crate::keys::{ROOM_KEY_DIGITS, ROOM_KEYS_MAX, RoomKey, RoomKeys};

pub(super) fn write(b: &mut Builder, it: &RoomKeys) -> fb::KeysChangeArgs<'static> {
    let room = Some(b.create_string(it.room.as_str()));
    let mut offsets = Vec::with_capacity(it.keys.len());
    for RoomKey { gen_no, kid, key } in &it.keys {
        let key = Some(b.create_string(key));
        offsets.push(fb::RoomKey::create(b, &fb::RoomKeyArgs { gen_no: gen_no.0, kid: *kid, key }));
    }
    fb::KeysChangeArgs { room, keys: Some(b.create_vector(&offsets)) }
}

pub(super) fn read(it: fb::KeysChange<'_>) -> Result<Control, DecodeError> {
    if it.keys().map_or(0, |it| it.len()) > ROOM_KEYS_MAX {
        return refused("keys");
    }
    let keys = it.keys().into_iter().flatten().map(room_key).collect::<Result<_, _>>()?;
    Ok(Control::Keys(RoomKeys { room: word::room(it.room())?, keys }))
}

fn room_key(it: fb::RoomKey<'_>) -> Result<RoomKey, DecodeError> {
    let key = it.key();
    if key.len() != ROOM_KEY_DIGITS || !key.bytes().all(|it| it.is_ascii_hexdigit()) {
        return refused("key");
    }
    Ok(RoomKey { gen_no: Gen(it.gen_no()), kid: it.kid(), key: key.to_owned() })
}
