//! `reply.{unit}`: answers to one link's sessions.

use bytes::Bytes;

use super::{build, check_entries, record};
use crate::codec::{refused, word};
use crate::decode::DecodeError;
use crate::envelope::{Reply, ReplyBatch};
use crate::generated as fb;
use crate::id::{Cid, NodeId, SessionId};

pub(in crate::codec) fn write(batch: &ReplyBatch) -> Bytes {
    build(64 + batch.entries.len() * 56, |b| {
        let entries: Vec<_> = batch
            .entries
            .iter()
            .map(|it| match it {
                Reply::Ack { session, cid, outcome } => {
                    let outcome = word::write_outcome(*outcome);
                    let args = fb::ReplyArgs {
                        session: session.0,
                        cid: cid.0,
                        outcome: Some(&outcome),
                        close_code: 0,
                    };
                    fb::Reply::create(b, &args)
                }
                Reply::Close { session, code } => {
                    let args = fb::ReplyArgs {
                        session: session.0,
                        close_code: code.code(),
                        ..Default::default()
                    };
                    fb::Reply::create(b, &args)
                }
            })
            .collect();
        let entries = Some(b.create_vector(&entries));
        fb::ReplyBatch::create(b, &fb::ReplyBatchArgs { node: batch.node.0, entries })
    })
}

pub(in crate::codec) fn read(bytes: &[u8]) -> Result<ReplyBatch, DecodeError> {
    let batch = record::<fb::ReplyBatch<'_>>(bytes)?;
    check_entries(batch.entries().map_or(0, |it| it.len()), "entries")?;
    let entries = batch.entries().into_iter().flatten();
    Ok(ReplyBatch {
        node: NodeId(batch.node()),
        entries: entries.map(read_reply).collect::<Result<_, _>>()?,
    })
}

fn read_reply(it: fb::Reply<'_>) -> Result<Reply, DecodeError> {
    let session = SessionId(it.session());
    match (it.outcome(), it.close_code()) {
        (Some(outcome), 0) => {
            Ok(Reply::Ack { session, cid: Cid(it.cid()), outcome: word::outcome(outcome)? })
        }
        (Some(_), _) => refused("outcome"),
        (None, code) => Ok(Reply::Close { session, code: word::close_code(code)? }),
    }
}
