//! Broadcaster: a busy room from records to compressed segments.

pub(crate) mod held;

use anyhow::ensure;
use broadcaster_core::pack::compress;
use broadcaster_core::room::Sealed;
use broadcaster_core::settings::{House, Settings};
use broadcaster_core::{Input, Now, Output, Packed, Packing, Room};
use bytes::Bytes;
use proto::control::{RoomFact, RoomSettings};
use proto::encoding::Encoding;
use proto::envelope::{Accepted, AcceptedBatch};
use proto::head::GenInfo;
use proto::heat::Heat;
use proto::id::{AppId, Gen, RoomId};
use proto::time::{Mono, Wall};

use crate::cpu;
use crate::line::Line;
use crate::segment::Comments;
use crate::timing::{ROUNDS, median};

/// Items that arrive in a second of the room.
const ITEMS_PER_S: usize = 1_000;
/// Items of one record.
const RECORD_ITEMS: usize = 100;
/// Time between two records.
const RECORD_MS: u64 = (1_000 * RECORD_ITEMS / ITEMS_PER_S) as u64;
/// Records of one round.
const RECORDS: usize = 1_000;
/// Under overload the room shows every tenth.
const OVERLOAD: usize = 10;
const START_MS: u64 = 1_800_000_000_000;

/// Turns a slot into bytes.
type Press = fn(&Sealed) -> usize;

/// `broadcast.kept`: decode, lanes, flushes, and the full tier's compressed segment, all kept.
/// `broadcast.kept.plain`: without the compression.
/// `broadcast.kept.files`: with all four files of a slot, JSON and the lite tier too.
/// `broadcast.overload`: as the first, but nine of ten items are shed.
pub(crate) fn run() -> anyhow::Result<Vec<Line>> {
    let plain: Press = |sealed| sealed.full.encode().len();
    let segment: Press = |sealed| compress(&sealed.full.encode(), Encoding::Gzip).len();
    let files: Press = |sealed| {
        let packed = [&sealed.full, &sealed.lite].map(|it| Packed::of(it, &Packing::default()));
        packed.iter().map(|it| it.bin.len() + it.json.len()).sum()
    };
    Ok(vec![
        Line::alone("broadcast.kept", rate(1, segment)?, "items/s/core"),
        Line::alone("broadcast.kept.plain", rate(1, plain)?, "items/s/core"),
        Line::alone("broadcast.kept.files", rate(1, files)?, "items/s/core"),
        Line::alone("broadcast.overload", rate(OVERLOAD, segment)?, "items/s/core"),
    ])
}

/// Items taken in a second of this core.
fn rate(overload: usize, press: Press) -> anyhow::Result<f64> {
    let mut stage = Stage::new(ITEMS_PER_S / overload, press)?;
    let mut comments = Comments::new(START_MS, 1);
    let mut rates = Vec::with_capacity(ROUNDS);
    for _ in 0..ROUNDS {
        let records = records(&stage.id, &mut comments);
        let before = stage.kept;
        let start = cpu::thread();
        for record in &records {
            stage.take(record)?;
        }
        let seconds = (cpu::thread() - start).as_secs_f64();
        rates.push((RECORDS * RECORD_ITEMS) as f64 / seconds);
        let kept = stage.kept - before;
        let expected = RECORDS * RECORD_ITEMS / overload;
        // A slot may still be open at the end of a round.
        ensure!(kept.abs_diff(expected) <= 2 * ITEMS_PER_S, "{kept} of {expected} were kept");
    }
    ensure!(stage.bytes > 0, "nothing was packed");
    Ok(median(&mut rates))
}

fn records(room: &RoomId, comments: &mut Comments) -> Vec<Bytes> {
    let accepted = |item| Accepted { app: AppId(1), room: room.clone(), item };
    (0..RECORDS)
        .map(|_| {
            let entries = comments.by_ref().take(RECORD_ITEMS).map(accepted).collect();
            AcceptedBatch { entries }.encode()
        })
        .collect()
}

/// A room in virtual time, with the answers its shell would give.
struct Stage {
    id: RoomId,
    room: Room,
    now: Now,
    press: Press,
    kept: usize,
    bytes: usize,
}

impl Stage {
    fn new(items_per_s: usize, press: Press) -> anyhow::Result<Self> {
        let settings = RoomSettings {
            items_per_s: u32::try_from(items_per_s)?,
            bytes_per_s: u32::MAX,
            ..RoomSettings::default()
        };
        let id = RoomId::parse("concert")?;
        let fact = RoomFact { app: AppId(1), room: id.clone(), version: 1, open: true, settings };
        let room = Room::new(Settings::new(&fact, House::default()), Gen(0), Heat::Cold);
        let now = Now { mono: Mono(0), wall: Wall(START_MS) };
        Ok(Self { id, room, now, press, kept: 0, bytes: 0 })
    }

    /// Takes a record in, at its time.
    fn take(&mut self, record: &[u8]) -> anyhow::Result<()> {
        for accepted in AcceptedBatch::decode(record)?.entries {
            self.room.handle(Input::Item(accepted.item), self.now);
        }
        let until = self.now.mono.0 + RECORD_MS;
        loop {
            self.room.tick(self.now);
            self.do_all();
            let Some(next) = self.room.deadline().filter(|it| it.0 <= until) else {
                break;
            };
            self.pass_until(next.0.max(self.now.mono.0));
        }
        self.pass_until(until);
        Ok(())
    }

    fn pass_until(&mut self, mono: u64) {
        self.now.wall.0 += mono - self.now.mono.0;
        self.now.mono.0 = mono;
    }

    fn do_all(&mut self) {
        while let Some(output) = self.room.poll() {
            match output {
                Output::WantGen { after, epoch_ms, interval_ms, layout } => {
                    let gen_no = Gen(after.0 + 1);
                    let info = GenInfo { gen_no, epoch_ms, interval_ms, layout };
                    self.room.handle(Input::Gen(info), self.now);
                }
                Output::Seal(sealed) => {
                    self.kept += sealed.full.items.len();
                    self.bytes += (self.press)(&sealed);
                }
                Output::Opened(_)
                | Output::Flush(_)
                | Output::Fates(_)
                | Output::Deferred(..)
                | Output::Erase { .. }
                | Output::Heat { .. }
                | Output::Ended => {}
            }
        }
    }
}
