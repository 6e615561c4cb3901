//! Real caches before the origin, set up as the samples in `ops/deploy` say: however many viewers
//! wait for a slot, the origin is asked once.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use broadcaster::Config;
use futures_util::future::join_all;
use proto::control::RoomSettings;
use tempfile::TempDir;
use tokio::net::TcpStream;
use tokio::process::{Child, Command};

use crate::erase::erasure;
use crate::get::{ask, get};
use crate::stage::{PATIENCE, Running, World, config, gift, settings};

const NGINX: &str = include_str!("../../../ops/deploy/nginx.edge.conf");
const VARNISH: &str = include_str!("../../../ops/deploy/edge.vcl");
/// Viewers who ask for a slot before it is there.
const VIEWERS: usize = 200;

#[tokio::test(flavor = "multi_thread")]
async fn nginx_asks_once_for_a_crowd() {
    check("nginx", nginx).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn varnish_asks_once_for_a_crowd() {
    check("varnish", async |origin| varnish(origin, free()).await).await;
}

/// Viewers ask by another host name than the one that it is told to forget by.
#[tokio::test(flavor = "multi_thread")]
async fn varnish_forgets_an_erased_item_under_every_name() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::new(folder.path());
    world.set_room(settings(), true).await;
    let addr = free();
    let purge = vec![format!("http://{addr}")];
    let broadcaster = world.start(Config { purge, ..config(1) }).await;
    let edge = varnish(broadcaster.addr, addr).await;
    let mut sealed = world.sealed().await;
    world.admit(vec![gift(2)]).await;
    let (gen_no, slot, _) = sealed.flush_of(2).await;
    sealed.seal_of(gen_no, slot).await;
    let path = format!("/dm/1/room-1/{gen_no}/full/{slot}.bin");
    let fetch = async || ask(edge.addr, "GET", &path, "accept-encoding: gzip\r\n").await;
    let shown = fetch().await;
    assert_eq!(shown.status, 200, "{shown:?}");

    world.admit(vec![erasure(3, 2)]).await;

    let forgotten = async {
        let mut ticks = tokio::time::interval(Duration::from_millis(20));
        while fetch().await.body == shown.body {
            ticks.tick().await;
        }
    };
    tokio::time::timeout(PATIENCE, forgotten).await.expect("the cache forgets in time");
    let stored = std::fs::read(folder.path().join(&path[1..])).unwrap();
    assert_eq!(fetch().await.body, stored);
    broadcaster.stop().await;
}

async fn check(name: &str, start: impl AsyncFnOnce(SocketAddr) -> Edge) {
    let folder = tempfile::tempdir().unwrap();
    let world = World::new(folder.path());
    world.set_room(RoomSettings { interval_ms: 2000, ..settings() }, true).await;
    let broadcaster = world.start(config(1)).await;
    world.sealed().await.seal_of(1, 0).await;
    let edge = start(broadcaster.addr).await;
    let head = get(edge.addr, "/dm/1/room-1/head.json").await;
    assert_eq!(head.status, 200, "{name}: {head:?}");

    let newest = broadcaster.head().await.slot.0;
    world.sealed().await.seal_of(1, newest + 1).await;
    let before = answers(&broadcaster);
    let path = format!("/dm/1/room-1/1/full/{}.bin", newest + 2);
    let viewer = async || {
        let got = ask(edge.addr, "GET", &path, "accept-encoding: gzip\r\n").await;
        (world.clock.mono(), got)
    };
    let mut got = join_all((0..VIEWERS).map(|_| viewer())).await;

    assert_eq!(answers(&broadcaster) - before, 1, "{name}");
    got.sort_by_key(|it| it.0);
    for (_, viewer) in &got {
        assert_eq!((viewer.status, &viewer.body), (200, &got[0].1.body), "{name}");
        assert_eq!(viewer.header("content-encoding"), "gzip", "{name}");
    }
    let waited = got[VIEWERS / 2].0.since(got[0].0);
    println!("{name}: the median of {VIEWERS} viewers has a slot {waited:?} after the first");
    check_lifetimes(name, &edge).await;
    broadcaster.stop().await;
}

