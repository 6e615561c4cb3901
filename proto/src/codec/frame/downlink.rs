//! Server to client.

mod attributes;
mod keys;

use bytes::Bytes;
use flatbuffers::{UnionWIPOffset, WIPOffset};

use super::{check_rooms, finish, frame, split, unknown};
use crate::codec::columns::{self, Order};
use crate::codec::word::{self, Code};
use crate::codec::{Builder, refused, root};
use crate::decode::DecodeError;
use crate::frame::{
    Ack, Batch, Close, Control, Downlink, JoinOutcome, Joined, LoginOk, Path, Refused, Resumed,
    Seal, Welcome,
};
use crate::generated::{self as fb, FrameKind};
use crate::heat::Heat;
use crate::id::{Cid, Gen, SessionId, SlotNo};
use crate::item::Role;
use crate::limits;
use crate::time::Wall;

pub(in crate::codec) fn write(downlink: &Downlink) -> Bytes {
    let bytes = if let Downlink::Batch(it) = downlink { 256 + it.items.len() * 96 } else { 256 };
    frame(bytes, |b| match downlink {
        Downlink::Welcome(it) => {
            let root = welcome(b, it);
            finish(b, root, FrameKind::Welcome)
        }
        Downlink::LoginOk(it) => {
            let root = login_ok(b, it);
            finish(b, root, FrameKind::LoginOk)
        }
        Downlink::Refused(it) => {
            let root = refusal(b, it);
            finish(b, root, FrameKind::Refused)
        }
        Downlink::Batch(it) => {
            let root = batch(b, it);
            finish(b, root, FrameKind::Batch)
        }
        Downlink::Seal(it) => {
            let root = seal(b, it);
            finish(b, root, FrameKind::Seal)
        }
        Downlink::Skipped { room, items } => {
            let room = Some(b.create_string(room.as_str()));
            let root = fb::Skipped::create(b, &fb::SkippedArgs { room, items: *items });
            finish(b, root, FrameKind::Skipped)
        }
        Downlink::Ack(it) => {
            let outcome = word::write_outcome(it.outcome);
            let args = fb::AckArgs { cid: it.cid.0, outcome: Some(&outcome) };
            let root = fb::Ack::create(b, &args);
            finish(b, root, FrameKind::Ack)
        }
        Downlink::Control(it) => {
            let (change_type, change) = change(b, it);
            let root =
                fb::Control::create(b, &fb::ControlArgs { change_type, change: Some(change) });
            finish(b, root, FrameKind::Control)
        }
        Downlink::Joined(it) => {
            let root = joined(b, it);
            finish(b, root, FrameKind::Joined)
        }
        Downlink::Pong { nonce, server_ms } => {
            let args = fb::PongArgs { nonce: *nonce, server_ms: server_ms.0 };
            let root = fb::Pong::create(b, &args);
            finish(b, root, FrameKind::Pong)
        }
        Downlink::Close(it) => {
            let root = close(b, it);
            finish(b, root, FrameKind::Close)
        }
    })
}

fn welcome(b: &mut Builder, it: &Welcome) -> WIPOffset<fb::Welcome<'static>> {
    let args = fb::WelcomeArgs {
        proto: it.proto,
        suite: Some(b.create_string(&it.suite)),
        codec: Some(b.create_string(&it.codec)),
        heartbeat_ms: it.heartbeat_ms,
        silence_ms: it.silence_ms,
        frame_bytes_max: it.frame_bytes_max,
        server_ms: it.server_ms.0,
        nonce: it.nonce,
        upgrade: it.upgrade,
    };
    fb::Welcome::create(b, &args)
}

fn login_ok(b: &mut Builder, it: &LoginOk) -> WIPOffset<fb::LoginOk<'static>> {
    let rooms: Vec<_> = it.rooms.iter().map(|it| joined(b, it)).collect();
    let args = fb::LoginOkArgs {
        session: it.session.0,
        role: it.role.wire(),
        confirm: it.confirm.map(|it| b.create_vector(&it)),
        rooms: Some(b.create_vector(&rooms)),
        expires_ms: it.expires.0,
        resume_ticket: Some(b.create_string(&it.resume_ticket)),
    };
    fb::LoginOk::create(b, &args)
}

