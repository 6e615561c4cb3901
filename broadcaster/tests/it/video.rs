//! A room as a video: real tools read what the origin serves, and every item is in it once.

use std::net::SocketAddr;
use std::process::Stdio;

use broadcaster::Config;
use proto::id::ItemId;
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::process::Command;

use crate::get::get;
use crate::stage::{self, PATIENCE, World, comment, settings};

/// Owner of the frame that holds a slot, as HLS players name it.
const OWNER: &[u8] = b"barrage/segment.json.gz\0";

fn config() -> Config {
    Config { hls: true, ..stage::config(1) }
}

/// The lines of a playlist that name fragments.
async fn fragments(addr: SocketAddr) -> Vec<String> {
    let got = get(addr, "/dm/1/room-1/live.m3u8").await;
    if got.status != 200 {
        return Vec::new();
    }
    assert_eq!(got.header("content-type"), "application/vnd.apple.mpegurl");
    let text = String::from_utf8(got.body).unwrap();
    text.lines().filter(|it| !it.starts_with('#')).map(str::to_owned).collect()
}

/// The ids in a fragment's message.
async fn ids(addr: SocketAddr, fragment: &str) -> Vec<u64> {
    let got = get(addr, &format!("/dm/1/room-1/{fragment}")).await;
    assert_eq!(got.status, 200, "{got:?}");
    let body = got.body;
    let start = body.windows(OWNER.len()).position(|it| it == OWNER).unwrap() + OWNER.len();
    let end = body.windows(4).position(|it| it == b"moof").unwrap() - 4;
    let json = broadcaster_core::pack::expand(&body[start..end]).unwrap();
    let page: Value = serde_json::from_slice(&json).unwrap();
    let items = page["items"].as_array().unwrap();
    items.iter().map(|it| it["id"].as_str().unwrap().parse().unwrap()).collect()
}

#[tokio::test]
async fn every_item_is_in_one_fragment_of_the_playlist() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::new(folder.path());
    world.set_room(settings(), true).await;
    let running = world.start(config()).await;

    world.admit((1..=20).map(comment).collect()).await;

    let mut seen: Vec<String> = Vec::new();
    let mut found = Vec::new();
    tokio::time::timeout(PATIENCE, async {
        while found.len() < 20 {
            for fragment in fragments(running.addr).await {
                if !seen.contains(&fragment) {
                    found.extend(ids(running.addr, &fragment).await);
                    seen.push(fragment);
                }
            }
            world.clock.sleep(std::time::Duration::from_millis(100)).await;
        }
    })
    .await
    .expect("every item in time");
    assert_eq!(found, (1..=20).collect::<Vec<u64>>());
    let init = get(running.addr, "/dm/1/room-1/init.mp4").await;
    assert_eq!((init.status, init.header("content-type")), (200, "video/mp4"));
    running.stop().await;
}

#[tokio::test]
async fn the_numbers_of_the_playlist_go_on_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::new(folder.path());
    world.set_room(settings(), true).await;
    let first = world.start(config()).await;
    let head = folder.path().join("dm/1/room-1/head.json");
    wait_for(first.addr, 2).await;
    let behind = std::fs::read(&head).unwrap();
    let before = wait_for(first.addr, 5).await;
    first.stop().await;
    // As if it had been killed before it wrote the head of its last slots.
    std::fs::write(&head, behind).unwrap();

    let second = world.start(config()).await;
    let after = tokio::time::timeout(PATIENCE, async {
        loop {
            let after = numbered(second.addr).await;
            if after.last().is_some_and(|(number, _)| number > &before.last().unwrap().0) {
                return after;
            }
            world.clock.sleep(std::time::Duration::from_millis(100)).await;
        }
    })
    .await
    .expect("a new slot in time");

    for (number, fragment) in &after {
        let same = before.iter().find(|(it, _)| it == number);
        assert!(same.is_none_or(|(_, it)| it == fragment), "{before:?} {after:?}");
    }
    second.stop().await;
}

#[tokio::test]
async fn a_room_that_is_over_ends_its_streams() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::new(folder.path());
    world.set_room(settings(), true).await;
    let running = world.start(config()).await;
    wait_for(running.addr, 1).await;
    let mut stream = watch(running.addr).await;
    let mut bytes = Vec::new();
    read_until(&mut stream, &mut bytes, b"\"sealed\":").await;

    world.set_room(settings(), false).await;

    let end = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut bytes)).await;
    end.expect("an end in time").unwrap();
    running.stop().await;
}

/// Asks for the room's stream.
async fn watch(addr: SocketAddr) -> TcpStream {
    let mut stream = TcpStream::connect(addr).await.unwrap();
    let request = b"GET /dm/1/room-1/live.flv HTTP/1.0\r\nHost: origin\r\n\r\n";
    stream.write_all(request).await.unwrap();
    stream
}

async fn wait_for(addr: SocketAddr, count: usize) -> Vec<(u64, String)> {
    tokio::time::timeout(PATIENCE, async {
        loop {
            let numbered = numbered(addr).await;
            if numbered.len() >= count {
                return numbered;
            }
            kit::clock::Clock::system().sleep(std::time::Duration::from_millis(100)).await;
        }
    })
    .await
    .expect("slots in time")
}

