//! Real players in a real browser: hls.js and mpegts.js are given every item once.

use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::header::CONTENT_TYPE;
use axum::response::{Html, IntoResponse};
use axum::routing::{get, post};
use broadcaster::Config;
use serde::Deserialize;
use tokio::net::TcpListener;
use tokio::process::{Child, Command};
use tokio::sync::watch;

use crate::stage::{self, World, comment, gift, settings};

/// A browser on a busy machine takes its time.
const PATIENCE: Duration = Duration::from_mins(1);
/// Items a second, so that they fall into many flushes and slots.
const ITEMS: u64 = 60;

/// What the page says of both players.
#[derive(Clone, Debug, Default, Deserialize)]
struct Told {
    hls: Vec<String>,
    flv: Vec<String>,
    /// Ends of slots that came down the stream.
    seals: u32,
    /// Fragments with a message.
    fragments: u32,
    errors: Vec<String>,
}

/// Serves the page and the players, and takes what the page tells.
async fn serve_page(told: watch::Sender<Told>) -> std::net::SocketAddr {
    let router = Router::new()
        .route("/", get(async || Html(include_str!("players.html"))))
        .route("/{script}", get(script))
        .route("/told", post(take))
        .with_state(told);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    tokio::task::spawn_local(async move { axum::serve(listener, router).await.unwrap() });
    addr
}

async fn script(Path(name): Path<String>) -> impl IntoResponse {
    let file = match name.as_str() {
        "hls.js" => "hls.js/dist/hls.min.js",
        "mpegts.js" => "mpegts.js/dist/mpegts.js",
        _ => return Err(axum::http::StatusCode::NOT_FOUND),
    };
    let tools = std::env::var_os("BARRAGE_TOOLS").map(PathBuf::from);
    let tools =
        tools.unwrap_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../target/tools"));
    let file = tools.join("node/node_modules").join(file);
    let text = std::fs::read(&file);
    let text = text.unwrap_or_else(|it| panic!("{}: {it}: run ops/tools/install", file.display()));
    Ok(([(CONTENT_TYPE, "text/javascript")], text))
}

async fn take(State(told): State<watch::Sender<Told>>, body: Bytes) {
    told.send_replace(serde_json::from_slice(&body).unwrap());
}

fn browse(url: &str, profile: &std::path::Path) -> Child {
    Command::new("chromium")
        .args(["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"])
        .args(["--autoplay-policy=no-user-gesture-required", "--no-first-run"])
        .arg(format!("--user-data-dir={}", profile.display()))
        .arg(url)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .expect("Chromium is there: ops/check installs it")
}

#[tokio::test(flavor = "local")]
async fn both_players_are_given_every_item_once() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::new(&folder.path().join("segments"));
    world.set_room(settings(), true).await;
    let running = world.start(Config { hls: true, ..stage::config(1) }).await;
    let (sender, mut told) = watch::channel(Told::default());
    let page = serve_page(sender).await;
    let url = format!("http://{page}/?base=http://{}/dm/1/room-1", running.addr);
    let mut browser = browse(&url, &folder.path().join("profile"));

    // Both play before anything is said.
    wait(&mut told, |it| it.seals > 0 && it.fragments > 0).await;
    for id in 1..=ITEMS {
        world.admit(vec![if id % 10 == 0 { gift(id) } else { comment(id) }]).await;
        world.clock.sleep(Duration::from_millis(30)).await;
    }
    let count = usize::try_from(ITEMS).unwrap();
    let all = wait(&mut told, |it| it.hls.len() >= count && it.flv.len() >= count).await;

    browser.kill().await.unwrap();
    assert_eq!(all.errors, [""; 0]);
    for (player, ids) in [("hls", all.hls), ("flv", all.flv)] {
        let mut ids: Vec<u64> = ids.iter().map(|it| it.parse().unwrap()).collect();
        ids.sort_unstable();
        assert_eq!(ids, (1..=ITEMS).collect::<Vec<_>>(), "{player}");
    }
    running.stop().await;
}

async fn wait(told: &mut watch::Receiver<Told>, is_there: impl Fn(&Told) -> bool) -> Told {
    let found = tokio::time::timeout(PATIENCE, told.wait_for(is_there)).await;
    let found = found.map(|it| it.unwrap().clone());
    found.unwrap_or_else(|_| panic!("the players say {:?}", *told.borrow()))
}
