//! Servers whose subscribers come over WebSocket (RFC 6455).

use std::fs;
use std::net::SocketAddr;
use std::path::Path;

use tokio::process::Command;

use super::{Step, Ways, item};
use crate::peer::{nginx_with, tool};

const TEXT: u8 = 0x81;
const BINARY: u8 = 0x82;

/// nchan, in one process of nginx.
pub(super) fn nchan(folder: &Path, addr: SocketAddr) -> anyhow::Result<Ways> {
    // As many messages as a round has at once must be there for subscribers that are behind.
    let server = format!(
        "listen {addr} backlog=1024;\n\
         location = /s {{ nchan_subscriber websocket; nchan_channel_id room; }}\n\
         location = /p {{ nchan_publisher websocket; nchan_channel_id room;\n\
         nchan_message_buffer_length 100; nchan_message_timeout 5m; }}"
    );
    let module = "load_module /usr/lib/nginx/modules/ngx_nchan_module.so;";
    Ok(Ways {
        command: nginx_with(folder, module, 15_000, &server)?,
        subscribe: vec![upgrade("/s")],
        enter: vec![upgrade("/p")],
        publish: publish_binary,
    })
}

/// uWebSockets, in one process of Python, which only starts it.
pub(super) fn uws(folder: &Path, addr: SocketAddr) -> anyhow::Result<Ways> {
    fs::write(folder.join("uws.py"), include_str!("uws.py"))?;
    let mut command = Command::new(tool("peers/bin/python"));
    command.args(["uws.py", &addr.port().to_string()]);
    Ok(Ways {
        command,
        subscribe: vec![upgrade("/s")],
        enter: vec![upgrade("/p")],
        publish: publish_binary,
    })
}

/// Centrifugo with its JSON protocol, without history and presence.
pub(super) fn centrifugo(folder: &Path, addr: SocketAddr) -> anyhow::Result<Ways> {
    let config = serde_json::json!({
        "http_server": { "address": addr.ip().to_string(), "port": addr.port() },
        "log": { "level": "error" },
        // Nobody is asked for a sign of life in the middle of a round.
        "client": {
            "allow_anonymous_connect_without_token": true,
            "allowed_origins": ["*"],
            "ping_interval": "30m",
            "pong_timeout": "10s",
            "connection_limit": 15_000,
        },
        "channel": {
            "without_namespace": {
                "allow_subscribe_for_client": true,
                "allow_subscribe_for_anonymous": true,
                "allow_publish_for_client": true,
                "allow_publish_for_anonymous": true,
            },
        },
    });
    fs::write(folder.join("config.json"), config.to_string())?;
    let mut command = Command::new(tool("bin/centrifugo"));
    command.args(["--config", "config.json"]);
    let enter = vec![
        upgrade("/connection/websocket"),
        Step::new(message(TEXT, br#"{"id":1,"connect":{}}"#), "}}"),
    ];
    let subscribe = message(TEXT, br#"{"id":2,"subscribe":{"channel":"room"}}"#);
    Ok(Ways {
        command,
        subscribe: [enter.clone(), vec![Step::new(subscribe, "}}")]].concat(),
        enter,
        publish: |items| {
            let text = String::from_utf8_lossy(&item()).into_owned();
            let publish = serde_json::json!({ "channel": "room", "data": text });
            let command = serde_json::json!({ "id": 3, "publish": publish }).to_string();
            message(TEXT, command.as_bytes()).repeat(items)
        },
    })
}

fn publish_binary(items: usize) -> Vec<u8> {
    message(BINARY, &item()).repeat(items)
}

/// The request after which the connection is a WebSocket.
fn upgrade(path: &str) -> Step {
    let request = format!(
        "GET {path} HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
    );
    Step::new(request, "\r\n\r\n")
}

/// A client's message: masked with zeros, which leave it as it is.
fn message(kind: u8, payload: &[u8]) -> Vec<u8> {
    const MASKED: u8 = 0x80;
    const LONG: u8 = 126;
    let mut message = vec![kind];
    match u8::try_from(payload.len()) {
        Ok(length) if length < LONG => message.push(MASKED | length),
        Ok(_) | Err(_) => {
            let length = u16::try_from(payload.len()).expect("a message here has one item");
            message.push(MASKED | LONG);
            message.extend(length.to_be_bytes());
        }
    }
    message.extend([0; 4]);
    message.extend(payload);
    message
}
