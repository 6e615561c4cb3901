//! A room is pushed to a real relay, and a real player reads it there.

use std::net::SocketAddr;
use std::process::Stdio;
use std::time::Duration;

use broadcaster::{Config, Push};
use broadcaster_core::video::sei;
use proto::control::RoomSettings;
use serde_json::Value;
use tokio::io::AsyncReadExt;
use tokio::process::{Child, ChildStdout, Command};

use crate::edge::{Edge, free, run, write};
use crate::stage::{self, PATIENCE, Running, World, comment, gift, settings};

const NGINX: &str = include_str!("../../../ops/deploy/nginx.rtmp.conf");
const KEY: &str = "stream-1?sign=5f2c";

#[tokio::test]
async fn every_item_comes_through_a_relay_once() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::new(folder.path());
    world.set_room(settings(), true).await;
    let relay = relay(free()).await;
    let running = world.start(config(1, relay.addr)).await;
    comes(&running, UP).await;
    let mut player = Player::start(relay.addr).await;

    world.admit((1..=60).map(comment).collect()).await;
    world.admit(vec![gift(61)]).await;
    let moments = player.read_items(61).await;

    let found: Vec<u64> = moments.iter().flat_map(ids).collect();
    let mut sorted = found.clone();
    sorted.sort_unstable();
    assert_eq!(sorted, (1..=61).collect::<Vec<_>>(), "each once");
    for seal in moments.iter().filter(|it| it["sealed"] != 0 && it["items"].is_null()) {
        let is_of = |it: &&Value| (&it["gen"], &it["slot"]) == (&seal["gen"], &seal["slot"]);
        let items: usize = moments.iter().filter(is_of).map(|it| ids(it).len()).sum();
        assert_eq!(seal["sealed"], items, "{seal}");
    }
    check_clean(relay.addr).await;
    assert_eq!(player.end().await, "", "nothing to complain about");
    running.stop().await;
}

#[tokio::test]
async fn a_push_goes_on_when_its_relay_is_started_again() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::new(folder.path());
    world.set_room(settings(), true).await;
    let mut first = relay(free()).await;
    let running = world.start(config(1, first.addr)).await;
    comes(&running, UP).await;

    first.process.kill().await.unwrap();
    comes(&running, DOWN).await;
    assert!(running.health.failures().is_empty(), "the process does its job");
    assert_eq!(running.health.warnings()[0].0, "broadcaster_push");
    let second = relay(first.addr).await;
    comes(&running, UP).await;

    let mut player = Player::start(second.addr).await;
    world.admit((1..=5).map(comment).collect()).await;
    let found: Vec<u64> = player.read_items(5).await.iter().flat_map(ids).collect();
    assert_eq!(found, (1..=5).collect::<Vec<_>>());
    assert!(running.health.warnings().is_empty());
    running.stop().await;
}

#[tokio::test]
async fn the_owner_pushes_and_after_it_the_next_one() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::new(folder.path());
    world.set_room(settings(), true).await;
    let relay = relay(free()).await;
    let first = world.start(config(1, relay.addr)).await;
    comes(&first, UP).await;
    let second = world.start(config(2, relay.addr)).await;
    assert!(!second.meter.render().contains(CONNECTIONS), "one pushes");

    first.stop().await;

    comes(&second, UP).await;
    let mut player = Player::start(relay.addr).await;
    world.admit(vec![comment(1)]).await;
    assert_eq!(player.read_items(1).await.iter().flat_map(ids).collect::<Vec<_>>(), [1]);
    second.stop().await;
}

#[tokio::test]
async fn a_room_is_pushed_while_it_is_open_to_all() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::new(folder.path());
    world.set_room(settings(), true).await;
    let relay = relay(free()).await;
    let running = world.start(config(1, relay.addr)).await;
    comes(&running, UP).await;

    world.set_room(RoomSettings { sealed: true, ..settings() }, true).await;
    comes(&running, DOWN).await;
    world.set_room(settings(), true).await;
    comes(&running, UP).await;
    world.set_room(settings(), false).await;
    comes(&running, DOWN).await;

    assert!(running.health.warnings().is_empty(), "nothing is wrong");
    running.stop().await;
}

const CONNECTIONS: &str = "broadcaster_push_connections_total{";
const UP: &str = "broadcaster_pushes_up{push=\"0\"} 1";
const DOWN: &str = "broadcaster_pushes_up{push=\"0\"} 0";

/// Waits for a line among the metrics.
async fn comes(running: &Running, line: &str) {
    let watching = async {
        let mut ticks = tokio::time::interval(Duration::from_millis(20));
        while !running.meter.render().lines().any(|it| it == line) {
            ticks.tick().await;
        }
    };
    tokio::time::timeout(PATIENCE, watching).await.expect(line);
}

