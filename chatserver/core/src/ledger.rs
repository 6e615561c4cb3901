//! What an evidence ledger says, and the bytes that it says it in.
//!
//! A file is a row of gzip members (RFC 1952), each with some [`Record`]s as lines of JSON, so that
//! `zcat` reads it. A member carries its own checksum and length: one that was cut off, or that the
//! disk lost, is passed over, and the next one is found by its header.

use std::io::{Read, Write};
use std::net::SocketAddr;

use flate2::Compression;
use flate2::bufread::GzDecoder;
use flate2::write::GzEncoder;
use proto::frame::Outcome;
use proto::id::{AppId, Cid, DeviceId, ItemId, NodeId, RoomId, SessionId, ViewerId};
use proto::item::Role;
use proto::time::Wall;
use serde::{Deserialize, Serialize};

/// Records of one member: a megabyte or so before compression.
pub const MEMBER_RECORDS_MAX: usize = 2000;
/// Bytes of a member after decompression: as many records of the longest texts, escaped.
const MEMBER_BYTES_MAX: u64 = 32 * 1024 * 1024;
/// How every member begins: gzip, deflated, no name, no time.
const HEADER: [u8; 8] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0];

/// One line of a ledger.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Record {
    /// When this chatserver saw it.
    pub at: Wall,
    /// Where; absent: in all rooms of the app.
    pub room: Option<RoomId>,
    /// Whose doing it is, or who it is about; absent: everybody.
    pub account: Option<ViewerId>,
    /// What happened.
    pub what: What,
}

/// What happened.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum What {
    /// A comment was sent.
    Said {
        /// Which comment.
        comment: Comment,
        /// What the sender is, by token.
        role: Role,
        /// When its link took it.
        taken_at: Wall,
        /// From where, if its link said so.
        address: Option<SocketAddr>,
        /// With which device, if its client named one.
        device: Option<DeviceId>,
        /// What it says, unmasked.
        text: String,
        /// What was decided about it; absent: nothing yet, and it is told later.
        outcome: Option<Outcome>,
    },
    /// The sender of a comment was told, later, what became of it.
    Told {
        /// Which comment.
        comment: Comment,
        /// What.
        outcome: Outcome,
    },
    /// An item was taken back.
    Recalled {
        /// Which: the id of an admitted verdict.
        id: ItemId,
    },
    /// Records were given out.
    Exported {
        /// From when on.
        from: Wall,
        /// Until when.
        until: Wall,
    },
    /// The records of an account are removed.
    Erased {
        /// Those up to then.
        until: Wall,
    },
}

/// Which comment: what a sender sent once has the same three.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
pub struct Comment {
    /// The link that it came through.
    pub node: NodeId,
    /// The sender's session.
    pub session: SessionId,
    /// The sender's number for it.
    pub cid: Cid,
}

/// Which records are wanted.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Filter {
    /// From then on.
    pub from: Wall,
    /// Before then.
    pub until: Wall,
    /// In this room; absent: in all.
    pub room: Option<RoomId>,
    /// By, or about, this account; absent: all.
    pub account: Option<ViewerId>,
}

/// Records of an account that are no more.
#[derive(Clone, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
pub struct Erasure {
    /// App of the account.
    pub app: AppId,
    /// Whose.
    pub account: ViewerId,
    /// Those up to then.
    pub until: Wall,
}

/// Bytes in which no member could be read.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("{bytes} bytes hold no record")]
pub struct Damage {
    /// How many.
    pub bytes: usize,
}

/// The members of a file, one after the other.
#[derive(Clone, Debug)]
pub struct Members<'a>(&'a [u8]);

impl Filter {
    /// Whether it is wanted.
    #[must_use]
    pub fn takes(&self, record: &Record) -> bool {
        (self.from..self.until).contains(&record.at)
            && (self.room.is_none() || self.room == record.room)
            && (self.account.is_none() || self.account == record.account)
    }
}

impl Erasure {
    /// Whether the record is to go. What was done with an account's records stays: it says nothing
    /// that the account said.
    #[must_use]
    pub fn takes(&self, record: &Record) -> bool {
        let is_theirs = match record.what {
            What::Said { .. } | What::Told { .. } | What::Recalled { .. } => true,
            What::Exported { .. } | What::Erased { .. } => false,
        };
        is_theirs && record.at <= self.until && record.account.as_ref() == Some(&self.account)
    }
}

/// Records as one member, at most [`MEMBER_RECORDS_MAX`] of them.
#[must_use]
pub fn pack(records: &[Record]) -> Vec<u8> {
    const IN_MEMORY: &str = "a vector takes everything, and a record has string keys only";
    let mut packer = GzEncoder::new(Vec::new(), Compression::fast());
    for record in records {
        serde_json::to_writer(&mut packer, record).expect(IN_MEMORY);
        packer.write_all(b"\n").expect(IN_MEMORY);
    }
    packer.finish().expect(IN_MEMORY)
}

impl<'a> Members<'a> {
    /// Of a whole file, or of what is there of one.
    #[must_use]
    pub const fn new(file: &'a [u8]) -> Self {
        Self(file)
    }
}