fn joined(b: &mut Builder, it: &Joined) -> WIPOffset<fb::Joined<'static>> {
    let room = Some(b.create_string(it.room.as_str()));
    let (outcome_type, outcome) = match &it.outcome {
        JoinOutcome::In { heat, path, resumed, latest, online } => {
            let (resumed_type, resumed) = write_resumed(b, *resumed);
            let latest = latest.map(word::write_place);
            let args = fb::JoinedInArgs {
                heat: heat.wire(),
                path: path.wire(),
                resumed_type,
                resumed,
                latest: latest.as_ref(),
                online: *online,
            };
            let offset = fb::JoinedIn::create(b, &args).as_union_value();
            (fb::JoinOutcome::JoinedIn, offset)
        }
        JoinOutcome::Refused { code, retry_after_ms } => {
            let args = fb::JoinRefusedArgs { code: code.code(), retry_after_ms: *retry_after_ms };
            let offset = fb::JoinRefused::create(b, &args).as_union_value();
            (fb::JoinOutcome::JoinRefused, offset)
        }
    };
    fb::Joined::create(b, &fb::JoinedArgs { room, outcome_type, outcome: Some(outcome) })
}

fn write_resumed(
    b: &mut Builder,
    resumed: Resumed,
) -> (fb::Resumed, Option<WIPOffset<UnionWIPOffset>>) {
    match resumed {
        Resumed::Fresh => (fb::Resumed::NONE, None),
        Resumed::Recovered { items } => {
            let offset = fb::Recovered::create(b, &fb::RecoveredArgs { items });
            (fb::Resumed::Recovered, Some(offset.as_union_value()))
        }
        Resumed::Gap { from, to } => {
            let (from, to) = (word::write_place(from), word::write_place(to));
            let offset = fb::Gap::create(b, &fb::GapArgs { from: Some(&from), to: Some(&to) });
            (fb::Resumed::Gap, Some(offset.as_union_value()))
        }
    }
}

fn refusal(b: &mut Builder, it: &Refused) -> WIPOffset<fb::Refused<'static>> {
    let args = fb::RefusedArgs {
        code: it.code.code(),
        reason: Some(b.create_string(&it.reason)),
        retry_after_ms: it.retry_after_ms,
        server_ms: it.server_ms.0,
    };
    fb::Refused::create(b, &args)
}

fn batch(b: &mut Builder, it: &Batch) -> WIPOffset<fb::Batch<'static>> {
    let args = fb::BatchArgs {
        room: Some(b.create_string(it.room.as_str())),
        gen_no: it.gen_no.0,
        slot: it.slot.0,
        part: it.part,
        items: Some(columns::write_placed(b, it.items.iter())),
    };
    fb::Batch::create(b, &args)
}

fn seal(b: &mut Builder, it: &Seal) -> WIPOffset<fb::Seal<'static>> {
    let args = fb::SealArgs {
        room: Some(b.create_string(it.room.as_str())),
        gen_no: it.gen_no.0,
        slot: it.slot.0,
        items: it.items,
        crc: it.crc,
    };
    fb::Seal::create(b, &args)
}

fn change(b: &mut Builder, control: &Control) -> (fb::Change, WIPOffset<UnionWIPOffset>) {
    match control {
        Control::Heat { room, heat, gen_no, slot } => {
            let room = Some(b.create_string(room.as_str()));
            let (heat, gen_no, slot) = (heat.wire(), gen_no.0, slot.0);
            let args = fb::HeatChangeArgs { room, heat, gen_no, slot };
            (fb::Change::HeatChange, fb::HeatChange::create(b, &args).as_union_value())
        }
        Control::Bases { bases } => {
            let args = fb::BasesChangeArgs { bases: word::write_bases(b, bases) };
            (fb::Change::BasesChange, fb::BasesChange::create(b, &args).as_union_value())
        }
        Control::Closed { room } => {
            let args = fb::ClosedChangeArgs { room: Some(b.create_string(room.as_str())) };
            (fb::Change::ClosedChange, fb::ClosedChange::create(b, &args).as_union_value())
        }
        Control::Muted { room, until } => {
            let room = Some(b.create_string(room.as_str()));
            let args = fb::MutedChangeArgs { room, until_ms: until.0 };
            (fb::Change::MutedChange, fb::MutedChange::create(b, &args).as_union_value())
        }
        Control::Attributes { room, attributes: all } => {
            let args = attributes::write(b, room, all);
            (fb::Change::AttributesChange, fb::AttributesChange::create(b, &args).as_union_value())
        }
        Control::Keys(it) => {
            let args = keys::write(b, it);
            (fb::Change::KeysChange, fb::KeysChange::create(b, &args).as_union_value())
        }
    }
}

