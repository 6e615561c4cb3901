//! Client to server.

use bytes::Bytes;
use flatbuffers::WIPOffset;

use super::{check_rooms, finish, frame, read_join, split, unknown, write_join};
use crate::codec::{Builder, refused, root, word};
use crate::decode::DecodeError;
use crate::frame::{Comment, Credential, Hello, Login, Report, Uplink};
use crate::generated::{self as fb, FrameKind};
use crate::id::{Cid, DeviceId};
use crate::limits;
use crate::quality::BaseReport;

pub(in crate::codec) fn write(uplink: &Uplink) -> Bytes {
    frame(256, |b| match uplink {
        Uplink::Hello(it) => {
            let root = hello(b, it);
            finish(b, root, FrameKind::Hello)
        }
        Uplink::Login(it) => {
            let root = login(b, it);
            finish(b, root, FrameKind::Login)
        }
        Uplink::Comment(it) => {
            let root = comment(b, it);
            finish(b, root, FrameKind::Comment)
        }
        Uplink::Like { room, count } => {
            let room = Some(b.create_string(room.as_str()));
            let root = fb::Like::create(b, &fb::LikeArgs { room, count: *count });
            finish(b, root, FrameKind::Like)
        }
        Uplink::Join(it) => {
            let root = write_join(b, it);
            finish(b, root, FrameKind::Join)
        }
        Uplink::Leave { room } => {
            let room = Some(b.create_string(room.as_str()));
            let root = fb::Leave::create(b, &fb::LeaveArgs { room });
            finish(b, root, FrameKind::Leave)
        }
        Uplink::Refresh { token } => {
            let token = Some(b.create_string(token));
            let root = fb::Refresh::create(b, &fb::RefreshArgs { token });
            finish(b, root, FrameKind::Refresh)
        }
        Uplink::Report(it) => {
            let root = report(b, it);
            finish(b, root, FrameKind::Report)
        }
        Uplink::Ping { nonce } => {
            let root = fb::Ping::create(b, &fb::PingArgs { nonce: *nonce });
            finish(b, root, FrameKind::Ping)
        }
    })
}

fn hello(b: &mut Builder, hello: &Hello) -> WIPOffset<fb::Hello<'static>> {
    let args = fb::HelloArgs {
        sdk: Some(b.create_string(&hello.sdk)),
        sdk_version: Some(b.create_string(&hello.sdk_version)),
        proto_min: hello.proto_min,
        proto_max: hello.proto_max,
        suites: word::write_words(b, &hello.suites),
        codecs: word::write_words(b, &hello.codecs),
        nonce: hello.nonce,
    };
    fb::Hello::create(b, &args)
}

fn login(b: &mut Builder, login: &Login) -> WIPOffset<fb::Login<'static>> {
    let (token, resume_ticket) = match &login.credential {
        Credential::Token(text) => (Some(b.create_string(text)), None),
        Credential::ResumeTicket(text) => (None, Some(b.create_string(text))),
    };
    let joins: Vec<_> = login.joins.iter().map(|it| write_join(b, it)).collect();
    let args = fb::LoginArgs {
        token,
        resume_ticket,
        binder: login.binder.map(|it| b.create_vector(&it)),
        device: login.device.as_ref().map(|it| b.create_string(it.as_str())),
        joins: Some(b.create_vector(&joins)),
    };
    fb::Login::create(b, &args)
}

fn comment(b: &mut Builder, comment: &Comment) -> WIPOffset<fb::Comment<'static>> {
    let room = Some(b.create_string(comment.room.as_str()));
    let text = Some(b.create_string(&comment.text));
    let style = word::write_optional_style(comment.style);
    let args = fb::CommentArgs {
        cid: comment.cid.0,
        room,
        text,
        style: style.as_ref(),
        media_ms: comment.media_ms,
    };
    fb::Comment::create(b, &args)
}

fn report(b: &mut Builder, report: &Report) -> WIPOffset<fb::Report<'static>> {
    let bases: Vec<_> = report.bases.iter().map(|it| base_report(b, it)).collect();
    let args = fb::ReportArgs {
        fetches: report.fetches,
        failures: report.failures,
        missed: report.missed,
        fetch_ms: report.fetch_ms,
        bases: (!bases.is_empty()).then(|| b.create_vector(&bases)),
    };
    fb::Report::create(b, &args)
}