/// What is not there passes as it is.
async fn check_lifetimes(name: &str, edge: &Edge) {
    for (path, status, lifetime) in [
        ("/dm/1/room-1/1/full/1000000.bin", 404, "public, max-age=1, s-maxage=1"),
        ("/dm/1/room-1/0/full/0.bin", 410, "public, max-age=1"),
        ("/dm/1/room-1/1/full/x.bin", 400, "public, max-age=60"),
    ] {
        let got = get(edge.addr, path).await;
        assert_eq!((got.status, got.header("cache-control")), (status, lifetime), "{name} {path}");
        assert_eq!(got.header("access-control-allow-origin"), "*", "{name} {path}");
    }
}

/// Answers that the origin gave.
fn answers(broadcaster: &Running) -> u64 {
    let metrics = broadcaster.meter.render();
    let answers = metrics.lines().filter(|it| it.starts_with("broadcaster_origin_answers_total{"));
    answers.map(|it| it.rsplit(' ').next().unwrap().parse::<u64>().unwrap()).sum()
}

/// A running cache.
pub(crate) struct Edge {
    pub(crate) addr: SocketAddr,
    pub(crate) process: Child,
    _folder: TempDir,
}

async fn nginx(origin: SocketAddr) -> Edge {
    let (folder, addr) = (tempfile::tempdir().unwrap(), free());
    let folders = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];
    let folders = folders.map(|it| format!("    {it}_temp_path {it};\n")).concat();
    let process = "daemon off;\nmaster_process off;\npid nginx.pid;\nerror_log stderr crit;\n";
    let config = [
        ("listen 8080", format!("listen {addr}")),
        ("127.0.0.1:7500;", format!("{origin};")),
        ("/var/cache/nginx/barrage", "cache".to_owned()),
        ("http {\n", format!("http {{\n{folders}")),
        ("events {", format!("{process}events {{")),
    ];
    let file = write(folder.path(), "nginx.conf", NGINX, &config);
    let mut command = Command::new("nginx");
    command.arg("-p").arg(folder.path()).args(["-c", &file, "-e", "stderr"]);
    run(command, addr, folder).await
}

async fn varnish(origin: SocketAddr, addr: SocketAddr) -> Edge {
    let folder = tempfile::tempdir().unwrap();
    let config = [(".port = \"7500\"", format!(".port = \"{}\"", origin.port()))];
    let file = write(folder.path(), "edge.vcl", VARNISH, &config);
    let mut command = Command::new("varnishd");
    command.args(["-F", "-j", "none", "-s", "malloc,32m", "-a", &addr.to_string(), "-f", &file]);
    command.args(["-p", "thread_pool_max=5000", "-n"]).arg(folder.path().join("work"));
    run(command, addr, folder).await
}

/// A sample with the places of this run in it.
pub(crate) fn write(folder: &Path, name: &str, sample: &str, changes: &[(&str, String)]) -> String {
    let mut text = sample.to_owned();
    for (place, here) in changes {
        assert!(text.contains(place), "the sample has no {place}");
        text = text.replace(place, here);
    }
    let file = folder.join(name);
    std::fs::write(&file, text).unwrap();
    file.to_str().unwrap().to_owned()
}

/// Starts it and waits until it listens.
pub(crate) async fn run(mut command: Command, addr: SocketAddr, folder: TempDir) -> Edge {
    command.stdin(Stdio::null()).stdout(Stdio::null()).kill_on_drop(true);
    let process = command.spawn().expect("nginx or varnish is missing: run ops/tools/install");
    let listens = async {
        let mut ticks = tokio::time::interval(Duration::from_millis(20));
        while TcpStream::connect(addr).await.is_err() {
            ticks.tick().await;
        }
    };
    tokio::time::timeout(PATIENCE, listens).await.expect("the cache listens in time");
    Edge { addr, process, _folder: folder }
}

pub(crate) fn free() -> SocketAddr {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap()
}