fn config(node: u32, relay: SocketAddr) -> Config {
    let url = format!("rtmp://{relay}/live");
    let key = auth_core::secret::Secret::new(KEY.to_owned());
    let pushes = vec![Push { room: "room-1".to_owned(), url, key }];
    Config { pushes, ..stage::config(node) }
}

async fn relay(addr: SocketAddr) -> Edge {
    let folder = tempfile::tempdir().unwrap();
    let process = "daemon off;\nmaster_process off;\npid nginx.pid;\nerror_log stderr crit;\n";
    let config =
        [("listen 1935", format!("listen {addr}")), ("events {", format!("{process}events {{"))];
    let file = write(folder.path(), "nginx.conf", NGINX, &config);
    let mut command = Command::new("nginx");
    command.arg("-p").arg(folder.path()).args(["-c", &file, "-e", "stderr"]);
    run(command, addr, folder).await
}

/// ffmpeg, which reads the stream from the relay and writes its units down.
struct Player {
    process: Child,
    units: ChildStdout,
    bytes: Vec<u8>,
}

impl Player {
    /// Starts it, and waits for the first frame.
    async fn start(relay: SocketAddr) -> Self {
        let url = format!("rtmp://{relay}/live/{KEY}");
        let mut process = Command::new("ffmpeg")
            .args(["-v", "error", "-nostdin", "-probesize", "32", "-analyzeduration", "0"])
            .args(["-i", &url, "-c", "copy", "-flush_packets", "1", "-f", "h264", "pipe:1"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("ffmpeg is there: ops/tools/install installs it");
        let units = process.stdout.take().unwrap();
        let mut player = Self { process, units, bytes: Vec::new() };
        player.read().await;
        player
    }

    async fn read(&mut self) {
        let read = tokio::time::timeout(PATIENCE, self.units.read_buf(&mut self.bytes)).await;
        assert!(read.expect("a frame in time").unwrap() > 0, "the stream ended");
    }

    /// Everything that was said, up to the end of the slot in which so many items are.
    async fn read_items(&mut self, count: usize) -> Vec<Value> {
        loop {
            let moments = moments(&self.bytes);
            let counts = moments.iter().scan(0, |sum, it| {
                *sum += ids(it).len();
                Some(*sum)
            });
            let is_end = |it: &Value| it["items"].is_null();
            let mut pairs = counts.zip(&moments);
            if pairs.any(|(sum, it)| sum >= count && is_end(it)) {
                return moments;
            }
            self.read().await;
        }
    }

    /// Ends it; gives what it complained about.
    async fn end(mut self) -> String {
        let mut complaints = String::new();
        self.process.start_kill().unwrap();
        let mut errors = self.process.stderr.take().unwrap();
        errors.read_to_string(&mut complaints).await.unwrap();
        complaints
    }
}

/// What the messages in a stream say, in order. Units are between start codes.
fn moments(stream: &[u8]) -> Vec<Value> {
    let mut starts: Vec<usize> = Vec::new();
    let codes = stream.windows(3).enumerate().filter(|(_, it)| *it == [0, 0, 1]);
    starts.extend(codes.map(|(at, _)| at + 3));
    let mut reader = sei::Reader::default();
    // The last unit may be incomplete.
    let units = starts.windows(2).map(|it| &stream[it[0]..it[1] - 3]);
    let texts = units.filter_map(|it| reader.take(it));
    texts.map(|it| serde_json::from_str(&it).unwrap()).collect()
}

fn ids(moment: &Value) -> Vec<u64> {
    let id = |it: &Value| it["id"].as_str().unwrap().parse().unwrap();
    moment["items"].as_array().map(|it| it.iter().map(id).collect()).unwrap_or_default()
}

/// ffprobe has nothing to say against what the relay passes on.
async fn check_clean(relay: SocketAddr) {
    let read = Command::new("ffprobe")
        .args(["-v", "error", "-read_intervals", "%+#8"])
        .args(["-show_entries", "packet=pts,flags:stream=codec_name,width,height"])
        .args(["-of", "json", &format!("rtmp://{relay}/live/{KEY}")])
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    let read = tokio::time::timeout(PATIENCE, read).await.expect("an answer in time");
    let read = read.expect("ffprobe is there: ops/tools/install installs it");

    assert_eq!(String::from_utf8_lossy(&read.stderr), "", "nothing to complain about");
    let told: Value = serde_json::from_slice(&read.stdout).unwrap();
    let stream = &told["streams"][0];
    assert_eq!((&stream["codec_name"], &stream["width"]), (&"h264".into(), &16.into()), "{told}");
    let packets = told["packets"].as_array().unwrap();
    assert!(packets.iter().all(|it| it["flags"].as_str().unwrap().starts_with('K')), "{told}");
    let times: Vec<i64> = packets.iter().map(|it| it["pts"].as_i64().unwrap()).collect();
    assert!(times.len() == 8 && times.is_sorted_by(|a, b| a < b), "{times:?}");
}