fn close(b: &mut Builder, it: &Close) -> WIPOffset<fb::Close<'static>> {
    let args = fb::CloseArgs {
        code: it.code.code(),
        reason: Some(b.create_string(&it.reason)),
        retry_after_ms: it.retry_after_ms,
        addresses: word::write_words(b, &it.addresses),
    };
    fb::Close::create(b, &args)
}

pub(in crate::codec) fn read(bytes: &[u8]) -> Result<Downlink, DecodeError> {
    let (kind, table) = split(bytes, limits::DOWNLINK_FRAME_BYTES_MAX)?;
    Ok(match kind {
        FrameKind::Welcome => Downlink::Welcome(read_welcome(root::<fb::Welcome<'_>>(table)?)?),
        FrameKind::LoginOk => Downlink::LoginOk(read_login_ok(root::<fb::LoginOk<'_>>(table)?)?),
        FrameKind::Refused => Downlink::Refused(read_refused(root::<fb::Refused<'_>>(table)?)?),
        FrameKind::Batch => Downlink::Batch(read_batch(root::<fb::Batch<'_>>(table)?)?),
        FrameKind::Seal => Downlink::Seal(read_seal(root::<fb::Seal<'_>>(table)?)?),
        FrameKind::Skipped => {
            let it = root::<fb::Skipped<'_>>(table)?;
            Downlink::Skipped { room: word::room(it.room())?, items: it.items() }
        }
        FrameKind::Ack => {
            let it = root::<fb::Ack<'_>>(table)?;
            Downlink::Ack(Ack { cid: Cid(it.cid()), outcome: word::outcome(it.outcome())? })
        }
        FrameKind::Control => Downlink::Control(read_control(root::<fb::Control<'_>>(table)?)?),
        FrameKind::Joined => Downlink::Joined(read_joined(root::<fb::Joined<'_>>(table)?)?),
        FrameKind::Pong => {
            let it = root::<fb::Pong<'_>>(table)?;
            Downlink::Pong { nonce: it.nonce(), server_ms: Wall(it.server_ms()) }
        }
        FrameKind::Close => Downlink::Close(read_close(root::<fb::Close<'_>>(table)?)?),
        _ => return unknown(kind),
    })
}

fn read_welcome(it: fb::Welcome<'_>) -> Result<Welcome, DecodeError> {
    Ok(Welcome {
        proto: it.proto(),
        suite: word::text(it.suite(), limits::WORD_BYTES_MAX, "suite")?,
        codec: word::text(it.codec(), limits::WORD_BYTES_MAX, "codec")?,
        heartbeat_ms: it.heartbeat_ms(),
        silence_ms: it.silence_ms(),
        frame_bytes_max: it.frame_bytes_max(),
        server_ms: Wall(it.server_ms()),
        nonce: it.nonce(),
        upgrade: it.upgrade(),
    })
}

fn read_login_ok(it: fb::LoginOk<'_>) -> Result<LoginOk, DecodeError> {
    check_rooms(it.rooms(), "rooms")?;
    let ticket = it.resume_ticket().unwrap_or_default();
    Ok(LoginOk {
        session: SessionId(it.session()),
        role: Role::read(it.role(), "role")?,
        confirm: word::bytes32(it.confirm(), "confirm")?,
        rooms: it.rooms().into_iter().flatten().map(read_joined).collect::<Result<_, _>>()?,
        expires: Wall(it.expires_ms()),
        resume_ticket: word::text(ticket, limits::TOKEN_BYTES_MAX, "resume_ticket")?,
    })
}

fn read_joined(it: fb::Joined<'_>) -> Result<Joined, DecodeError> {
    let room = word::room(it.room())?;
    let outcome = if let Some(it) = it.outcome_as_joined_in() {
        JoinOutcome::In {
            heat: Heat::read(it.heat(), "heat")?,
            path: Path::read(it.path(), "path")?,
            resumed: read_resumed(it)?,
            latest: it.latest().map(word::place),
            online: it.online(),
        }
    } else if let Some(it) = it.outcome_as_join_refused() {
        let code = word::close_code(it.code())?;
        JoinOutcome::Refused { code, retry_after_ms: it.retry_after_ms() }
    } else {
        return refused("outcome");
    };
    Ok(Joined { room, outcome })
}

fn read_resumed(it: fb::JoinedIn<'_>) -> Result<Resumed, DecodeError> {
    if let Some(it) = it.resumed_as_recovered() {
        return Ok(Resumed::Recovered { items: it.items() });
    }
    if let Some(it) = it.resumed_as_gap() {
        return Ok(Resumed::Gap { from: word::place(it.from()), to: word::place(it.to()) });
    }
    if it.resumed_type() == fb::Resumed::NONE { Ok(Resumed::Fresh) } else { refused("resumed") }
}

fn read_refused(it: fb::Refused<'_>) -> Result<Refused, DecodeError> {
    let reason = it.reason().unwrap_or_default();
    Ok(Refused {
        code: word::close_code(it.code())?,
        reason: word::text(reason, limits::REASON_BYTES_MAX, "reason")?,
        retry_after_ms: it.retry_after_ms(),
        server_ms: Wall(it.server_ms()),
    })
}

fn read_batch(it: fb::Batch<'_>) -> Result<Batch, DecodeError> {
    Ok(Batch {
        room: word::room(it.room())?,
        gen_no: Gen(it.gen_no()),
        slot: SlotNo(it.slot()),
        part: it.part(),
        items: columns::placed(it.items(), limits::FLUSH_ITEMS_MAX, Order::Rising, Ok)?,
    })
}

fn read_seal(it: fb::Seal<'_>) -> Result<Seal, DecodeError> {
    Ok(Seal {
        room: word::room(it.room())?,
        gen_no: Gen(it.gen_no()),
        slot: SlotNo(it.slot()),
        items: it.items(),
        crc: it.crc(),
    })
}

fn read_control(it: fb::Control<'_>) -> Result<Control, DecodeError> {
    if let Some(it) = it.change_as_heat_change() {
        return Ok(Control::Heat {
            room: word::room(it.room())?,
            heat: Heat::read(it.heat(), "heat")?,
            gen_no: Gen(it.gen_no()),
            slot: SlotNo(it.slot()),
        });
    }
    if let Some(it) = it.change_as_bases_change() {
        return Ok(Control::Bases { bases: word::bases(it.bases())? });
    }
    if let Some(it) = it.change_as_closed_change() {
        return Ok(Control::Closed { room: word::room(it.room())? });
    }
    if let Some(it) = it.change_as_muted_change() {
        return Ok(Control::Muted { room: word::room(it.room())?, until: Wall(it.until_ms()) });
    }
    if let Some(it) = it.change_as_attributes_change() {
        return attributes::read(it);
    }
    if let Some(it) = it.change_as_keys_change() {
        return keys::read(it);
    }
    refused("change")
}

fn read_close(it: fb::Close<'_>) -> Result<Close, DecodeError> {
    let reason = it.reason().unwrap_or_default();
    let (count, bytes) = (limits::ADDRESSES_MAX, limits::HOST_BYTES_MAX);
    Ok(Close {
        code: word::close_code(it.code())?,
        reason: word::text(reason, limits::REASON_BYTES_MAX, "reason")?,
        retry_after_ms: it.retry_after_ms(),
        addresses: word::texts(it.addresses(), count, bytes, "addresses")?,
    })
}