impl Iterator for Members<'_> {
    type Item = Result<Vec<Record>, Damage>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        if let Some((records, rest)) = unpack(self.0) {
            self.0 = rest;
            return Some(Ok(records));
        }
        let next = self.0[1..].windows(HEADER.len()).position(|it| it == HEADER);
        let bytes = next.map_or(self.0.len(), |it| it + 1);
        self.0 = &self.0[bytes..];
        Some(Err(Damage { bytes }))
    }
}

/// The first member, and what is behind it.
fn unpack(bytes: &[u8]) -> Option<(Vec<Record>, &[u8])> {
    let mut unpacker = GzDecoder::new(bytes).take(MEMBER_BYTES_MAX);
    let mut text = String::new();
    unpacker.read_to_string(&mut text).ok()?;
    let rest = unpacker.into_inner().into_inner();
    let records = text.lines().map(serde_json::from_str).collect::<Result<_, _>>().ok()?;
    (rest.len() < bytes.len()).then_some((records, rest))
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;
    use proto::verdict::{Reason, Verdict};

    use super::*;

    fn record(at: u64, account: &str, text: &str) -> Record {
        let comment = Comment { node: NodeId(1), session: SessionId(2), cid: Cid(at) };
        let refused = Verdict::Drop { reason: Reason::Words, retry_after_ms: 0 };
        Record {
            at: Wall(at),
            room: RoomId::parse("r").ok(),
            account: ViewerId::parse(account).ok(),
            what: What::Said {
                comment,
                role: Role::Viewer,
                taken_at: Wall(at),
                address: "[2001:db8::1]:4711".parse().ok(),
                device: None,
                text: text.to_owned(),
                outcome: Some(Outcome::Verdict(refused)),
            },
        }
    }

    fn read(file: &[u8]) -> (Vec<Record>, usize) {
        let (mut records, mut lost) = (Vec::new(), 0);
        for member in Members::new(file) {
            match member {
                Ok(more) => records.extend(more),
                Err(damage) => lost += damage.bytes,
            }
        }
        (records, lost)
    }

    #[test]
    fn a_member_begins_as_the_reader_looks_for() {
        assert_eq!(pack(&[])[..HEADER.len()], HEADER);
    }

    #[test]
    fn a_filter_takes_its_own_alone() {
        let record = record(10, "v", "x");
        let all = Filter { until: Wall(u64::MAX), ..Filter::default() };
        let room = |name| Filter { room: RoomId::parse(name).ok(), ..all.clone() };
        let account = |name| Filter { account: ViewerId::parse(name).ok(), ..all.clone() };

        assert!(all.takes(&record) && room("r").takes(&record) && account("v").takes(&record));
        assert!(!room("s").takes(&record) && !account("w").takes(&record));
        assert!(Filter { from: Wall(10), until: Wall(11), ..all.clone() }.takes(&record));
        assert!(!Filter { from: Wall(11), ..all.clone() }.takes(&record));
        assert!(!Filter { until: Wall(10), ..all }.takes(&record));
    }

    #[test]
    fn an_erasure_takes_what_the_account_said_until_then() {
        let account = ViewerId::parse("v").unwrap();
        let erasure = Erasure { app: AppId(1), account, until: Wall(10) };
        let erased = Record { what: What::Erased { until: Wall(10) }, ..record(10, "v", "") };

        assert!(erasure.takes(&record(10, "v", "x")));
        assert!(!erasure.takes(&record(11, "v", "x")));
        assert!(!erasure.takes(&record(10, "w", "x")));
        assert!(!erasure.takes(&erased));
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(texts in vec(vec("\\PC{0,40}", 0..20), 0..5)) {
            let members: Vec<Vec<Record>> = texts
                .iter()
                .map(|it| (0..).zip(it).map(|(at, text)| record(at, "v", text)).collect())
                .collect();
            let file = members.iter().map(|it| pack(it)).collect::<Vec<_>>().concat();

            prop_assert_eq!(read(&file), (members.concat(), 0));
        }

        #[test]
        fn a_torn_end_loses_the_last_member_alone(cut in 1_usize..60) {
            let (first, last) = (pack(&[record(1, "v", "one")]), pack(&[record(2, "v", "two")]));
            let whole = [first.clone(), last].concat();
            let torn = &whole[..whole.len() - cut.min(whole.len() - first.len() - 1)];

            prop_assert_eq!(read(torn), (vec![record(1, "v", "one")], torn.len() - first.len()));
        }

        #[test]
        fn damage_in_the_middle_loses_that_member_alone(at in 0_usize..100, mask in 1_u8..) {
            let parts = [1, 2, 3].map(|it| pack(&[record(it, "v", "text")]));
            let mut file = parts.concat();
            let place = parts[0].len() + at % parts[1].len();
            file[place] ^= mask;

            let (records, lost) = read(&file);

            // The header has bytes that say nothing.
            prop_assert!(records.contains(&record(1, "v", "text")));
            prop_assert!(records.contains(&record(3, "v", "text")));
            prop_assert!(lost == 0 || records.len() == 2);
        }

        #[test]
        fn any_bytes_are_passed_over(bytes in vec(any::<u8>(), 0..2000)) {
            let file = [bytes.clone(), pack(&[record(1, "v", "kept")])].concat();

            prop_assert!(read(&file).1 <= bytes.len());
        }
    }
}