fn base_report(b: &mut Builder, report: &BaseReport) -> WIPOffset<fb::BaseReport<'static>> {
    let base = Some(b.create_string(&report.base));
    let BaseReport { base: _, fetches, failures, late, fetch_ms, is_bad } = *report;
    let args = fb::BaseReportArgs { base, fetches, failures, late, fetch_ms, is_bad };
    fb::BaseReport::create(b, &args)
}

pub(in crate::codec) fn read(bytes: &[u8]) -> Result<Uplink, DecodeError> {
    let (kind, table) = split(bytes, limits::UPLINK_FRAME_BYTES_MAX)?;
    Ok(match kind {
        FrameKind::Hello => Uplink::Hello(read_hello(root::<fb::Hello<'_>>(table)?)?),
        FrameKind::Login => Uplink::Login(read_login(root::<fb::Login<'_>>(table)?)?),
        FrameKind::Comment => Uplink::Comment(read_comment(root::<fb::Comment<'_>>(table)?)?),
        FrameKind::Like => {
            let it = root::<fb::Like<'_>>(table)?;
            Uplink::Like { room: word::room(it.room())?, count: it.count() }
        }
        FrameKind::Join => Uplink::Join(read_join(root::<fb::Join<'_>>(table)?)?),
        FrameKind::Leave => {
            Uplink::Leave { room: word::room(root::<fb::Leave<'_>>(table)?.room())? }
        }
        FrameKind::Refresh => {
            let it = root::<fb::Refresh<'_>>(table)?;
            Uplink::Refresh { token: word::text(it.token(), limits::TOKEN_BYTES_MAX, "token")? }
        }
        FrameKind::Report => Uplink::Report(read_report(root::<fb::Report<'_>>(table)?)?),
        FrameKind::Ping => Uplink::Ping { nonce: root::<fb::Ping<'_>>(table)?.nonce() },
        _ => return unknown(kind),
    })
}

fn read_hello(it: fb::Hello<'_>) -> Result<Hello, DecodeError> {
    let (names, bytes) = (limits::HELLO_NAMES_MAX, limits::WORD_BYTES_MAX);
    Ok(Hello {
        sdk: word::text(it.sdk(), bytes, "sdk")?,
        sdk_version: word::text(it.sdk_version(), bytes, "sdk_version")?,
        proto_min: it.proto_min(),
        proto_max: it.proto_max(),
        suites: word::texts(it.suites(), names, bytes, "suites")?,
        codecs: word::texts(it.codecs(), names, bytes, "codecs")?,
        nonce: it.nonce(),
    })
}

fn read_login(it: fb::Login<'_>) -> Result<Login, DecodeError> {
    let max = limits::TOKEN_BYTES_MAX;
    let credential = match (it.token(), it.resume_ticket()) {
        (Some(token), None) => Credential::Token(word::text(token, max, "token")?),
        (None, Some(ticket)) => Credential::ResumeTicket(word::text(ticket, max, "resume_ticket")?),
        (Some(_), Some(_)) | (None, None) => return refused("credential"),
    };
    let device = it.device().map(DeviceId::parse).transpose().or_else(|_| refused("device"))?;
    check_rooms(it.joins(), "joins")?;
    Ok(Login {
        credential,
        binder: word::bytes32(it.binder(), "binder")?,
        device,
        joins: it.joins().into_iter().flatten().map(read_join).collect::<Result<_, _>>()?,
    })
}

fn read_comment(it: fb::Comment<'_>) -> Result<Comment, DecodeError> {
    Ok(Comment {
        cid: Cid(it.cid()),
        room: word::room(it.room())?,
        // The frame bounds it; a text that is too long is refused to its sender, by `cid`.
        text: word::text(it.text(), limits::UPLINK_FRAME_BYTES_MAX, "text")?,
        style: word::optional_style(it.style())?,
        media_ms: word::media_ms(it.media_ms())?,
    })
}

fn read_report(it: fb::Report<'_>) -> Result<Report, DecodeError> {
    if it.bases().map_or(0, |it| it.len()) > limits::BASES_MAX {
        return refused("bases");
    }
    let bases = it.bases().into_iter().flatten().map(|it| {
        Ok(BaseReport {
            base: word::text(it.base(), limits::BASE_BYTES_MAX, "base")?,
            fetches: it.fetches(),
            failures: it.failures(),
            late: it.late(),
            fetch_ms: it.fetch_ms(),
            is_bad: it.is_bad(),
        })
    });
    Ok(Report {
        fetches: it.fetches(),
        failures: it.failures(),
        missed: it.missed(),
        fetch_ms: it.fetch_ms(),
        bases: bases.collect::<Result<_, _>>()?,
    })
}
