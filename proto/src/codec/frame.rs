//! Frames: `kind | flags | FlatBuffer`, the kind names the root table.

pub(super) mod downlink;
pub(super) mod uplink;

use bytes::Bytes;
use flatbuffers::{ForwardsUOffset, Vector, WIPOffset};

use super::{Builder, check_length, refused, word};
use crate::codec::word::Code;
use crate::decode::DecodeError;
use crate::frame::{Join, Path};
use crate::generated as fb;
use crate::limits;

/// A frame of about `bytes` bytes.
fn frame(bytes: usize, write: impl FnOnce(&mut Builder) -> fb::FrameKind) -> Bytes {
    let mut builder = Builder::with_capacity(bytes);
    let kind = write(&mut builder);
    let table = builder.finished_data();
    let mut frame = Vec::with_capacity(table.len() + 2);
    frame.extend_from_slice(&[kind.0, 0]);
    frame.extend_from_slice(table);
    frame.into()
}

/// Ends a frame's FlatBuffer.
fn finish<T>(b: &mut Builder, root: WIPOffset<T>, kind: fb::FrameKind) -> fb::FrameKind {
    b.finish_minimal(root);
    kind
}

/// Kind and FlatBuffer of a frame; no flag is known yet.
fn split(bytes: &[u8], max: usize) -> Result<(fb::FrameKind, &[u8]), DecodeError> {
    check_length(bytes, 3, max)?;
    match bytes {
        [kind, 0, table @ ..] => Ok((fb::FrameKind(*kind), table)),
        [kind, flags, ..] => Err(DecodeError::UnknownKind { kind: *kind, flags: *flags }),
        _ => Err(DecodeError::TooShort { bytes: bytes.len() }),
    }
}

fn unknown<T>(kind: fb::FrameKind) -> Result<T, DecodeError> {
    Err(DecodeError::UnknownKind { kind: kind.0, flags: 0 })
}

fn write_join(b: &mut Builder, join: &Join) -> WIPOffset<fb::Join<'static>> {
    let room = Some(b.create_string(join.room.as_str()));
    let resume = join.resume.map(word::write_place);
    let args = fb::JoinArgs { room, path: join.path.wire(), resume: resume.as_ref() };
    fb::Join::create(b, &args)
}

fn read_join(join: fb::Join<'_>) -> Result<Join, DecodeError> {
    Ok(Join {
        room: word::room(join.room())?,
        path: Path::read(join.path(), "path")?,
        resume: join.resume().map(word::place),
    })
}

/// The lists of one entry a room in Login and LoginOk.
fn check_rooms<T>(
    rooms: Option<Vector<'_, ForwardsUOffset<T>>>,
    field: &'static str,
) -> Result<(), DecodeError> {
    if rooms.map_or(0, |it| it.len()) > limits::ROOMS_PER_SESSION_MAX {
        return refused(field);
    }
    Ok(())
}
