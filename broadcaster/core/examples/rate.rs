//! tmp
#![allow(warnings)]
use broadcaster_core::pack::compress;
use broadcaster_core::settings::{House, Settings};
use broadcaster_core::{Input, Now, Output, Room};
use proto::control::{RoomFact, RoomSettings};
use proto::envelope::{Accepted, AcceptedBatch};
use proto::head::GenInfo;
use proto::heat::Heat;
use proto::id::*;
use proto::item::*;
use proto::time::{Mono, Wall};
use std::time::Instant;
const START: u64 = 1_800_000_000_000;
const SYL: [&str; 24] = [
    "好", "听", "哈哈", "泪目", "太", "美了", "wow", "la", "go", "唱", "神", "前排", "ok", "来了",
    "牛", "感动", "the", "best", "再来", "一首", "♪", "yes", "啊啊", "高能",
];
struct R(u64);
impl R {
    fn n(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}
fn item(r: &mut R, t: u64, k: u64) -> Item {
    let n = 1 + r.n() % 7;
    let text: String = (0..n).map(|_| SYL[(r.n() % 24) as usize]).collect();
    let color = if r.n() % 10 < 8 { 0xffffff } else { (r.n() % 0xffffff) as u32 };
    Item {
        id: ItemId::compose(t, 1, (k % 1000) as u16),
        lane: Lane::Comment,
        sender: SenderRef(r.n()),
        role: Role::Viewer,
        at: Wall(t),
        body: Body::Comment { text, style: Style { color, ..Style::default() }, media_ms: None },
    }
}
fn gz(b: &[u8], level: u32) -> usize { use std::io::Write; let mut e = flate2::write::GzEncoder::new(Vec::with_capacity(b.len() / 2), flate2::Compression::new(level)); e.write_all(b).unwrap(); e.finish().unwrap().len() }
fn main() {
    let over: u32 = std::env::args().nth(1).map_or(1, |it| it.parse().unwrap());
    let press: bool = std::env::args().nth(2).map_or(true, |it| it == "1");
    let level: u32 = std::env::args().nth(3).map_or(6, |it| it.parse().unwrap());
    let per_s: u64 = std::env::args().nth(4).map_or(1000, |it| it.parse().unwrap());
    let rec = per_s / 10;
    let rec_ms = 100u64;
    let settings = RoomSettings {
        items_per_s: per_s as u32 / over,
        bytes_per_s: u32::MAX,
        ..RoomSettings::default()
    };
    let id = RoomId::parse("concert").unwrap();
    let fact = RoomFact { app: AppId(1), room: id.clone(), version: 1, open: true, settings };
    let mut room = Room::new(Settings::new(&fact, House::default()), Gen(0), Heat::Cold);
    let mut now = Now { mono: Mono(0), wall: Wall(START) };
    let mut r = R(7);
    let (mut kept, mut bytes) = (0usize, 0usize);
    for round in 0..6u64 {
        let records: Vec<_> = (0..1000u64)
            .map(|k| {
                let t = START + round * 100_000 + k * rec_ms;
                let entries = (0..rec)
                    .map(|j| Accepted {
                        app: AppId(1),
                        room: id.clone(),
                        item: item(&mut r, t + j, j),
                    })
                    .collect();
                AcceptedBatch { entries }.encode()
            })
            .collect();
        let start = Instant::now();
        for record in &records {
            for a in AcceptedBatch::decode(record).unwrap().entries {
                room.handle(Input::Item(a.item), now);
            }
            let until = now.mono.0 + rec_ms;
            loop {
                room.tick(now);
                while let Some(o) = room.poll() {
                    match o {
                        Output::WantGen { after, epoch_ms, interval_ms } => room.handle(
                            Input::Gen(GenInfo {
                                gen_no: Gen(after.0 + 1),
                                epoch_ms,
                                interval_ms,
                                layout: 1,
                            }),
                            now,
                        ),
                        Output::Seal(s) => {
                            kept += s.full.items.len();
                            bytes += if press {
                                gz(&s.full.encode(), level)
                            } else {
                                s.full.encode().len()
                            };
                        }
                        _ => {}
                    }
                }
                let Some(next) = room.deadline().filter(|it| it.0 <= until) else { break };
                let m = next.0.max(now.mono.0);
                now.wall.0 += m - now.mono.0;
                now.mono.0 = m;
            }
            now.wall.0 += until - now.mono.0;
            now.mono.0 = until;
        }
        println!("{:.3} M/s", (rec * 1000) as f64 / 1e6 / start.elapsed().as_secs_f64());
    }
    println!("kept {kept} bytes/item {:.1}", bytes as f64 / kept as f64);
}