/// The fragments of the playlist with their media sequence numbers.
async fn numbered(addr: SocketAddr) -> Vec<(u64, String)> {
    let got = get(addr, "/dm/1/room-1/live.m3u8").await;
    let text = String::from_utf8(got.body).unwrap();
    let number = |line: &str| line.strip_prefix("#EXT-X-MEDIA-SEQUENCE:")?.parse::<u64>().ok();
    let first = text.lines().find_map(number).unwrap_or_default();
    let fragments = text.lines().filter(|it| !it.starts_with('#')).map(str::to_owned);
    (first..).zip(fragments).collect()
}

#[tokio::test]
async fn ffprobe_reads_the_playlist_as_one_clean_video() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::new(folder.path());
    world.set_room(settings(), true).await;
    let running = world.start(config()).await;
    wait_for(running.addr, 4).await;

    let url = format!("http://{}/dm/1/room-1/live.m3u8", running.addr);
    // Not at the level of warnings: this reader takes the same beginning again each time it reloads
    // the playlist, and says so.
    let args = ["-v", "error", "-live_start_index", "0", "-read_intervals", "%+#3"];
    let read = Command::new("ffprobe")
        .args(args)
        .args(["-probesize", "32", "-analyzeduration", "0"])
        .args(["-show_entries", "packet=pts_time,flags:stream=codec_name,width,height"])
        .args(["-of", "json", &url])
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    let read = tokio::time::timeout(PATIENCE, read).await.expect("an answer in time");

    let read = read.expect("ffprobe is there: ops/check installs it");
    assert!(read.status.success());
    assert_eq!(String::from_utf8_lossy(&read.stderr), "", "nothing to complain about");
    let told: Value = serde_json::from_slice(&read.stdout).unwrap();
    let stream = &told["streams"][0];
    assert_eq!((&stream["codec_name"], &stream["width"]), (&"h264".into(), &16.into()), "{told}");
    let packets = told["packets"].as_array().unwrap();
    assert_eq!(packets.len(), 3);
    for packet in packets {
        assert!(packet["flags"].as_str().unwrap().starts_with('K'), "{told}");
    }
    running.stop().await;
}

#[tokio::test]
async fn flushes_come_down_a_stream_that_ffprobe_reads() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::new(folder.path());
    world.set_room(settings(), true).await;
    let running = world.start(config()).await;
    wait_for(running.addr, 1).await;
    let mut stream = watch(running.addr).await;
    let mut bytes = Vec::new();
    read_until(&mut stream, &mut bytes, b"FLV\x01").await;

    world.admit((1..=20).map(comment).collect()).await;
    read_until(&mut stream, &mut bytes, b"\"id\":\"20\"").await;
    read_until(&mut stream, &mut bytes, b"\"sealed\":").await;
    running.stop().await;
    stream.read_to_end(&mut bytes).await.unwrap();

    let start = bytes.windows(4).position(|it| it == b"FLV\x01").unwrap();
    let head = String::from_utf8_lossy(&bytes[..start]).to_lowercase();
    assert!(head.contains("content-type: video/x-flv") && head.contains("no-store"), "{head}");
    let found: Vec<ItemId> = moments(&bytes[start..]).iter().flat_map(items).collect();
    assert_eq!(found, (1..=20).map(ItemId).collect::<Vec<_>>());
    let file = folder.path().join("live.flv");
    std::fs::write(&file, &bytes[start..]).unwrap();
    let read = Command::new("ffprobe")
        .args(["-v", "error", "-show_entries", "packet=codec_type", "-of", "json"])
        .arg(&file)
        .output()
        .await
        .expect("ffprobe is there: ops/check installs it");
    assert_eq!(String::from_utf8_lossy(&read.stderr), "", "nothing to complain about");
    let told: Value = serde_json::from_slice(&read.stdout).unwrap();
    let packets = told["packets"].as_array().unwrap();
    assert_eq!(packets.len(), moments(&bytes[start..]).len());
}

async fn read_until(stream: &mut TcpStream, bytes: &mut Vec<u8>, end: &[u8]) {
    let read = async {
        while !bytes.windows(end.len()).any(|it| it == end) {
            assert!(stream.read_buf(bytes).await.unwrap() > 0, "the stream ended");
        }
    };
    tokio::time::timeout(PATIENCE, read).await.expect("it in time");
}

/// The JSON of every tag.
fn moments(flv: &[u8]) -> Vec<Value> {
    let mut rest = &flv[13..];
    let mut moments = Vec::new();
    while !rest.is_empty() {
        let length = usize::from(rest[1]) << 16 | usize::from(rest[2]) << 8 | usize::from(rest[3]);
        let data = &rest[11..11 + length];
        // The key, the array of one, and its string's length.
        let start = data.windows(6).position(|it| it == b"\0\x04json").unwrap() + 6;
        assert_eq!(data[start..start + 6], [10, 0, 0, 0, 1, 2]);
        moments.push(serde_json::from_slice(&data[start + 8..length - 3]).unwrap());
        rest = &rest[length + 15..];
    }
    moments
}

fn items(moment: &Value) -> Vec<ItemId> {
    let items = moment["items"].as_array();
    let id = |it: &Value| ItemId(it["id"].as_str().unwrap().parse().unwrap());
    items.map(|it| it.iter().map(id).collect()).unwrap_or_default()
}
