//! The same link through another's client.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use bus::memory::Limits;
use proto::close::CloseCode;
use proto::frame::{Credential, Downlink, Join, Login, Path as RoomPath, Uplink};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::process::Command;
use tokio::time::timeout;

use super::wire::{ping, ping_of};
use crate::client::hello;
use crate::world::{PATIENCE, World, room};

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/link/conformance/client.mjs");

#[tokio::test]
async fn another_client_is_served_in_pieces_between_pings_and_says_goodbye() {
    // The longest messages count as many, and pongs as one each.
    let world = World::with(Limits::default(), |config| config.frames_burst = 100).await;

    let said = talk(&world, "whole", &["ping", "message", "pieces", "sizes", "close"]).await;

    assert_eq!(said["extensions"], "", "{said}");
    assert_eq!(said["pongs"], json!(["", "Hello", "2a".repeat(125)]), "{said}");
    assert_eq!(served(&said), [1, 2, 3, 4, 5, 6], "{said}");
    assert_eq!(said["code"], CloseCode::Bye.code(), "{said}");
}

#[tokio::test]
async fn another_client_that_sends_text_is_told_so() {
    let world = World::new().await;

    let said = talk(&world, "text", &["message", "text"]).await;

    assert_eq!(served(&said), [1], "{said}");
    assert_eq!(said["code"], CloseCode::BadFrame.code(), "{said}");
}

/// The numbers of the frames that were answered.
fn served(said: &Value) -> Vec<u64> {
    let frames = said["frames"].as_array().unwrap().iter();
    let frames = frames.map(|it| hex::decode(it.as_str().unwrap()).unwrap());
    let pong = |it: Vec<u8>| match Downlink::decode(&it).unwrap() {
        Downlink::Pong { nonce, .. } => Some(nonce),
        _ => None,
    };
    frames.filter_map(pong).collect()
}

/// Lets the client log in and do some things, in this order; gives what it saw.
async fn talk(world: &World, viewer: &str, acts: &[&str]) -> Value {
    let joins = vec![Join { room: room("r"), path: RoomPath::Auto, resume: None }];
    let credential = Credential::Token(world.token("ws", viewer, "r"));
    let login = Uplink::Login(Login { credential, binder: None, device: None, joins });
    let sizes = (3..).zip([126, 128, 65_535, 65_536]).map(|(nonce, bytes)| ping_of(nonce, bytes));
    let task = json!({
        "ws": module(),
        "url": format!("ws://{}/", world.address("ws").authority()),
        "login": [hex::encode(Uplink::Hello(hello()).encode()), hex::encode(login.encode())],
        "acts": acts,
        "message": hex::encode(ping(1)),
        "pieces": hex::encode(ping(2)),
        "sizes": sizes.map(hex::encode).collect::<Vec<_>>(),
    });
    let mut node = Command::new("node")
        .arg(SCRIPT)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap_or_else(|error| panic!("node did not start: run ops/tools/install ({error})"));
    let mut input = node.stdin.take().unwrap();
    input.write_all(task.to_string().as_bytes()).await.unwrap();
    drop(input);
    let output = timeout(PATIENCE, node.wait_with_output()).await.expect("node hangs").unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Where the client is.
fn module() -> PathBuf {
    let folder = std::env::var_os("BARRAGE_TOOLS").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/tools"),
        PathBuf::from,
    );
    let file = folder.join("node/node_modules/ws/wrapper.mjs");
    assert!(file.exists(), "{} is missing: run ops/tools/install", file.display());
    file.canonicalize().unwrap()
}
