//! Servers with a protocol of their own over TCP.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;

use tokio::process::Command;

use super::{ITEM_BYTES, Step, Ways, item};
use crate::peer::tool;

/// Mosquitto, MQTT 3.1.1 (sections 3.1 to 3.9), quality of service 0.
pub(super) fn mosquitto(folder: &Path, addr: SocketAddr) -> anyhow::Result<Ways> {
    // Without a limit of what waits: subscribers must get everything, and are many.
    let config = format!(
        "listener {} {}\nallow_anonymous true\nset_tcp_nodelay true\nmax_queued_messages 0\n",
        addr.port(),
        addr.ip()
    );
    fs::write(folder.join("mosquitto.conf"), config)?;
    let mut command = Command::new("mosquitto");
    command.args(["-c", "mosquitto.conf"]);
    // Fixed header; protocol name and level; a clean session; no keep-alive; an empty name, for
    // which the server makes one.
    let connect = b"\x10\x0c\x00\x04MQTT\x04\x02\x00\x00\x00\x00";
    let connected = Step::new(connect, *b"\x20\x02\x00\x00");
    // Packet 1: the topic `room`, quality of service 0.
    let subscribe = Step::new(*b"\x82\x09\x00\x01\x00\x04room\x00", *b"\x90\x03\x00\x01\x00");
    Ok(Ways {
        command,
        subscribe: vec![connected.clone(), subscribe],
        enter: vec![connected],
        publish: |items| {
            // 206 bytes behind the header, as a number of two bytes.
            [&b"\x30\xce\x01\x00\x04room"[..], &item()].concat().repeat(items)
        },
    })
}

/// Redis, RESP 2.
pub(super) fn redis(addr: SocketAddr) -> Ways {
    let mut command = Command::new("redis-server");
    command.args(["--port", &addr.port().to_string(), "--bind", &addr.ip().to_string()]);
    command.args(["--save", "", "--maxclients", "15000", "--tcp-backlog", "1024"]);
    Ways {
        command,
        subscribe: vec![Step::new("SUBSCRIBE room\r\n", ":1\r\n")],
        enter: Vec::new(),
        publish: |items| {
            let head = format!("*3\r\n$7\r\nPUBLISH\r\n$4\r\nroom\r\n${ITEM_BYTES}\r\n");
            [head.as_bytes(), &item(), b"\r\n"].concat().repeat(items)
        },
    }
}

/// NATS, its client protocol, without JetStream.
pub(super) fn nats(folder: &Path, addr: SocketAddr) -> anyhow::Result<Ways> {
    // Nobody is asked for a sign of life in the middle of a round.
    fs::write(folder.join("nats.conf"), format!("listen: \"{addr}\"\nping_interval: \"30m\"\n"))?;
    let mut command = Command::new(tool("bin/nats-server"));
    command.args(["-c", "nats.conf"]);
    let welcome = Step::new("", "\r\n");
    let connect = "CONNECT {\"verbose\":false,\"pedantic\":false,\"name\":\"\"}\r\n";
    Ok(Ways {
        command,
        subscribe: vec![
            welcome.clone(),
            Step::new(format!("{connect}SUB room 1\r\nPING\r\n"), "PONG\r\n"),
        ],
        enter: vec![welcome, Step::new(format!("{connect}PING\r\n"), "PONG\r\n")],
        publish: |items| {
            let head = format!("PUB room {ITEM_BYTES}\r\n");
            [head.as_bytes(), &item(), b"\r\n"].concat().repeat(items)
        },
    })
}
